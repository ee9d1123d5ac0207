"""``harness sweep``: tables that killed runs left behind, listed and deleted by name."""

from __future__ import annotations

import argparse
import datetime as dt
import os

from harness.endpoint.connection import consent_problem, endpoint_from
from harness.endpoint.probe import check
from harness.endpoint.tables import delete_table, leftovers
from harness.model.errors import SetupError


class Sweep:
    """List and delete tables that runs left behind."""

    name = "sweep"
    help = "list the tables that killed runs left behind, and delete the named ones"
    description = (
        "A run deletes its table, also after Ctrl-C. One that was killed could not. This lists "
        "the tables whose name is of the harness's own form (stress, UTC time, 8 hex digits) and "
        "that are old enough to be nobody's running test. Only those can be deleted, by name."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Where, how old, and what to delete."""
        parser.add_argument("-H", "--host", required=True, metavar="URL", help="the endpoint")
        parser.add_argument(
            "--delete", nargs="+", default=[], metavar="NAME", help="delete these of the listed"
        )
        parser.add_argument(
            "--older-than-s",
            type=float,
            default=3600.0,
            metavar="S",
            help="leave younger tables alone (%(default)s)",
        )
        parser.add_argument(
            "--remote-ok",
            metavar="ACCOUNT",
            help="account in the host, said again: its requests are billed",
        )

    def run(self, args: argparse.Namespace) -> int:
        """List; delete what was named and is listed."""
        endpoint = endpoint_from(args.host, os.environ)
        problem = consent_problem(endpoint, args.remote_ok)
        if problem is not None:
            raise SetupError(problem)
        check(endpoint)
        now = dt.datetime.now(dt.UTC)
        found = leftovers(endpoint, now, args.older_than_s)
        names = {leftover.name for leftover in found}
        if strangers := [name for name in args.delete if name not in names]:
            raise SetupError(
                f"not a leftover older than {args.older_than_s:g} s: {', '.join(strangers)}. "
                "Nothing was deleted"
            )
        if not found:
            print(f"no leftovers older than {args.older_than_s:g} s at {endpoint.host}")
        for leftover in found:
            age_h = (now - leftover.made_at).total_seconds() / 3600
            if leftover.name in args.delete:
                delete_table(endpoint, leftover.name)
            state = "deleted" if leftover.name in args.delete else "kept"
            print(f"{leftover.name}  {age_h:8.1f} h old  {state}")
        return 0
