"""``harness trace``: shows the content of a trace or a log, and converts it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

from datasketches import frequent_items_error_type, frequent_strings_sketch, hll_sketch

from harness.commands.common import Progress
from harness.measure.counts.time_course import PerSecond
from harness.model.errors import SetupError, printable_lines
from harness.model.figures import counted, data_size, duration
from harness.model.operation import FOLDED, Kind
from harness.model.partition import Partition
from harness.options import aliases_from
from harness.report.terminal.page import Page
from harness.report.terminal.traffic import (
    MOST_LISTED,
    HotRow,
    Peak,
    Traffic,
    traffic_json,
    traffic_text,
)
from harness.trace.counting import TraceCounts
from harness.trace.head import KEPT
from harness.trace.operations import UNKNOWN, TracedOperation, TracedParts
from harness.trace.reader import Trace
from harness.trace.sources import convert, opened, ordered_aliases

_MOST_WIDTH = 110
_WIDTHS_S = (1, 10, 60)
_SKETCH_LOG2 = 12
_MOST_CLIENTS = 100
_SEPARATOR = "\0"


class TraceCommand:
    """Shows what is in a trace: operations, partitions, hottest keys, peaks, and a heat map.

    FILE is a trace that `harness watch --trace` or a run with --trace wrote, a log of Azure Storage
    (Azure Monitor's StorageTableLogs as JSON or CSV, or Storage Analytics 1.0 and 2.0), or a
    folder with such logs. The format is detected. With --to the operations are written to a new
    trace: a log becomes a trace, a damaged trace a whole one, and keys can be replaced by aliases.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="a trace, a log, or a folder")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument(
            "--to", metavar="NEW", type=Path, help="write the operations to this new trace"
        )
        parser.add_argument(
            "--redact-keys",
            action="store_true",
            help="with --to: replace PartitionKeys and RowKeys with aliases",
        )
        parser.add_argument(
            "--keep-prefixes",
            action="store_true",
            help="with --redact-keys: keys with a common beginning, such as a date, have aliases "
            "with a common beginning",
        )
        parser.add_argument(
            "--keep-order",
            action="store_true",
            help="with --redact-keys: aliases sort as the keys do, so that ranges of keys stay "
            "ranges; holds all keys in memory",
        )

    def run(self, args: argparse.Namespace) -> int:
        if args.to is None:
            if args.redact_keys or args.keep_prefixes or args.keep_order:
                raise SetupError("--redact-keys needs --to: it writes a trace with aliases")
            with opened(args.file, Progress("reading the log")) as trace:
                traffic = study(trace, args.file.name, Progress("counting"))
            if args.json:
                print(traffic_json(traffic))
            else:
                print(traffic_text(traffic, Page.of_terminal(sys.stdout, _MOST_WIDTH)))
                named = shlex.quote(str(args.file))
                next_steps = (
                    f"\nSend it again: harness run replay --set replay.trace={named}\n"
                    f"Try other keys: harness whatif {named} --keys scheme.toml"
                )
                print(printable_lines(next_steps))
            return 0
        return self._convert(args)

    def _convert(self, args: argparse.Namespace) -> int:
        kept = [name for name in ("keep_prefixes", "keep_order") if getattr(args, name)]
        if kept and not args.redact_keys:
            raise SetupError("--keep-prefixes and --keep-order need --redact-keys")
        if len(kept) > 1:
            raise SetupError("aliases keep prefixes or order, not both: leave one of them out")
        progress = Progress("writing")
        if args.keep_order:
            with opened(args.file, Progress("reading the log")) as trace:
                alias = ordered_aliases(trace)
                done = convert(trace.path, args.to, alias, "order", progress)
        else:
            aliases = aliases_from(os.environ, args)
            if aliases is None:
                done = convert(args.file, args.to, tell=progress)
            else:
                done = convert(args.file, args.to, aliases.key, aliases.kept, progress)
        operations, notes = done
        size = data_size(args.to.stat().st_size)
        written = f"Trace: {args.to} ({counted(operations, 'operation')}, {size})"
        print(*map(printable_lines, (written, *notes)), sep="\n")
        return 0


