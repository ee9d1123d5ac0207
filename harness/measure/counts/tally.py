"""Sums that merge: the counts of one partition, of the operations of one name, of a whole run."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, PlainSerializer

from harness.measure.counts.heatmap import PartitionCells, count_operation
from harness.measure.counts.latency import Latencies
from harness.measure.counts.time_course import MostPerSecond, PerSecond, Slots
from harness.model.operation import FOLDED, Kind
from harness.model.outcome import THROTTLING_STATUSES, Attempt, AttemptKey, Outcome, Result

AMOUNTS = ("entities", "entities_returned", "bytes_sent", "bytes_received")
"""The numbers of a result that are added up: in each tally that has a field of the name."""
SUMMED = ("operations", *AMOUNTS)
_NO_ENTITIES = {name: 0 for name in AMOUNTS if name.startswith("entities")}
"""What is added to the sums of a run where no document names a target."""
_AMOUNTS_OF = {name: operator.attrgetter(name) for name in AMOUNTS}
MOST_LABELS = 60
"""Names of operations that are counted separately; a partition counts the others as `FOLDED`."""
KIND_DIGITS = 3
PARTITION_DIGITS = 2

_TRANSACTION = Kind.TRANSACTION
_QUERY = Kind.QUERY
_GET = Kind.GET_MESSAGES
_KEPT = {Kind.PUT_MESSAGE: 1, Kind.DELETE_MESSAGE: -1}
"""What a message adds to the backlog of its queue."""

_K = TypeVar("_K")
_V = TypeVar("_V")


def merge_fields(into: Any, more: Any, besides: Collection[str] = ()) -> None:
    """Add each field of ``more``: a number, counts by name, or what has a ``merge`` of its own.

    A field of ``more`` that is None adds nothing, nor does one whose name is in ``besides``.
    """
    for field in dataclasses.fields(into):
        name = field.name
        mine, other = getattr(into, name), getattr(more, name)
        if name in besides or other is None or isinstance(mine, str):
            continue
        if mine is None:
            setattr(into, name, mine := type(other)())
        if isinstance(mine, int):
            setattr(into, name, mine + other)
        elif isinstance(mine, dict):
            add_counts(mine, other)
        else:
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
    fields = ((field.name, getattr(tally, field.name)) for field in dataclasses.fields(tally))
    return {name: value for name, value in fields if isinstance(value, int)}


def add_sums(tally: Any, sums: Mapping[str, int]) -> None:
    """Add each of the sums for which a tally has a field that is a number."""
    for name, amount in sums.items():
        known = getattr(tally, name, None)
        if isinstance(known, int):
            setattr(tally, name, known + amount)


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
        merge_fields(self, other, besides=("oldest_ms",))
        self.oldest_ms = max(self.oldest_ms, other.oldest_ms)


@dataclasses.dataclass(slots=True, kw_only=True)
class AnswerTally:
    """What a partition and an account have in common: their answers, and entities by second.

    ``charges`` are request units, as in every tally: in hundredths, of all attempts, by the second
    in which each ended.
    """

    attempts: _Attempts = dataclasses.field(default_factory=dict)
    seconds: PerSecond = dataclasses.field(default_factory=PerSecond)
    charges: PerSecond = dataclasses.field(default_factory=PerSecond)

    def add_attempt(self, attempt: Attempt, second: int) -> None:
        """Count an attempt that ended in this UTC second."""
        seen = (attempt.status, attempt.error_code, attempt.scope)
        self.attempts[seen] = self.attempts.get(seen, 0) + 1
        if attempt.request_charge:
            self.charges.add(second, attempt.request_charge)


@dataclasses.dataclass(slots=True, kw_only=True)
class PartitionTally(AnswerTally):
    """The counts of one PartitionKey, or of all folded ones together.

    ``since_s`` is when the key was first counted separately; None is from the start. ``retrying``
    has the operations that were throttled and go on, as noted each second. ``messages`` is None for
    what is no queue. Numbers that have the name of a field of a `PartitionPart` are in snapshots
    and records.
    """

    since_s: float | None = None
    operations: int = 0
    entities: dict[str, int] = dataclasses.field(default_factory=dict)
    retrying: PerSecond = dataclasses.field(default_factory=PerSecond)
    latencies: Latencies = dataclasses.field(default_factory=lambda: Latencies(PARTITION_DIGITS))
    messages: MessageTally | None = None

    def add(self, label: str, second: int, group: ResultGroup, in_window: bool) -> None:
        """Count results that were done in this UTC second, without their attempts."""
        results, entities = group.results, group.entities
        self.operations += len(results)
        self.entities[label] = self.entities.get(label, 0) + entities
        self.seconds.add(second, entities)
        if results[0].operation.kind.on_messages:
            if self.messages is None:
                self.messages = MessageTally()
            for result in results:
                self.messages.add(result)
        if in_window:
            self.latencies.record(group.service_s, group.response_s)

    def add_sums(
        self, label: str, answers: Mapping[AttemptKey, int], sums: Mapping[str, int]
    ) -> None:
        """Count results with the same answers; ``sums`` has those of `SUMMED`."""
        add_sums(self, sums)
        add_counts(self.entities, {label: sums["entities"]})
        number = sums["operations"]
        add_counts(self.attempts, {seen: number * count for seen, count in answers.items()})

    def merge(self, other: PartitionTally) -> None:
        """Add all counts of ``other``; the later of the two starts is kept."""
        if other.since_s is not None and (self.since_s is None or other.since_s > self.since_s):
            self.since_s = other.since_s
        for label, count in other.entities.items():
            if label not in self.entities and len(self.entities) >= MOST_LABELS:
                label = FOLDED
            self.entities[label] = self.entities.get(label, 0) + count
        merge_fields(self, other, besides=("since_s", "entities"))


class ResultGroup:
    """Results of a row that differ in nothing but amounts, latencies and partitions.

    They are counted together: counting each by itself would take half as long again.

    Attributes:
        cells: For the heat map, those with entities.
    """

    entities = 0

    def __init__(self, row: PartitionTally) -> None:
        self.row = row
        self.cells: PartitionCells = {}
        self.results: list[Result] = []
        self.service_s: list[float] = []
        self.response_s: list[float] = []

    def add(self, key: str, result: Result) -> None:
        """Add a result of a partition that ``row`` counts."""
        entities, service_s = result.entities, result.service_s
        self.results.append(result)
        self.service_s.append(service_s)
        if result.due_s is not None:
            self.response_s.append(result.done_s - result.due_s)
        if entities:
            self.entities += entities
            written = 0 if result.operation.kind.reads else entities
            moved, took_us = result.bytes_sent + result.bytes_received, int(service_s * 1e6 + 0.5)
            count_operation(self.cells, key, entities, written, moved, took_us)

    def extend(self, other: ResultGroup) -> None:
        """Add the results and latencies of another row."""
        self.results += other.results
        self.service_s += other.service_s
        self.response_s += other.response_s


@dataclasses.dataclass(slots=True, kw_only=True)
class AccountTally(AnswerTally):
    """The counts of one of several accounts; ``requests`` are attempts by second."""

    entities: int = 0
    requests: PerSecond = dataclasses.field(default_factory=PerSecond)

    def add_attempt(self, attempt: Attempt, second: int) -> None:
        AnswerTally.add_attempt(self, attempt, second)
        self.requests.add(second, 1)

    def add(self, result: Result) -> None:
        """Count a result, and its attempts that `add_attempt` did not count."""
        self.entities += result.entities
        self.seconds.add(int(result.done_s), result.entities)
        for attempt in result.attempts[result.reported :]:
            self.add_attempt(attempt, int(attempt.ended_s))

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
    throttled: int = 0
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
    "unchanged",
    "attempts",
    "waiting",
    "dropped",
    "retrying",
    "charges",
    "backing_off_us",
    "queued_us",
    "kept",
)
"""The counts by second, besides the entities of each name and the throttled attempts."""
ANSWERED, WAITED = "answered", "waited"
"""The `Slots` in which an answer came, and those in which a request of `LONG_S` had none."""
LONG_S = 0.3
"""A request that is answered sooner does not wait out a stall."""


def _series() -> dict[str, PerSecond]:
    marks = {ANSWERED: Slots(), WAITED: Slots()}
    return {**_seconds_of(SERIES), "oldest_ms": MostPerSecond(), **marks}


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
    def has_messages(self) -> bool:
        return any(kind.kind.on_messages for kind in self.kinds.values())

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

    def add(
        self,
        label: str,
        second: int,
        outcome: Outcome,
        estimated: bool,
        results: Sequence[Result],
    ) -> None:
        """Count results with the same `label_of` and outcome, done in the same UTC second."""
        attempts = sum([len(result.attempts) for result in results])
        columns = {name: (sum(map(of, results)),) for name, of in _AMOUNTS_OF.items()}
        columns["operations"] = (len(results),)
        self.add_sums(label, outcome, estimated, attempts, (second,), columns)
        # Whole microseconds add up exactly, in any order.
        if attempts > len(results):
            backing_off_us = sum([int(result.backing_off_s * 1e6) for result in results])
            self.series["backing_off_us"].add(second, backing_off_us)
        if queued_us := sum([int(result.queued_s * 1e6) for result in results]):
            self.series["queued_us"].add(second, queued_us)
        kind = self.kinds[label]
        if kind.kind is _QUERY:
            kind.add_missed(results)
        elif kept := _KEPT.get(kind.kind):
            entities = sum(result.entities for result in results)
            self.series["kept"].add(second, kept * entities)
        elif kind.kind is _GET:
            oldest_ms = max(int(result.oldest_s * 1000) for result in results)
            self.series["oldest_ms"].add(second, oldest_ms)

    def add_sums(
        self,
        label: str,
        outcome: Outcome,
        estimated: bool,
        attempts: int,
        seconds: Sequence[int],
        columns: Mapping[str, Sequence[int]],
    ) -> None:
        """Count results as `add` does, without waits and without what queries missed.

        Args:
            attempts: Attempts of all of them.
            seconds: The UTC seconds in which they were done.
            columns: The sums of each second, by the names of `SUMMED`.
        """
        kind, counts, series = self.kinds[label], self.counts, self.series
        sums = {name: sum(column) for name, column in columns.items()}
        number, entities = sums["operations"], sums["entities"]
        add_sums(counts, {**sums, **_NO_ENTITIES} if kind.kind.untargeted else sums)
        add_sums(kind, sums)
        counts.attempts_ended += attempts
        kind.count += number
        if kind.kind is _TRANSACTION:
            counts.transactions += number
        kind.seconds.add_all(seconds, columns["entities"])
        series["operations"].add_all(seconds, columns["operations"])
        add_counts(kind.outcomes, {outcome: number})
        if not outcome.succeeded:
            series["unsuccessful"].add_all(seconds, columns["operations"])
        if outcome.regular and not kind.kind.reads:
            series["unchanged"].add_all(seconds, columns["operations"])
        if estimated:
            counts.entities_estimated += 0 if kind.kind.untargeted else entities
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
