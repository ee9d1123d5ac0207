"""The quantities that pass conditions compare: notation, unit and value in a run.

A quantity without a value gives the reason, so that a condition on a name that does not exist
can be told from one without measurements.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.record import LatencyPart, OperationPart, PartitionPart, RatesPart
from harness.model.outcome import Outcome, Scope, throttled_of

PERCENTILES = (50, 90, 99)
LATENCIES = ("service", "response")
_MOST_NAMED = 5


class Unit(enum.StrEnum):
    """What a quantity is counted in. Its values are those of conditions, bounds and results."""

    SHARE = "share"
    RATE = "entities/s"
    LATENCY = "ms"
    COUNT = "count"

    @property
    def suffixes(self) -> dict[str, Decimal]:
        """What may stand behind a number, and what one of it is worth."""
        return _SUFFIXES[self]


_ONE = Decimal(1)
_SUFFIXES: dict[Unit, dict[str, Decimal]] = {
    Unit.SHARE: {"": _ONE, "%": Decimal("0.01")},
    Unit.RATE: {"": _ONE},
    Unit.LATENCY: {"": _ONE, "ms": _ONE, "s": Decimal(1000)},
    Unit.COUNT: {"": _ONE},
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What conditions compare and no snapshot knows; None is not known.

    Attributes:
        lost_writes: Acknowledged writes that the audit did not find again.
        held_ratio: Achieved rate over the rate that was wanted; None where none was.
    """

    lost_writes: int | None = None
    held_ratio: float | None = None


NO_FACTS = Facts()


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """A value, and what is to be said of it.

    Attributes:
        value: In the quantity's unit; None is not known.
        note: Why it is not known, or what it leaves out; empty where nothing is to be said.
    """

    value: float | None
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """One way to write a quantity: ``metric(of, by="...")``.

    Attributes:
        of: The word in parentheses; empty is none.
        by: What a name in quotes is a name of, ``partition`` or ``op``; empty is no name.
    """

    metric: str
    of: str = ""
    by: str = ""

    @property
    def unit(self) -> Unit:
        """The unit of its values."""
        return _UNITS[self.metric]

    def written(self, name: str = "...") -> str:
        """How it stands in a condition."""
        arguments = ", ".join(
            part for part in (self.of, f'{self.by}="{name}"' if self.by else "") if part
        )
        return f"{self.metric}({arguments})" if arguments else self.metric


def measured(form: Form, name: str, snapshot: Snapshot, facts: Facts) -> Measured:
    """The value of a quantity in a run.

    Args:
        form: What is asked for.
        name: The partition or operation it is asked of; empty where the form names none.
        snapshot: What was counted.
        facts: What was found out elsewhere.
    """
    return FORMS[form](snapshot, facts, name)


def near_first(name: str, known: Sequence[str]) -> str:
    """The names that there are as a phrase: those spelled nearly like ``name`` first."""
    near = difflib.get_close_matches(name, known, n=_MOST_NAMED)
    named = [*near, *(other for other in known if other not in near)][:_MOST_NAMED]
    rest = len(known) - len(named)
    return ", ".join(map(repr, named)) + (f" and {rest:,} more" if rest else "")


def failed_operations(snapshot: Snapshot) -> int:
    """Operations that failed."""
    return sum(count for outcome, count in snapshot.outcomes.items() if outcome.failed)


_Read = Callable[[Snapshot, Facts, str], Measured]


def _share(part: int, whole: int, of: str) -> Measured:
    return Measured(part / whole) if whole else Measured(None, f"there were no {of}")