class _Study:
    """Counts what the ledger does not: clients, rows, and facts that the source leaves out."""

    def __init__(self) -> None:
        self.partitions = hll_sketch(_SKETCH_LOG2)
        self.rows = frequent_strings_sketch(_SKETCH_LOG2)
        self.clients: dict[str, int] = {}
        self.unknown = {
            "PartitionKey": 0,
            "RowKey": 0,
            "parts of a transaction": 0,
            "entities counted": 0,
        }

    def add(self, row: TracedOperation) -> None:
        shape, unknown, partition = row.shape, self.unknown, row.partition
        client = shape.client
        if client not in self.clients and len(self.clients) >= _MOST_CLIENTS:
            client = FOLDED
        self.clients[client] = self.clients.get(client, 0) + 1
        if row.partition_key is None:
            unknown["PartitionKey"] += 1
        elif not Partition.named(partition).whole_table:
            self.partitions.update(partition)
        if shape.estimated:
            unknown["entities counted"] += 1
        if isinstance(row.detail, TracedParts):
            for row_key in filter(None, row.detail.row_keys):
                self.rows.update(f"{partition}{_SEPARATOR}{row_key}", 1)
        elif shape.kind is Kind.TRANSACTION:
            unknown["parts of a transaction"] += 1
        elif row.row_key is None:
            unknown["RowKey"] += 1
        elif shape.kind is not Kind.QUERY:
            self.rows.update(f"{partition}{_SEPARATOR}{row.row_key}", 1)


def study(trace: Trace, name: str, tell: Progress) -> Traffic:
    """What is in a trace.

    Raises:
        SetupError: see `TraceCounts.rows`.
    """
    counts, studied = TraceCounts(trace, name, tell), _Study()
    for row in counts.rows():
        studied.add(row)
    snapshot = counts.snapshot()
    widths = [min(width, snapshot.length_s) for width in _WIDTHS_S]
    seconds = PerSecond()
    for point in snapshot.series:
        seconds.add(point.second, point.entities)
    traffic = Traffic(
        name=name,
        head=_head(trace, counts),
        snapshot=snapshot,
        seconds=counts.seconds,
        partitions=sum(
            not part.partition.whole_table and part.partition.key != UNKNOWN
            for part in snapshot.partitions
        )
        if snapshot.folded is None
        else round(studied.partitions.get_estimate()),
        exact=snapshot.folded is None,
        peaks=tuple(
            Peak(width_s=width, second=at, entities_per_s=rate)
            for width in dict.fromkeys(widths)
            for at, rate in [seconds.busiest(width)]
        ),
        hottest=tuple(
            (part, counts.ledger.seconds_of(part.key).busiest(widths[-1])[1])
            for part in sorted(snapshot.partitions, key=lambda part: -part.entities)[:MOST_LISTED]
        ),
        hottest_rows=_hottest_rows(studied.rows),
        unknown=studied.unknown,
        clients=dict(sorted(studied.clients.items(), key=lambda item: -item[1])),
        notes=(*trace.notes, *trace.damage.sentences()),
    )
    counts.close()
    return traffic


def _head(trace: Trace, counts: TraceCounts) -> tuple[tuple[str, str], ...]:
    head = trace.head
    started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(counts.started_s))
    rows = (
        ("source", head.recorded),
        ("operations", f"{started}, {duration(counts.seconds)}"),
        ("endpoint", head.endpoint),
        ("account", head.account),
        ("record", head.run_id),
        ("keys", "" if trace.damage.headless else KEPT.get(head.keys, head.keys)),
        ("file", f"{counted(trace.operations, 'operation')}, {data_size(trace.bytes)}"),
        ("written by", f"harness {head.harness}" if head.harness else ""),
    )
    return tuple((what, text) for what, text in rows if text)


def _hottest_rows(rows: frequent_strings_sketch) -> tuple[HotRow, ...]:
    """The most accessed entities, without those that were accessed only once or might be others."""
    items = rows.get_frequent_items(frequent_items_error_type.NO_FALSE_POSITIVES)
    hottest = []
    for key, _, at_least, at_most in sorted(items, key=lambda item: -item[2])[:MOST_LISTED]:
        if at_least > 1:
            partition, _, row_key = key.partition(_SEPARATOR)
            bounds = {"at_least": int(at_least), "at_most": int(at_most)}
            hottest.append(HotRow(partition=partition, row_key=row_key, **bounds))
    return tuple(hottest)
