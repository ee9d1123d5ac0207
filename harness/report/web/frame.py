"""The parts that all charts are made of: lines, heat maps, limits, marks of events.

A chart says what is drawn. ``charts.js`` decides where: axes, colours, and which texts have room.
It writes names as text, whatever signs they hold. Times are in seconds from ``Chart.began``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from harness.measure.record.record import RunRecord
from harness.report.events import moved_together, shown_gaps
from harness.report.names import partition_name
from harness.report.web.tables import short

NAME_WIDTH = 26


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line over time.

    Attributes:
        tone: Its colour, a name of ``page.css``: one colour has one meaning.
        look: ``area``, ``stack``, ``step``, ``dash``, ``dot``, ``thin``, ``wide``, or several.
        share: Whether the values are percentages, on an axis of their own at the right.
        legend: Whether the legend names it.
        signs: For single points: the tone of each, which has a shape of its own.
        texts: Likewise what is said of each beside the pointer.
    """

    name: str
    tone: str
    unit: str
    xs: Sequence[float]
    ys: Sequence[float | None]
    look: str = ""
    share: bool = False
    legend: bool = True
    signs: Sequence[str] = ()
    texts: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Another figure of the same cells as a heat map, which the reader can choose."""

    name: str
    cells: Sequence[Sequence[float | None]]
    unit: str
    scale: str
    most: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ColourGrid:
    """Cells of ``width_s`` from ``start_s``, row by row; None where nothing was counted.

    Attributes:
        names: Of the rows from the top, or no names.
        edges: Of the rows from the bottom, one more than there are rows, on a logarithmic axis.
        scale: Its colours, a name of ``page.css``.
        most: What the last colour stands for: this much or more.
        log: Whether a colour stands for the order of magnitude.
    """

    start_s: float
    width_s: float
    cells: Sequence[Sequence[float | None]]
    unit: str
    scale: str
    most: float
    names: Sequence[str] = ()
    edges: Sequence[float] = ()
    log: bool = False
    layers: Sequence[Layer] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shading:
    """A time that is marked from the bottom to the top; ``stopped`` as a strip at the bottom."""

    start_s: float
    end_s: float
    tone: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A time that is marked in a row of a heat map."""

    row: int
    start_s: float
    end_s: float
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A line across the chart, where the values come to the share ``reach`` of it.

    Else it is named at the upper edge: a far line would flatten the data.
    """

    value: float
    text: str
    tone: str = "limit"
    reach: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What is drawn in one place.

    Attributes:
        began: UTC seconds of time 0; None where times count from the beginning of each run.
        span: The shown time in seconds.
        names: Of the places 0, 1, ... where the chart is not over time.
        unit: Of the axis at the left, where not every line has the same.
        top: The end of that axis; None for what the values need.
        log: Whether it is logarithmic.
        bursts: Whether the axis may end below values that are far above all others.
        pattern: A sentence about what the heat map shows.
    """

    title: str
    span: tuple[float, float] = (0.0, 1.0)
    began: float | None = None
    height: int = 220
    names: Sequence[str] = ()
    unit: str = ""
    top: float | None = None
    log: bool = False
    bursts: bool = False
    pattern: str = ""
    lines: Sequence[Line] = ()
    heat: ColourGrid | None = None
    marks: Sequence[Mark] = ()
    levels: Sequence[Level] = ()
    bands: Sequence[Shading] = ()


def over_run(record: RunRecord, chart: Chart) -> Chart:
    """``chart`` over the time of a run, with marks where partitions moved or nothing succeeded."""
    if not record.series:
        return chart
    bands = _bands(record, measured=chart.heat is None)
    began, span = record.series[0].t, (0.0, load_s(record))
    return dataclasses.replace(chart, began=began, span=span, bands=bands)


def together(charts: Mapping[str, Chart]) -> dict[str, Chart]:
    """The same charts over one time and, of heat maps, with one rate for a colour."""
    maps = [one.heat for one in charts.values() if one.heat is not None]
    most = max((heat.most for heat in maps), default=1.0)
    began = min((one.began for one in charts.values() if one.began is not None), default=None)
    moved = {}
    for name, one in charts.items():
        later = one.began - began if one.began is not None and began is not None else 0.0
        heat = one.heat
        if heat is not None:
            heat = dataclasses.replace(heat, start_s=heat.start_s + later, most=most)
        span = (one.span[0] + later, one.span[1] + later)
        moved[name] = dataclasses.replace(one, heat=heat, span=span, began=began)
    span = (
        min((one.span[0] for one in moved.values()), default=0.0),
        max((one.span[1] for one in moved.values()), default=1.0),
    )
    return {name: dataclasses.replace(one, span=span) for name, one in moved.items()}


def middles(record: RunRecord) -> list[float]:
    began = record.series[0].t
    return [point.t - began + point.width_s / 2 for point in record.series]


def load_s(record: RunRecord) -> float:
    """How long the load lasted."""
    last = record.series[-1]
    return float(last.t + last.width_s - record.series[0].t)


def clipped(record: RunRecord, start_s: float, end_s: float) -> tuple[float, float] | None:
    """Seconds of the load within it; None outside of it."""
    if not record.series:
        return None
    start, end = max(0.0, start_s), min(load_s(record), end_s)
    return (start, end) if start < end else None


def named(key: str, width: int) -> str:
    return short(partition_name(key), width)


def _bands(record: RunRecord, *, measured: bool) -> list[Shading]:
    found = []
    if measured and record.measured_s:
        start = float(record.window_start - record.series[0].t)
        found.append((start, start + record.measured_s, "measured", "measured"))
    for moved in moved_together(record):
        which = f"{len(moved.keys)} partitions"
        if len(moved.keys) == 1:
            which = named(moved.keys[0], NAME_WIDTH)
        text = f"{which} moved: {moved.end_s - moved.start_s:.0f} s offline"
        found.append((moved.start_s, moved.end_s, "moved", text))
    for gap in shown_gaps(record):
        end = gap.start_s + gap.length_s
        found.append((float(gap.start_s), float(end), "stopped", "nothing succeeded"))
    return [
        Shading(start_s=at[0], end_s=at[1], tone=tone, text=text)
        for start, end, tone, text in found
        if (at := clipped(record, start, end)) is not None
    ]
