"""The columns of the tables of partitions, of accounts, of operations, and of queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from harness.measure.record.measured import AccountLoadPart, OperationPart, PartitionPart
from harness.measure.record.record import RunRecord
from harness.model.figures import milliseconds, number, per_operation, percent, request_units
from harness.model.operation import Kind
from harness.model.outcome import THROTTLING_STATUSES, Outcome, Scope
from harness.report.answers import other_answers, throttled_by_status
from harness.report.columns import (
    LATENCY_FIGURES,
    NOWHERE,
    Column,
    Output,
    at,
    best_over,
    charges_units,
    counts_entities,
    has_rates,
    lasted_seconds,
    measures,
)
from harness.report.limits import has_enforced, of_limit, partition_limits, raised_mark

_count = "{:,}".format
_REFUSED = "throttled attempts"
_FIRST_IN_CSV = (503, 500, 429)
"""The statuses of the first version of ``partitions.csv``."""


def csv_columns(record: RunRecord) -> list[Column[PartitionPart]]:
    written = [
        column
        for column in PARTITION_COLUMNS
        if column.csv
        and (record.accounts or column is not ACCOUNT)
        and (record.request_units is not None or column not in UNITS)
        and (_has_messages(record) or column not in MESSAGES)
    ]
    return sorted(written, key=lambda column: column.csv_place)


def throttled_attempts(part: PartitionPart) -> int:
    return sum(throttled_by_status(part.attempts_by_status).values())


def _has_others(record: RunRecord) -> bool:
    return bool(other_answers(record.attempts_by_status))


def _has_messages(record: RunRecord) -> bool:
    return record.messages is not None


def _has_status(status: str) -> Callable[[RunRecord], bool]:
    def has(record: RunRecord) -> bool:
        if throttled_by_status(record.attempts_by_status)[status]:
            return True
        return status == ("429" if record.endpoint.service.charges else "503")

    return has


def _has_retries(record: RunRecord) -> bool:
    return record.counts.attempts > record.counts.operations and any(
        part.operations for part in record.partitions
    )


def _of(target: float | None, mark: str = "") -> str:
    """The heading of the shares of a target; ``mark`` is behind it."""
    return "target" if target is None else f"of {number(target)}{mark}"


def _of_partitions(record: RunRecord) -> str:
    limits = partition_limits(record)
    values = set(limits.values())
    if len(values) > 1:
        return "of its limit" if has_enforced(record) else "of its target"
    return _of(next(iter(values), None), raised_mark(record) if None in limits else "")


def _unit_target(parts: Sequence[PartitionPart] | Sequence[AccountLoadPart]) -> str:
    targets = (part.request_units.target for part in parts if part.request_units is not None)
    return _of(next((target for target in targets if target is not None), None))


def throttled_for(scope: Scope) -> Callable[[Any], int]:
    """Counts the throttled attempts of a partition or an account for one scope."""
    # The names of other responses have no scope.
    return lambda part: sum(
        count for name, count in part.attempts_by_status.items() if name.endswith(f" {scope}")
    )


def _partition_latency(latency: str, figure: str) -> Column[PartitionPart]:
    shown = figure in ("p50", "p99")
    outputs = Output.HTML if latency == "response" else Output.REPORT
    return Column(
        figure,
        at(f"{latency}_ms.{figure}"),
        milliseconds,
        narrow=f"{figure}\nms",
        group=f"{latency} ms",
        outputs=outputs if shown else NOWHERE,
        when=measures(latency),
        csv=f"{latency}_{figure}_ms",
        tab=(f"{latency}_{figure}", f"{latency.capitalize()} {figure} ms") if shown else None,
    )


def _in_csv(
    name: str, get: Callable[[PartitionPart], Any], place: int = 0
) -> Column[PartitionPart]:
    """A column of the CSV file alone."""
    return Column(name, get, outputs=NOWHERE, csv=name, csv_place=place)


def _rate_column(name: str, figure: str, **more: Any) -> Column[Any]:
    """A rate of entities, of a partition or an account."""
    return Column(
        name,
        at(f"entities_per_s.{figure}"),
        number,
        group="{unit.rate}",
        least=True,
        csv=f"entities_per_s_{figure}",
        **{"when": has_rates, **more},
    )


MEAN_RATE = _rate_column(
    "mean", "mean", narrow="{unit.rate}", adds=True, tab=("entities_per_s", "Entities/s")
)
RATES = (
    MEAN_RATE,
    _rate_column("best 1 s", "best_1s", when=counts_entities),
    _rate_column(
        "best 10 s",
        "best_10s",
        heading=best_over,
        when=lambda record: counts_entities(record) and lasted_seconds(record),
    ),
)
"""Rates of entities of a partition or an account."""


def _throttled_column(status: int) -> Column[Any]:
    """Attempts with one throttling status, where it occurred or is the usual one."""
    name = str(status)
    return Column(
        name,
        lambda part: throttled_by_status(part.attempts_by_status)[name],
        _count,
        group=_REFUSED,
        when=_has_status(name),
        adds=True,
        bad=True,
        csv=f"throttled_{name}_attempts",
        csv_place=0 if status in _FIRST_IN_CSV else 1,
    )


THROTTLED: tuple[Column[Any], ...] = tuple(map(_throttled_column, THROTTLING_STATUSES))

OTHER_COUNT: Column[Any] = Column(
    "other answers",
    lambda part: sum(count for _, count in other_answers(part.attempts_by_status)),
    _count,
    outputs=Output.TERMINAL,
    narrow="other",
    when=_has_others,
    adds=True,
    csv="other_unsuccessful_attempts",
    csv_place=1,
)

OTHER_ANSWERS: Column[Any] = Column(
    "other answers",
    lambda part: ", ".join(
        f"{name} {count:,}" for name, count in other_answers(part.attempts_by_status)
    ),
    outputs=Output.MARKDOWN | Output.HTML,
    when=_has_others,
)
"""A terminal has no room for texts in a table: it lists all answers below."""

THROTTLED_RATIO: Column[PartitionPart] = Column(
    "share of its attempts",
    lambda part: part.throttled_ratio,
    percent,
    outputs=NOWHERE,
    csv="throttled_ratio",
)

ATTEMPTS_PER_OPERATION: Column[PartitionPart] = Column(
    "attempts per operation",
    lambda part: part.attempts_per_operation,
    per_operation,
    narrow="attempts\nper op",
    when=_has_retries,
)
"""Above 1 where retries hid failures from the application, or queries had further pages."""


def _unit_column(name: str, figure: str, **more: Any) -> Column[Any]:
    """A rate of request units, of a partition, an account or an operation."""
    return Column(
        name,
        at(f"request_units.per_s.{figure}"),
        number,
        group="RU/s",
        csv=f"request_units_per_s_{figure}",
        csv_place=2,
        **{"when": charges_units, **more},
    )


UNITS: tuple[Column[Any], ...] = (
    _unit_column("mean", "mean", narrow="RU/s", adds=True),
    _unit_column("best 1 s", "best_1s"),
    _unit_column(
        "best 10 s",
        "best_10s",
        heading=best_over,
        when=lambda record: charges_units(record) and lasted_seconds(record),
    ),
    Column(
        "of target",
        at("request_units.ratio"),
        percent,
        heading=lambda record: _unit_target(record.partitions),
        when=charges_units,
        absent="none",
        share=True,
        csv="ratio_to_request_unit_target",
        csv_place=2,
    ),
    Column(
        "request units",
        at("request_units.total"),
        outputs=NOWHERE,
        when=charges_units,
        csv="request_units",
        csv_place=2,
    ),
)
"""Request units of a partition."""

MESSAGES: tuple[Column[PartitionPart], ...] = (
    Column(
        "backlog",
        at("messages.backlog"),
        _count,
        when=_has_messages,
        adds=True,
        csv="backlog_messages",
        csv_place=2,
    ),
    Column(
        "oldest got",
        at("messages.oldest_ms"),
        lambda age_ms: f"{age_ms / 1000:g} s",
        narrow="oldest\ngot",
        outputs=Output.MARKDOWN | Output.HTML,
        when=_has_messages,
        csv="oldest_message_ms",
        csv_place=2,
    ),
)
"""What a queue still holds, and how long its oldest message waited that was got."""

ACCOUNT: Column[PartitionPart] = Column(
    "account",
    lambda part: part.account,
    outputs=Output.HTML,
    when=lambda record: bool(record.accounts),
    csv="account",
    csv_place=99,
)
"""The account of a partition, in a run against several."""

PARTITION_COLUMNS: tuple[Column[PartitionPart], ...] = (
    _in_csv("entities", lambda part: part.entities),
    *RATES,
    _in_csv("target_entities_per_s", lambda part: part.target),
    Column(
        "of target",
        lambda part: part.ratio,
        percent,
        heading=_of_partitions,
        figure=of_limit,
        when=counts_entities,
        absent="none",
        share=True,
        least=True,
        csv="ratio_to_target",
        tab=("of_target", "Of the limit"),
    ),
    *UNITS,
    *MESSAGES,
    _in_csv("attempts", lambda part: sum(part.attempts_by_status.values())),
    *THROTTLED,
    _in_csv("throttled_partition_attempts", throttled_for(Scope.PARTITION)),
    _in_csv("throttled_account_attempts", throttled_for(Scope.ACCOUNT)),
    THROTTLED_RATIO,
    OTHER_COUNT,
    OTHER_ANSWERS,
    ATTEMPTS_PER_OPERATION,
    _in_csv("operations", lambda part: part.operations or None, place=1),
    *(
        _partition_latency(latency, figure)
        for latency in ("service", "response")
        for figure in LATENCY_FIGURES
    ),
    _in_csv("told_apart_since_utc_s", lambda part: part.since),
    _in_csv("entities_at_least", at("estimate.at_least")),
    _in_csv("entities_at_most", at("estimate.at_most")),
    ACCOUNT,
)
"""The columns behind the name of a partition."""

ACCOUNT_COLUMNS: tuple[Column[AccountLoadPart], ...] = (
    *RATES,
    Column(
        "of target",
        lambda part: part.ratio,
        percent,
        heading=lambda record: _of(
            next((part.target for part in record.accounts), None), raised_mark(record, "account")
        ),
        when=counts_entities,
        absent="none",
        share=True,
        least=True,
    ),
    *(
        dataclasses.replace(column, heading=lambda record: _unit_target(record.accounts))
        if column.share
        else column
        for column in UNITS
    ),
    Column(
        "transactions/s",
        at("transactions_per_s"),
        number,
        narrow="trans-\nactions/s",
        when=has_rates,
    ),
    *THROTTLED,
    Column(
        "by its partitions",
        throttled_for(Scope.PARTITION),
        _count,
        outputs=Output.MARKDOWN | Output.HTML,
        group=_REFUSED,
        bad=True,
    ),
    Column(
        "by the account",
        throttled_for(Scope.ACCOUNT),
        _count,
        narrow="by the\naccount",
        group=_REFUSED,
        bad=True,
    ),
    OTHER_COUNT,
    OTHER_ANSWERS,
    Column(
        "billable transactions",
        lambda part: part.billable_transactions,
        _count,
        outputs=Output.MARKDOWN | Output.HTML,
    ),
)
"""The columns behind the name of one of several accounts."""


def other_outcomes(part: OperationPart) -> list[tuple[str, int]]:
    """Outcomes other than plain success: names and counts, the most frequent first."""
    others = [item for item in part.outcomes.items() if item[0] != Outcome.SUCCESS and item[1]]
    return sorted(others, key=lambda item: (-item[1], item[0]))


OPERATION_COLUMNS: tuple[Column[OperationPart], ...] = (
    Column("count", lambda part: part.count, _count),
    Column(
        "{unit.rate}",
        lambda part: part.entities_per_s.mean,
        number,
        when=counts_entities,
        least=True,
    ),
    Column(
        _REFUSED,
        lambda part: part.throttled,
        _count,
        narrow="throttled\nattempts",
        when=lambda record: any(part.throttled for part in record.operations),
        bad=True,
    ),
    dataclasses.replace(UNITS[0], name="RU/s", group=""),
    Column("RU each", lambda part: part.request_units_each, request_units, when=charges_units),
    *(
        Column(
            figure,
            at(f"{latency}_ms.{figure}"),
            milliseconds,
            group=f"{latency} ms",
            when=measures(latency),
        )
        for latency in ("service", "response")
        for figure in LATENCY_FIGURES
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
        uncertain=sum(part.uncertain for part in record.operations),
        throttled=sum(part.throttled for part in record.operations),
        entities_per_s=record.account.entities_per_s,
        outcomes={},
        service_ms=record.service_ms,
        response_ms=record.response_ms,
        request_units=record.request_units,
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


def _missed(part: OperationPart) -> str | None:
    if not part.entities_wanted:
        return None
    share = percent(part.entities_missed / part.entities_wanted)
    return f"{part.entities_missed:,} of {part.entities_wanted:,} ({share})"


SCAN_COLUMNS: tuple[Column[OperationPart], ...] = (
    Column(
        "{unit.many} scanned",
        lambda part: part.entities,
        _count,
        least=True,
    ),
    Column("returned", lambda part: part.entities_returned, _count),
    Column(
        "returned / scanned",
        lambda part: part.entities_returned / part.entities if part.entities else 1.0,
        percent,
        narrow="returned /\nscanned",
        sign=lambda part: "≤" if part.uncertain else "",
    ),
    Column("scan count", _certainty, narrow="scan\ncount"),
    Column(
        "missed",
        _missed,
        absent="",
        when=lambda record: any(part.entities_wanted for part in record.operations),
    ),
)
"""The columns behind the name of a query."""
