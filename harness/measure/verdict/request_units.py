"""Request units against what Cosmos DB gives: rates, and why requests were throttled.

A 429 of Cosmos DB does not say whether one partition or the whole provisioned throughput was used
up. The figures of a run can: which keys were throttled, and how much was used meanwhile.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from harness.measure.counts.snapshot import CountedOperation, CountedPartition, Snapshot
from harness.measure.record.measured import NO_RATES
from harness.measure.verdict.evidence import Evidence, named
from harness.model.figures import counted, number, percent, request_units
from harness.model.physical_partitions import MAX_PARTITION_RU_PER_S
from harness.model.target import Throughput

REFUSED = 429
"""The status with which Cosmos DB asks for fewer request units."""
NEAR_FROM = 0.9
"""Share of a limit from which it counts as used up. Whole seconds round off short peaks."""
MOST_FROM = 0.5
"""Share of the throttled attempts from which one of several keys is the hot one ..."""
AHEAD_FROM = 2.0
"""... if it has so many times those of the next key: two keys that share a hot physical partition
have about half each."""
SPARED_FROM = 0.25
"""Share of keys without any throttling from which only some physical partitions throttle."""
_EXPECTED = 5.0
"""A key is spared if so many of its attempts would have been throttled at the ratio of the run, and
none was: by chance that happens to one key in 150 ..."""
_HARDLY = 0.1
"""... or hardly any: this share of what was expected."""
_ALONE_FROM = 0.5
"""Share of what a physical partition has from which the only key of a run may have used it up."""
_TOGETHER_BY_CHANCE = 0.01
"""Chance from which keys may well have the same physical partition, without looking at them."""
_COSTLY_FROM = 0.5
"""Share of all request units from which the operations of one name can explain 429."""
_MOST_SHOWN = 3


class Concentration(enum.Enum):
    """Which keys were throttled."""

    ONLY_KEY = enum.auto()
    ONE_KEY = enum.auto()
    SOME_KEYS = enum.auto()
    ALL_KEYS = enum.auto()


_UNEVEN = (Concentration.ONE_KEY, Concentration.SOME_KEYS)


class ThrottlingCause(enum.StrEnum):
    """Why Cosmos DB throttled; the value is that of `VerdictPart.limited_by`."""

    HOT_PARTITION = "partition"
    THROUGHPUT = "throughput"
    COSTLY_OPERATION = "operation"
    UNKNOWN = "unknown"


class Throttled:
    """Throttling of a run against Cosmos DB.

    Attributes:
        refused: Attempts that were throttled.
        keys: Number of keys; the folded ones together are one.
        throttled_keys: Those of them with a throttled attempt, without the spared ones.
        spared_keys: Those with none or hardly any, although they had enough attempts.
        most: The key with most throttled attempts; None without one of its own row.
        most_share: Its share of all throttled attempts; ``next_share`` is that of the next key.
        used_per_s: Mean RU/s of the seconds with throttled attempts, all keys together; None if no
            answer named its charge.
        provisioned_per_s: What was provisioned, all accounts together; None if unknown.
        folded: Whether the folded keys are among the throttled; None if no keys are folded.
        costly: Operations that took most of the request units, and of which one takes more than a
            partition has in a second; None without such.
    """

    def __init__(self, evidence: Evidence) -> None:
        snapshot, self.throughput = evidence.snapshot, evidence.throughput
        parts, ratio = snapshot.single_partitions, snapshot.throttled_ratio
        folded = () if snapshot.folded is None else (snapshot.folded,)
        spared = [part.key for part in parts if _spared(part, ratio * _attempts(part))]
        self.refused = sum(map(_refused, (*parts, *folded)))
        shares = [_refused(part) / (self.refused or 1) for part in parts]
        self.keys = len(parts) + len(folded)
        self.throttled_keys = sum(
            _refused(part) > 0 and part.key not in spared for part in (*parts, *folded)
        )
        self.spared_keys = len(spared)
        self.most = max(parts, key=_refused, default=None)
        self.most_share, self.next_share = (*sorted(shares, reverse=True), 0.0, 0.0)[:2]
        self.used_per_s = None if snapshot.request_units is None else _used_per_s(snapshot)
        provisioned = evidence.throughput.ru_per_s
        self.provisioned_per_s = provisioned and provisioned * max(1, len(snapshot.accounts))
        self.folded = any(map(_refused, folded)) if folded else None
        self.costly = _costly(evidence)

    @property
    def used_share(self) -> float | None:
        """``used_per_s`` as a share of what was provisioned; None if either is unknown."""
        used, provisioned = self.used_per_s, self.provisioned_per_s
        return None if used is None or provisioned is None else used / provisioned

    @property
    def concentration(self) -> Concentration:
        if self.keys <= 1:
            return Concentration.ONLY_KEY
        if self.most_share >= MOST_FROM and self.most_share >= AHEAD_FROM * self.next_share:
            return Concentration.ONE_KEY
        if self.spared_keys > SPARED_FROM * (self.spared_keys + self.throttled_keys):
            return Concentration.SOME_KEYS
        return Concentration.ALL_KEYS

    @property
    def cause(self) -> ThrottlingCause:
        used = self.used_share
        if self._at_most:
            return ThrottlingCause.HOT_PARTITION
        if used is None:
            return ThrottlingCause.UNKNOWN
        if used >= NEAR_FROM:
            return ThrottlingCause.THROUGHPUT
        concentration = self.concentration
        several = concentration in (Concentration.SOME_KEYS, Concentration.ALL_KEYS)
        if several and self.costly is not None:
            return ThrottlingCause.COSTLY_OPERATION
        hot = concentration in _UNEVEN or self._together or self._alone
        return ThrottlingCause.HOT_PARTITION if hot else ThrottlingCause.UNKNOWN

    @property
    def figures(self) -> str:
        """Which keys were throttled, and how much was used meanwhile; without a conclusion."""
        of = self.provisioned_per_s
        provisioned = "" if of is None else f" of the provisioned {number(of)}"
        if self.used_per_s is None:
            return f"{self._where}; no answer named its charge"
        return (
            f"{self._where}; in the seconds with 429, {number(self.used_per_s)}{provisioned} RU/s "
            "were used"
        )

    @property
    def described(self) -> str:
        """A sentence that answers: hot partition, or too little provisioned?"""
        cause = self.cause
        if cause is ThrottlingCause.HOT_PARTITION:
            what = "a hot physical partition" if self._shared else "a hot partition"
            words = f"It is {what}, not too little throughput: {self._found}"
            if self._together:
                words += f", as much as one of {self.throughput.physical_partitions} has"
            return words
        if cause is ThrottlingCause.THROUGHPUT and self.concentration in _UNEVEN:
            return f"It is too little throughput, and another key would hardly help: {self._found}"
        if cause is ThrottlingCause.THROUGHPUT:
            return f"It is too little throughput, not a hot partition: {self._found}"
        if cause is ThrottlingCause.COSTLY_OPERATION and self.costly is not None:
            each = request_units(self.costly.request_units_each or 0.0)
            return (
                f"It is costly operations: one {self.costly.kind} takes {each} RU, and a partition "
                f"has {number(self.throughput.partition_ru_per_s)} in a second. The next "
                f"requests are refused until later seconds have covered it: {self._found}"
            )
        question = "Hot partition or too little throughput?"
        if self.used_per_s is None:
            return (
                f"{question} {_first_upper(self._hint)}; no answer named its charge "
                "(x-ms-request-charge), so that the metrics of the account have to tell"
            )
        if self.used_share is None:
            return (
                f"{question} {_first_upper(self._hint)}; set endpoint.provisioned_ru_per_s to tell "
                "them apart"
            )
        return (
            f"{question} The figures do not fit either: {self._found}. Something else may use the "
            f"throughput, less may be provisioned, or {self._otherwise}"
        )

    @property
    def _at_most(self) -> bool:
        """Whether one key used what no throughput can give to a partition."""
        return (
            self.most is not None
            and self.most.request_units_per_s.mean >= NEAR_FROM * MAX_PARTITION_RU_PER_S
        )

    @property
    def _shared(self) -> bool:
        """Whether several keys have the hot physical partition."""
        return not self._at_most and (
            self.concentration is Concentration.SOME_KEYS or self._together
        )

    @property
    def _together(self) -> bool:
        """Whether all of a few keys used what one of several physical partitions has.

        With many keys that is something else: their hashes would not be in one by chance.
        """
        count, used = self.throughput.physical_partitions or 1, self.used_per_s
        if count == 1 or used is None or self.concentration is not Concentration.ALL_KEYS:
            return False
        share = used / self.throughput.partition_ru_per_s
        by_chance = float(count) ** (1 - self.keys)
        return by_chance >= _TOGETHER_BY_CHANCE and NEAR_FROM <= share <= 2 - NEAR_FROM

    @property
    def _alone(self) -> bool:
        """Whether the only key used up what one of several physical partitions has."""
        share = (self.used_per_s or 0.0) / self.throughput.partition_ru_per_s
        several = self.throughput.fewest_partitions > 1
        only = self.concentration is Concentration.ONLY_KEY
        return only and several and share >= _ALONE_FROM

    @property
    def _where(self) -> str:
        """Which keys were throttled."""
        match self.concentration:
            case Concentration.ONLY_KEY:
                return "the run used one PartitionKey"
            case Concentration.ONE_KEY:
                return f"{percent(self.most_share)} of the throttled attempts were for one key"
            case _:
                rest = self.keys - self.throttled_keys - self.spared_keys
                words = f"{self.throttled_keys:,} of {counted(self.keys, 'key')} were throttled"
                if self.folded is not None:
                    own = self.throttled_keys - self.folded
                    words = f"{own:,} of the {self.keys - 1:,} keys counted singly were throttled"
                return words if not rest else f"{words} ({rest:,} had few attempts)"

    @property
    def _found(self) -> str:
        """The figures that decide."""
        if self.most is not None and self._at_most:
            of_partition = f"the {MAX_PARTITION_RU_PER_S:,} RU/s that a partition can have at most"
            return f"one key used {number(self.most.request_units_per_s.mean)} of {of_partition}"
        return (
            f"{self._where}, while {number(self.used_per_s or 0.0)} RU/s, "
            f"{percent(self.used_share or 0.0)} of the provisioned "
            f"{number(self.provisioned_per_s or 0.0)}, were used"
        )

    @property
    def _otherwise(self) -> str:
        """What else may throttle all keys of a run far below what is provisioned."""
        if self.concentration is Concentration.ALL_KEYS:
            return "all keys may be in one physical partition"
        return f"it may be over more than {self.throughput.fewest_partitions} physical partitions"

    @property
    def _hint(self) -> str:
        """What the keys point at where nothing is known of the throughput."""
        where = self._where
        match self.concentration:
            case Concentration.ONLY_KEY:
                return f"{where}, so that both look the same"
            case Concentration.ONE_KEY | Concentration.SOME_KEYS:
                return f"{where}, which points to a hot partition"
            case Concentration.ALL_KEYS:
                return f"{where}, which points to too little throughput"


def throttled_by_units(evidence: Evidence) -> Throttled | None:
    """Which keys Cosmos DB throttled, and how much was used meanwhile; None if it did not."""
    found = Throttled(evidence)
    return found if found.refused else None


def _costly(evidence: Evidence) -> CountedOperation | None:
    for part, share in by_cost(evidence.snapshot)[:1]:
        each = part.request_units_each or 0.0
        if share >= _COSTLY_FROM and each >= evidence.throughput.partition_ru_per_s:
            return part
    return None


def _spared(part: CountedPartition, expected: float) -> bool:
    return expected >= _EXPECTED and _refused(part) <= _HARDLY * expected


def _attempts(part: CountedPartition) -> int:
    return sum(part.attempts.values())


def _refused(part: CountedPartition) -> int:
    return sum(count for (status, _, _), count in part.attempts.items() if status == REFUSED)


def _used_per_s(snapshot: Snapshot) -> float:
    """Mean RU/s of the seconds of the window with throttled attempts, else of all of them."""
    seconds = [point for point in snapshot.series if point.throttled_by_status.get(REFUSED)]
    measured = [point for point in seconds if snapshot.start <= point.second < snapshot.end]
    used = [point.charges for point in measured or seconds]
    return sum(used) / len(used) / 100 if used else 0.0


class Usage:
    """RU/s of a run against Cosmos DB and their limits; of a watched application in its best 10 s.

    Attributes:
        most: The partition that used most, with ``partition_per_s``.
        account_per_s: Of everything, or of the account that used most.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.most, self.throughput = evidence.costliest, evidence.throughput
        rates = NO_RATES if self.most is None else self.most.request_units_per_s
        self.partition_per_s = evidence.rate(rates)
        self.account_per_s = evidence.rate(evidence.snapshot.account_request_units)

    @property
    def partition_over(self) -> bool:
        return self.partition_per_s > self.throughput.partition_ru_per_s

    @property
    def account_over(self) -> bool:
        limit = self.throughput.ru_per_s
        return limit is not None and self.account_per_s > limit

    @property
    def bounded(self) -> bool:
        """Whether limits are the highest that there can be: not all is known that sets them."""
        count, given = self.throughput.physical_partitions, self.throughput.ru_per_s
        return given is None or not (count or self.throughput.fewest_partitions == 1)

    @property
    def described(self) -> str:
        """The rates and their limits, as a part of a sentence."""
        share = percent(self.partition_per_s / self.throughput.partition_ru_per_s)
        provisioned = self.throughput.ru_per_s
        everything = f"everything together {number(self.account_per_s)}"
        if provisioned is None:
            everything += " (of an unknown throughput: endpoint.provisioned_ru_per_s is not set)"
        else:
            of = percent(self.account_per_s / provisioned)
            everything += f" ({of} of the provisioned {number(provisioned)})"
        most = "no partition" if self.most is None else named(self.most)
        return (
            f"{most} used {number(self.partition_per_s)} RU/s ({share} of "
            f"{share_words(self.throughput)}), {everything}"
        )


