"""Five kinds of panels, with one style each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Required, TypedDict, Unpack

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
_PLUGIN_VERSION = "12.0.0"
"""Grafana migrates the options of panels of older versions; these options need no migration."""
_NO_DATA = "No data for this run and these partitions in this time range"


class About(TypedDict, total=False):
    """Settings of every panel.

    ``queries`` are expressions by the legend of their series. ``width`` is of 24, ``height`` is 8
    by default. ``no_value`` is shown while there is no series. The ``unit`` of a heat map is that
    of its colours.
    """

    title: Required[str]
    description: Required[str]
    queries: Required[Mapping[str, str]]
    unit: Required[str]
    width: Required[int]
    height: int
    no_value: str


def lines(*, at: float | None = None, up_to: float | None = None, **about: Unpack[About]) -> Panel:
    """Lines over time, with a threshold ``at`` a value, on an axis ``up_to`` a value or more."""
    panel = (
        timeseries.Panel()
        .min(0)
        .fill_opacity(0)
        .line_width(1)
        .show_points(VisibilityMode.NEVER)
        .color_scheme(FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
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
    return _finished(panel, about)


def number(*, at: float | None = None, **about: Unpack[About]) -> Panel:
    """A large number above its course over time; red from ``at`` on."""
    panel = (
        stat.Panel()
        .graph_mode(BigValueGraphMode.AREA)
        .color_mode(BigValueColorMode.VALUE)
        .reduce_options(_last())
        .thresholds(_steps(at))
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
    )
    return _finished(panel, about)


def words(*, instant: bool, **about: Unpack[About]) -> Panel:
    """The labels of a series: at the ``instant`` that ends the time range, or the last ones."""
    panel = (
        stat.Panel()
        .graph_mode(BigValueGraphMode.NONE)
        .color_mode(BigValueColorMode.NONE)
        .text_mode(BigValueTextMode.NAME)
        .reduce_options(_last())
    )
    return _finished(panel, about, instant=instant)


def bars(*, at: float, **about: Unpack[About]) -> Panel:
    """A bar for the last value of each series; red from ``at`` on."""
    panel = (
        bargauge.Panel()
        .min(0)
        .max(at)
        .orientation(VizOrientation.HORIZONTAL)
        .reduce_options(_last())
        .thresholds(_steps(at))
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
    )
    return _finished(panel, about, instant=True)


def heat(*, axis_unit: str, buckets: bool, **about: Unpack[About]) -> Panel:
    """A heat map over time, whose rows are the ``buckets`` of a histogram, or the series."""
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
        .cell_values(heatmap.CellValues().unit(about["unit"]))
        .tooltip(heatmap.HeatmapTooltip().mode(TooltipDisplayMode.SINGLE).show_color_scale(True))
    )
    form = PromQueryFormat.HEATMAP if buckets else PromQueryFormat.TIME_SERIES
    return _finished(panel, about, form=form)


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)


def _steps(at: float | None) -> ThresholdsConfig:
    red = [] if at is None else [Threshold(value=at, color="red")]
    return (
        ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(value=None, color="green"), *red])
    )


def _finished(
    panel: Any,
    about: About,
    *,
    instant: bool = False,
    form: PromQueryFormat = PromQueryFormat.TIME_SERIES,
) -> Panel:
    panel.title(about["title"]).description(about["description"]).unit(about["unit"])
    panel.no_value(about.get("no_value", _NO_DATA)).datasource(DATASOURCE)
    panel.span(about["width"]).height(about.get("height", 8))
    for (legend, expr), letter in zip(about["queries"].items(), "ABCDEF", strict=False):
        target = Dataquery().expr(expr).legend_format(legend).ref_id(letter)
        target.datasource(DATASOURCE).format(form)
        panel.with_target(target.instant() if instant else target.range())
    built: Panel = panel.build()
    built.plugin_version = _PLUGIN_VERSION
    return built
