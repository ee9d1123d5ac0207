"""The columns of the tables in reports. Every output renders the columns that name it.

To show another figure of a partition or an operation, add one `Column` here.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from harness.model.figures import milliseconds, number, percent
from harness.measure.record.findings import PointersPart, StepPart
from harness.measure.record.record import (
    AccountLoadPart,
    OperationPart,
    PartitionPart,
    RunRecord,
)
from harness.model.operation import Kind
from harness.model.outcome import THROTTLING_STATUSES, Outcome, Scope, is_throttling

NOT_MEASURED = "n/a"
_LATENCY_FIGURES = ("p50", "p90", "p99", "max")
_count = "{:,}".format

Row = TypeVar("Row")


class Output(enum.Flag):
    """A report that shows a table. The CSV file and the web UI's tab name their columns."""

    TERMINAL = enum.auto()
    MARKDOWN = enum.auto()
    HTML = enum.auto()
    REPORT = TERMINAL | MARKDOWN | HTML


_NOWHERE = Output(0)


@dataclasses.dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One figure of each row of a table.

    Attributes:
        name: Heading, below or behind the heading of ``group``.
        get: The figure of a row, or None if it was not measured.
        absent: The text in place of a figure that was not measured.
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
    _: dataclasses.KW_ONLY
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
        value = self.get(row)
        return self.absent if value is None else self.write(value)

    def total(self, rows: Sequence[Row]) -> str:
        """The figure of ``rows`` together; empty where figures do not add up."""
        return self.write(sum(map(self.get, rows))) if self.adds else ""


