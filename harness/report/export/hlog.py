"""The latencies of a run as a log of HdrHistograms, from which any percentile can be read.

One interval, the measured window, for each tag. Values are microseconds; times are UTC seconds.

Source: the log format 1.3 that HdrHistogram's HistogramLogReader documents, with V2 histograms.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable

from harness.measure.counts.latency import LatencyHistogram
from harness.report.names import printable

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
