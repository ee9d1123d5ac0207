"""Sums that merge: what was counted for one partition, one kind of operation, or a whole run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from harness.measure.counts.latency import Latencies, Wire
from harness.measure.counts.per_second import PerSecond
from harness.model.operation import FOLDED, Kind, Operation
from harness.model.outcome import SUCCESS, THROTTLING_STATUSES, AttemptKey, Outcome, Result, Scope

MOST_LABELS = 60
"""Names of operations that are counted apart; a partition counts the others as `FOLDED`."""
KIND_DIGITS = 3
PARTITION_DIGITS = 2

_TRANSACTION = Kind.TRANSACTION

_K = TypeVar("_K")


@dataclasses.dataclass(slots=True)
class Counts:
    """Operations by where they are, and what they moved. Whole run, loading not included.

    Attributes:
        attempts: Counted one by one, as soon as their answers were there.
        attempts_ended: Attempts of the operations that have ended.
        waits_cut: How often the service asked for a longer wait than is honoured.
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

    def merge(self, other: Counts) -> None:
        """Add every count of ``other``."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class PartitionTally:
    """What was counted for one PartitionKey, or for all the folded ones together."""

    __slots__ = ("attempts", "entities", "latencies", "seconds", "since_s")

    def __init__(self, since_s: float | None = None) -> None:
        self.since_s = since_s
        self.entities: dict[str, int] = {}
        self.attempts: dict[AttemptKey, int] = {}
        self.seconds = PerSecond()
        self.latencies = Latencies(PARTITION_DIGITS)

    def merge(self, other: PartitionTally) -> None:
        """Add every count of ``other``; of two starts the later one holds."""
        if other.since_s is not None and (self.since_s is None or other.since_s > self.since_s):
            self.since_s = other.since_s
        for label, count in other.entities.items():
            if label not in self.entities and len(self.entities) >= MOST_LABELS:
                label = FOLDED
            self.entities[label] = self.entities.get(label, 0) + count
        _merge_sums(self.attempts, other.attempts)
        self.seconds.merge(other.seconds)
        self.latencies.merge(other.latencies)

    def encode(self) -> Wire:
        """Its content for the wire."""
        return {
            "since_s": self.since_s,
            "entities": self.entities,
            "attempts": encode_attempts(self.attempts),
            "seconds": self.seconds.encode(),
            "latencies": self.latencies.encode(),
        }

    @classmethod
    def decode(cls, content: Wire) -> PartitionTally:
        """What `encode` gave."""
        made = cls(content["since_s"])
        made.entities = dict(content["entities"])
        made.attempts = decode_attempts(content["attempts"])
        made.seconds = PerSecond.decode(content["seconds"])
        made.latencies = Latencies.decode(PARTITION_DIGITS, content["latencies"])
        return made


class KindTally:
    """What was counted for the operations of one name; all of them are of one kind."""

    __slots__ = (
        "entities",
        "estimated",
        "kind",
        "latencies",
        "operations",
        "outcomes",
        "returned",
        "seconds",
        "uncertain",
    )

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.operations = 0
        self.entities = 0
        self.returned = 0
        self.estimated = 0
        self.uncertain = 0
        self.outcomes: dict[Outcome, int] = {}
        self.seconds = PerSecond()
        self.latencies = Latencies(KIND_DIGITS)

    def merge(self, other: KindTally) -> None:
        """Add every count of ``other``."""
        self.operations += other.operations
        self.entities += other.entities
        self.returned += other.returned
        self.estimated += other.estimated
        self.uncertain += other.uncertain
        _merge_sums(self.outcomes, other.outcomes)
        self.seconds.merge(other.seconds)
        self.latencies.merge(other.latencies)

    def encode(self) -> Wire:
        """Its content for the wire."""
        return {
            "kind": str(self.kind),
            "operations": self.operations,
            "entities": self.entities,
            "returned": self.returned,
            "estimated": self.estimated,
            "uncertain": self.uncertain,
            "outcomes": {str(outcome): count for outcome, count in self.outcomes.items()},
            "seconds": self.seconds.encode(),
            "latencies": self.latencies.encode(),
        }

    @classmethod
    def decode(cls, content: Wire) -> KindTally:
        """What `encode` gave."""
        made = cls(Kind(content["kind"]))
        made.operations = content["operations"]
        made.entities = content["entities"]
        made.returned = content["returned"]
        made.estimated = content["estimated"]
        made.uncertain = content["uncertain"]
        made.outcomes = {Outcome(name): count for name, count in content["outcomes"].items()}
        made.seconds = PerSecond.decode(content["seconds"])
        made.latencies = Latencies.decode(KIND_DIGITS, content["latencies"])
        return made


SERIES = ("operations", "unsuccessful", "attempts", "waiting", "dropped")
"""What is counted for every second, beside the entities of each kind and the throttled attempts."""


class Alike:
    """Results that are counted under the same label and second.

    Attributes:
        results: They.
        service_s: Their service latencies.
        response_s: Their response latencies, of those that have one.
    """

    __slots__ = ("response_s", "results", "service_s")

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.service_s: list[float] = []
        self.response_s: list[float] = []


class Tally:
    """Everything that was counted, but for which partitions are told apart.

    Operations are told apart by their label. Names of an application may hold anything: beyond
    `MOST_LABELS` of them operations are counted under their kind, and of two kinds that share a
    name the second one has its kind behind it, so that reads and writes stay apart.
    """

    __slots__ = ("counts", "kinds", "series", "throttled")

    def __init__(self) -> None:
        self.counts = Counts()
        self.kinds: dict[str, KindTally] = {}
        self.series: dict[str, PerSecond] = {name: PerSecond() for name in SERIES}
        self.throttled: dict[int, PerSecond] = {
            status: PerSecond() for status in THROTTLING_STATUSES
        }

    def label_of(self, operation: Operation) -> str:
        """What ``operation`` is counted under, from now on."""
        label, kind = operation.label, operation.kind
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

    def add(self, label: str, second: int, alike: Alike, *, in_window: bool) -> None:
        """Count results of operations that are counted under the same label.

        Args:
            label: What `label_of` says.
            second: UTC second in which they were done.
            alike: The results.
            in_window: Whether their latencies are measured.
        """
        results = alike.results
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
        kind.operations += number
        kind.entities += entities
        kind.returned += returned
        kind.seconds.add(second, entities)
        if in_window:
            kind.latencies.record(alike.service_s, alike.response_s)
        series["operations"].add(second, number)
        outcomes, unsuccessful = kind.outcomes, 0
        for result in results:
            outcome = result.outcome
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if outcome is not SUCCESS and not outcome.succeeded:
                unsuccessful += 1
            if result.estimated:
                counts.entities_estimated += result.entities
                kind.estimated += result.entities
                kind.uncertain += 1
        if unsuccessful:
            series["unsuccessful"].add(second, unsuccessful)

    def add_attempts(self, attempts: Mapping[int, int]) -> None:
        """Count so many attempts by the UTC second in which they ended."""
        for second, number in attempts.items():
            self.counts.attempts += number
            self.series["attempts"].add(second, number)

    def add_throttled(self, status: int, second: int) -> None:
        """Count one throttled attempt, which `add_attempts` counts too."""
        self.throttled[status].add(second, 1)

    def merge(self, other: Tally) -> None:
        """Add every count of ``other``."""
        self.counts.merge(other.counts)
        for label, tally in other.kinds.items():
            place = self._place(label, tally.kind)
            self.kinds.setdefault(place, KindTally(tally.kind)).merge(tally)
        for name, seconds in other.series.items():
            self.series[name].merge(seconds)
        for status, seconds in other.throttled.items():
            self.throttled[status].merge(seconds)

    def encode(self) -> Wire:
        """Its content for the wire."""
        return {
            "counts": dataclasses.asdict(self.counts),
            "kinds": {label: tally.encode() for label, tally in self.kinds.items()},
            "series": {name: seconds.encode() for name, seconds in self.series.items()},
            "throttled": [seconds.encode() for seconds in self.throttled.values()],
        }

    @classmethod
    def decode(cls, content: Wire) -> Tally:
        """What `encode` gave."""
        made = cls()
        made.counts = Counts(**content["counts"])
        made.kinds = {name: KindTally.decode(kind) for name, kind in content["kinds"].items()}
        for name, seconds in content["series"].items():
            made.series[name] = PerSecond.decode(seconds)
        for status, seconds in zip(THROTTLING_STATUSES, content["throttled"], strict=True):
            made.throttled[status] = PerSecond.decode(seconds)
        return made


def encode_attempts(attempts: Mapping[AttemptKey, int]) -> list[list[Any]]:
    """Attempts by status, code and scope as rows for the wire."""
    return [[status, code, str(scope), n] for (status, code, scope), n in attempts.items()]


def decode_attempts(rows: list[list[Any]]) -> dict[AttemptKey, int]:
    """What `encode_attempts` gave."""
    return {(status, code, Scope(scope)): n for status, code, scope, n in rows}


def _merge_sums(into: dict[_K, int], other: Mapping[_K, int]) -> None:
    for key, count in other.items():
        into[key] = into.get(key, 0) + count
