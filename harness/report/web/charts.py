"""All charts of a record, by the id of the element that they are drawn in."""

from __future__ import annotations

from harness.measure.record import RunRecord
from harness.report.web import over_time
from harness.report.web.heat import key_heat, latency_heat, throttled_heat
from harness.report.web.plotting import Figure


def charts(record: RunRecord) -> dict[str, Figure]:
    """The charts that ``record`` has something to show in."""
    made: dict[str, Figure | None] = {}
    if record.series:
        made["chart-rate"] = over_time.rate(record)
        made["chart-throttling"] = over_time.throttling(record)
        made["chart-backlog"] = over_time.backlog(record)
        made["chart-generator"] = over_time.generator(record)
    if record.heat is not None and record.heat.ranges:
        made["chart-heat"] = key_heat(record, record.heat)
        made["chart-refused"] = throttled_heat(record, record.heat)
    for kind in ("service", "response"):
        course = getattr(record, f"{kind}_over_time")
        if course is not None and course.columns:
            made[f"chart-{kind}"] = latency_heat(record, course, kind)
    return {name: chart for name, chart in made.items() if chart is not None}
