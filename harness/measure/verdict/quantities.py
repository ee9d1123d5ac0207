"""The quantities that pass conditions compare: notation, unit and value in a run.

A quantity without a value has a reason. The reason distinguishes a name that does not exist from a
quantity without measurements.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeVar

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.measured import LatencyPart, OperationPart, PartitionPart, RatesPart
from harness.model.outcome import Outcome, Scope, throttled_of

PERCENTILES = (50, 90, 99)
_MOST_NAMED = 5


class Unit(enum.StrEnum):
    """The unit of a quantity, of its bounds and of its results."""

    SHARE = "share"
    RATE = "entities/s"
    REQUEST_UNITS = "RU"
    REQUEST_UNITS_RATE = "RU/s"
    LATENCY = "ms"
    COUNT = "count"

    @property
    def suffixes(self) -> dict[str, Decimal]:
        """The suffixes that a number may have, each with its factor."""
        return _SUFFIXES[self]


_ONE = Decimal(1)
_SUFFIXES: dict[Unit, dict[str, Decimal]] = {
    Unit.SHARE: {"": _ONE, "%": Decimal("0.01")},
    Unit.RATE: {"": _ONE},
    Unit.REQUEST_UNITS: {"": _ONE},
    Unit.REQUEST_UNITS_RATE: {"": _ONE},
    Unit.LATENCY: {"": _ONE, "ms": _ONE, "s": Decimal(1000)},
    Unit.COUNT: {"": _ONE},
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What conditions compare and snapshots do not have.

    Attributes:
        lost_writes: Acknowledged writes that the audit did not find; None without an audit.
        held_ratio: Achieved rate over wanted rate; None without a wanted rate.
    """

    lost_writes: int | None = None
    held_ratio: float | None = None


NO_FACTS = Facts()


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """A value in its quantity's unit, and a note: why it is unknown, or what it leaves out."""

    value: float | None
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """One way to write a quantity: ``metric(of, by="...")``; ``by`` is ``partition`` or ``op``."""

    metric: str
    of: str = ""
    by: str = ""

    @property
    def unit(self) -> Unit:
        return _UNITS[self.metric]

    def written(self, name: str = "...") -> str:
        arguments = ", ".join(filter(None, (self.of, f'{self.by}="{name}"' if self.by else "")))
        return f"{self.metric}({arguments})" if arguments else self.metric


_UNITS = {
    "throttled_ratio": Unit.SHARE,
    "entities_per_s": Unit.RATE,
    "ru_per_s": Unit.REQUEST_UNITS_RATE,
    "ru": Unit.REQUEST_UNITS,
    **{f"p{percentile}": Unit.LATENCY for percentile in PERCENTILES},
    "held_rate": Unit.SHARE,
    "failed_ratio": Unit.SHARE,
    "ambiguous_ratio": Unit.SHARE,
    "dropped_ratio": Unit.SHARE,
    "lost_writes": Unit.COUNT,
}

_CHARGED = (Unit.REQUEST_UNITS, Unit.REQUEST_UNITS_RATE)

FORMS = (
    Form("throttled_ratio"),
    Form("throttled_ratio", "partition"),
    Form("throttled_ratio", "account"),
    Form("throttled_ratio", by="partition"),
    Form("entities_per_s", "partition"),
    Form("entities_per_s", "account"),
    Form("entities_per_s", by="partition"),
    Form("entities_per_s", by="op"),
    Form("ru_per_s"),
    Form("ru_per_s", "partition"),
    Form("ru_per_s", "account"),
    Form("ru_per_s", by="partition"),
    Form("ru_per_s", by="op"),
    Form("ru", by="op"),
    *(
        Form(f"p{percentile}", latency, by)
        for percentile in PERCENTILES
        for latency in ("service", "response")
        for by in ("", "partition", "op")
    ),
    Form("held_rate"),
    Form("failed_ratio"),
    Form("ambiguous_ratio"),
    Form("dropped_ratio"),
    Form("lost_writes"),
)
"""All quantities."""


