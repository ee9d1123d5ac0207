"""The charts of a record for plotly.js, by the id of their element."""

from __future__ import annotations

import itertools
from typing import Any

from harness.measure.counts.generator import BUSY_PERCENT
from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import VerdictResult
from harness.model.figures import number, of_core
from harness.model.outcome import THROTTLING_ANSWERS
from harness.profile.load.registry import recorded_load
from harness.report.limits import ShownLimit, above_words, busiest, limits_of, unit_of
from harness.report.passing import failed_latency, is_unexplained
from harness.report.web.frame import (
    ASKED,
    CPU,
    SERVED,
    SERVED_IN_ALL,
    THROTTLED,
    WAITING,
    Figure,
    figure,
    level,
    line,
    middles,
    moment,
    named,
)
from harness.report.web.heat_maps import covered, key_heat, latency_heat

_NEAR, _FAR = 0.4, 0.2
"""A limit is drawn from this share on: a higher line would flatten the data."""
_MAIN_PX = 300
_NAME_WIDTH = 24
_GENERATOR = "chart-generator"
_OTHERS = "rgba(127,136,146,0.22)"


def charts(record: RunRecord) -> dict[str, Figure]:
    """The charts of ``record`` by the id of their element; empty charts are left out.

    ``chart-main`` is the one that shows the verdict; the others do not repeat it.
    """
    made: dict[str, Figure | None] = {}
    if record.series:
        made["chart-rate"] = _rate(record)
        made["chart-throttling"] = _throttling(record)
        made["chart-waiting"] = _waiting(record)
        made["chart-backlog"] = _backlog(record)
        made["chart-generator"] = _generator(record)
    if (heat := record.heat) is not None and heat.ranges:
        made["chart-heat"] = key_heat(
            record,
            heat,
            "entities",
            record.endpoint.service.unit.rate.capitalize(),
            "heat",
            unit=record.endpoint.service.unit.many,
        )
        if any(any(row.throttled) for row in heat.ranges):
            title = "Throttled attempts/s"
            made["chart-refused"] = key_heat(record, heat, "throttled", title, "refused")
    for kind in ("service", "response"):
        course = getattr(record, f"{kind}_over_time")
        if course is not None and course.columns:
            made[f"chart-{kind}"] = latency_heat(record, course, kind)
    shown = {name: chart for name, chart in made.items() if chart is not None}
    main = "chart-rate"
    busy = record.verdict.limited_by in ("generator", "machine", "application")
    limited = record.verdict.result == VerdictResult.CLIENT_LIMITED and record.search is None
    if busy and limited and _GENERATOR in shown:
        main = _GENERATOR
    late = failed_latency(record) if is_unexplained(record) else None
    if late is not None and (name := f"chart-{late.form.of}") in shown:
        main = name
        bound = level(late.bound, late.text)
        shown[main]["layout"]["shapes"].append(bound)
    if main in shown:
        chart = shown.pop(main)
        chart["layout"]["height"] = _MAIN_PX
        shown = {"chart-main": chart, **shown}
    return shown


def _rate(record: RunRecord) -> Figure:
    """Entities/s or RU/s, and throttled attempts/s, with the limits that were in force."""
    xs, series, unit = middles(record), record.series, unit_of(record)
    charged = record.request_units is not None
    served = [point.entities for point in series]
    # The rate that is asked for is in entities/s.
    offered = [None if charged else point.offered for point in series]
    throttled = [point.throttled for point in series]
    if charged:
        served = [point.request_units or 0.0 for point in series]
    hottest = _costliest(record, xs) if charged else _hottest(record)
    colour = SERVED if hottest is None else SERVED_IN_ALL
    doing = "used" if charged else "served"
    # Two blues are hard to tell apart: the sum is an area, the hottest partition a line.
    area = {} if hottest is None else {"fill": "tozeroy", "fillcolor": "rgba(95,151,204,0.15)"}
    traces = [line(xs, served, f"{unit} {doing}", colour, unit, **area)]
    if hottest is not None:
        traces.append(hottest)
    if any(throttled):
        red = {"width": 1.6, "color": THROTTLED[0]}
        name = "throttled attempts/s"
        area = {"fill": "tozeroy", "fillcolor": "rgba(220,74,74,0.18)"}
        traces.append(line(xs, throttled, name, THROTTLED[0], "attempts/s", line=red, **area))
    if any(value is not None for value in offered):
        asked = record.endpoint.service.unit.rate
        step = {"color": ASKED, "width": 1.4, "dash": "dot"}
        traces.append(line(xs, offered, f"{asked} asked for", ASKED, asked, line=step))
    highest = max([*served, *(value for value in offered if value is not None)], default=0.0)
    limits = limits_of(record, partition=hottest is not None)
    # The limit of a partition is what a verdict is about.
    near = {one: _FAR if "partition" in one.of else _NEAR for one in limits}
    reached = [one for one in limits if highest >= one.value * near[one]]
    words = f"{doing}, and throttled attempts/s" if charged else f"{doing} and throttled"
    if not any(throttled):
        words = doing
    return figure(
        record,
        f"{unit[:1].upper()}{unit[1:]} {words}, over time (UTC)",
        traces,
        # With room for texts above the lines.
        yaxis={"range": [0, 1.15 * max(highest, *(one.value for one in reached), 1.0)]},
        note=above_words([one for one in limits if one not in reached]),
        levels=[_limit_line(one) for one in reached],
        texts=True,
    )


