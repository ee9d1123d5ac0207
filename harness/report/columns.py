"""The columns of the tables in reports. Every output renders the columns that name it.

To show another figure of a partition or an operation, add one `Column` here.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from harness.measure.figures import milliseconds, number, percent
from harness.measure.record.findings import PointersPart, StepPart
from harness.measure.record.record import OperationPart, PartitionPart, RunRecord
from harness.model.operation import Kind
from harness.model.outcome import THROTTLING_STATUSES, Scope, is_throttling

NOT_MEASURED = "n/a"
PLAIN_OUTCOME = "success"
_LATENCY_FIGURES = ("p50", "p90", "p99", "max")
_count = "{:,}".format

Row = TypeVar("Row")


class Output(enum.Flag):
    """A report that shows a table. The CSV file and the web UI's tab name their columns."""

    TERMINAL = enum.auto()
    MARKDOWN = enum.auto()
    HTML = enum.auto()
    TEXT = TERMINAL | MARKDOWN
    REPORT = TERMINAL | MARKDOWN | HTML


_NOWHERE = Output(0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Row]):
    """One figure of each row of a table.

    Attributes:
        name: Heading. The heading of ``group`` stands above it or before it.
        get: The figure of a row, or None if it was not measured.
        write: The text of a figure.
        absent: The text in place of a figure that was not measured.
        outputs: The outputs that show it.
        group: Heading of neighbouring columns, with their unit.
        narrow: Heading in a terminal; empty for ``name``.
        heading: Heading that depends on the run, instead of ``name``.
        csv: Name in ``partitions.csv``; empty for a column that the file lacks. Never changed.
        tab: Key and heading in the web UI's tab; None for a column that the tab lacks.
        share: True for a share that is also drawn as a bar.
        adds: True where the figures of several rows add up to the figure of all of them.
        bad: True where any figure above zero is highlighted.
    """

    name: str
    get: Callable[[Row], Any]
    write: Callable[[Any], str] = str
    absent: str = NOT_MEASURED
    outputs: Output = Output.REPORT
    group: str = ""
    narrow: str = ""
    heading: Callable[[RunRecord], str] | None = None
    csv: str = ""
    tab: tuple[str, str] | None = None
    share: bool = False
    adds: bool = False
    bad: bool = False

    def text(self, row: Row) -> str:
        """The figure of ``row`` as text."""
        value = self.get(row)
        return self.absent if value is None else self.write(value)

    def total(self, rows: Sequence[Row]) -> str:
        """The figure of ``rows`` together; empty where figures do not add up."""
        return self.write(sum(map(self.get, rows))) if self.adds else ""


def columns_of(
    record: RunRecord, columns: Iterable[Column[Row]], output: Output
) -> list[Column[Row]]:
    """The columns that an output shows of a run, with the headings of that run.

    A closed loop has no response latency, and no columns of it.
    """
    return [
        column
        if column.heading is None
        else dataclasses.replace(column, name=column.heading(record), narrow="")
        for column in columns
        if output in column.outputs
        and (record.response_ms is not None or column.group != "response ms")
    ]


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
    return f"best {min(10, record.measured_s) or 10} s"


