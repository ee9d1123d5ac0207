"""The whole dashboard: variables, annotations, and the panels in their places."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DatasourceVariable,
    QueryVariable,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    GridPos,
    Panel,
    RowPanel,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards.generator import queries as q
from dashboards.generator.content import rows
from dashboards.generator.panels import DATASOURCE

_SCHEMA_VERSION = 41
"""The version of Grafana 12. Older versions read it too, newer ones migrate it."""
_COLUMNS = 24


def generated() -> str:
    """The dashboard as JSON, the same bytes every time."""
    made = (
        Dashboard("Partition stress")
        .uid("partition-stress")
        .description(
            "A run of the table stress harness: the rate and the throttling of each partition, "
            "and whether the generator was the limit."
        )
        .tags(["azure-tables", "load-test"])
        .timezone("browser")
        .time("now-15m", "now")
        .refresh("5s")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .variables([_datasource(), _run(), _partition()])
        .annotations(list(_annotations()))
        .build()
    )
    made.schema_version = _SCHEMA_VERSION
    made.panels = list(_placed())
    return JSONEncoder(indent=2, sort_keys=True).encode(made) + "\n"


def _datasource() -> DatasourceVariable:
    return (
        DatasourceVariable("datasource")
        .label("Data source")
        .description("The Prometheus that scrapes the harness.")
        .type("prometheus")
    )


def _run() -> QueryVariable:
    return (
        QueryVariable("run")
        .label("Run")
        .description("Runs in the time range, the newest first.")
        .datasource(DATASOURCE)
        .query("label_values(aztables_run_info, run)")
        .definition("label_values(aztables_run_info, run)")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        # A run's name begins with its time.
        .sort(VariableSort.ALPHABETICAL_DESC)
    )


def _partition() -> QueryVariable:
    query = f"label_values(aztables_entities_total{{{q.RUN}}}, partition)"
    return (
        QueryVariable("partition")
        .label("Partition")
        .description("Partitions shown separately; panels of the whole run ignore this filter.")
        .datasource(DATASOURCE)
        .query(query)
        .definition(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
        .multi(True)
        .include_all(True)
        # Not the list of all: two hundred keys make a query that is too long.
        .all_value(".*")
        .current(VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def _annotations() -> Iterator[AnnotationQuery]:
    yield _annotation("Run started", "blue", q.STARTED_MS, "Run started", "{{run}}", moment=True)
    yield _annotation("Measured window", "green", q.MEASURED, "Measured window", "{{run}}")
    yield _annotation("Verdict", "red", q.ENDED_MS, "{{verdict}}", "{{sentence}}", moment=True)


def _annotation(
    name: str, colour: str, expr: str, title: str, text: str, *, moment: bool = False
) -> AnnotationQuery:
    """An annotation while ``expr`` gives a series; ``title`` and ``text`` may name labels.

    With ``moment`` the annotation is at one time: the value of ``expr``, in milliseconds.
    """
    step = "1s"
    return (
        AnnotationQuery()
        .name(name)
        .datasource(DATASOURCE)
        .icon_color(colour)
        # Grafana before 11.5 reads the expression from here, later versions from the target.
        .expr(expr)
        .step(step)
        .target(Dataquery().expr(expr).interval(step).ref_id("Anno").range())
        .title_format(title)
        .text_format(text)
        .tag_keys("run")
        .use_value_for_time(moment)
    )


def _placed() -> Iterator[Panel | RowPanel]:
    """Rows and panels from left to right and from top to bottom, each with a number of its own."""
    number = y = 0
    for title, panels in rows():
        number += 1
        yield RowPanel(
            id_val=number, title=title, grid_pos=GridPos(h=1, w=_COLUMNS, x=0, y=y), panels=[]
        )
        x, y, tallest = 0, y + 1, 0
        for panel in panels:
            place = panel.grid_pos
            assert place is not None
            if x + place.w > _COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            number += 1
            panel.id_val = number
            place.x, place.y = x, y
            x, tallest = x + place.w, max(tallest, place.h)
            yield panel
        y += tallest
