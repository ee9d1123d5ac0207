"""The charts of a record, by the id of their element."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from harness.measure.counts.generator import BUSY_PERCENT
from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import VerdictResult
from harness.model.figures import number, of_core
from harness.model.outcome import THROTTLING_ANSWERS
from harness.profile.load.registry import recorded_load
from harness.report.limits import busiest, limits_of, unit_of
from harness.report.passing import failed_latency, is_unexplained
from harness.report.web.frame import Chart, Level, Line, middles, named, over_run
from harness.report.web.heat_maps import covered, key_heat, latency_heat

_NEAR, _FAR = 0.4, 0.2
"""A limit is drawn where the rate comes to this share of it: a higher one would flatten it."""
_MAIN_PX = 300
_NAME_WIDTH = 24
_GENERATOR = "chart-generator"


def charts(record: RunRecord) -> dict[str, Chart]:
    """The charts of ``record`` by the id of their element; empty charts are left out.

    ``chart-main`` is the one that shows the verdict; the others do not repeat it.
    """
    made: dict[str, Chart | None] = {}
    if record.series:
        made["chart-rate"] = _rate(record)
        made["chart-throttling"] = _throttling(record)
        made["chart-waiting"] = _waiting(record)
        made["chart-backlog"] = _backlog(record)
        made.update(_of_messages(record))
        made["chart-generator"] = _generator(record)
    if (heat := record.heat) is not None and heat.ranges:
        unit = record.endpoint.service.unit
        made["chart-heat"] = key_heat(record, heat, unit.rate.capitalize(), unit.many)
        if any(any(row.throttled) for row in heat.ranges):
            title = "Throttled attempts/s"
            made["chart-refused"] = key_heat(record, heat, title, "throttled", throttled=True)
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
        bound = Level(value=late.bound, text=late.text)
        shown[main] = dataclasses.replace(shown[main], levels=[bound])
    if main in shown:
        chart = dataclasses.replace(shown.pop(main), height=_MAIN_PX)
        shown = {"chart-main": chart, **shown}
    return shown


def _rate(record: RunRecord) -> Chart:
    """Entities/s or RU/s with the limits that were in force, and the share that was throttled."""
    series, unit = record.series, unit_of(record)
    charged = record.request_units is not None
    served = [point.entities for point in series]
    # The rate that is asked for is in entities/s.
    offered = [None if charged else point.offered for point in series]
    if charged:
        served = [point.request_units or 0.0 for point in series]
    hottest = _costliest(record) if charged else _hottest(record)
    doing = "used" if charged else "served"
    # Two blues are hard to tell apart: the sum is an area, the hottest partition a line.
    tone, look = ("served", "") if hottest is None else ("served-in-all", "area")
    lines = [_course(record, f"{unit} {doing}", tone, unit, served, look)]
    if hottest is not None:
        lines.append(hottest)
    throttled = any(point.throttled for point in series)
    if throttled:
        shares = [
            round(100 * min(1.0, point.throttled / point.attempts), 2) if point.attempts else None
            for point in series
        ]
        name = "throttled, % of attempts"
        course = _course(record, name, "throttled-0", "% of attempts throttled", shares)
        lines.append(dataclasses.replace(course, share=True))
    if any(value is not None for value in offered):
        asked = record.endpoint.service.unit.rate
        lines.append(_course(record, f"{asked} asked for", "asked", asked, offered, "dot"))
    levels = [
        # The limit of a partition is what a verdict is about.
        Level(
            value=one.value,
            text=f"{one.word} {number(one.value)} ({one.of})",
            reach=_FAR if "partition" in one.of else _NEAR,
        )
        for one in limits_of(record, partition=hottest is not None)
    ]
    title = f"{unit[:1].upper()}{unit[1:]} {doing}{' and share throttled' if throttled else ''}"
    title = f"{title}, over time (UTC)"
    return over_run(record, Chart(title=title, lines=lines, levels=levels, bursts=True))


def _hottest(record: RunRecord) -> Line | None:
    """The line of the hottest of several partitions, where the heat map has a row of it alone."""
    part, heat = busiest(record), record.heat
    if part is None or heat is None or len(record.partitions) < 2:
        return None
    row = next((row for row in heat.ranges if row.first == row.last == part.key), None)
    if row is None:
        return None
    start = heat.start - record.series[0].t
    xs = [start + (place + 0.5) * heat.width_s for place in range(heat.columns)]
    widths = covered(record, heat)
    rates = [round(count / width, 3) for count, width in zip(row.entities, widths, strict=True)]
    return _of_hottest(part.key, unit_of(record), xs, rates)


def _costliest(record: RunRecord) -> Line | None:
    """The RU/s of the hottest of several partitions; None without them."""
    part = busiest(record)
    rates = [point.costliest_request_units for point in record.series]
    if part is None or len(record.partitions) < 2 or None in rates:
        return None
    return _of_hottest(part.key, "RU/s", middles(record), rates)


def _of_hottest(key: str, unit: str, xs: list[float], ys: Sequence[float | None]) -> Line:
    name = f"hottest partition {named(key, _NAME_WIDTH)}"
    return Line(name=name, tone="served", unit=unit, xs=xs, ys=ys, look="wide")


def _course(
    record: RunRecord,
    name: str,
    tone: str,
    unit: str,
    values: Sequence[float | None],
    look: str = "",
) -> Line:
    """The line of a figure that each point of the series has."""
    return Line(name=name, tone=tone, unit=unit, xs=middles(record), ys=values, look=look)


def _throttling(record: RunRecord) -> Chart | None:
    """Throttled attempts/s by status, stacked; None without throttling."""
    lines = [
        _course(record, answer.label, f"throttled-{place}", "attempts/s", values, "stack")
        for place, answer in enumerate(THROTTLING_ANSWERS)
        if any(values := [point.throttled_by_status[answer.status] for point in record.series])
    ]
    made = Chart(title="Throttled attempts/s by status", lines=lines)
    return over_run(record, made) if lines else None


def _waiting(record: RunRecord) -> Chart | None:
    """Users that wait to send a throttled operation again; None where none did."""
    values = [point.retrying for point in record.series]
    if not any(values):
        return None
    made = Chart(
        title="Users waiting to retry a throttled operation",
        lines=[_course(record, "waiting", "waiting", "users", values, "area")],
        levels=[Level(value=record.users, text=f"all {record.users:,} users", tone="asked")],
    )
    return over_run(record, made)


def _backlog(record: RunRecord) -> Chart | None:
    """Operations that wait or were dropped; None in a closed loop."""
    held = any(point.waiting or point.dropped for point in record.series)
    if not held and not recorded_load(record.profile).scheduled:
        return None
    waiting = [point.waiting for point in record.series]
    dropped = [point.dropped for point in record.series]
    lines = [_course(record, "waiting", "waiting", "operations waiting", waiting)]
    if any(dropped):
        lines.append(_course(record, "dropped/s", "asked", "dropped/s", dropped))
    return over_run(record, Chart(title="Backlog: operations due and not sent", lines=lines))


def _of_messages(record: RunRecord) -> dict[str, Chart]:
    """The backlog of all queues, and the age of the oldest message; empty without queues."""
    backlogs = [point.backlog for point in record.series]
    if None in backlogs:
        return {}
    ages = [(point.oldest_ms or 0) / 1000 for point in record.series]
    waiting = _course(record, "backlog", "waiting", "messages", backlogs, "area")
    oldest = _course(record, "oldest message", "waiting", "s", ages)
    made = {
        "chart-messages": Chart(title="Backlog: messages put and not deleted", lines=[waiting]),
        "chart-age": Chart(title="Age of the oldest message that was got, in s", lines=[oldest]),
    }
    return {name: over_run(record, chart) for name, chart in made.items()}


def _generator(record: RunRecord) -> Chart | None:
    """CPU of the busiest worker and of its machine; None where it was not measured."""
    values = [point.cpu_percent for point in record.series]
    if all(value is None for value in values):
        return None
    what = "busiest worker" if record.watched is None else "busiest thread"
    lines = [_course(record, f"{what}, % of a core", "cpu", "% of a core", values)]
    machine = [point.machine_percent for point in record.series]
    if any(machine):
        lines.append(_course(record, "machine, % of its cores", "cpu", "%", machine, "dash"))
    others = [point.others_percent for point in record.series]
    if any(others):
        # What is below this line was not left for the run.
        name = "other processes, % of the machine's cores"
        lines.append(_course(record, name, "asked", "%", others, "area"))
    made = Chart(
        title=f"CPU of the {'generator' if record.watched is None else 'application'}, "
        "over time (UTC)",
        lines=lines,
        top=105.0,
        levels=[Level(value=BUSY_PERCENT, text=f"busy: {of_core(BUSY_PERCENT)}")],
    )
    return over_run(record, made)