def throttled_by_status(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Throttled attempts by status.

    Args:
        parts: Attempts by response, with the names that records use.
    """
    counts = {str(status): 0 for status in THROTTLING_STATUSES}
    for attempts in parts:
        for name, count in attempts.items():
            status, _, rest = name.partition(" ")
            if status in counts and is_throttling(int(status), rest.partition(" ")[0]):
                counts[status] += count
    return counts


def other_outcomes(part: OperationPart) -> list[tuple[str, int]]:
    """Outcomes other than plain success: names and counts, the most frequent first."""
    others = [
        (name, count) for name, count in part.outcomes.items() if name != PLAIN_OUTCOME and count
    ]
    return sorted(others, key=lambda item: (-item[1], item[0]))


def _target(record: RunRecord) -> str:
    target = next((part.target for part in record.partitions if part.target is not None), None)
    return "target" if target is None else f"of {number(target)}"


def _throttled_by(status: str) -> Callable[[PartitionPart], int]:
    return lambda part: throttled_by_status((part.attempts_by_status,))[status]


def _throttled_for(scope: str) -> Callable[[PartitionPart], int]:
    # The names of other responses have no scope.
    return lambda part: sum(
        count for name, count in part.attempts_by_status.items() if name.endswith(f" {scope}")
    )


def _bound(bound: str) -> Callable[[PartitionPart], int | None]:
    return lambda part: getattr(part.estimate, bound, None)


def _latency(latency: str, figure: str) -> Callable[[Any], float | None]:
    return lambda row: getattr(getattr(row, f"{latency}_ms"), figure, None)


MEAN_RATE: Column[PartitionPart] = Column(
    name="mean",
    narrow="entities/s",
    group="entities/s",
    get=lambda part: part.entities_per_s.mean,
    write=number,
    adds=True,
    csv="entities_per_s_mean",
    tab=("entities_per_s", "Entities/s"),
)
THROTTLED: tuple[Column[PartitionPart], ...] = tuple(
    Column(
        name=status,
        group="throttled attempts",
        get=_throttled_by(status),
        write=_count,
        adds=True,
        bad=True,
        csv=f"throttled_{status}_attempts",
        tab=(f"throttled_{status}", f"{status}/s"),
    )
    for status in map(str, THROTTLING_STATUSES)
)
THROTTLED_RATIO: Column[PartitionPart] = Column(
    name="share of its attempts",
    get=lambda part: part.throttled_ratio,
    write=percent,
    outputs=_NOWHERE,
    csv="throttled_ratio",
)
PARTITION_COLUMNS: tuple[Column[PartitionPart], ...] = (
    Column(
        name="entities",
        get=lambda part: part.entities,
        adds=True,
        outputs=_NOWHERE,
        csv="entities",
    ),
    MEAN_RATE,
    Column(
        name="best 1 s",
        narrow="best\n1 s",
        group="entities/s",
        get=lambda part: part.entities_per_s.best_1s,
        write=number,
        csv="entities_per_s_best_1s",
    ),
    Column(
        name="best 10 s",
        group="entities/s",
        heading=best_over,
        get=lambda part: part.entities_per_s.best_10s,
        write=number,
        csv="entities_per_s_best_10s",
    ),
    Column(
        name="target",
        get=lambda part: part.target,
        outputs=_NOWHERE,
        csv="target_entities_per_s",
    ),
    Column(
        name="of target",
        heading=_target,
        get=lambda part: part.ratio,
        write=percent,
        absent="none",
        share=True,
        csv="ratio_to_target",
        tab=("of_target", "Of the target"),
    ),
    Column(
        name="attempts",
        get=lambda part: sum(part.attempts_by_status.values()),
        adds=True,
        outputs=_NOWHERE,
        csv="attempts",
    ),
    *THROTTLED,
    *(
        Column(
            name=f"throttled by {scope}",
            get=_throttled_for(scope),
            adds=True,
            outputs=_NOWHERE,
            csv=f"throttled_{scope}_attempts",
        )
        for scope in (Scope.PARTITION, Scope.ACCOUNT)
    ),
    THROTTLED_RATIO,
    *(
        Column(
            name=figure,
            narrow=f"{figure}\nms",
            group=f"{latency} ms",
            get=_latency(latency, figure),
            write=milliseconds,
            outputs=outputs if figure in ("p50", "p99") else _NOWHERE,
            csv=f"{latency}_{figure}_ms",
            tab=(f"{latency}_{figure}", f"{latency.capitalize()} {figure} ms")
            if figure in ("p50", "p99")
            else None,
        )
        for latency, outputs in (
            ("service", Output.REPORT),
            ("response", Output.HTML),
        )
        for figure in _LATENCY_FIGURES
    ),
    Column(
        name="counted separately since",
        get=lambda part: part.since,
        outputs=_NOWHERE,
        csv="told_apart_since_utc_s",
    ),
    *(
        Column(
            name=f"entities, {bound.replace('_', ' ')}",
            get=_bound(bound),
            outputs=_NOWHERE,
            csv=f"entities_{bound}",
        )
        for bound in ("at_least", "at_most")
    ),
)
"""The columns behind the name of a partition."""

OPERATION_COLUMNS: tuple[Column[OperationPart], ...] = (
    Column(name="count", get=lambda part: part.count, write=_count),
    Column(name="entities/s", get=lambda part: part.entities_per_s.mean, write=number),
    *(
        Column(
            name=figure,
            group=f"{latency} ms",
            get=_latency(latency, figure),
            write=milliseconds,
        )
        for latency in ("service", "response")
        for figure in _LATENCY_FIGURES
    ),
    Column(
        name="other outcomes",
        get=lambda part: ", ".join(f"{name} {count:,}" for name, count in other_outcomes(part)),
        # A terminal has no room for texts beside the figures: they stand below the table.
        outputs=Output.MARKDOWN | Output.HTML,
    ),
)
"""The columns behind the name of an operation."""


def all_operations(record: RunRecord) -> OperationPart:
    """The row of all operations together."""
    return OperationPart(
        kind="all",
        count=record.counts.operations,
        entities=record.counts.entities,
        entities_per_s=record.account.entities_per_s,
        outcomes={},
        service_ms=record.service_ms,
        response_ms=record.response_ms,
    )


def scanning(record: RunRecord) -> list[OperationPart]:
    """The operations that are queries: the rows of the table of scans."""
    return [part for part in record.operations if part.type == Kind.QUERY]


def _certainty(part: OperationPart) -> str:
    if not part.uncertain:
        return "exact"
    if part.uncertain == part.count:
        return "estimated"
    return f"{part.uncertain:,} of {part.count:,} estimated"


SCAN_COLUMNS: tuple[Column[OperationPart], ...] = (
    Column(
        name="entities scanned",
        get=lambda part: f"{'at least ' if part.uncertain else ''}{part.entities:,}",
    ),
    Column(name="returned", get=lambda part: part.entities_returned, write=_count),
    Column(
        name="returned / scanned",
        narrow="returned /\nscanned",
        get=lambda part: part.entities_returned / part.entities if part.entities else 1.0,
        write=percent,
    ),
    Column(name="scan count", narrow="scan\ncount", get=_certainty),
)
"""The columns behind the name of a query."""

STEP_COLUMNS: tuple[Column[StepPart], ...] = (
    Column(name="wanted entities/s", narrow="wanted", get=lambda s: s.rate_per_s, write=number),
    Column(name="achieved", get=lambda s: s.achieved_per_s, write=number),
    Column(name="throttled", get=lambda s: s.throttled_ratio, write=percent),
    Column(name="p99 ms", get=lambda s: s.p99_ms, write=milliseconds),
    Column(name="held", get=lambda s: s.hold_s, write="{:g} s".format),
    Column(name="billable", get=lambda s: s.billable_transactions, write=_count),
)
"""The columns behind the number and the result of a step of a search."""


def referred(part: PointersPart) -> str:
    """The table whose rows an index table refers to."""
    return part.to or "the first table"


POINTER_COLUMNS: tuple[Column[PointersPart], ...] = (
    Column(name="rows", get=lambda part: part.rows, write=_count),
    Column(name="dangling references", get=lambda part: part.dangling, write=_count),
    Column(name="rows without a reference", get=lambda part: part.unnamed, write=_count),
)
"""The columns behind the names of an index table and of the table that it refers to."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResponseCount:
    """Attempts with one response: its name, their number, and their share of all attempts."""

    name: str
    count: int
    share: float


def response_counts(record: RunRecord) -> list[ResponseCount]:
    """Attempts by response, the most frequent first."""
    everything = record.counts.attempts or 1
    ordered = sorted(record.attempts_by_status.items(), key=lambda item: -item[1])
    return [
        ResponseCount(name=name, count=count, share=count / everything) for name, count in ordered
    ]


RESPONSE_COLUMNS: tuple[Column[ResponseCount], ...] = (
    Column(name="attempts", get=lambda row: row.count, write=_count),
    Column(name="share", get=lambda row: row.share, write=percent, share=True),
)
"""The columns behind the name of a response."""
