"""Which of the tried keys is recommended, and which are worth a look.

What breaks the application is no candidate, nor are keys under which its queries read the whole
table. The rule of `harness.measure.verdict.ranking` tells which of the others are best, where a
limit at twice the asked traffic is as good as a later one. Of the best, the keys that are closest
to today's are recommended, if they are better than today's by more than noise. The alternatives are
on the Pareto front.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Container, Sequence

from harness.measure.record.whatif import FirstLimitPart, SchemePart, WhatIfRecord
from harness.measure.verdict.ranking import (
    ACCOUNT,
    THROTTLED_NOISE,
    Standing,
    by_account,
    ranks,
    standing,
)
from harness.trace.advise.candidates import Candidate
from harness.trace.whatif.first_limit import ACCURACY
from harness.trace.whatif.scheme import PARTITION_KEY
from harness.trace.whatif.screening import ScreenedScheme

ENOUGH = 2.0
"""A limit at this multiple of the asked traffic is far: the traffic can double."""
_NEARLY = 0.75 * ENOUGH
"""Keys whose first limit is met from this multiple on are equally good. In recordings of equal
traffic the first limit of a server scatters by a quarter and more."""
PLENTY = 10 * ENOUGH
"""Up to this multiple of the asked traffic a first limit is looked for: nobody asks for more."""
ANY_RATE = 1e-6
"""In place of a multiple: a limit is met at every one that was tried."""
_BETTER = 1.5
"""The first limit has to be so much later, or half of the throttling gone: less is noise."""
_MOST_BILLABLE = 4
"""Keys are not calculated if others, that throttle nothing, need so many times fewer requests."""
_LEAST = 6
_SHARED = 5
"""Operations for each partition from which rows are taken to share them."""
_MOST_SCANS = 0.01
"""Share of the operations that may read the whole table."""
_MOST_UNVALUED = 0.1
"""Share of the operations that may be on rows of unknown properties: they stay as recorded."""
_TODAYS_KEY = f"{{{PARTITION_KEY}}}"
TODAY = Candidate("as recorded", "", "", "", 0, {"keys": {}})


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    """Keys, and what became of the traffic under them. Without a candidate they are today's."""

    found: WhatIfRecord
    part: SchemePart
    candidate: Candidate = TODAY

    @property
    def throttled(self) -> float:
        ratio = self.part.once.ratio
        return 0.0 if ratio < THROTTLED_NOISE else ratio

    @property
    def factor(self) -> float:
        """Multiple of the asked traffic at which the first limit of a partition is met.

        Calculated where it was asked for, but never more than what can be sustained: in a short
        trace, a burst passes that would not pass for long. The limit of the account is not one of
        keys.
        """
        found, part = self.found, self.part
        limits = [sustained(found, part), part.first_limit]
        factors = [one.factor / found.rate for one in limits if one and one.rule != ACCOUNT]
        if self.throttled and by_account(part) < 1:
            factors.append(1.0)
        return max(ANY_RATE, min(factors, default=PLENTY))

    @property
    def until(self) -> float:
        """Multiple of the asked traffic at which any limit is met, that of the account too."""
        first = self.part.first_limit
        return self.factor if first is None else min(self.factor, first.factor / self.found.rate)

    @property
    def standing(self) -> Standing:
        """What it is compared by; a limit that is far is as good as none."""
        served, price = self.found.partition_per_s, self.part.price
        return dataclasses.replace(
            standing(self.part),
            hottest=served / (self.factor if self.factor < _NEARLY else ENOUGH),
            throttled=self.throttled,
            billable=price.billable or price.operations - price.spread + price.needed,
        )

    @property
    def far(self) -> bool:
        """Whether no limit is near."""
        return not self.throttled and self.factor >= ENOUGH

    @property
    def objectives(self) -> tuple[float, ...]:
        """What is to be small, of which none is weighed against another."""
        of, whole = self.standing, max(1, self.part.price.operations)
        return (
            round(self.throttled, 3),
            -round(min(self.until, PLENTY), 1),
            round(of.billable / whole, 2),
            round(of.scanned / whole, 1),
            self.candidate.distance,
        )


def sustained(found: WhatIfRecord, part: SchemePart) -> FirstLimitPart | None:
    """The limit of a partition that the busiest 10 s or minute would meet if they lasted."""
    peaks, rule = part.partition_peaks, "partition"
    if found.physical is not None:
        # None of its PartitionKeys has more.
        peaks, rule = part.physical_peaks, "throughput"
    lasting = [one for one in peaks if one.per_s and one.width_s > 1]
    if not lasting:
        return None
    peak = max(lasting, key=lambda one: one.per_s)
    factor = found.partition_per_s / peak.per_s
    per_s = factor * part.account_peaks[0].per_s
    return FirstLimitPart(
        factor=factor * found.rate, per_s=per_s, rule=rule, partition=peak.partition
    )


def by_keys(part: SchemePart) -> float:
    """Share of the attempts that limits refuse which other keys may keep away from."""
    return part.once.ratio * (1 - by_account(part))


def is_candidate(trial: Trial) -> bool:
    """Whether an application can have these keys."""
    price, today = trial.part.price, trial.found.schemes[0].price
    return (
        not trial.standing.breaks
        and not price.unmatched
        and price.unknown <= today.unknown
        and price.unvalued <= _MOST_UNVALUED * price.operations
        and price.scans - today.scans <= _MOST_SCANS * price.operations
    )


