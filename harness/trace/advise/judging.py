"""Which of the tried keys is recommended, and which are worth a look.

A key that loses entities, makes invalid keys, splits transactions, or whose load cannot be told is
no candidate. Of the others, the one that changes and costs least is recommended if nothing is
throttled under it at the asked traffic, nor at twice that. Without such a key it is the one that is
throttled least, if that is much better than today. The alternatives are on the Pareto front.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from harness.measure.record.whatif import SchemePart, WhatIfRecord
from harness.trace.advise.candidates import Candidate

ENOUGH = 2.0
"""A limit at this multiple of the asked traffic is far: the traffic can double."""
_BETTER = 1.5
"""The first limit has to be so much later, or half of the throttling gone: less is noise."""
_UNTHROTTLED = 0.001
_COST_STEP = 0.02
"""Costs that differ by less are equal: partitions and entities for each operation."""
_MOST_FACTOR = 10_000.0
ACCOUNT = "account"
"""The rule that refuses what is beyond the limit of the account."""
TODAY = Candidate(name="", idea="", partition_key="", row_key="", distance=0, content={"keys": {}})
_MOST_VISITED = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    """Keys, and what became of the traffic under them. Without a candidate they are today's."""

    found: WhatIfRecord
    part: SchemePart
    candidate: Candidate = TODAY

    @property
    def throttled(self) -> float:
        ratio = self.part.once.ratio
        return 0.0 if ratio < _UNTHROTTLED else ratio

    @property
    def factor(self) -> float:
        """Multiple of the asked traffic at which the first limit of a partition is met.

        Calculated where it was asked for, but never more than what can be sustained: in a short
        trace, a burst passes that would not pass for long. The limit of the account is not one of
        keys.
        """
        found, part = self.found, self.part
        peaks = [(peak, found.partition_per_s) for peak in part.partition_peaks]
        if found.physical is not None:
            peaks += [(peak, found.physical.per_s) for peak in part.physical_peaks]
        factors = [limit / peak.per_s for peak, limit in peaks if peak.per_s and peak.width_s > 1]
        if (first := part.first_limit) is not None and first.rule != ACCOUNT:
            factors.append(first.factor / found.rate)
        if self.throttled and by_account(part) < 1:
            factors.append(1.0)
        return min(factors, default=_MOST_FACTOR)

    @property
    def cost(self) -> float:
        """Partitions to visit and entities to walk for each operation, beyond those of today."""
        price, today = self.part.price, self.found.schemes[0].price
        visited = price.needed - price.spread
        visited += price.scans * min(self.part.partitions, _MOST_VISITED)
        walked = max(0, price.walked - today.walked) if price.walked else price.unbounded
        whole = max(1, price.operations)
        # A visit costs a request and its latency; ten entities of one page cost about as much.
        return (visited + walked / 10) / whole

    @property
    def far(self) -> bool:
        """Whether no limit is near."""
        return not self.throttled and self.factor >= ENOUGH

    @property
    def objectives(self) -> tuple[float, ...]:
        """What is to be small, of which none is weighed against another."""
        billable = max(0, self.part.price.billable - self.found.schemes[0].price.billable)
        return (
            round(self.throttled, 3),
            -round(min(self.factor, _MOST_FACTOR), 1),
            round(self.cost / _COST_STEP),
            round(billable / max(1, self.part.price.operations), 2),
            self.candidate.distance,
        )


def by_account(part: SchemePart) -> float:
    """Share of the throttled requests that the limit of the account refused."""
    return part.once.by_rule.get(ACCOUNT, 0) / max(1, part.once.throttled)


def breaks(part: SchemePart, today: SchemePart) -> bool:
    """Whether an application would break under a scheme, or what it does cannot be told."""
    price = part.price
    return bool(
        price.split
        or price.collisions > today.price.collisions
        or price.refused
        or price.unmatched
        or price.unknown > today.price.unknown
    )


def helps(trial: Trial, today: Trial) -> bool:
    """Whether keys are better than today's by more than noise."""
    if today.throttled:
        return trial.throttled <= today.throttled / 2
    return not trial.throttled and trial.factor >= _BETTER * today.factor


def recommended(trials: Sequence[Trial], today: Trial) -> Trial | None:
    """The best of the trials that break nothing; None if none helps."""
    helping = [trial for trial in trials if helps(trial, today)]
    if enough := [trial for trial in helping if trial.far]:
        return min(enough, key=_price)
    return min(helping, key=lambda one: (one.objectives[:2], _price(one)), default=None)


def _price(trial: Trial) -> tuple[float, ...]:
    _, _, cost, billable, distance = trial.objectives
    return cost, billable, distance, trial.part.partitions


def alternatives(trials: Sequence[Trial], best: Trial, today: Trial) -> list[Trial]:
    """Up to two others on the Pareto front: the one with the latest limit, and the cheapest."""
    front = [
        one
        for one in trials
        if one is not best
        and helps(one, today)
        and one.objectives != best.objectives
        and not any(_dominates(other, one) for other in trials)
    ]
    later = [one for one in front if one.factor >= _BETTER * best.factor]
    found = [max(later, key=lambda one: (one.factor, -one.cost))] if later else []
    rest = [one for one in front if one not in found]
    return [*found, *sorted(rest, key=_price)][:2]


def _dominates(first: Trial, second: Trial) -> bool:
    pairs = list(zip(first.objectives, second.objectives, strict=True))
    return all(one <= other for one, other in pairs) and any(one < other for one, other in pairs)


def finalists(trials: Sequence[Trial], today: Trial, count: int) -> list[Trial]:
    """Those whose first limit is worth a calculation: the best by each measure in turn."""
    orders = [
        sorted(trials, key=key)
        for key in (
            lambda one: (not one.far, _price(one)),
            lambda one: (one.objectives[:2], _price(one)),
            lambda one: (not helps(one, today), one.candidate.distance, one.objectives),
        )
    ]
    found: dict[str, Trial] = {}
    for place in range(len(trials)):
        for order in orders:
            if len(found) < count:
                found.setdefault(order[place].part.name, order[place])
    return list(found.values())
