"""Which key scheme is better: one rule for `harness whatif` and `harness advise`.

What would break the application is no candidate. Of the others, the best is throttled least, makes
the fewest billable requests, scans the fewest entities, and has the least hot partition, in this
order. Differences below the noise of a calculation, or within the chance of back-off, decide
nothing, and are no price.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from harness.measure.record.whatif import PricePart, SchemePart, WhatIfRecord, peak_over
from harness.measure.verdict.request_units import NEAR_FROM
from harness.model.figures import agreed, counted, multiple, number, percent

THROTTLED_NOISE = 0.001
"""Shares of throttled attempts that differ by less are equal."""
RELATIVE_NOISE = 0.01
"""Other figures that differ by a smaller share are equal."""
_ABOUT = 0.95
"""A first limit is known to 5 %."""
ACCOUNT = "account"
"""The rule that refuses what is beyond the limit of the account."""
_EVEN = 1.25
"""Up to this multiple of its even share a physical partition is not hot: so much more do some
hundred equal keys give to one of ten by chance."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What keys are compared by.

    Attributes:
        breaks: What would break the application; empty for a candidate.
        throttled: Share of attempts that are throttled without retries.
        billable: The least, as chance has it.
        billable_most: The most; 0 without chance.
        hottest: Load of the hottest partition, in the unit of the limits a second.
    """

    breaks: tuple[str, ...] = ()
    throttled: float
    billable: int
    scanned: int
    hottest: float
    billable_most: int = 0


_Measure = tuple[Callable[[Standing], float], Callable[[Standing], float]]
"""A figure of which less is better, and up to which figure of others one is equal to them."""
_MEASURES: tuple[_Measure, ...] = (
    (lambda one: one.throttled, lambda one: one.throttled + THROTTLED_NOISE),
    (
        lambda one: one.billable,
        lambda one: max(one.billable_most, one.billable * (1 + RELATIVE_NOISE)),
    ),
    (lambda one: one.scanned, lambda one: one.scanned * (1 + RELATIVE_NOISE)),
    (lambda one: one.hottest, lambda one: one.hottest * (1 + RELATIVE_NOISE)),
)


def ranks(standings: Sequence[Standing]) -> list[int]:
    """The rank of each: 1 is the best, equals share a rank, 0 would break the application."""
    found = [0] * len(standings)
    whole = [place for place, one in enumerate(standings) if not one.breaks]
    rank = 1
    for equals in _groups(standings, whole, _MEASURES):
        for place in equals:
            found[place] = rank
        rank += len(equals)
    return found


def _groups(
    standings: Sequence[Standing], places: list[int], measures: Sequence[_Measure]
) -> list[list[int]]:
    """Places of equals, the best first."""
    if not measures or len(places) < 2:
        return [places] if places else []
    (measure, reach), *further = measures
    groups: list[list[int]] = []
    most = 0.0
    for place in sorted(places, key=lambda one: measure(standings[one])):
        figure = measure(standings[place])
        if not groups or figure > most:
            groups.append([])
            most = reach(standings[place])
        groups[-1].append(place)
    return [equals for group in groups for equals in _groups(standings, sorted(group), further)]


def ranked(parts: Sequence[SchemePart]) -> tuple[SchemePart, ...]:
    """Calculated schemes with their ranks, of which the first is the recorded one."""
    standings = [standing(part, recorded=not place) for place, part in enumerate(parts)]
    return tuple(
        part.model_copy(update={"rank": rank, "breaks": one.breaks})
        for part, one, rank in zip(parts, standings, ranks(standings), strict=True)
    )


def standing(part: SchemePart, *, recorded: bool = False) -> Standing:
    """What a calculated scheme is compared by."""
    peaks = part.physical_peaks or part.partition_peaks
    price = part.price
    least, most = billable_of(part)
    return Standing(
        breaks=breaks(price, recorded=recorded, refusal=part.refused),
        throttled=part.once.ratio,
        billable=least,
        billable_most=most,
        scanned=price.scanned,
        hottest=peak_over(10, peaks).per_s,
    )


def billable_of(part: SchemePart) -> tuple[int, int]:
    """The least and the most billable requests of all draws of the waits."""
    if part.draws is None:
        return part.price.billable, part.price.billable
    least, most = part.draws
    return least.attempts, most.attempts


def by_account(part: SchemePart) -> float:
    """Share of the throttled requests that the limit of the account refused."""
    return part.once.by_rule.get(ACCOUNT, 0) / max(1, part.once.throttled)


def needs_more(found: WhatIfRecord, part: SchemePart) -> str:
    """Why the traffic needs a larger account, as a clause; empty if it does not.

    All partitions together ask for more than there is, under whatever keys. Cosmos DB does not tell
    a full physical partition from throughput that is used up: keys may help too, unless `is_even`.
    """
    limit, physical = found.account_per_s, found.physical is not None
    if not physical and 2 * by_account(part) <= 1:
        return ""
    width_s, least = (10, NEAR_FROM * limit) if physical else (1, limit)
    wanted, *others = (
        peak_over(width_s, one.account_peaks).per_s for one in (part, *found.schemes)
    )
    if not part.once.throttled or min(wanted, *others) < least:
        return ""
    asked = f"{marked(part, number(wanted))} {found.unit}/s"
    if not physical:
        return f"the busiest second asks for {asked}, and the account serves {number(limit)}"
    if wanted < limit:
        share = marked(part, percent(wanted / limit))
        return f"the busiest 10 s ask for {share} of the provisioned {number(limit)} {found.unit}/s"
    return f"the busiest 10 s ask for {asked}, and {number(limit)} are provisioned"


def is_even(found: WhatIfRecord, part: SchemePart) -> bool:
    """Whether no physical partition of Cosmos DB is hot: no other keys would spread it better."""
    if found.physical is None:
        return True
    even = peak_over(10, part.account_peaks).per_s / found.physical.count
    return peak_over(10, part.physical_peaks).per_s <= _EVEN * even


def marked(part: SchemePart, figure: str) -> str:
    """A figure; with the sign of a lower bound if queries may scan rows that nobody knows."""
    if not part.price.scanned_is_lower_bound:
        return figure
    return "> 0%" if figure.startswith("<") else f"≥ {figure}"


def met_if_it_lasts(found: WhatIfRecord, part: SchemePart) -> str:
    """The limit that the traffic would meet if it lasted, as a clause; empty if it meets it now.

    A burst may pass where the traffic could not go on, such as all of a trace that is short.
    """
    first = part.first_limit
    if part.once.throttled or first is None or first.factor > _ABOUT * found.rate:
        return ""
    met = met_at(first.factor, bounded=part.price.scanned_is_lower_bound)
    return f"if it lasts, the limit of {whose_limit(first.rule)} is met {met}"


def met_at(factor: float, *, bounded: bool = False) -> str:
    """At which multiple of the recorded traffic a limit is met: ``at about x 15``.

    ``bounded``: the traffic is a lower bound.
    """
    if not factor:
        return "at any rate"
    times = f"x {multiple(factor)}"
    return f"at {times} or before" if bounded else f"at about {times}"


def whose_limit(rule: str) -> str:
    """Whose limit a rule is, as in `SimulatedPart.by_rule`."""
    return {ACCOUNT: "the account", "throughput": "a physical partition"}.get(rule, f"a {rule}")


def refused(part: SchemePart) -> str:
    """What refused the throttled requests, or most of them: ``by the limit of a server``."""
    by_rule = part.once.by_rule
    rule = max(by_rule, key=by_rule.__getitem__, default="partition")
    most = "most of them " * (len([*filter(None, by_rule.values())]) > 1)
    if rule == "moving":
        return f"{most}while a partition moves to another server"
    # The hottest partition may be far below its limit then.
    all_of = ", which serves neighbouring keys together" if rule == "server" else ""
    return f"{most}by the limit of {whose_limit(rule)}{all_of}"


def price_of(part: SchemePart, before: SchemePart) -> list[str]:
    """What some keys cost more than other ones do in the same traffic, as clauses."""
    return _differences(part, before, saves=False)


def savings_of(part: SchemePart, before: SchemePart) -> list[str]:
    """What some keys cost less than other ones do in the same traffic, as clauses."""
    return _differences(part, before, saves=True)


def _differences(part: SchemePart, before: SchemePart, *, saves: bool) -> list[str]:
    """What ``part`` costs where that is more than with ``before``, or less if it ``saves``."""
    price, other = part.price, before.price
    dearer, cheaper = (before, part) if saves else (part, before)
    dear, cheap = dearer.price, cheaper.price
    # Nobody knows how much more the cheaper one is.
    unsure = cheap.scanned_is_lower_bound
    # What may cost more is a price, and what may cost less is no saving.
    may_cost = price.scanned_is_lower_bound and not unsure and not saves

    def differs(count: str) -> bool:
        if count == "billable" and billable_of(dearer)[0] <= billable_of(cheaper)[1]:
            # By chance.
            return False
        return bool(getattr(dear, count) > (1 + RELATIVE_NOISE) * getattr(cheap, count))

    def share(count: str, where: str, more: str = "") -> str:
        ours, theirs = (getattr(one, count) / max(1, one.queries) for one in (price, other))
        if not ours:
            return f"no queries {where}"
        instead = f" instead of {percent(theirs)}" if theirs and ours != theirs else ""
        return f"{percent(ours)} of the queries {where}{more}{instead}"

    found = []
    for count, noun in (("billable", "billable requests"), ("scanned", "entities scanned")):
        more = differs(count)
        ours, theirs = (marked(one, f"{getattr(one.price, count):,}") for one in (part, before))
        if more and not unsure:
            found.append(f"{ours} {noun} in place of {theirs}")
        elif (more and not saves) or (may_cost and count == "scanned"):
            found.append(f"perhaps more {noun} ({ours} in place of {theirs})")
    if dear.spread and differs("needed"):
        most, others = price.most_needed, other.most_needed
        instead = f" in place of {others:,}" if others > 1 and most != others else ""
        found.append(share("spread", "in several partitions", f" (up to {most:,} each{instead})"))
    if differs("scans"):
        found.append(share("scans", "over the whole table"))
    if differs("ranged"):
        found.append(share("ranged", "over a range of partitions"))
    if differs("unbounded"):
        found.append(share("unbounded", "over a whole partition in place of a range of rows"))
    if differs("moved"):
        writes = counted(price.moved, "write") if price.moved else "no writes"
        found.append(f"{writes} that move an entity to another partition")
    return found


def breaks(price: PricePart, *, recorded: bool = False, refusal: str = "") -> tuple[str, ...]:
    """What would break the application, as clauses.

    Args:
        recorded: The keys are in use, whatever a trace says of them.
        refusal: An example of a key that the service refuses, and why.
    """
    operations, unmatched, collisions = price.operations, price.unmatched, price.collisions
    unknown = 0 if recorded else price.unknown + price.unvalued
    found = []
    if price.split:
        share = percent(price.split / price.transactions)
        found.append(
            f"the service would refuse {share} of the transactions, whose entities would be in "
            "several partitions"
        )
    if collisions:
        about = "about " if price.collisions_estimated else ""
        verb = agreed(collisions, "has", "have")
        found.append(
            f"{about}{counted(collisions, 'entity', 'entities')} would be lost, because "
            f"{'it' if collisions == 1 else 'they'} {verb} the keys of another one"
        )
    if price.refused:
        why = f" ({refusal})" if refusal else ""
        operations_refused = counted(price.refused, "operation")
        found.append(f"the service would refuse the keys of {operations_refused}{why}")
    if 2 * unmatched > operations:
        found.append(
            f"{percent(unmatched / operations)} of the operations keep their keys, because no "
            "pattern matches them"
        )
    elif 2 * (unknown + unmatched) > operations:
        found.append(
            f"the new keys of {percent((unknown + unmatched) / operations)} of the operations are "
            "not known"
        )
    return tuple(found)
