"""A run for other programs: ``partitions.csv``, ``latencies.hlog``, and how a file is written."""

from __future__ import annotations

import csv
import datetime as dt
import io
import os
import re
from collections.abc import Iterable
from pathlib import Path

from harness.measure.counts.latency import LatencyHistogram
from harness.measure.record.measured import PartitionPart
from harness.measure.record.record import RunRecord
from harness.model.operation import over_partitions
from harness.report.names import partition_name, printable
from harness.report.partition_columns import csv_columns

_FORMULA = ("=", "+", "-", "@")


def partitions_csv(record: RunRecord) -> str:
    """One row per partition, hottest first.

    Column names carry their unit and never change; a later version may add columns on the right.
    The column ``row`` is ``partition``, ``queries`` (over several partitions) or ``other`` (the sum
    of all partitions that are not counted separately). A missing value is empty. A run against
    several accounts has a column ``account``, the last one.

    A key that begins with ``=``, ``+``, ``-`` or ``@`` gets an apostrophe: a spreadsheet would run
    the key as a formula, and keys may come from strangers. Characters that cannot be printed are
    written as ``\\u`` escapes.
    """
    columns = csv_columns(record)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", "partition", *(column.csv for column in columns)])
    rows = [(*_named(part), part) for part in record.partitions]
    if (folded := record.partitions_folded) is not None:
        rows.append(("other", folded.key, folded))
    for kind, key, part in rows:
        cells = (column.get(part) for column in columns)
        writer.writerow([kind, key, *("" if cell is None else cell for cell in cells)])
    return out.getvalue()


def _named(part: PartitionPart) -> tuple[str, str]:
    several = over_partitions(part.key)
    key = partition_name(part.key) if several else printable(part.key)
    return "queries" if several else "partition", f"'{key}" if key.startswith(_FORMULA) else key


def hlog(start_s: float, end_s: float, histograms: Iterable[tuple[str, LatencyHistogram]]) -> str:
    """The latencies of a run as a log of HdrHistograms, from which any percentile can be read.

    The log has one interval, the measured window, for each tag. Values are microseconds.

    Args:
        start_s: Begin of the measured window, UTC seconds.
        end_s: End of the measured window.
        histograms: Each with its tag, such as ``point_query.service``. Empty ones are left out.
            Blanks and commas of a tag become ``_``.

    Source: the log format 1.3 that HdrHistogram's HistogramLogReader documents, with V2 histograms.
    """
    started = dt.datetime.fromtimestamp(start_s, dt.UTC).isoformat(timespec="milliseconds")
    lines = [
        "#[Histogram log format version 1.3]",
        "#[Values are microseconds; Interval_Max is milliseconds]",
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {started}]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    for name, histogram in histograms:
        if (view := histogram.view()) is not None:
            tag = re.sub(r"[\s,]", "_", printable(name))
            encoded = histogram.encode()[-1].decode("ascii")
            interval = f"{start_s:.3f},{end_s - start_s:.3f},{view.max:.3f}"
            lines.append(f"Tag={tag},{interval},{encoded}")
    return "\n".join(lines) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in UTF-8, whole or not at all. The folder must exist.

    After an `OSError` a file that was there before is unchanged.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A pipe or a device cannot be replaced by a file.
        target.write_text(text, encoding="utf-8")
        return
    unfinished = target.with_name(f"{target.name}.tmp")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
