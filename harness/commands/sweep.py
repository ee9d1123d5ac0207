"""``harness sweep``: lists tables, containers and queues of killed runs, and deletes named ones."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from functools import partial

from harness.commands.common import ONE_OBJECT
from harness.endpoint.accounts import Credentials
from harness.endpoint.admin.housekeeping import Housekeeping
from harness.endpoint.admin.probe import check
from harness.endpoint.admin.stores import delete_store, leftovers
from harness.measure.record.findings import RecordPart
from harness.model.errors import SetupError
from harness.model.services import server_of_session
from harness.model.sessions import SESSIONS
from harness.options import add_endpoint_options
from harness.report.export.output import CommandOutput

_WITHIN_S = 60.0


class Sweep:
    """Lists tables that killed runs left behind, and deletes the tables that --delete names.

    A run deletes its table when it ends, also after Ctrl-C, but not if it is killed. A table is
    listed if its name has the form that runs use (stress, UTC time, 8 hex digits) and if it is
    older than --older-than-s. Only listed tables can be deleted. At an address of blobs the same is
    done with containers, and at one of queues with queues.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        add_endpoint_options(parser, "the endpoint; can be repeated for several accounts")
        parser.add_argument(
            "--delete", nargs="+", default=[], metavar="NAME", help="delete these tables"
        )
        parser.add_argument(
            "--older-than-s",
            type=float,
            default=3600.0,
            metavar="S",
            help="ignore tables that are younger than S seconds (default: %(default)s)",
        )
        parser.add_argument(
            "--session",
            choices=tuple(SESSIONS),
            help="the session of the runs, where the address does not tell to what it belongs "
            "(default: what the address tells, else tables)",
        )
        parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format("sweep"))

    def run(self, args: argparse.Namespace) -> int:
        server = None if args.session is None else server_of_session(args.session)
        credentials = Credentials(mode=args.auth_mode)
        accounts = credentials.permitted(args.host, args.remote_ok, server=server)
        store = accounts.kind.store
        for endpoint in accounts:
            check(endpoint)
        now = dt.datetime.now(dt.UTC)
        housekeeping = Housekeeping(partial(print, file=sys.stderr, flush=True))
        found = {
            endpoint: housekeeping.do(
                f"listing the {store}s at {endpoint.host}",
                partial(leftovers, endpoint, now, args.older_than_s),
                within_s=_WITHIN_S,
            )
            for endpoint in accounts
        }
        known = {name for tables in found.values() for name in tables}
        if strangers := [name for name in args.delete if name not in known]:
            raise SetupError(
                f"no leftover {store} older than {args.older_than_s:g} s has the name "
                f"{', '.join(strangers)}. Nothing was deleted"
            )
        swept = []
        for endpoint, tables in found.items():
            if not tables and not args.json:
                print(f"no leftover {store}s older than {args.older_than_s:g} s at {endpoint.host}")
            for name, made_at in tables.items():
                age_s, deleted = (now - made_at).total_seconds(), name in args.delete
                if deleted:
                    housekeeping.do(
                        f"deleting the {store} {name}",
                        partial(delete_store, endpoint, name),
                        within_s=_WITHIN_S,
                    )
                part = SweptPart(table=name, host=endpoint.host, age_s=age_s, deleted=deleted)
                swept.append(part)
                state = "deleted" if deleted else "kept"
                at = f"  at {endpoint.host}" if len(accounts) > 1 else ""
                if not args.json:
                    print(f"{name}  {age_s / 3600:8.1f} h old  {state}{at}", flush=True)
        if args.json:
            print(SweepOutput(tables=tuple(swept)).to_json(), end="")
        return 0


class SweptPart(RecordPart):
    """A table, a container or a queue that a killed run left behind."""

    table: str
    host: str
    age_s: float
    deleted: bool


class SweepOutput(CommandOutput):
    """The leftover tables, containers or queues, deleted or not."""

    tables: tuple[SweptPart, ...]
