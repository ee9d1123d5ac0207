"""The quantities that pass conditions compare: notation, unit and value in a run.

A quantity without a value has a reason. The reason distinguishes a name that does not exist from a
quantity without measurements.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, TypeVar

from harness.measure.counts.latency import CountedLatency
from harness.measure.counts.snapshot import CountedOperation, CountedPartition, Snapshot
from harness.measure.record.measured import RatesPart, is_lower_bound
from harness.measure.verdict.failures import failures_of
from harness.model.errors import echoed
from harness.model.outcome import Fault, Outcome, Scope, throttled_of

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
        return _SUFFIXES.get(self, {"": _ONE})


_ONE = Decimal(1)
_SUFFIXES: dict[Unit, dict[str, Decimal]] = {
    Unit.SHARE: {"": _ONE, "%": Decimal("0.01")},
    Unit.LATENCY: {"": _ONE, "ms": _ONE, "s": Decimal(1000)},
}


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What conditions compare and snapshots do not have.

    Attributes:
        lost_writes: Acknowledged writes that the audit did not find; None without an audit.
        latency_doubt: Why latencies are only upper bounds; None if they are exact.
    """

    lost_writes: int | None = None
    held_ratio: float | None = None
    latency_doubt: str | None = None


NO_FACTS = Facts()


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """A value in its quantity's unit, and a note: why it is unknown, or what it leaves out.

    With ``at_least`` the true value may be higher.
    """

    value: float | None
    note: str = ""
    at_least: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """One way to write a quantity: ``metric(of, by="...")``.

    ``by`` is ``partition``, ``op``, or ``kind``: of failed attempts the name of their answer in
    records, or its status alone; of failed operations their `Outcome`.
    """

    metric: str
    of: str = ""
    by: str = ""

    @property
    def unit(self) -> Unit:
        return _UNITS.get(self.metric, Unit.SHARE)

    def check(self, name: str) -> None:
        """Raise a `ValueError` for the name of a kind that cannot occur."""
        if self.by != "kind":
            return
        known: Sequence[str] = [one for one in Outcome if one.failed and one is not Outcome.DEFECT]
        if self.metric == "failed_attempts_ratio":
            if re.fullmatch(r"[1-5][0-9]{2}( [A-Za-z]+)?", name):
                return
            known = ["500 InternalError", "500", *Fault]
        if name not in known:
            listed = ", ".join(f"'{one}'" for one in known)
            raise ValueError(f"{echoed(name)} is not a kind of {self.metric}: kinds are {listed}")

    def written(self, name: str = "...") -> str:
        arguments = ", ".join(filter(None, (self.of, f'{self.by}="{name}"' if self.by else "")))
        return f"{self.metric}({arguments})" if arguments else self.metric


_UNITS = {
    "entities_per_s": Unit.RATE,
    "ru_per_s": Unit.REQUEST_UNITS_RATE,
    "ru": Unit.REQUEST_UNITS,
    **{f"p{percentile}": Unit.LATENCY for percentile in PERCENTILES},
    "lost_writes": Unit.COUNT,
}
"""Those of the quantities that are no shares."""

OF_FAILURES = ("failed_ratio", "failed_attempts_ratio", "ambiguous_ratio", "lost_writes")
"""What counts failures, so that they leave it certain."""
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
    Form("failed_ratio", by="kind"),
    Form("failed_attempts_ratio"),
    Form("failed_attempts_ratio", by="kind"),
    Form("ambiguous_ratio"),
    Form("dropped_ratio"),
    Form("lost_writes"),
)
"""All quantities."""


