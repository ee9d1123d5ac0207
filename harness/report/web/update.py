"""What a page shows of a record at one moment, for a script to put in."""

from __future__ import annotations

from typing import Any

from harness.measure.record import RunRecord
from harness.report.web.charts import charts
from harness.report.web.parts import parts


def update(record: RunRecord, *, live: bool) -> dict[str, dict[str, Any]]:
    """HTML of the parts and figures of the charts, each by the id of its element.

    Bounded in size, and JSON all through. What is not in it has nothing to show.

    Args:
        record: The run, or what is known of it so far.
        live: Whether the run goes on.
    """
    return {"parts": dict(parts(record, live=live)), "charts": charts(record)}
