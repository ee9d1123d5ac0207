"""``harness whatif``: the recorded traffic under other keys."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import __version__
from harness.commands.common import (
    ONE_OBJECT,
    Progress,
    require_apart,
    say_page,
    whole_number,
    write_page,
)
from harness.gateway.limits import GatewayLimits, limits_path, load_limits
from harness.model.errors import SetupError, cut
from harness.model.process import search_rarely, this_process_runs_on
from harness.model.target import Throughput
from harness.report.terminal.page import Page
from harness.report.web.key_pages import whatif_page
from harness.report.whatif import whatif_text
from harness.trace.advise.reasons import of_failed
from harness.trace.advise.traffic import failed_operations
from harness.trace.sources import opened
from harness.trace.whatif.rows_before import EVERY_TABLE
from harness.trace.whatif.scheme import Scheme, read_scheme
from harness.trace.whatif.whatif import what_if

_MOST_SCHEMES = 12
_LONG = 500_000
"""Operations from which on processes of their own gain more time than they need to start."""
_MOST_FACTOR = 10_000.0
"""Up to this multiple of the traffic a first limit is looked for."""


class WhatIf:
    """Calculates the load and the throttling of recorded traffic under other keys.

    Nothing is sent. TRACE is what `harness trace` reads: a recording, or a log of Azure Storage.
    The recorded keys and each scheme are compared with the published limits in simulated time. The
    result is the load of the hottest partition, the share of throttled requests without retries and
    with back-off, and the price of a scheme: entities that collide, transactions that split,
    queries that need more partitions.

    A scheme is a TOML file:

      question = "What if the sensor came first?"
      [match]                                  # regular expressions with named groups
      partition_key = '(?P<day>[0-9-]+)__(?P<sensor>.+)'
      [keys]                                   # 2026-11-20__sensor7 -> sensor7_2026-11
      partition_key = "{sensor}_{day:month}"
      row_key = "{day}_{row_key}"

    A field names a group, partition_key or row_key; several are joined by +. After a colon follows
    the part of the value to use: year, month, day or hour of a date, hashN (N hexadecimal digits of
    a hash), bucketN (one of N buckets), firstN or lastN characters; `harness schemes` lists all.
    Without [match] both keys are used whole. `table = "name"` applies the scheme to one table only.
    With `properties = ["customerId"]` a field may name this property, if the trace has its values
    (--trace-properties).

    --limits cosmos asks the same of Azure Cosmos DB for Table: request units of the hottest
    PartitionKey and of the hottest physical partition, estimated from the recorded bytes.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--keys",
            action="append",
            default=[],
            type=Path,
            metavar="SCHEME.toml",
            help="a key scheme to compare with the recorded keys; can be repeated",
        )
        parser.add_argument(
            "--rate",
            type=positive_factor,
            metavar="FACTOR",
            help="multiply the traffic, as replay.speed does, and find the factor at which each "
            "scheme meets a limit",
        )
        parser.add_argument(
            "--provisioned-ru-per-s",
            type=whole_number(10_000_000),
            metavar="RU",
            help="with --limits cosmos: what is provisioned (default: as in the limits)",
        )
        parser.add_argument(
            "--physical-partitions",
            type=whole_number(1000),
            metavar="N",
            help="over how many physical partitions (default: as few as can have it)",
        )
        take_question(parser, "whatif")

    def run(self, args: argparse.Namespace) -> int:
        if len(args.keys) > _MOST_SCHEMES:
            raise SetupError(
                f"{_MOST_SCHEMES} schemes can be compared at once, not {len(args.keys)}"
            )
        require_apart(args.html, args.file, *args.keys)
        schemes = _read_schemes(args.keys)
        limits = load_limits(limits_path(args.limits))
        limits = _provisioned(limits, args)
        search_rarely()
        rows = any(scheme.properties for scheme in schemes)
        with opened(args.file, Progress("reading the log"), rows=rows) as trace:
            progress = Steps(trace.operations)
            processes = len(this_process_runs_on().cores) if trace.operations >= _LONG else 1
            found = what_if(
                trace,
                schemes,
                limits,
                name=args.file.name,
                limits_name=Path(args.limits).stem,
                rate=args.rate or 1.0,
                most_factor=0.0 if args.rate is None else _MOST_FACTOR,
                version=__version__,
                rows_said=dict(args.rows),
                processes=processes,
                progress=progress,
            )
            progress.end()
            failed = of_failed(failed_operations(trace), trace.operations)
            found = found.model_copy(update={"damage": (*found.damage, *failed)})
        if args.html is not None:
            write_page(args.html, whatif_page(found))
        if args.json:
            print(found.model_dump_json(indent=1))
        else:
            print(whatif_text(found, Page.of_terminal(sys.stdout)))
            say_page(args.html)
        return 0


