"""Charts of the series: what was served, refused, held back, and how busy the generator was."""

from __future__ import annotations

from typing import Any

from harness.measure.generator import BUSY_PERCENT
from harness.measure.record import RunRecord
from harness.model.operation import over_partitions
from harness.report.stressed import scheduled_words
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
from harness.report.words import listed, number

_NEAR = 0.4
"""A target is drawn where this share of it was reached: farther up it would squash the data."""


def rate(record: RunRecord) -> Figure:
    """Entities a second beside the targets and what was offered."""
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
        note = f"{verb.format(listed(above))} above this chart"
    return figure(
        record,
        "Entities/s over time",
        traces,
        "entities/s",
        note=note,
        levels=[(value, f"target {number(value)} ({name})") for value, name in reached],
    )


def throttling(record: RunRecord) -> Figure | None:
    """Throttled attempts a second by status, stacked; None where there were none."""
    if not any(point.throttled for point in record.series):
        return None
    xs = middles(record)
    traces = []
    for status, colour, name in (
        ("503", RED, "503 ServerBusy"),
        ("500", AMBER, "500 OperationTimedOut"),
        ("429", VIOLET, "429"),
    ):
        values = [getattr(point, f"throttled_{status}") for point in record.series]
        if any(values):
            stacked: dict[str, Any] = {"stackgroup": "throttled", "line": {"width": 0.6}}
            traces.append(line(xs, values, name, colour, "attempts/s", **stacked))
            traces[-1]["line"]["color"] = colour
            traces[-1]["showlegend"] = True
    shown = figure(record, "Throttled attempts/s over time", traces, "throttled attempts/s")
    shown["layout"]["showlegend"] = True
    return shown


def backlog(record: RunRecord) -> Figure | None:
    """What was due and not sent, and what was given up; None in a closed loop."""
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
    return figure(record, "Backlog: due and not sent", traces, "operations")


def generator(record: RunRecord) -> Figure | None:
    """CPU of the busiest worker; None where nobody looked."""
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
    """The account's, and below it the partition's where there is but one."""
    targets = []
    if record.account.target is not None:
        targets.append((record.account.target, "account"))
    single = [part for part in record.partitions if not over_partitions(part.key)]
    if len(single) == 1 and record.partitions_folded is None and single[0].target is not None:
        targets.insert(0, (single[0].target, "partition"))
    return targets