def measured(form: Form, name: str, snapshot: Snapshot, facts: Facts) -> Measured:
    """The value of a quantity in a run; ``name`` is its partition or operation, if it has one."""
    if (share := share_of(form, name, snapshot)) is not None:
        return _ratio(share.part, share.whole, share.of)
    if form.metric == "held_rate":
        why = "the load has no wanted rate: it is a closed loop without a cap"
        return Measured(facts.held_ratio, "" if facts.held_ratio is not None else why)
    if form.metric == "lost_writes":
        why = "the run was not audited"
        return Measured(facts.lost_writes, "" if facts.lost_writes is not None else why)
    if (form.metric, form.of) == ("entities_per_s", "account"):
        bound = is_lower_bound(snapshot.operations, snapshot.partitions)
        return _rate(snapshot.account_rates, snapshot, "", at_least=bound)
    charged = snapshot.request_units is not None
    if charged and (form.metric, form.of) == ("ru_per_s", "account"):
        return _rate(snapshot.account_request_units, snapshot, "")
    holder = _holder(form, name, snapshot)
    if isinstance(holder, str):
        return Measured(None, holder)
    if form.unit in _CHARGED and not charged:
        return Measured(None, "no answer named its charge in request units; only Cosmos DB does")
    note = ""
    if isinstance(holder, CountedPartition) and not holder.exact:
        note = (
            f"partition {holder.key!r} was not counted separately for the whole run: a part is "
            "missing"
        )
    if form.metric == "entities_per_s":
        bound = isinstance(holder, CountedOperation) and holder.uncertain > 0
        if isinstance(holder, CountedPartition):
            bound = is_lower_bound(snapshot.operations, snapshot.partitions, holder)
        return _rate(holder.entities_per_s, snapshot, note, at_least=bound or bool(note))
    if form.metric == "ru_per_s" and holder.request_units is not None:
        return _rate(holder.request_units.per_s, snapshot, note, at_least=bool(note))
    if form.metric == "ru":
        assert isinstance(holder, CountedOperation)
        return Measured(holder.request_units_each, "" if holder.count else "none ended")
    if isinstance(holder, CountedPartition) and form.metric == "throttled_ratio":
        ratio = _ratio(holder.throttled, sum(holder.attempts.values()), "attempts")
        return dataclasses.replace(ratio, note=ratio.note or note)
    latency: CountedLatency | None = getattr(holder, f"{form.of}_ms")
    if latency is not None:
        return Measured(float(getattr(latency, form.metric)), note)
    if form.of == "response" and holder.service_ms is not None:
        return Measured(None, "response latency needs an open load; a closed loop has no due times")
    return Measured(None, "no operation ended in the measured window")


class ShareOfRun(NamedTuple):
    """A quantity that is a share of the whole run.

    Attributes:
        rest: What of the whole will never be a part of it.
        of: What they are: attempts or operations.
    """

    part: int
    whole: int
    rest: int
    of: str


def share_of(form: Form, name: str, snapshot: Snapshot) -> ShareOfRun | None:
    """The share so far; None for a quantity that is none, or that of one partition."""
    counts, outcomes = snapshot.counts, snapshot.outcomes
    whole, of = counts.attempts, "attempts"
    match form.metric:
        case "throttled_ratio" if not form.by:
            part = throttled_of(snapshot.attempts, Scope(form.of) if form.of else None)
        case "failed_attempts_ratio":
            # Without a name all of them; the name of an answer, or its status alone.
            failed = failures_of(snapshot).by_kind.items()
            part = sum(count for kind, count in failed if name in ("", kind, kind[:3]))
        case "failed_ratio":
            whole, of = sum(outcomes.values()), "operations"
            part = sum(
                count
                for outcome, count in outcomes.items()
                if outcome.failed and name in ("", outcome)
            )
        case "ambiguous_ratio":
            whole, of = sum(outcomes.values()), "operations"
            part = outcomes.get(Outcome.AMBIGUOUS, 0)
        case "dropped_ratio":
            # Those that wait can still be dropped.
            return ShareOfRun(counts.dropped, counts.due, counts.sent, "operations")
        case _:
            return None
    return ShareOfRun(part, whole, whole - part, of)


def near_first(name: str, known: Sequence[str]) -> str:
    """The known names as a phrase, those with a spelling near to ``name`` first."""
    near = difflib.get_close_matches(name, known, n=_MOST_NAMED)
    named = [*near, *(other for other in known if other not in near)][:_MOST_NAMED]
    rest = len(known) - len(named)
    return ", ".join(map(repr, named)) + (f" and {rest:,} more" if rest else "")


def _ratio(part: int, whole: int, of: str) -> Measured:
    return Measured(part / whole) if whole else Measured(None, f"there were no {of}")


def _rate(rates: RatesPart, snapshot: Snapshot, note: str, *, at_least: bool = False) -> Measured:
    if snapshot.length_s <= 0 or not snapshot.outcomes:
        return Measured(None, "nothing was measured")
    if at_least and not note:
        note = "a lower bound: what some queries scanned is not known"
    return Measured(rates.mean, note, at_least)


def _holder(
    form: Form, name: str, snapshot: Snapshot
) -> Snapshot | CountedPartition | CountedOperation | str:
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
