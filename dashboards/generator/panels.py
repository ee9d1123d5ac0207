"""How a panel is made: five kinds, each alike in all that does not say something."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol, Self

from grafana_foundation_sdk.builders import bargauge, common, heatmap, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import FieldColor, ThresholdsConfig
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    DataSourceRef,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    FieldColorModeId,
    Panel,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
PLUGIN_VERSION = "12.0.0"
"""Grafana changes the options of panels that were made by an older one; these are new enough."""
_PALETTE = FieldColorModeId.PALETTE_CLASSIC


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel, and how its series are called."""

    expr: str
    legend: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What every panel has to say.

    Attributes:
        absent: What stands there while there is no series.
        width: Of 24.
    """

    title: str
    description: str
    unit: str
    absent: str
    width: int
    height: int = 8


class _Builder(Protocol):
    """What the builders of all kinds of panels have in common."""

    def title(self, title: str) -> Self: ...
    def description(self, description: str) -> Self: ...
    def unit(self, unit: str) -> Self: ...
    def no_value(self, no_value: str) -> Self: ...
    def datasource(self, datasource: DataSourceRef) -> Self: ...
    def span(self, w: int) -> Self: ...
    def height(self, h: int) -> Self: ...
    def with_target(self, target: Dataquery) -> Self: ...
    def build(self) -> Panel: ...


def lines(
    about: About, *queries: Query, at: float | None = None, up_to: float | None = None
) -> Panel:
    """Lines over time.

    Args:
        about: What the panel says.
        queries: What is asked.
        at: Where the line of a threshold is.
        up_to: The axis reaches at least so far.
    """
    panel = (
        timeseries.Panel()
        .min(0)
        .fill_opacity(0)
        .line_width(1)
        .show_points(VisibilityMode.NEVER)
        .color_scheme(FieldColor().mode(_PALETTE))
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.TABLE)
            .placement(LegendPlacement.BOTTOM)
            .calcs(["lastNotNull", "max"])
            .sort_by("Max")
            .sort_desc(True)
        )
        .tooltip(
            common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
        )
    )
    if up_to is not None:
        panel.axis_soft_max(up_to)
    if at is not None:
        panel.thresholds(_steps(at)).thresholds_style(
            common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.LINE)
        )
    return _finished(panel, about, queries)


def number(about: About, query: Query, *, at: float | None = None) -> Panel:
    """One large number with its course; red from ``at`` on."""
    panel = (
        stat.Panel()
        .graph_mode(BigValueGraphMode.AREA)
        .color_mode(BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .thresholds(_steps(at))
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
    )
    return _finished(panel, about, [query])


def words(about: About, query: Query, *, instant: bool) -> Panel:
    """What the labels of a series say; its value says nothing.

    Args:
        about: What the panel says.
        query: What is asked.
        instant: True for what holds at the end of the time range, else the last that was seen.
    """
    panel = (
        stat.Panel()
        .graph_mode(BigValueGraphMode.NONE)
        .color_mode(BigValueColorMode.NONE)
        .text_mode(BigValueTextMode.NAME)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    )
    return _finished(panel, about, [query], instant=instant)


def bars(about: About, query: Query, *, at: float) -> Panel:
    """A bar for each series as it is now; red from ``at`` on."""
    panel = (
        bargauge.Panel()
        .min(0)
        .max(at)
        .orientation(VizOrientation.HORIZONTAL)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .thresholds(_steps(at))
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
    )
    return _finished(panel, about, [query], instant=True)


def heat(about: About, query: Query, *, axis_unit: str, buckets: bool) -> Panel:
    """Time x rows, coloured by value.

    Args:
        about: What the panel says; its unit is that of the colours.
        query: What is asked.
        axis_unit: Of the rows.
        buckets: True where the rows are buckets of a histogram, else each series is a row.
    """
    panel = (
        heatmap.Panel()
        .color(
            heatmap.HeatmapColorOptions()
            .mode(HeatmapColorMode.SCHEME)
            .scheme("Oranges")
            .fill("dark-orange")
            .exponent(0.5)
            .steps(64)
        )
        .y_axis(heatmap.YAxisConfig().unit(axis_unit))
        .cell_values(heatmap.CellValues().unit(about.unit))
        .tooltip(heatmap.HeatmapTooltip().mode(TooltipDisplayMode.SINGLE).show_color_scale(True))
    )
    return _finished(
        panel,
        about,
        [query],
        of=PromQueryFormat.HEATMAP if buckets else PromQueryFormat.TIME_SERIES,
    )


def _steps(at: float | None) -> ThresholdsConfig:
    red = [] if at is None else [Threshold(value=at, color="red")]
    return (
        ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(value=None, color="green"), *red])
    )


def _finished(
    panel: _Builder,
    about: About,
    queries: Sequence[Query],
    *,
    instant: bool = False,
    of: PromQueryFormat = PromQueryFormat.TIME_SERIES,
) -> Panel:
    panel.title(about.title).description(about.description).unit(about.unit)
    panel.no_value(about.absent).datasource(DATASOURCE).span(about.width).height(about.height)
    for query, letter in zip(queries, "ABCDEF", strict=False):
        target = Dataquery().expr(query.expr).legend_format(query.legend).ref_id(letter)
        target.datasource(DATASOURCE).format(of)
        panel.with_target(target.instant() if instant else target.range())
    built = panel.build()
    built.plugin_version = PLUGIN_VERSION
    return built