def share_words(throughput: Throughput) -> str:
    """What a partition can have, and why: ``6,000, an even share of 18,000 over 3``."""
    limit, provisioned = throughput.partition_ru_per_s, throughput.ru_per_s
    words = number(limit)
    if provisioned is None or limit == MAX_PARTITION_RU_PER_S:
        return f"the {words} that a partition can have"
    count = throughput.fewest_partitions
    if count == 1 and throughput.physical_partitions is None:
        return f"the {words} that were provisioned"
    at_most = "" if throughput.physical_partitions else "at most "
    at_least = "" if throughput.physical_partitions else "at least "
    partitions = counted(count, "physical partition")
    return f"{at_most}{words}, an even share of {number(provisioned)} over {at_least}{partitions}"


def by_cost(snapshot: Snapshot) -> list[tuple[CountedOperation, float]]:
    """The operations and their shares of all request units, the largest first."""
    whole = snapshot.request_units
    if whole is None or not whole.total:
        return []
    shares = [
        (part, part.request_units.total / whole.total)
        for part in snapshot.operations
        if part.request_units is not None
    ]
    return sorted(shares, key=lambda item: -item[1])


def unit_sentences(evidence: Evidence) -> Iterator[str]:
    """What was charged, as parts of sentences; nothing for other services than Cosmos DB."""
    snapshot = evidence.snapshot
    whole = snapshot.request_units
    if whole is None:
        return
    used = f"{number(whole.total)} RU were charged"
    if evidence.length_s > 0:
        rates = whole.per_s
        used += (
            f": {number(rates.mean)} RU/s on average, {number(rates.best_1s)} in the best second"
        )
    yield used
    if evidence.length_s > 0:
        yield Usage(evidence).described
    costs = [
        f"{part.kind} {request_units(part.request_units_each)} RU each, {percent(share)} of all"
        for part, share in by_cost(snapshot)[:_MOST_SHOWN]
        if part.request_units_each is not None
    ]
    if costs:
        yield "operations by their cost: " + "; ".join(costs)
    if (throttled := throttled_by_units(evidence)) is not None:
        yield throttled.figures


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]
