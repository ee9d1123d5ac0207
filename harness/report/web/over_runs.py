"""Charts of several runs: their courses over each other, and their figures one after the other."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from harness.measure.record.record import RunRecord
from harness.report.compare.comparison import Subject
from harness.report.compare.measures import Measure
from harness.report.limits import counted_unit
from harness.report.passing import passing_of
from harness.report.web.frame import TIME, Figure, figure, line
from harness.report.web.heat_maps import key_heat, percentiles
from harness.report.web.tables import short

_COLOURS = ("#3b82c4", "#e8743b", "#2a9d8f", "#9a70d8", "#c2569b", "#a67c52", "#6f8f2f", "#7f8892")
"""Of the runs of a page, on which a colour means a run."""
_TONES = {
    "good": ("#2f9e58", "circle"),
    "bad": ("#dc4a4a", "x"),
    "warn": ("#bf7c0d", "diamond"),
}
"""Colour and sign of a run by its conditions."""
_NO_CONDITIONS = ("#7f8892", "circle-open")
_SINCE = "%{x:.0f} s"
"""The time beside the pointer."""
_NAME_WIDTH = 24
_MOST_HEAT_MAPS = 6
_LINES: dict[str, tuple[str, str, Callable[[RunRecord], list[float | None]]]] = {
    "chart-entities": (
        "{unit.rate}",
        "{unit.rate}",
        lambda record: [point.entities for point in record.series],
    ),
    "chart-throttled": (
        "throttled attempts/s",
        "attempts/s",
        lambda record: [point.throttled for point in record.series],
    ),
}


def courses(subjects: Sequence[Subject]) -> dict[str, Figure]:
    """The courses of runs over each other, by seconds since the load began; of all repeats."""
    made: dict[str, Figure] = {}
    records = [record for _, _, record in _runs(subjects)]
    unit = counted_unit(records)
    for name, (title, per_s, read) in _LINES.items():
        traces = [
            _course(subject, place, record, _since(record), read(record), per_s.format(unit=unit))
            for subject, place, record in _runs(subjects)
            if record.series
        ]
        if any(value for trace in traces for value in trace["y"]):
            title = title.format(unit=unit)
            made[name] = figure(
                None, f"{title[:1].upper()}{title[1:]}, since the load began", traces
            )
    latencies = []
    for subject, place, record in _runs(subjects):
        part = record.service_over_time
        if part is None or not record.series:
            continue
        began = part.start - record.series[0].t
        xs = [began + (column + 0.5) * part.width_s for column in range(part.columns)]
        latencies.append(_course(subject, place, record, xs, percentiles(part, 99), "ms"))
    if latencies:
        log = {"type": "log", "rangemode": "normal"}
        title = "p99 of service latency in ms, since the load began"
        made["chart-p99"] = figure(None, title, latencies, yaxis=log)
    firsts = [(subject, subject.records[0]) for subject in subjects[:_MOST_HEAT_MAPS]]
    for subject, record in firsts:
        heat = record.heat
        if heat is None or not heat.ranges or not record.series:
            continue
        title = f"{subject.letter}: {unit.rate}"
        chart = key_heat(None, heat, "entities", title, "heat", unit=unit.many)
        for trace in chart["data"]:
            trace["x"] = [x / 1000 - record.series[0].t for x in trace["x"]]
            trace["hovertemplate"] = trace["hovertemplate"].replace(TIME, _SINCE)
        made[f"chart-heat-{subject.letter}"] = chart
    maps = [trace for one in made.values() for trace in one["data"] if trace["type"] == "heatmap"]
    rates = [rate for trace in maps for row in trace["z"] for rate in row if rate is not None]
    for trace in maps:
        # One colour means one rate in the maps of all runs.
        trace |= {"zmin": min(rates, default=0), "zmax": max(rates, default=1)}
    last = max((x for one in made.values() for trace in one["data"] for x in trace["x"]), default=0)
    for one in made.values():
        many = len({trace.get("legendgroup") for trace in one["data"]}) > 1
        one["layout"]["showlegend"] = many
        one["layout"]["margin"]["t"] = 28 if many else 10
        # A date axis would take small numbers for years.
        one["layout"]["xaxis"] = {"type": "linear", "range": [0, last], "ticksuffix": " s"}
    return made


def trend(records: Sequence[RunRecord], measures: Iterable[Measure]) -> list[Figure]:
    """A chart for each measure: a point for each run in order of time, in the colour of its result.

    Runs are at equal distances: some are minutes apart, others weeks.
    """
    # Month, day and time; the run's id beside the pointer has the year.
    names = [record.started_at[5:16].replace("T", " ") for record in records]
    if len(set(names)) < len(names):
        names = [record.started_at[5:19].replace("T", " ") for record in records]
    # A category has one point.
    earlier = [names[:place].count(name) for place, name in enumerate(names)]
    names = [f"{name} ({n + 1})" if n else name for name, n in zip(names, earlier, strict=True)]
    signs = [
        _TONES.get(found.tone, _NO_CONDITIONS) if (found := passing_of(record)) else _NO_CONDITIONS
        for record in records
    ]
    texts = [
        f"{record.run_id}: {_word(record)}{record.verdict.result.replace('_', ' ')}"
        for record in records
    ]
    made = []
    for measure in measures:
        values = [measure.read(record) for record in records]
        if not any(values):
            continue
        scale = 100.0 if measure.unit == "%" else 1.0
        unit = f" {measure.unit}" if measure.unit else ""
        trace = {
            "type": "scatter",
            "mode": "lines+markers",
            "x": names,
            "y": [None if value is None else round(value * scale, 4) for value in values],
            "text": [html.escape(text, quote=False) for text in texts],
            "line": {"color": _NO_CONDITIONS[0], "width": 1.2},
            "marker": {
                "color": [colour for colour, _ in signs],
                "symbol": [symbol for _, symbol in signs],
                "size": 10,
            },
            "cliponaxis": False,
            "hovertemplate": f"%{{x}}<br>%{{y:,.4~g}}{unit}<br>%{{text}}<extra></extra>",
        }
        chart = figure(
            None, f"{measure.noun[:1].upper()}{measure.noun[1:]}{unit and ','}{unit}", [trace]
        )
        ends = [-0.5, len(names) - 0.5]
        chart["layout"]["xaxis"] = {"type": "category", "range": ends, "nticks": 8, "tickangle": 0}
        made.append(chart)
    return made


def _word(record: RunRecord) -> str:
    found = passing_of(record)
    return "" if found is None else f"{found.word}, "


def _runs(subjects: Sequence[Subject]) -> Iterable[tuple[Subject, int, RunRecord]]:
    """Every run with its subject and the place of it among the repeats."""
    for subject in subjects:
        for place, record in enumerate(subject.records):
            yield subject, place, record


def _since(record: RunRecord) -> list[float]:
    began = record.series[0].t
    return [point.t + point.width_s / 2 - began for point in record.series]


def _course(
    subject: Subject,
    place: int,
    record: RunRecord,
    xs: list[float],
    ys: list[float | None],
    unit: str,
) -> dict[str, Any]:
    colour = _COLOURS[(ord(subject.letter) - ord("A")) % len(_COLOURS)]
    source = short(subject.titled, _NAME_WIDTH)
    name = html.escape(f"{subject.letter}: {source}", quote=False)
    style = {"color": colour, "width": 1.1 if place else 1.8}
    made = line([], ys, name, colour, unit, line=style)
    return {
        **made,
        "x": xs,
        "hovertemplate": f"{_SINCE}<br>%{{y:,.2~f}} {unit}<extra>{name}</extra>",
        "legendgroup": subject.letter,
        "showlegend": place == 0,
    }