def _throttled(scope: Scope | None) -> _Read:
    def read(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
        return _share(throttled_of(snapshot.attempts, scope), snapshot.counts.attempts, "attempts")

    return read


def _throttled_of_partition(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    view = _partition(snapshot, name)
    if isinstance(view, Measured):
        return view
    share = _share(view.throttled, sum(view.attempts.values()), "attempts")
    return dataclasses.replace(share, note=share.note or _since(view))


def _rate(rates: RatesPart, snapshot: Snapshot, note: str = "") -> Measured:
    if snapshot.end <= snapshot.start or not snapshot.outcomes:
        return Measured(None, "nothing was measured")
    return Measured(rates.mean, note)


def _account_rate(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    return _rate(snapshot.entities_per_s, snapshot)


def _hottest_rate(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    view = snapshot.hottest
    if view is None:
        return Measured(None, "no partition was used")
    return _rate(view.entities_per_s, snapshot, _since(view))


def _partition_rate(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    view = _partition(snapshot, name)
    if isinstance(view, Measured):
        return view
    return _rate(view.entities_per_s, snapshot, _since(view))


def _operation_rate(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    view = _operation(snapshot, name)
    return view if isinstance(view, Measured) else _rate(view.entities_per_s, snapshot)


def _percentile(percentile: int, latency: str, by: str) -> _Read:
    def read(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
        of: Snapshot | PartitionPart | OperationPart | Measured = snapshot
        if by:
            of = _partition(snapshot, name) if by == "partition" else _operation(snapshot, name)
        if isinstance(of, Measured):
            return of
        view: LatencyPart | None = getattr(of, f"{latency}_ms")
        if view is not None:
            note = _since(of) if isinstance(of, PartitionPart) else ""
            return Measured(float(getattr(view, f"p{percentile}")), note)
        if latency == "response" and of.service_ms is not None:
            return Measured(None, "response latency needs a schedule, and a closed loop has none")
        return Measured(None, "no operation ended in the measured window")

    return read


def _lost_writes(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    if facts.lost_writes is None:
        return Measured(None, "the run was not audited")
    return Measured(float(facts.lost_writes))


def _held_rate(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    if facts.held_ratio is None:
        return Measured(None, "the load has no wanted rate: it is a closed loop without a cap")
    return Measured(facts.held_ratio)


def _failed(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    return _share(failed_operations(snapshot), sum(snapshot.outcomes.values()), "operations")


def ambiguous_operations(snapshot: Snapshot) -> int:
    """Writes that may or may not have been done: nothing could tell."""
    return snapshot.outcomes.get(Outcome.AMBIGUOUS, 0)


def _ambiguous(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    return _share(ambiguous_operations(snapshot), sum(snapshot.outcomes.values()), "operations")


def _dropped(snapshot: Snapshot, facts: Facts, name: str) -> Measured:
    return _share(snapshot.counts.dropped, snapshot.counts.due, "operations")


def _since(view: PartitionPart) -> str:
    if view.exact:
        return ""
    return f"partition {view.key!r} was not counted separately for the whole run: a part is missing"


def _partition(snapshot: Snapshot, name: str) -> PartitionPart | Measured:
    """The partition called ``name``, or why there is none."""
    for view in snapshot.partitions:
        if view.key == name:
            return view
    if not snapshot.partitions:
        return Measured(None, "no partition was used")
    known = near_first(name, [view.key for view in snapshot.partitions])
    if snapshot.folded is not None:
        return Measured(
            None,
            f"partition {name!r} is not one of those counted separately: {known}",
        )
    return Measured(None, f"there was no partition {name!r}, but {known}")


def _operation(snapshot: Snapshot, name: str) -> OperationPart | Measured:
    """The operations called ``name``, or why there are none."""
    for view in snapshot.operations:
        if view.kind == name:
            return view
    if not snapshot.operations:
        return Measured(None, "no operation was done")
    known = near_first(name, [view.kind for view in snapshot.operations])
    return Measured(None, f"there was no operation {name!r}, but {known}")


def _percentile_forms() -> Iterable[tuple[Form, _Read]]:
    for percentile in PERCENTILES:
        for latency in LATENCIES:
            for by in ("", "partition", "op"):
                yield Form(f"p{percentile}", latency, by), _percentile(percentile, latency, by)


FORMS: dict[Form, _Read] = {
    Form("throttled_ratio"): _throttled(None),
    Form("throttled_ratio", "partition"): _throttled(Scope.PARTITION),
    Form("throttled_ratio", "account"): _throttled(Scope.ACCOUNT),
    Form("throttled_ratio", by="partition"): _throttled_of_partition,
    Form("entities_per_s", "partition"): _hottest_rate,
    Form("entities_per_s", "account"): _account_rate,
    Form("entities_per_s", by="partition"): _partition_rate,
    Form("entities_per_s", by="op"): _operation_rate,
    **dict(_percentile_forms()),
    Form("held_rate"): _held_rate,
    Form("failed_ratio"): _failed,
    Form("ambiguous_ratio"): _ambiguous,
    Form("dropped_ratio"): _dropped,
    Form("lost_writes"): _lost_writes,
}
"""Every quantity that can be written, and how it is read."""

_UNITS = {
    "throttled_ratio": Unit.SHARE,
    "entities_per_s": Unit.RATE,
    **{f"p{percentile}": Unit.LATENCY for percentile in PERCENTILES},
    "held_rate": Unit.SHARE,
    "failed_ratio": Unit.SHARE,
    "ambiguous_ratio": Unit.SHARE,
    "dropped_ratio": Unit.SHARE,
    "lost_writes": Unit.COUNT,
}