def _read_schemes(paths: Sequence[Path]) -> list[Scheme]:
    """The schemes, with names that tell them apart."""
    schemes = [read_scheme(path) for path in paths]
    names = collections.Counter(scheme.name for scheme in schemes)
    for scheme, path in zip(schemes, paths, strict=True):
        if paths.count(path) > 1:
            raise SetupError(f"--keys {cut(str(path))} is given twice")
        if names[scheme.name] > 1:
            scheme.name = str(path)
    return schemes


def _provisioned(limits: GatewayLimits, args: argparse.Namespace) -> GatewayLimits:
    """The limits with what the options say to be provisioned."""
    per_s, count = args.provisioned_ru_per_s, args.physical_partitions
    if per_s is None and count is None:
        return limits
    if limits.units is None:
        option = "--physical-partitions" if per_s is None else "--provisioned-ru-per-s"
        raise SetupError(f"{option} needs limits in request units: add --limits cosmos")
    given = Throughput(
        ru_per_s=per_s or limits.units.provisioned_ru_per_s, physical_partitions=count
    )
    return limits.provisioned(
        dataclasses.replace(given, physical_partitions=given.fewest_partitions)
    )


def positive_factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.001 <= value <= 10_000:
        raise argparse.ArgumentTypeError(f"must be a number from 0.001 to 10000, not {cut(text)!r}")
    return value


def take_question(parser: argparse.ArgumentParser, command: str) -> None:
    """Add what a ``command`` asks of a trace, and its outputs."""
    parser.add_argument("file", metavar="TRACE", type=Path, help="a trace, a log, or a folder")
    parser.add_argument(
        "--limits",
        default="published",
        metavar="NAME",
        help="shipped limits, or a file of limits (default: %(default)s); cosmos is in request "
        "units",
    )
    parser.add_argument(
        "--rows",
        action="append",
        default=[],
        type=_rows,
        metavar="[TABLE=]N",
        help="rows that each table, or this one, had before the trace; without it, what "
        "queries would read besides is counted as far as the trace shows it, a lower bound",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a page")
    parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format(command))


def _rows(text: str) -> tuple[str, int]:
    """A table in lower case, or `EVERY_TABLE`, and its rows."""
    table, named, number = text.rpartition("=")
    if not number.isdecimal() or len(number) > 12 or (named and not table):
        raise argparse.ArgumentTypeError(
            f"must be a number of rows, or such as orders=1000, not {cut(text)!r}"
        )
    return table.lower() or EVERY_TABLE, int(number)


class Steps:
    """Shows the progress of each step: a scheme, or a factor that is tried for it."""

    def __init__(self, operations: int) -> None:
        self._operations = operations
        self._step, self._done = "", 0
        self._shown = Progress("")

    def __call__(self, step: str, operations: int) -> None:
        if step != self._step:
            self.end()
            self._step, self._done, self._shown = step, 0, Progress(cut(step))
        self._done += operations
        self._shown(min(self._done, self._operations - 1), self._operations)

    def end(self) -> None:
        self._shown(1, 1)
