"""``harness trace``: shows the content of a trace or a log, and converts it."""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import os
import shlex
import sys
import time
from pathlib import Path

from harness.commands.common import ONE_OBJECT, Progress
from harness.measure.counts.snapshot import attempts_by_status
from harness.measure.record.measured import OperationPart, PartitionPart
from harness.model.errors import SetupError, printable_lines
from harness.model.figures import counted, data_size, duration
from harness.options import aliases_from
from harness.report.answers import throttled_by_status
from harness.report.export.output import CommandOutput
from harness.report.terminal.page import Page
from harness.report.terminal.traffic import (
    MOST_LISTED,
    BusiestPart,
    HotRow,
    TraceOutput,
    Traffic,
    traffic_text,
)
from harness.trace.counting import ENTITY_PASSES, PASSES, TraceCounts
from harness.trace.head import KEPT
from harness.trace.reader import Trace
from harness.trace.sources import convert, opened, ordered_aliases

_MOST_WIDTH = 110
_WIDTHS_S = (1, 10, 60)


class TraceCommand:
    """Shows what is in a trace: operations, partitions, hottest keys, peaks, and a heat map.

    FILE is a trace that `harness watch --trace` or a run with --trace wrote, a log of Azure Storage
    (Azure Monitor's StorageTableLogs as JSON or CSV, or Storage Analytics 1.0 and 2.0), or a
    folder with such logs. The format is detected. With --to the operations are written to a new
    trace: a log becomes a trace, a damaged trace a whole one, and keys can be replaced by aliases.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="a trace, a log, or a folder")
        parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format("trace"))
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
                print(traffic.output.to_json(), end="")
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
                alias = ordered_aliases(trace, Progress("reading the keys"))
                done = convert(trace.path, args.to, alias, "order", progress)
        else:
            aliases = aliases_from(os.environ, args)
            if aliases is None:
                done = convert(args.file, args.to, tell=progress)
            else:
                done = convert(args.file, args.to, aliases.key, aliases.kept, progress)
        operations, notes = done
        size = args.to.stat().st_size
        if args.json:
            output = ConvertedOutput(
                trace=str(args.to), operations=operations, bytes=size, notes=tuple(notes)
            )
            print(output.to_json(), end="")
            return 0
        written = f"Trace: {args.to} ({counted(operations, 'operation')}, {data_size(size)})"
        print(*map(printable_lines, (written, *notes)), sep="\n")
        return 0


class ConvertedOutput(CommandOutput):
    """The trace that ``harness trace --to`` wrote; ``notes`` say what is missing."""

    trace: str
    operations: int
    bytes: int
    notes: tuple[str, ...]


def study(trace: Trace, name: str, tell: Progress) -> Traffic:
    """What is in a trace; a `SetupError` as in `TraceCounts.count`."""
    with contextlib.closing(TraceCounts(trace, name, tell, PASSES + ENTITY_PASSES)) as counts:
        counts.count()
        rows = counts.hottest_entities(MOST_LISTED)
        tell(1, 1)
        snapshot = counts.snapshot(latencies=False)
        widths = [min(width, snapshot.length_s) for width in _WIDTHS_S]
        seconds = counts.ledger.seconds
        heaviest = sorted(snapshot.partitions, key=lambda part: -part.entities)[:MOST_LISTED]
        output = TraceOutput(
            name=name,
            head=_head(trace, counts),
            attempts=snapshot.counts.attempts,
            throttled=throttled_by_status(attempts_by_status(snapshot.attempts)),
            entities=snapshot.counts.entities,
            entities_estimated=snapshot.counts.entities_estimated,
            bytes_sent=snapshot.counts.bytes_sent,
            bytes_received=snapshot.counts.bytes_received,
            seconds=counts.seconds,
            operations=tuple(map(OperationPart.recorded, snapshot.operations)),
            partitions=counts.partitions,
            exact=counts.exact,
            hottest_partitions=tuple(map(PartitionPart.recorded, snapshot.partitions)),
            heat=snapshot.heat,
            peaks=tuple(
                BusiestPart(
                    seconds=width,
                    at=dt.datetime.fromtimestamp(at, dt.UTC).isoformat(),
                    entities_per_s=round(rate, 3),
                )
                for width in dict.fromkeys(widths)
                for at, rate in [seconds.busiest(width)]
            ),
            hottest_entities=tuple(
                HotRow(partition=partition.name, row_key=row_key, accesses=accesses)
                for partition, row_key, accesses in rows
            ),
            unknown=counts.unknown,
            clients=dict(sorted(counts.clients.items(), key=lambda item: -item[1])),
            notes=(*trace.notes, *trace.damage.sentences()),
        )
        minutes = [counts.ledger.seconds_of(part.key).busiest(widths[-1])[1] for part in heaviest]
        return Traffic(output, snapshot, tuple(zip(heaviest, minutes, strict=True)))


def _head(trace: Trace, counts: TraceCounts) -> dict[str, str]:
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
    return {what: text for what, text in rows if text}
