"""``harness keys``: saves the keys of a table that exists, for the fields of a profile."""

from __future__ import annotations

import argparse
import contextlib
import csv
import itertools
import sys
from functools import partial
from pathlib import Path

from harness.endpoint.accounts import Credentials
from harness.endpoint.admin.housekeeping import Housekeeping
from harness.endpoint.admin.probe import check
from harness.endpoint.admin.tables import KEY_PROPERTIES, listed
from harness.model.entity import MAX_PAGE_ENTITIES
from harness.model.errors import SetupError
from harness.model.figures import counted
from harness.options import add_endpoint_options
from harness.workload.budget import Budget

_MOST = 1_000_000
_WITHIN_S = 600.0
_EMPTY_PAGES = 10
"""Further requests, for pages with a continuation token and few entities."""


class SaveKeys:
    """Saves PartitionKey and RowKey of the first entities of a table, and nothing else of them.

    A profile can draw a field from the file, in which a key counts as often as it occurs:

      [fields.device]
      from = "keys.csv"
      column = "PartitionKey"

    `harness check --keys FILE` says what the keys look like. Entities come in the order of their
    keys, so that the first ones of a large table are not a sample of all: the command says whether
    there are more.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--from-table", required=True, metavar="NAME", help="the table to read from"
        )
        add_endpoint_options(parser, "its endpoint")
        parser.add_argument(
            "--most",
            type=int,
            default=10_000,
            metavar="N",
            help="read at most N entities, 1,000 in a billable request (default: %(default)s)",
        )
        parser.add_argument(
            "-o", "--output", type=Path, metavar="FILE", help="a CSV file (default: print it)"
        )

    def run(self, args: argparse.Namespace) -> int:
        if not 1 <= args.most <= _MOST:
            raise SetupError(f"--most is 1 to {_MOST:,}, not {args.most:,}")
        accounts = Credentials(mode=args.auth_mode).permitted(args.host, args.remote_ok)
        if len(accounts) > 1:
            raise SetupError("harness keys reads from one account; give one host")
        [endpoint] = accounts
        check(endpoint)
        budget = Budget(-(-args.most // MAX_PAGE_ENTITIES) + _EMPTY_PAGES)
        housekeeping = Housekeeping(partial(print, file=sys.stderr, flush=True))
        found = housekeeping.do(
            f"reading keys of the table {args.from_table}",
            # One more shows whether there are more.
            lambda: list(
                itertools.islice(
                    listed(endpoint, args.from_table, list(KEY_PROPERTIES), budget), args.most + 1
                )
            ),
            within_s=_WITHIN_S,
        )
        more = len(found) > args.most
        kept = found[: args.most]
        try:
            with (
                contextlib.nullcontext(sys.stdout)
                if args.output is None
                else args.output.open("w", encoding="utf-8", newline="")
            ) as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(KEY_PROPERTIES)
                writer.writerows(kept)
        except OSError as error:
            raise SetupError(f"{args.output} cannot be written: {error.strerror}") from error
        partitions = counted(len({partition for partition, _ in kept}), "partition")
        rest = "; the table has more, these are the first in key order" if more else ""
        read = counted(len(kept), "entity", "entities")
        spent = counted(budget.spent, "request")
        print(f"{read} of {partitions}, in {spent}{rest}", file=sys.stderr)
        return 0
