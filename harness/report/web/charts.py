"""All charts of a record, and the line charts: rates, throttling, backlog, generator."""

from __future__ import annotations

import itertools
from typing import Any

from harness.measure.counts.generator import BUSY_PERCENT
from harness.measure.figures import listed, number
from harness.measure.record.record import RunRecord
from harness.model.operation import over_partitions
from harness.model.outcome import THROTTLING_ANSWERS
from harness.report.sentences import scheduled_words
from harness.report.web.heat_maps import key_heat, latency_heat, throttled_heat
from harness.report.web.plotting import (
    AMBER,
    BLUE,
    GREY,
    RED,
    TEAL,
    VIOLET,
    Figure,
    figure,
    line,
    middles,
)

_COLOURS = (RED, AMBER, VIOLET, BLUE, TEAL)
_NEAR = 0.4
"""A target is drawn from this share on: a higher line would flatten the data."""


def charts(record: RunRecord) -> dict[str, Figure]:
    """The charts of ``record`` by the id of their element; empty charts are left out."""
    made: dict[str, Figure | None] = {}
    if record.series:
        made["chart-rate"] = rate(record)
        made["chart-throttling"] = throttling(record)
        made["chart-backlog"] = backlog(record)
        made["chart-generator"] = generator(record)
    if record.heat is not None and record.heat.ranges:
        made["chart-heat"] = key_heat(record, record.heat)
        made["chart-refused"] = throttled_heat(record, record.heat)
    for kind in ("service", "response"):
        course = getattr(record, f"{kind}_over_time")
        if course is not None and course.columns:
            made[f"chart-{kind}"] = latency_heat(record, course, kind)
    return {name: chart for name, chart in made.items() if chart is not None}


def rate(record: RunRecord) -> Figure:
    """Entities/s beside the offered rate and the targets."""
    xs, series = middles(record), record.series
    served = [point.entities for point in series]
    offered = [point.offered for point in series]
    traces = [line(xs, served, "served", BLUE, "entities/s")]
    if any(value is not None for value in offered):
        step = {"color": GREY, "width": 1.4, "dash": "dot"}
        traces.append(line(xs, offered, "offered", GREY, "entities/s", line=step))
    highest = max([*served, *(value for value in offered if value is not None)], default=0.0)
    reached = [one for one in _targets(record) if highest >= one[0] * _NEAR]
    above = [f"{number(value)} ({name})" for value, name in _targets(record)[len(reached) :]]
    note = ""
    if above:
        verb = "target {} is" if len(above) == 1 else "targets {} are"
        note = f"{verb.format(listed(above))} above the range of this chart"
    return figure(
        record,
        "Entities/s over time",
        traces,
        "entities/s",
        note=note,
        levels=[(value, f"target {number(value)} ({name})") for value, name in reached],
    )


def throttling(record: RunRecord) -> Figure | None:
    """Throttled attempts/s by status, stacked; None without throttling."""
    if not any(point.throttled for point in record.series):
        return None
    xs = middles(record)
    traces = []
    for answer, colour in zip(THROTTLING_ANSWERS, itertools.cycle(_COLOURS), strict=False):
        values = [point.throttled_by_status[answer.status] for point in record.series]
        if any(values):
            stacked: dict[str, Any] = {"stackgroup": "throttled", "line": {"width": 0.6}}
            traces.append(line(xs, values, answer.label, colour, "attempts/s", **stacked))
            traces[-1]["line"]["color"] = colour
            traces[-1]["showlegend"] = True
    shown = figure(record, "Throttled attempts/s over time", traces, "throttled attempts/s")
    shown["layout"]["showlegend"] = True
    return shown


def backlog(record: RunRecord) -> Figure | None:
    """Operations that wait or were dropped; None in a closed loop."""
    held = any(point.waiting or point.dropped for point in record.series)
    if not held and scheduled_words(record.profile) is None:
        return None
    xs = middles(record)
    dropped = [point.dropped for point in record.series]
    traces = [
        line(xs, [point.waiting for point in record.series], "waiting", TEAL, "operations waiting"),
    ]
    if any(dropped):
        traces.append(line(xs, dropped, "dropped/s", RED, "dropped/s"))
    return figure(record, "Backlog: operations due and not sent", traces, "operations")


def generator(record: RunRecord) -> Figure | None:
    """CPU of the busiest worker; None where it was not measured."""
    values = [point.cpu_percent for point in record.series]
    if all(value is None for value in values):
        return None
    return figure(
        record,
        "Generator: CPU of the busiest worker",
        [line(middles(record), values, "CPU", TEAL, "% of a core")],
        "% of one core",
        yaxis={"range": [0, 105]},
        levels=[(BUSY_PERCENT, f"busy: {BUSY_PERCENT:.0f}%")],
    )


def _targets(record: RunRecord) -> list[tuple[float, str]]:
    """The target of the account, and before it that of the partition if there is only one."""
    targets = []
    if record.account.target is not None:
        targets.append((record.account.target, "account"))
    single = [part for part in record.partitions if not over_partitions(part.key)]
    if len(single) == 1 and record.partitions_folded is None and single[0].target is not None:
        targets.insert(0, (single[0].target, "partition"))
    return targets