def measured(form: Form, name: str, snapshot: Snapshot, facts: Facts) -> Measured:
    """The value of a quantity in a run; ``name`` is its partition or operation, if it has one."""
    whole_run = _of_the_whole_run(form, snapshot, facts)
    if whole_run is not None:
        return whole_run
    if (form.metric, form.of) == ("entities_per_s", "account"):
        return _rate(snapshot.account_rates, snapshot, "")
    charged = snapshot.request_units is not None
    if charged and (form.metric, form.of) == ("ru_per_s", "account"):
        return _rate(snapshot.account_request_units, snapshot, "")
    holder = _holder(form, name, snapshot)
    if isinstance(holder, str):
        return Measured(None, holder)
    if form.unit in _CHARGED and not charged:
        return Measured(None, "no answer named its charge in request units; only Cosmos DB does")
    note = ""
    if isinstance(holder, PartitionPart) and not holder.exact:
        note = (
            f"partition {holder.key!r} was not counted separately for the whole run: a part is "
            "missing"
        )
    if form.metric == "entities_per_s":
        return _rate(holder.entities_per_s, snapshot, note)
    if form.metric == "ru_per_s" and holder.request_units is not None:
        return _rate(holder.request_units.per_s, snapshot, note)
    if form.metric == "ru":
        assert isinstance(holder, OperationPart)
        return Measured(holder.request_units_each, "" if holder.count else "none ended")
    if isinstance(holder, PartitionPart) and form.metric == "throttled_ratio":
        share = _share(holder.throttled, sum(holder.attempts.values()), "attempts")
        return dataclasses.replace(share, note=share.note or note)
    latency: LatencyPart | None = getattr(holder, f"{form.of}_ms")
    if latency is not None:
        return Measured(float(getattr(latency, form.metric)), note)
    if form.of == "response" and holder.service_ms is not None:
        return Measured(None, "response latency needs an open load; a closed loop has no due times")
    return Measured(None, "no operation ended in the measured window")


def _of_the_whole_run(form: Form, snapshot: Snapshot, facts: Facts) -> Measured | None:
    """The value of a quantity that is measured for the whole run only; None for others."""
    operations = sum(snapshot.outcomes.values())
    match form.metric:
        case "throttled_ratio" if not form.by:
            throttled = throttled_of(snapshot.attempts, Scope(form.of) if form.of else None)
            return _share(throttled, snapshot.counts.attempts, "attempts")
        case "failed_ratio":
            return _share(failed_operations(snapshot), operations, "operations")
        case "ambiguous_ratio":
            return _share(ambiguous_operations(snapshot), operations, "operations")
        case "dropped_ratio":
            return _share(snapshot.counts.dropped, snapshot.counts.due, "operations")
        case "held_rate" if facts.held_ratio is None:
            return Measured(None, "the load has no wanted rate: it is a closed loop without a cap")
        case "held_rate":
            return Measured(facts.held_ratio)
        case "lost_writes" if facts.lost_writes is None:
            return Measured(None, "the run was not audited")
        case "lost_writes":
            return Measured(facts.lost_writes)
    return None


def near_first(name: str, known: Sequence[str]) -> str:
    """The known names as a phrase, those with a spelling near to ``name`` first."""
    near = difflib.get_close_matches(name, known, n=_MOST_NAMED)
    named = [*near, *(other for other in known if other not in near)][:_MOST_NAMED]
    rest = len(known) - len(named)
    return ", ".join(map(repr, named)) + (f" and {rest:,} more" if rest else "")


def failed_operations(snapshot: Snapshot) -> int:
    return sum(count for outcome, count in snapshot.outcomes.items() if outcome.failed)


def ambiguous_operations(snapshot: Snapshot) -> int:
    """The number of writes that may or may not have been applied."""
    return snapshot.outcomes.get(Outcome.AMBIGUOUS, 0)


def _share(part: int, whole: int, of: str) -> Measured:
    return Measured(part / whole) if whole else Measured(None, f"there were no {of}")


def _rate(rates: RatesPart, snapshot: Snapshot, note: str) -> Measured:
    if snapshot.length_s <= 0 or not snapshot.outcomes:
        return Measured(None, "nothing was measured")
    return Measured(rates.mean, note)


def _holder(
    form: Form, name: str, snapshot: Snapshot
) -> Snapshot | PartitionPart | OperationPart | str:
    """The part of a snapshot that has the quantity, or the reason why there is none."""
    if form.by == "partition":
        parts = {part.key: part for part in snapshot.partitions}
        if parts and name not in parts and snapshot.folded is not None:
            known = near_first(name, list(parts))
            return f"partition {name!r} is not one of those counted separately: {known}"
        return _named(name, parts, "partition", "no partition was used")
    if form.by == "op":
        operations = {part.kind: part for part in snapshot.operations}
        return _named(name, operations, "operation", "no operation was done")
    if form.metric == "entities_per_s" and form.of == "partition":
        return snapshot.hottest or "no partition was used"
    if form.metric == "ru_per_s" and form.of == "partition":
        return snapshot.costliest or "no partition was used"
    return snapshot


_P = TypeVar("_P")


def _named(name: str, parts: dict[str, _P], what: str, none: str) -> _P | str:
    if name in parts:
        return parts[name]
    return f"there was no {what} {name!r}, but {near_first(name, list(parts))}" if parts else none
