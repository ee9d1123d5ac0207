"""The partitions of a run as a table for spreadsheets and scripts.

One row a partition, hottest first; what was folded together is one row more. Column names carry
their unit and stay as they are; a later version may add columns on the right.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from harness.measure.record import PartitionPart, RunRecord
from harness.model.operation import over_partitions
from harness.report.reading import throttled_by_status
from harness.report.words import FOLDED, partition_name, printable

_FORMULA = ("=", "+", "-", "@")


def _throttled_by(status: str) -> Callable[[PartitionPart], object]:
    return lambda part: throttled_by_status((part.attempts_by_status,))[status]


def _throttled_for(scope: str) -> Callable[[PartitionPart], object]:
    # Only throttled attempts are named with a scope.
    return lambda part: sum(
        count for name, count in part.attempts_by_status.items() if name.endswith(f" {scope}")
    )


def _latency(name: str, figure: str) -> Callable[[PartitionPart], object]:
    return lambda part: getattr(getattr(part, name), figure, None)


_COLUMNS: dict[str, Callable[[PartitionPart], object]] = {
    "entities": lambda part: part.entities,
    "entities_per_s_mean": lambda part: part.entities_per_s.mean,
    "entities_per_s_best_1s": lambda part: part.entities_per_s.best_1s,
    "entities_per_s_best_10s": lambda part: part.entities_per_s.best_10s,
    "target_entities_per_s": lambda part: part.target,
    "ratio_to_target": lambda part: part.ratio,
    "attempts": lambda part: sum(part.attempts_by_status.values()),
    **{f"throttled_{status}_attempts": _throttled_by(status) for status in ("503", "500", "429")},
    **{f"throttled_{of}_attempts": _throttled_for(of) for of in ("partition", "account")},
    "throttled_ratio": lambda part: part.throttled_ratio,
    **{
        f"{latency}_{figure}_ms": _latency(f"{latency}_ms", figure)
        for latency in ("service", "response")
        for figure in ("p50", "p90", "p99", "max")
    },
    "told_apart_since_utc_s": lambda part: part.since,
    "entities_at_least": lambda part: getattr(part.estimate, "at_least", None),
    "entities_at_most": lambda part: getattr(part.estimate, "at_most", None),
}


def partitions_csv(record: RunRecord) -> str:
    """``partitions.csv`` of ``record``.

    The column ``row`` tells what a row is: ``partition``, ``queries`` (over several partitions) or
    ``other`` (all that were not told apart, together). A value that is not there is empty.

    A key that begins with ``=``, ``+``, ``-`` or ``@`` has an apostrophe before it: a spreadsheet
    would take it for a formula, and keys may come from strangers. Characters that cannot be printed
    are written as ``\\u`` escapes.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", "partition", *_COLUMNS])
    rows = [(_kind(part), _key(part), part) for part in record.partitions]
    if record.partitions_folded is not None:
        rows.append(("other", FOLDED, record.partitions_folded))
    for kind, key, part in rows:
        cells = (read(part) for read in _COLUMNS.values())
        writer.writerow([kind, key, *("" if cell is None else cell for cell in cells)])
    return out.getvalue()


def _kind(part: PartitionPart) -> str:
    return "queries" if over_partitions(part.key) else "partition"


def _key(part: PartitionPart) -> str:
    key = partition_name(part.key) if over_partitions(part.key) else printable(part.key)
    return f"'{key}" if key.startswith(_FORMULA) else key
