"""``partitions.csv``: the partitions of a run for spreadsheets and scripts.

One row per partition, hottest first. Column names carry their unit and never change; a later
version may add columns on the right.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import os
import re
from collections.abc import Iterable
from pathlib import Path

from harness.measure.counts.latency import LatencyHistogram
from harness.measure.record.record import PartitionPart, RunRecord
from harness.model.operation import over_partitions
from harness.report.columns import PARTITION_COLUMNS
from harness.report.names import partition_name, printable

_FORMULA = ("=", "+", "-", "@")


def partitions_csv(record: RunRecord) -> str:
    """The content of the file.

    The column ``row`` is ``partition``, ``queries`` (over several partitions) or ``other`` (the sum
    of all partitions that are not counted separately). A missing value is empty.

    A key that begins with ``=``, ``+``, ``-`` or ``@`` has an apostrophe before it: a spreadsheet
    would run it as a formula, and keys may come from strangers. Characters that cannot be printed
    are written as ``\\u`` escapes.
    """
    columns = [column for column in PARTITION_COLUMNS if column.csv]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", "partition", *(column.csv for column in columns)])
    rows = [(_kind(part), _key(part), part) for part in record.partitions]
    if (folded := record.partitions_folded) is not None:
        rows.append(("other", folded.key, folded))
    for kind, key, part in rows:
        cells = (column.get(part) for column in columns)
        writer.writerow([kind, key, *("" if cell is None else cell for cell in cells)])
    return out.getvalue()


def _kind(part: PartitionPart) -> str:
    return "queries" if over_partitions(part.key) else "partition"


def _key(part: PartitionPart) -> str:
    key = partition_name(part.key) if over_partitions(part.key) else printable(part.key)
    return f"'{key}" if key.startswith(_FORMULA) else key


_FORMAT_VERSION = "1.3"


def hlog(start_s: float, end_s: float, histograms: Iterable[tuple[str, LatencyHistogram]]) -> str:
    """``latencies.hlog`` of a run.

    Args:
        start_s: Where the measured window begins, UTC seconds.
        end_s: Where it ends.
        histograms: Each with its tag, such as ``point_query.service``. Empty ones are left out. A
            tag has no blanks and no commas; they become ``_``.
    """
    started = dt.datetime.fromtimestamp(start_s, dt.UTC).isoformat(timespec="milliseconds")
    lines = [
        f"#[Histogram log format version {_FORMAT_VERSION}]",
        "#[Values are microseconds; Interval_Max is milliseconds]",
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {started}]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    for tag, histogram in histograms:
        view = histogram.view()
        if view is None:
            continue
        _, encoded = histogram.encode()
        lines.append(
            f"Tag={_tag(tag)},{start_s:.3f},{end_s - start_s:.3f},{view.max:.3f},"
            f"{encoded.decode('ascii')}"
        )
    return "\n".join(lines) + "\n"


def _tag(name: str) -> str:
    return re.sub(r"[\s,]", "_", printable(name))


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, in UTF-8, in a folder that exists.

    Raises:
        OSError: it cannot be written; nothing of it is left, and what was there before still is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A pipe, or a device: nobody puts another file in its place.
        target.write_text(text, encoding="utf-8")
        return
    unfinished = target.with_name(f"{target.name}.tmp")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
