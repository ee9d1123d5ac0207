"""Sums that merge: the counts of one partition, of the operations of one name, of a whole run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, PlainSerializer

from harness.measure.counts.latency import Latencies
from harness.measure.counts.time_course import PerSecond, Slots
from harness.model.operation import FOLDED, Kind
from harness.model.outcome import THROTTLING_STATUSES, Attempt, AttemptKey, Outcome, Result

MOST_LABELS = 60
"""Names of operations that are counted separately; a partition counts the others as `FOLDED`."""
KIND_DIGITS = 3
PARTITION_DIGITS = 2

_TRANSACTION = Kind.TRANSACTION
_QUERY = Kind.QUERY

_K = TypeVar("_K")
_V = TypeVar("_V")


def merge_fields(into: Any, more: Any) -> None:
    """Add each field of ``more``: a number, counts by name, or what has a ``merge`` of its own."""
    for name in into.__slots__:
        mine, other = getattr(into, name), getattr(more, name)
        if isinstance(mine, int):
            setattr(into, name, mine + other)
        elif isinstance(mine, dict):
            add_counts(mine, other)
        elif not isinstance(mine, str):
            mine.merge(other)


@dataclasses.dataclass(slots=True)
class Counts:
    """Numbers of operations, by how far they came, and what they moved. Without loading.

    Attributes:
        attempts: Counted as soon as each was answered.
        attempts_ended: Attempts of the operations that have ended.
    """

    due: int = 0
    sent: int = 0
    dropped: int = 0
    operations: int = 0
    attempts: int = 0
    attempts_ended: int = 0
    waits_cut: int = 0
    transactions: int = 0
    entities: int = 0
    entities_returned: int = 0
    entities_estimated: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    merge = merge_fields


def sums_of(tally: Any) -> dict[str, Any]:
    """The fields of a tally that are numbers."""
    fields = ((name, getattr(tally, name)) for name in tally.__slots__)
    return {name: value for name, value in fields if isinstance(value, int)}


def _seconds_of(names: Iterable[_K]) -> dict[_K, PerSecond]:
    return {name: PerSecond() for name in names}


# Messages carry no dict whose keys are tuples.
_FROM_ITEMS = BeforeValidator(lambda items: {tuple(key): value for key, value in items})
_TO_ITEMS = PlainSerializer(lambda counts: [*counts.items()])
_Attempts = Annotated[dict[AttemptKey, int], _FROM_ITEMS, _TO_ITEMS]
PairCounts = Annotated[dict[tuple[str, str], _V], _FROM_ITEMS, _TO_ITEMS]
"""Counts by two names, which can be a part of a message."""


@dataclasses.dataclass(slots=True)
class MessageTally:
    """The messages of one queue that were put, got and deleted; ``oldest_ms`` is an age."""

    put: int = 0
    got: int = 0
    deleted: int = 0
    oldest_ms: int = 0

    def add(self, result: Result) -> None:
        if name := result.operation.kind.tallied_as:
            setattr(self, name, getattr(self, name) + result.entities)
        self.oldest_ms = max(self.oldest_ms, int(result.oldest_s * 1000))

    def merge(self, other: MessageTally) -> None:
        self.put += other.put
        self.got += other.got
        self.deleted += other.deleted
        self.oldest_ms = max(self.oldest_ms, other.oldest_ms)


@dataclasses.dataclass(slots=True)
class PartitionTally:
    """The counts of one PartitionKey, or of all folded ones together.

    ``since_s`` is when the key was first counted separately; None is from the start. ``retrying``
    has the operations that were throttled and go on, as noted each second. ``charges`` are request
    units, as in every tally: in hundredths, of all attempts, by the second in which each ended.
    ``messages`` is None for what is no queue.
    """

    since_s: float | None = None
    operations: int = 0
    entities: dict[str, int] = dataclasses.field(default_factory=dict)
    attempts: _Attempts = dataclasses.field(default_factory=dict)
    seconds: PerSecond = dataclasses.field(default_factory=PerSecond)
    retrying: PerSecond = dataclasses.field(default_factory=PerSecond)
    charges: PerSecond = dataclasses.field(default_factory=PerSecond)
    latencies: Latencies = dataclasses.field(default_factory=lambda: Latencies(PARTITION_DIGITS))
    messages: MessageTally | None = None

    def add_message(self, result: Result) -> None:
        """Count the result of an operation on messages."""
        if self.messages is None:
            self.messages = MessageTally()
        self.messages.add(result)

    def merge(self, other: PartitionTally) -> None:
        """Add all counts of ``other``; the later of the two starts is kept."""
        if other.since_s is not None and (self.since_s is None or other.since_s > self.since_s):
            self.since_s = other.since_s
        self.operations += other.operations
        for label, count in other.entities.items():
            if label not in self.entities and len(self.entities) >= MOST_LABELS:
                label = FOLDED
            self.entities[label] = self.entities.get(label, 0) + count
        add_counts(self.attempts, other.attempts)
        self.seconds.merge(other.seconds)
        self.retrying.merge(other.retrying)
        self.charges.merge(other.charges)
        self.latencies.merge(other.latencies)
        if other.messages is not None:
            if self.messages is None:
                self.messages = MessageTally()
            self.messages.merge(other.messages)


@dataclasses.dataclass(slots=True)
class AccountTally:
    """The counts of one of several accounts; ``requests`` are attempts by second."""

    entities: int = 0
    attempts: _Attempts = dataclasses.field(default_factory=dict)
    seconds: PerSecond = dataclasses.field(default_factory=PerSecond)
    requests: PerSecond = dataclasses.field(default_factory=PerSecond)
    charges: PerSecond = dataclasses.field(default_factory=PerSecond)

    def add_attempt(self, attempt: Attempt) -> None:
        seen = (attempt.status, attempt.error_code, attempt.scope)
        self.attempts[seen] = self.attempts.get(seen, 0) + 1
        moment = int(attempt.sent_s + attempt.latency_s)
        self.requests.add(moment, 1)
        if attempt.request_charge:
            self.charges.add(moment, attempt.request_charge)

    def add(self, result: Result) -> None:
        """Count a result, and its attempts that `add_attempt` did not count."""
        self.entities += result.entities
        self.seconds.add(int(result.done_s), result.entities)
        for attempt in result.attempts[result.reported :]:
            self.add_attempt(attempt)

    merge = merge_fields


@dataclasses.dataclass(slots=True)
class KindTally:
    """The counts of the operations of one name, all of one kind, named as in an `OperationPart`."""

    kind: Kind
    count: int = 0
    entities: int = 0
    entities_returned: int = 0
    entities_estimated: int = 0
    uncertain: int = 0
    entities_wanted: int = 0
    entities_missed: int = 0
    outcomes: dict[Outcome, int] = dataclasses.field(default_factory=dict)
    seconds: PerSecond = dataclasses.field(default_factory=PerSecond)
    charges: PerSecond = dataclasses.field(default_factory=PerSecond)
    latencies: Latencies = dataclasses.field(default_factory=lambda: Latencies(KIND_DIGITS))

    def add_missed(self, results: Sequence[Result]) -> None:
        """Count what queries were meant to return, and did not."""
        for result in results:
            wanted = result.operation.key_range.wanted
            if wanted is not None and result.outcome.succeeded:
                self.entities_wanted += wanted
                self.entities_missed += max(0, wanted - result.entities_returned)

    merge = merge_fields


SERIES = (
    "operations",
    "unsuccessful",
    "attempts",
    "waiting",
    "dropped",
    "retrying",
    "charges",
    "backing_off_us",
    "queued_us",
)
"""The counts by second, besides the entities of each name and the throttled attempts."""
ANSWERED, WAITED = "answered", "waited"
"""The `Slots` in which an answer came, and those in which a request of `LONG_S` had none."""
LONG_S = 0.3
"""A request that is answered sooner does not wait out a stall."""


def _series() -> dict[str, PerSecond]:
    return {**_seconds_of(SERIES), ANSWERED: Slots(), WAITED: Slots()}


@dataclasses.dataclass(slots=True)
class Tally:
    """All counts of a run except those by partition. ``accounts`` is empty for a single account.

    Operations are counted by label. An application chooses its names: beyond `MOST_LABELS` names,
    operations are counted under their kind. If two kinds share a name, the kind is appended to the
    second, so that reads and writes stay separate.
    """

    counts: Counts = dataclasses.field(default_factory=Counts)
    kinds: dict[str, KindTally] = dataclasses.field(default_factory=dict)
    series: dict[str, PerSecond] = dataclasses.field(default_factory=_series)
    throttled: dict[int, PerSecond] = dataclasses.field(
        default_factory=lambda: _seconds_of(THROTTLING_STATUSES)
    )
    accounts: dict[str, AccountTally] = dataclasses.field(default_factory=dict)

    @property
    def charged(self) -> bool:
        return self.series["charges"].sum > 0

    @property
    def entities_each(self) -> float | None:
        """The mean entity count of the operations that ended, if all were served; or None.

        An operation that was not served counts as the mean of the served ones of its name.
        """
        operations, entities = 0, 0.0
        for kind in self.kinds.values():
            missed = sum(count for outcome, count in kind.outcomes.items() if outcome.wanted_again)
            if missed < kind.count:
                operations += kind.count
                entities += kind.entities * kind.count / (kind.count - missed)
        return entities / operations if operations else None

    def account(self, name: str) -> AccountTally:
        return self.accounts.setdefault(name, AccountTally())

    def label_of(self, label: str, kind: Kind) -> str:
        """The label under which operations with this one are counted from now on."""
        known = self.kinds.get(label)
        if known is None or known.kind is not kind:
            label = self._place(label, kind)
            self.kinds.setdefault(label, KindTally(kind))
        return label

    def _place(self, label: str, kind: Kind) -> str:
        if label not in self.kinds and len(self.kinds) >= MOST_LABELS:
            label = kind.value
        taken = self.kinds.get(label)
        return label if taken is None or taken.kind is kind else f"{label} ({kind})"

    def add(self, label: str, second: int, results: Sequence[Result]) -> None:
        """Count results with the same `label_of`, done in the same UTC second."""
        kind = self.kinds[label]
        number = len(results)
        entities = sum([result.entities for result in results])
        returned = sum([result.entities_returned for result in results])
        counts, series = self.counts, self.series
        counts.operations += number
        counts.attempts_ended += sum([len(result.attempts) for result in results])
        counts.entities += entities
        counts.entities_returned += returned
        counts.bytes_sent += sum([result.bytes_sent for result in results])
        counts.bytes_received += sum([result.bytes_received for result in results])
        if kind.kind is _TRANSACTION:
            counts.transactions += number
        kind.count += number
        kind.entities += entities
        kind.entities_returned += returned
        kind.seconds.add(second, entities)
        series["operations"].add(second, number)
        outcomes, unsuccessful = kind.outcomes, 0
        # Whole microseconds add up exactly, in any order.
        backing_off_us = queued_us = 0
        for result in results:
            if len(result.attempts) > 1:
                backing_off_us += int(result.backing_off_s * 1e6)
            if result.queued_s:
                queued_us += int(result.queued_s * 1e6)
            outcome = result.outcome
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if not outcome.succeeded:
                unsuccessful += 1
            if result.estimated:
                counts.entities_estimated += result.entities
                kind.entities_estimated += result.entities
                kind.uncertain += 1
        if unsuccessful:
            series["unsuccessful"].add(second, unsuccessful)
        if backing_off_us:
            series["backing_off_us"].add(second, backing_off_us)
        if queued_us:
            series["queued_us"].add(second, queued_us)
        if kind.kind is _QUERY:
            kind.add_missed(results)

    def add_sums(
        self,
        label: str,
        outcome: Outcome,
        estimated: bool,
        attempts: int,
        seconds: Sequence[int],
        *columns: Sequence[int],
    ) -> None:
        """Count results with the same `label_of` as `add` does, without what queries missed.

        Args:
            attempts: Attempts of each.
            seconds: The UTC seconds in which they were done.
            columns: Sums of each second: operations, entities, entities returned, bytes sent and
                bytes received.
        """
        kind, counts, series = self.kinds[label], self.counts, self.series
        number, entities, returned, bytes_sent, bytes_received = map(sum, columns)
        counts.operations += number
        counts.attempts_ended += number * attempts
        counts.entities += entities
        counts.entities_returned += returned
        counts.bytes_sent += bytes_sent
        counts.bytes_received += bytes_received
        if kind.kind is _TRANSACTION:
            counts.transactions += number
        kind.count += number
        kind.entities += entities
        kind.entities_returned += returned
        kind.seconds.add_all(seconds, columns[1])
        series["operations"].add_all(seconds, columns[0])
        add_counts(kind.outcomes, {outcome: number})
        if not outcome.succeeded:
            series["unsuccessful"].add_all(seconds, columns[0])
        if estimated:
            counts.entities_estimated += entities
            kind.entities_estimated += entities
            kind.uncertain += number

    def add_attempts(self, attempts: Mapping[int, int]) -> None:
        """Count attempts by the UTC second in which they ended."""
        for second, number in attempts.items():
            self.counts.attempts += number
            self.series["attempts"].add(second, number)

    def add_charges(self, label: str, second: int, charge: int) -> None:
        """Count request units, in hundredths, of attempts that ended in this UTC second."""
        self.kinds[label].charges.add(second, charge)
        self.series["charges"].add(second, charge)

    def merge(self, other: Tally) -> None:
        self.counts.merge(other.counts)
        for label, tally in other.kinds.items():
            place = self._place(label, tally.kind)
            self.kinds.setdefault(place, KindTally(tally.kind)).merge(tally)
        for name, seconds in other.series.items():
            self.series[name].merge(seconds)
        for status, seconds in other.throttled.items():
            self.throttled[status].merge(seconds)
        for name, counted in other.accounts.items():
            self.account(name).merge(counted)


def add_counts(into: dict[_K, int], more: Mapping[_K, int]) -> None:
    """Add each count of ``more`` to the one in ``into``."""
    for key, count in more.items():
        into[key] = into.get(key, 0) + count
