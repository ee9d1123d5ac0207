"""The limits that rates are held against: targets, and what a gateway enforced.

Rates and limits are in entities/s; where request units are charged, in RU/s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from harness.measure.record.enforced import LIMITS, partition_limit_of
from harness.measure.record.measured import (
    AT_LEAST,
    AccountLoadPart,
    OperationPart,
    PartitionPart,
    RatesPart,
    is_lower_bound,
)
from harness.measure.record.record import RunRecord
from harness.model.services import service_beside
from harness.model.services.service import (
    ENTITIES,
    RAISED,
    UNLIMITED_PER_S,
    CountedUnit,
    Scope,
    Service,
)

_IN_FORCE = "limit in force"


class ShownLimit(NamedTuple):
    """A limit of a partition or of the account: a target, or enforced by a gateway or Cosmos DB.

    The limit of several accounts is that of all together.
    """

    value: float
    of: str
    word: str = "target"


def unit_of(record: RunRecord) -> str:
    """The unit of the rates and limits of a run."""
    return record.endpoint.service.unit.rate if record.request_units is None else "RU/s"


def counted_unit(records: Iterable[RunRecord]) -> CountedUnit:
    """What all ``records`` count; where they differ, entities, as which every other unit counts."""
    units = {record.endpoint.service.unit for record in records}
    return units.pop() if len(units) == 1 else ENTITIES


def has_enforced(record: RunRecord) -> bool:
    """Whether a gateway enforced limits, which then take the place of the targets."""
    return record.enforced is not None and record.enforced.limits


def limit_word(record: RunRecord, of: Scope = "partition") -> str:
    """What `partition_limit` or `account_limit` is: a published or raised target, or enforced."""
    held = has_enforced(record) or record.request_units is not None
    return "limit" if held else target_word(record, of)


def target_word(record: RunRecord, of: Scope = "partition") -> str:
    """What a target of the run is called, whatever a gateway enforced."""
    targets = record.endpoint.service.targets
    return "target" if targets is None else targets.word(of)


def raised_mark(record: RunRecord, of: Scope = "partition") -> str:
    """Behind a limit in a table: whether it is a raised target."""
    return " (raised)" if limit_word(record, of) == RAISED else ""


def partition_limit(record: RunRecord, part: PartitionPart) -> float | None:
    """The limit of a partition that was in force: enforced by a gateway, or else the target."""
    enforced = partition_limit_of(record.enforced)
    if enforced is None or target_of(part) is None:
        return target_of(part)
    return part.partition.limit(None, enforced)


def partition_limits(record: RunRecord) -> dict[Service | None, float]:
    """The limit of partitions of each service beside tables, and at None of the endpoint."""
    return {
        service_beside(part.partition.table): limit
        for part in record.partitions
        if (limit := partition_limit(record, part)) is not None
    }


def whose(service: Service | None) -> str:
    """What has a limit of `partition_limits`."""
    return "partitions" if service is None else service.partitions


def account_limit(record: RunRecord) -> float | None:
    """Likewise that of the account; of several accounts that of each."""
    enforced = record.enforced
    if enforced is not None and enforced.limits and enforced.account_per_s < UNLIMITED_PER_S:
        return enforced.account_per_s
    return target_of(record.accounts[0]) if record.accounts else _account_target(record)


def target_of(part: PartitionPart | AccountLoadPart) -> float | None:
    """The target of a partition or of one of several accounts."""
    return part.target if part.request_units is None else part.request_units.target


def _account_target(record: RunRecord) -> float | None:
    units = record.request_units
    return record.account.target if units is None else units.target


def least(record: RunRecord, part: Any = None) -> str:
    """The sign before rates of entities that are a lower bound, or nothing.

    Args:
        part: Whose rates they are: a partition, an operation, or else all together.
    """
    if isinstance(part, OperationPart):
        return AT_LEAST if part.uncertain else ""
    of = part if isinstance(part, PartitionPart) else None
    return AT_LEAST if is_lower_bound(record.operations, record.partitions, of) else ""


def judged_sign(record: RunRecord, part: PartitionPart | None = None) -> str:
    """`least` of a judged rate. What a service charges is known exactly."""
    return least(record, part) if record.request_units is None else ""


def account_rate(record: RunRecord) -> float:
    """The judged rate of the account, of several accounts that of all together."""
    units = record.request_units
    rates = record.account.entities_per_s if units is None else units.per_s
    return rates.judged(by_best=record.by_best)


def judged_rate(record: RunRecord, part: PartitionPart) -> float:
    """The rate of a partition that a limit is compared with."""
    return limited_rates(part).judged(by_best=record.by_best)


def limited_rates(part: PartitionPart) -> RatesPart:
    """The rates of a partition in the unit of its limit."""
    return part.entities_per_s if part.request_units is None else part.request_units.per_s


def of_limit(record: RunRecord, part: PartitionPart) -> float | None:
    """The judged rate of a partition as a share of the limit in force; None if none applies."""
    limit = partition_limit(record, part)
    return None if limit is None else judged_rate(record, part) / limit


def busiest(record: RunRecord) -> PartitionPart | None:
    """The partition nearest to its target; queries over several partitions are left out."""
    single = (part for part in record.partitions if part.partition.targeted)
    return max(
        single, key=lambda part: judged_rate(record, part) / (target_of(part) or 1.0), default=None
    )


def limits_of(record: RunRecord, *, partition: bool = False) -> list[ShownLimit]:
    """The limit in force of the account, and before it that of a partition.

    The latter only if there is a single partition, or with ``partition``; beside tables there may
    be several. Where a gateway enforces limits, these are in force; elsewhere the targets.
    """
    single = [part for part in record.partitions if part.partition.targeted]
    alone = len(single) == 1 and record.partitions_folded is None
    whole = "all accounts" if record.accounts else "account"
    each: dict[str, float | None] = {}
    limits = partition_limits(record)
    if alone or (partition and single):
        each = {"partition" if alone else "each partition": next(iter(limits.values()), None)}
        if len(set(limits.values())) > 1:
            each = {f"each of the {whose(one)}": limit for one, limit in limits.items()}
    if (part := record.enforced) is not None and part.limits:
        each = each if partition_limit_of(part) is not None else {}
        rule = record.verdict.limited_by
        if rule in LIMITS and LIMITS[rule].covers:
            # In the way of the partitions that it covers, whatever they serve together.
            each = {f"each {rule}": part.rates[rule], **each}
        return [
            ShownLimit(value, of, _IN_FORCE)
            for of, value in {**each, whole: part.account_per_s}.items()
            if value is not None and value < UNLIMITED_PER_S
        ]
    words = {of: target_word(record) for of in each} | {whole: target_word(record, "account")}
    words |= {f"each of the {whose(one)}": "target" for one in limits if one is not None}
    if limit_word(record) == "limit":
        words = dict.fromkeys(words, _IN_FORCE)
    targets = {**each, whole: _account_target(record)}
    return [ShownLimit(value, of, words[of]) for of, value in targets.items() if value is not None]