def _hottest(record: RunRecord) -> dict[str, Any] | None:
    """The line of the hottest of several partitions, where the heat map has a row of it alone."""
    part, heat = busiest(record), record.heat
    if part is None or heat is None or len(record.partitions) < 2:
        return None
    row = next((row for row in heat.ranges if row.first == row.last == part.key), None)
    if row is None:
        return None
    widths = covered(record, heat)
    xs = [moment(heat.start + (place + 0.5) * heat.width_s) for place in range(heat.columns)]
    rates = [round(count / width, 3) for count, width in zip(row.entities, widths, strict=True)]
    style = {"color": SERVED, "width": 2.2}
    name = f"hottest partition {named(part.key, _NAME_WIDTH)}"
    return line(xs, rates, name, SERVED, unit_of(record), line=style)


def _costliest(record: RunRecord, xs: list[int]) -> dict[str, Any] | None:
    """The RU/s of the hottest of several partitions; None without them."""
    part = busiest(record)
    rates = [point.costliest_request_units for point in record.series]
    if part is None or len(record.partitions) < 2 or None in rates:
        return None
    style = {"color": SERVED, "width": 2.2}
    name = f"hottest partition {named(part.key, _NAME_WIDTH)}"
    return line(xs, rates, name, SERVED, "RU/s", line=style)


def _limit_line(limit: ShownLimit) -> dict[str, Any]:
    text = f"{number(limit.value)} ({limit.of})"
    return level(limit.value, f"{limit.word} {text}")


def _throttling(record: RunRecord) -> Figure | None:
    """Throttled attempts/s by status, stacked; None without throttling."""
    if not any(point.throttled for point in record.series):
        return None
    xs = middles(record)
    traces = []
    for answer, colour in zip(THROTTLING_ANSWERS, itertools.cycle(THROTTLED), strict=False):
        values = [point.throttled_by_status[answer.status] for point in record.series]
        if any(values):
            stacked: dict[str, Any] = {"stackgroup": "throttled", "showlegend": True}
            style = {"width": 0.6, "color": colour}
            traces.append(
                line(xs, values, answer.label, colour, "attempts/s", line=style, **stacked)
            )
    shown = figure(record, "Throttled attempts/s by status", traces)
    shown["layout"]["showlegend"] = True
    shown["layout"]["margin"]["t"] = 28
    return shown


def _waiting(record: RunRecord) -> Figure | None:
    """Users that wait to send a throttled operation again; None where none did."""
    values = [point.retrying for point in record.series]
    if not any(values):
        return None
    return figure(
        record,
        "Users waiting to retry a throttled operation",
        [line(middles(record), values, "waiting", WAITING, "users", fill="tozeroy")],
        yaxis={"range": [0, 1.15 * max(record.users, *values)]},
        levels=[level(record.users, f"all {record.users:,} users", ASKED)],
    )


def _backlog(record: RunRecord) -> Figure | None:
    """Operations that wait or were dropped; None in a closed loop."""
    held = any(point.waiting or point.dropped for point in record.series)
    if not held and not recorded_load(record.profile).scheduled:
        return None
    xs = middles(record)
    waiting = [point.waiting for point in record.series]
    dropped = [point.dropped for point in record.series]
    traces = [line(xs, waiting, "waiting", WAITING, "operations waiting")]
    if any(dropped):
        traces.append(line(xs, dropped, "dropped/s", ASKED, "dropped/s"))
    return figure(record, "Backlog: operations due and not sent", traces)


def _generator(record: RunRecord) -> Figure | None:
    """CPU of the busiest worker and of its machine; None where it was not measured."""
    values = [point.cpu_percent for point in record.series]
    if all(value is None for value in values):
        return None
    xs, what = middles(record), "busiest worker" if record.watched is None else "busiest thread"
    traces = [line(xs, values, f"{what}, % of a core", CPU, "% of a core")]
    machine = [point.machine_percent for point in record.series]
    if any(machine):
        style = {"color": CPU, "width": 1.6, "dash": "dash"}
        traces.append(line(xs, machine, "machine, % of its cores", CPU, "%", line=style))
    others = [point.others_percent for point in record.series]
    if any(others):
        # What is below this line was not left for the run.
        area = {"line": {"color": ASKED, "width": 1.2}, "fill": "tozeroy", "fillcolor": _OTHERS}
        name = "other processes, % of the machine's cores"
        traces.append(line(xs, others, name, ASKED, "%", **area))
    return figure(
        record,
        f"CPU of the {'generator' if record.watched is None else 'application'}, over time (UTC)",
        traces,
        yaxis={"range": [0, 105]},
        levels=[level(BUSY_PERCENT, f"busy: {of_core(BUSY_PERCENT)}")],
    )