def columns_of(
    record: RunRecord, columns: Iterable[Column[Row]], output: Output
) -> list[Column[Row]]:
    """The columns that an output shows of a run, with the headings of that run.

    A closed loop has no response latency, and no columns of it. A single account has no column.
    """
    return [
        column
        if column.heading is None
        else dataclasses.replace(column, name=column.heading(record), narrow="")
        for column in columns
        if output in column.outputs
        and (record.response_ms is not None or column.group != "response ms")
        and (record.accounts or column is not ACCOUNT)
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


def throttled_by_status(attempts: Mapping[str, int]) -> dict[str, int]:
    """Throttled attempts by status, of attempts by the names of responses in records."""
    counts = {str(status): 0 for status in THROTTLING_STATUSES}
    for name, count in attempts.items():
        status, _, rest = name.partition(" ")
        if status in counts and is_throttling(int(status), rest.partition(" ")[0]):
            counts[status] += count
    return counts


def csv_columns(record: RunRecord) -> list[Column[PartitionPart]]:
    """The columns of ``partitions.csv``."""
    return [
        column
        for column in PARTITION_COLUMNS
        if column.csv and (record.accounts or column is not ACCOUNT)
    ]


def throttled_attempts(part: PartitionPart) -> int:
    return sum(throttled_by_status(part.attempts_by_status).values())


def other_outcomes(part: OperationPart) -> list[tuple[str, int]]:
    """Outcomes other than plain success: names and counts, the most frequent first."""
    others = [item for item in part.outcomes.items() if item[0] != Outcome.SUCCESS and item[1]]
    return sorted(others, key=lambda item: (-item[1], item[0]))


def _target(record: RunRecord) -> str:
    target = next((part.target for part in record.partitions if part.target is not None), None)
    return "target" if target is None else f"of {number(target)}"


def _account_target(record: RunRecord) -> str:
    target = next((part.target for part in record.accounts), None)
    return "target" if target is None else f"of {number(target)}"


def _throttled_by(status: str) -> Callable[[Any], int]:
    return lambda part: throttled_by_status(part.attempts_by_status)[status]


def _throttled_for(scope: Scope) -> Callable[[Any], int]:
    # The names of other responses have no scope.
    return lambda part: sum(
        count for name, count in part.attempts_by_status.items() if name.endswith(f" {scope}")
    )


def _latency(latency: str, figure: str) -> Callable[[Any], float | None]:
    return lambda row: getattr(getattr(row, f"{latency}_ms"), figure, None)


def _partition_latency(latency: str, figure: str) -> Column[PartitionPart]:
    shown = figure in ("p50", "p99")
    outputs = Output.HTML if latency == "response" else Output.REPORT
    return Column(
        figure,
        _latency(latency, figure),
        milliseconds,
        narrow=f"{figure}\nms",
        group=f"{latency} ms",
        outputs=outputs if shown else _NOWHERE,
        csv=f"{latency}_{figure}_ms",
        tab=(f"{latency}_{figure}", f"{latency.capitalize()} {figure} ms") if shown else None,
    )


def _in_csv(name: str, get: Callable[[PartitionPart], Any]) -> Column[PartitionPart]:
    """A column of the CSV file alone."""
    return Column(name, get, outputs=_NOWHERE, csv=name)


MEAN_RATE: Column[PartitionPart] = Column(
    "mean",
    lambda part: part.entities_per_s.mean,
    number,
    narrow="entities/s",
    group="entities/s",
    adds=True,
    csv="entities_per_s_mean",
    tab=("entities_per_s", "Entities/s"),
)
THROTTLED: tuple[Column[PartitionPart], ...] = tuple(
    Column(
        status,
        _throttled_by(status),
        _count,
        group="throttled attempts",
        adds=True,
        bad=True,
        csv=f"throttled_{status}_attempts",
        tab=(f"throttled_{status}", f"{status}/s"),
    )
    for status in map(str, THROTTLING_STATUSES)
)
THROTTLED_RATIO: Column[PartitionPart] = Column(
    "share of its attempts",
    lambda part: part.throttled_ratio,
    percent,
    outputs=_NOWHERE,
    csv="throttled_ratio",
)
ACCOUNT: Column[PartitionPart] = Column(
    "account", lambda part: part.account, outputs=Output.HTML, csv="account"
)
"""The account of a partition, in a run against several."""
PARTITION_COLUMNS: tuple[Column[PartitionPart], ...] = (
    _in_csv("entities", lambda part: part.entities),
    MEAN_RATE,
    Column(
        "best 1 s",
        lambda part: part.entities_per_s.best_1s,
        number,
        group="entities/s",
        csv="entities_per_s_best_1s",
    ),
    Column(
        "best 10 s",
        lambda part: part.entities_per_s.best_10s,
        number,
        group="entities/s",
        heading=best_over,
        csv="entities_per_s_best_10s",
    ),
    _in_csv("target_entities_per_s", lambda part: part.target),
    Column(
        "of target",
        lambda part: part.ratio,
        percent,
        heading=_target,
        absent="none",
        share=True,
        csv="ratio_to_target",
        tab=("of_target", "Of the target"),
    ),
    _in_csv("attempts", lambda part: sum(part.attempts_by_status.values())),
    *THROTTLED,
    _in_csv("throttled_partition_attempts", _throttled_for(Scope.PARTITION)),
    _in_csv("throttled_account_attempts", _throttled_for(Scope.ACCOUNT)),
    THROTTLED_RATIO,
    *(
        _partition_latency(latency, figure)
        for latency in ("service", "response")
        for figure in _LATENCY_FIGURES
    ),
    _in_csv("told_apart_since_utc_s", lambda part: part.since),
    _in_csv("entities_at_least", lambda part: getattr(part.estimate, "at_least", None)),
    _in_csv("entities_at_most", lambda part: getattr(part.estimate, "at_most", None)),
    ACCOUNT,
)
"""The columns behind the name of a partition."""

ACCOUNT_COLUMNS: tuple[Column[AccountLoadPart], ...] = (
    Column(
        "mean",
        lambda part: part.entities_per_s.mean,
        number,
        narrow="entities/s",
        group="entities/s",
    ),
    Column("best 1 s", lambda part: part.entities_per_s.best_1s, number, group="entities/s"),
    Column(
        "best 10 s",
        lambda part: part.entities_per_s.best_10s,
        number,
        group="entities/s",
        heading=best_over,
    ),
    Column(
        "of target",
        lambda part: part.ratio,
        percent,
        heading=_account_target,
        absent="none",
        share=True,
    ),
    Column(
        "transactions/s", lambda part: part.transactions_per_s, number, narrow="trans-\nactions/s"
    ),
    *(
        Column(status, _throttled_by(status), _count, group="throttled attempts", bad=True)
        for status in map(str, THROTTLING_STATUSES)
    ),
    Column(
        "by its partitions",
        _throttled_for(Scope.PARTITION),
        _count,
        outputs=Output.MARKDOWN | Output.HTML,
        group="throttled attempts",
        bad=True,
    ),
    Column(
        "by the account",
        _throttled_for(Scope.ACCOUNT),
        _count,
        narrow="by the\naccount",
        group="throttled attempts",
        bad=True,
    ),
    Column(
        "billable transactions",
        lambda part: part.billable_transactions,
        _count,
        outputs=Output.MARKDOWN | Output.HTML,
    ),
)
"""The columns behind the name of one of several accounts."""

OPERATION_COLUMNS: tuple[Column[OperationPart], ...] = (
    Column("count", lambda part: part.count, _count),
    Column("entities/s", lambda part: part.entities_per_s.mean, number),
    *(
        Column(figure, _latency(latency, figure), milliseconds, group=f"{latency} ms")
        for latency in ("service", "response")
        for figure in _LATENCY_FIGURES
    ),
    Column(
        "other outcomes",
        lambda part: ", ".join(f"{name} {count:,}" for name, count in other_outcomes(part)),
        # A terminal has no room for texts beside the figures: they stand below the table.
        outputs=Output.MARKDOWN | Output.HTML,
    ),
)
"""The columns behind the name of an operation."""


def all_operations(record: RunRecord) -> OperationPart:
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
        "entities scanned", lambda part: f"{'at least ' if part.uncertain else ''}{part.entities:,}"
    ),
    Column("returned", lambda part: part.entities_returned, _count),
    Column(
        "returned / scanned",
        lambda part: part.entities_returned / part.entities if part.entities else 1.0,
        percent,
        narrow="returned /\nscanned",
    ),
    Column("scan count", _certainty, narrow="scan\ncount"),
)
"""The columns behind the name of a query."""

STEP_COLUMNS: tuple[Column[StepPart], ...] = (
    Column("wanted entities/s", lambda step: step.rate_per_s, number, narrow="wanted"),
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


@dataclasses.dataclass(frozen=True, slots=True)
class ResponseCount:
    """The attempts with one response, and their share of all attempts."""

    name: str
    count: int
    share: float


def response_counts(record: RunRecord) -> list[ResponseCount]:
    """Attempts by response, the most frequent first."""
    everything = record.counts.attempts or 1
    ordered = sorted(record.attempts_by_status.items(), key=lambda item: -item[1])
    return [ResponseCount(name, count, count / everything) for name, count in ordered]


RESPONSE_COLUMNS: tuple[Column[ResponseCount], ...] = (
    Column("attempts", lambda row: row.count, _count),
    Column("share", lambda row: row.share, percent, share=True),
)
"""The columns behind the name of a response."""
