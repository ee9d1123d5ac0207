"""What a column of a table in reports is, and the columns of small tables.

Every output renders the columns that name it: to show another figure, add one `Column`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from harness.measure.record.findings import PointersPart, StepPart
from harness.measure.record.record import RunRecord
from harness.measure.verdict import evidence
from harness.model.figures import milliseconds, number, percent, signed
from harness.report.answers import ResponseCount, tone_of
from harness.report.limits import least

NOT_MEASURED = "n/a"
LATENCY_FIGURES = ("p50", "p90", "p99", "max")
_count = "{:,}".format

Row = TypeVar("Row")


class Output(enum.Flag):
    """A report that shows a table. The CSV file and the web UI's tab name their columns."""

    TERMINAL = enum.auto()
    MARKDOWN = enum.auto()
    HTML = enum.auto()
    REPORT = TERMINAL | MARKDOWN | HTML


NOWHERE = Output(0)
"""For a column of the files for programs alone."""


@dataclasses.dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One figure of each row of a table.

    Attributes:
        name: Heading, below or behind the heading of ``group``. In headings ``{unit.rate}``
            and ``{unit.many}`` stand for the words of the service.
        get: The figure of a row, or None if it was not measured.
        absent: The text in place of a figure that was not measured.
        group: Heading of neighbouring columns, with their unit.
        narrow: Heading in a terminal; empty for ``name``.
        heading: Heading that depends on the run, instead of ``name``.
        figure: Figure that depends on the run, instead of ``get``, which files for programs have.
        when: Whether a run has the column, besides those of the files for programs.
        csv: Name in ``partitions.csv``; empty for a column that the file lacks. Never changed.
        csv_place: Columns with a higher place stand further right: new ones never move old ones.
        tab: Key and heading in the web UI's tab; None for a column that the tab lacks.
        share: True for a share that is also drawn as a bar.
        tone: The tone of a share by its row: ``bad``, ``faint`` or empty; None warns above 1.
        adds: True where the figures of several rows add up to the figure of all of them.
        bad: True where any figure above zero is highlighted.
        least: True for a count of entities or its share, which may be a lower bound.
        sign: What stands before the figure of a row, such as the sign of a lower bound.
    """

    name: str
    get: Callable[[Row], Any]
    write: Callable[[Any], str] = str
    _: dataclasses.KW_ONLY
    absent: str = NOT_MEASURED
    outputs: Output = Output.REPORT
    group: str = ""
    narrow: str = ""
    heading: Callable[[RunRecord], str] | None = None
    figure: Callable[[RunRecord, Row], Any] | None = None
    when: Callable[[RunRecord], bool] | None = None
    csv: str = ""
    csv_place: int = 0
    tab: tuple[str, str] | None = None
    share: bool = False
    tone: Callable[[Row], str] | None = None
    adds: bool = False
    bad: bool = False
    least: bool = False
    sign: Callable[[Row], str] = lambda _: ""

    def text(self, row: Row) -> str:
        value = self.get(row)
        return self.absent if value is None else signed(self.sign(row), self.write(value))

    def total(self, rows: Sequence[Row]) -> str:
        """The figure of ``rows`` together; empty where figures do not add up, or none has one."""
        values = [value for row in rows if (value := self.get(row)) is not None]
        if not self.adds or not values:
            return ""
        return signed(max(map(self.sign, rows), default=""), self.write(sum(values)))


def columns_of(
    record: RunRecord, columns: Iterable[Column[Row]], output: Output
) -> list[Column[Row]]:
    """The columns that an output shows of a run, with the headings and figures of that run."""
    return [
        _in_run(record, column)
        for column in columns
        if output in column.outputs and (column.when is None or column.when(record))
    ]


def _in_run(record: RunRecord, column: Column[Row]) -> Column[Row]:
    if column.heading is not None:
        column = dataclasses.replace(column, name=column.heading(record), narrow="")
    if column.figure is not None:
        column = dataclasses.replace(column, get=functools.partial(column.figure, record))
    if column.least:
        column = dataclasses.replace(column, sign=functools.partial(least, record))
    unit = record.endpoint.service.unit
    return dataclasses.replace(
        column,
        name=column.name.format(unit=unit),
        narrow=column.narrow.format(unit=unit),
        group=column.group.format(unit=unit),
    )


def flat_headings(columns: Sequence[Column[Row]]) -> list[str]:
    """Headings in one line: the first column of a group names the group."""
    names, before = [], ""
    for column in columns:
        first = column.group and column.group != before
        names.append(f"{column.group} {column.name}" if first else column.name)
        before = column.group
    return names


def best_over(record: RunRecord) -> str:
    """The heading of the best mean of 10 seconds in a row, or of a shorter window."""
    return evidence.best_over(record.measured_s)


def charges_units(record: RunRecord) -> bool:
    """Whether RU/s were measured: of Cosmos DB, whose targets are in this unit."""
    return has_rates(record) and record.request_units is not None


def has_rates(record: RunRecord) -> bool:
    """Whether rates were measured: the measured window opened."""
    return record.measured_s > 0


def counts_entities(record: RunRecord) -> bool:
    """Whether rates were measured, and targets are in entities per second."""
    return has_rates(record) and not charges_units(record)


def lasted_seconds(record: RunRecord) -> bool:
    """Whether the best mean over several seconds can differ from the best second."""
    return record.measured_s != 1


def measures(latency: str) -> Callable[[RunRecord], bool] | None:
    """A closed loop has no response latency."""
    return (lambda record: record.response_ms is not None) if latency == "response" else None


def at(path: str) -> Callable[[Any], float | None]:
    """Reads the figure at a path of attributes; None where a part of the path is None or absent."""

    def read(row: Any) -> float | None:
        found: float | None = functools.reduce(
            lambda part, name: getattr(part, name, None), path.split("."), row
        )
        return found

    return read


STEP_COLUMNS: tuple[Column[StepPart], ...] = (
    Column("wanted {unit.rate}", lambda step: step.rate_per_s, number, narrow="wanted"),
    Column("achieved", lambda step: step.achieved_per_s, number),
    Column("throttled", lambda step: step.throttled_ratio, percent),
    Column("p99 ms", lambda step: step.p99_ms, milliseconds),
    Column("held", lambda step: step.hold_s, "{:g} s".format),
    Column("billable", lambda step: step.billable_transactions, _count),
)
"""The columns behind the number and the result of a step of a search."""


def referred(part: PointersPart) -> str:
    """The table whose rows an index table refers to."""
    return part.to or "the first table"


POINTER_COLUMNS: tuple[Column[PointersPart], ...] = (
    Column("rows", lambda part: part.rows, _count),
    Column("dangling references", lambda part: part.dangling, _count),
    Column("rows without a reference", lambda part: part.unnamed, _count),
)
"""The columns behind the names of an index table and of the table that it refers to."""


RESPONSE_COLUMNS: tuple[Column[ResponseCount], ...] = (
    Column("attempts", lambda row: row.count, _count),
    Column("share", lambda row: row.share, percent, share=True, tone=lambda row: tone_of(row.name)),
)
"""The columns behind the name of a response."""