def helps(trial: Trial, today: Trial) -> bool:
    """Whether keys are better than today's by more than noise.

    Queries that scan more may meet the limit of the account before today's keys meet one.
    """
    if today.throttled:
        return trial.throttled <= today.throttled / 2
    if trial.throttled or trial.factor < _BETTER * today.factor:
        return False
    if today.until < today.factor:
        # The account is the first limit, whatever the keys are.
        return trial.until * ACCURACY >= today.until
    return trial.until >= today.until * ACCURACY


def proposed(trials: Sequence[Trial], today: Trial) -> list[Trial]:
    """The recommended keys and up to two alternatives, in this order; none if none helps."""
    helping = [trial for trial in trials if helps(trial, today)]
    ranked = zip(helping, ranks([trial.standing for trial in helping]), strict=True)
    best = min((trial for trial, rank in ranked if rank == 1), key=_nearest, default=None)
    return [] if best is None else [best, *_alternatives(trials, best, today)]


def _nearest(trial: Trial) -> tuple[float, ...]:
    return _plainness(trial.candidate, trial.part)


def _plainness(candidate: Candidate, found: SchemePart | ScreenedScheme) -> tuple[float, ...]:
    """Sorts the keys that are closest to today's first, and of equally close ones, in this order:

    - whole parts of keys, unless hardly two rows share a partition;
    - those whose figures are all known;
    - those of few parts;
    - those that begin with today's key, so that its neighbours stay neighbours;
    - those with few partitions.
    """
    key, price = candidate.partition_key, found.price
    plain = ":" not in key and _SHARED * found.partitions <= price.operations
    apart = not key.startswith(_TODAYS_KEY)
    bounded = price.scanned_is_lower_bound
    return candidate.distance, not plain, bounded, key.count("{"), apart, found.partitions


def _alternatives(trials: Sequence[Trial], best: Trial, today: Trial) -> list[Trial]:
    """Up to two others on the Pareto front: one whose limit is much later, and the nearest."""
    front = [
        one
        for one in {one.objectives: one for one in sorted(trials, key=_nearest)[::-1]}.values()
        if one is not best
        and helps(one, today)
        and one.objectives != best.objectives
        and not any(_dominates(other, one) for other in trials)
    ]
    later = [one for one in front if min(one.until, PLENTY) >= _BETTER * best.until]
    found = [min(later, key=lambda one: (*one.objectives[:2], _nearest(one)))] if later else []
    rest = [one for one in front if one not in found]
    return [*found, *sorted(rest, key=_nearest)][:2]


def _dominates(first: Trial, second: Trial) -> bool:
    pairs = list(zip(first.objectives, second.objectives, strict=True))
    return all(one <= other for one, other in pairs) and any(one < other for one, other in pairs)


def screened(
    found: Sequence[ScreenedScheme], tried: Sequence[Candidate], served_per_s: float, requests: int
) -> list[Candidate]:
    """The candidates that are worth a calculation, as many as have about so many requests.

    Args:
        served_per_s: Entities that a partition serves.
    """
    usable = [
        (one, candidate)
        for one, candidate in zip(found, tried, strict=True)
        if not one.standing.breaks
        and not one.price.unmatched
        and one.price.unvalued <= _MOST_UNVALUED * one.price.operations
        and one.price.scans <= _MOST_SCANS * one.price.operations
    ]
    served = [one.standing.billable for one, _ in usable if one.over < THROTTLED_NOISE]
    most = _MOST_BILLABLE * min(served, default=sys.maxsize)
    usable = [one for one in usable if one[0].standing.billable <= most]
    standings = [
        dataclasses.replace(one.standing, hottest=max(one.standing.hottest, served_per_s / ENOUGH))
        for one, _ in usable
    ]
    ranked = list(zip(ranks(standings), standings, usable, strict=True))
    orders = [
        sorted(ranked, key=key)
        for key in (
            lambda one: (one[0], _plainness(one[2][1], one[2][0])),
            lambda one: (round(one[1].throttled, 3), one[2][0].peak_per_s),
            lambda one: (round(one[1].throttled, 2), one[2][1].distance, one[1].billable),
        )
    ]
    costs = {candidate.name: one.standing.billable for one, candidate in usable}
    ordered = _in_turn([[one[2][1] for one in order] for order in orders], len(usable))
    spent = itertools.accumulate(costs[one.name] for one in ordered)
    return [
        one
        for place, (one, cost) in enumerate(zip(ordered, spent, strict=True))
        if place < _LEAST or cost <= requests
    ]


def finalists(
    trials: Sequence[Trial], today: Trial, count: int, held: Container[str]
) -> list[Candidate]:
    """Those whose first limit is worth a calculation.

    ``held``: the names of those under which `ENOUGH` times the traffic meets no limit of keys.
    """

    def near(one: Trial) -> tuple[float, ...]:
        return one.part.name not in held, *_nearest(one)

    names = [trial.part.name for trial in trials]
    ranked = dict(zip(names, ranks([trial.standing for trial in trials]), strict=True))
    orders = [
        sorted(trials, key=lambda one: (ranked[one.part.name], near(one))),
        sorted(trials, key=lambda one: (one.objectives[:2], near(one))),
        sorted(trials, key=lambda one: (not helps(one, today), _nearest(one))),
    ]
    return _in_turn([[one.candidate for one in order] for order in orders], count)


def _in_turn(orders: Sequence[Sequence[Candidate]], count: int) -> list[Candidate]:
    """The first ones of each order in turn, each once."""
    found: dict[str, Candidate] = {}
    for row in zip(*orders, strict=True):
        for one in row:
            if len(found) < count:
                found.setdefault(one.name, one)
    return list(found.values())
