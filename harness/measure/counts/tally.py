"""Sums that merge: the counts of one partition, of the operations of one name, of a whole run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from harness.measure.counts.latency import Latencies, Wire
from harness.measure.counts.per_second import PerSecond
from harness.model.operation import FOLDED, Kind, Operation
from harness.model.outcome import SUCCESS, THROTTLING_STATUSES, AttemptKey, Outcome, Result, Scope

MOST_LABELS = 60
"""Names of operations that are counted separately; a partition counts the others as `FOLDED`."""
KIND_DIGITS = 3
PARTITION_DIGITS = 2

_TRANSACTION = Kind.TRANSACTION

_K = TypeVar("_K")


@dataclasses.dataclass(slots=True)
class Counts:
    """Numbers of operations, by how far they came, and what they moved. Without loading.

    Attributes:
        attempts: Counted as soon as each was answered.
        attempts_ended: Attempts of the operations that have ended.
        waits_cut: How often the service asked for a longer wait than ``retry.maximum_s``.
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
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class PartitionTally:
    """The counts of one PartitionKey, or of all folded ones together.

    ``since_s`` is when the key was first counted separately; None is from the start.
    """

    __slots__ = ("attempts", "entities", "latencies", "seconds", "since_s")

    def __init__(self, since_s: float | None = None) -> None:
        self.since_s = since_s
        self.entities: dict[str, int] = {}
        self.attempts: dict[AttemptKey, int] = {}
        self.seconds = PerSecond()
        self.latencies = Latencies(PARTITION_DIGITS)

    def merge(self, other: PartitionTally) -> None:
        """Add all counts of ``other``; the later of the two starts is kept."""
        if other.since_s is not None and (self.since_s is None or other.since_s > self.since_s):
            self.since_s = other.since_s
        for label, count in other.entities.items():
            if label not in self.entities and len(self.entities) >= MOST_LABELS:
                label = FOLDED
            self.entities[label] = self.entities.get(label, 0) + count
        add_counts(self.attempts, other.attempts)
        self.seconds.merge(other.seconds)
        self.latencies.merge(other.latencies)

    def encode(self) -> Wire:
        """For the wire."""
        return {
            "since_s": self.since_s,
            "entities": self.entities,
            "attempts": [[*seen, count] for seen, count in self.attempts.items()],
            "seconds": self.seconds.encode(),
            "latencies": self.latencies.encode(),
        }

    @classmethod
    def decode(cls, content: Wire) -> PartitionTally:
        made = cls(content["since_s"])
        made.entities = dict(content["entities"])
        made.attempts = {
            (status, code, Scope(scope)): n for status, code, scope, n in content["attempts"]
        }
        made.seconds = PerSecond.decode(content["seconds"])
        made.latencies = Latencies.decode(PARTITION_DIGITS, content["latencies"])
        return made


class KindTally:
    """The counts of the operations of one name, all of one kind, named as in an `OperationPart`."""

    _SUMS = ("count", "entities", "entities_returned", "entities_estimated", "uncertain")
    __slots__ = (*_SUMS, "kind", "latencies", "outcomes", "seconds")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.count = 0
        self.entities = 0
        self.entities_returned = 0
        self.entities_estimated = 0
        self.uncertain = 0
        self.outcomes: dict[Outcome, int] = {}
        self.seconds = PerSecond()
        self.latencies = Latencies(KIND_DIGITS)

    def sums(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._SUMS}

    def merge(self, other: KindTally) -> None:
        for name, count in other.sums().items():
            setattr(self, name, getattr(self, name) + count)
        add_counts(self.outcomes, other.outcomes)
        self.seconds.merge(other.seconds)
        self.latencies.merge(other.latencies)

    def encode(self) -> Wire:
        """For the wire."""
        return {
            "kind": str(self.kind),
            "sums": self.sums(),
            "outcomes": {str(outcome): count for outcome, count in self.outcomes.items()},
            "seconds": self.seconds.encode(),
            "latencies": self.latencies.encode(),
        }

    @classmethod
    def decode(cls, content: Wire) -> KindTally:
        made = cls(Kind(content["kind"]))
        for name, count in content["sums"].items():
            setattr(made, name, count)
        made.outcomes = {Outcome(name): count for name, count in content["outcomes"].items()}
        made.seconds = PerSecond.decode(content["seconds"])
        made.latencies = Latencies.decode(KIND_DIGITS, content["latencies"])
        return made


SERIES = ("operations", "unsuccessful", "attempts", "waiting", "dropped")
"""The counts by second, besides the entities of each name and the throttled attempts."""


class Tally:
    """All counts of a run except those by partition.

    Operations are counted by label. An application chooses its names: beyond `MOST_LABELS` names,
    operations are counted under their kind. If two kinds share a name, the kind is appended to the
    second, so that reads and writes stay separate.
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
        """The label under which ``operation`` is counted from now on."""
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
        for result in results:
            outcome = result.outcome
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if outcome is not SUCCESS and not outcome.succeeded:
                unsuccessful += 1
            if result.estimated:
                counts.entities_estimated += result.entities
                kind.entities_estimated += result.entities
                kind.uncertain += 1
        if unsuccessful:
            series["unsuccessful"].add(second, unsuccessful)

    def add_attempts(self, attempts: Mapping[int, int]) -> None:
        """Count attempts by the UTC second in which they ended."""
        for second, number in attempts.items():
            self.counts.attempts += number
            self.series["attempts"].add(second, number)

    def merge(self, other: Tally) -> None:
        self.counts.merge(other.counts)
        for label, tally in other.kinds.items():
            place = self._place(label, tally.kind)
            self.kinds.setdefault(place, KindTally(tally.kind)).merge(tally)
        for name, seconds in other.series.items():
            self.series[name].merge(seconds)
        for status, seconds in other.throttled.items():
            self.throttled[status].merge(seconds)

    def encode(self) -> Wire:
        """For the wire."""
        return {
            "counts": dataclasses.asdict(self.counts),
            "kinds": {label: tally.encode() for label, tally in self.kinds.items()},
            "series": {name: seconds.encode() for name, seconds in self.series.items()},
            "throttled": [seconds.encode() for seconds in self.throttled.values()],
        }

    @classmethod
    def decode(cls, content: Wire) -> Tally:
        made = cls()
        made.counts = Counts(**content["counts"])
        made.kinds = {name: KindTally.decode(kind) for name, kind in content["kinds"].items()}
        for name, seconds in content["series"].items():
            made.series[name] = PerSecond.decode(seconds)
        for status, seconds in zip(THROTTLING_STATUSES, content["throttled"], strict=True):
            made.throttled[status] = PerSecond.decode(seconds)
        return made


def add_counts(into: dict[_K, int], more: Mapping[_K, int]) -> None:
    """Add each count of ``more`` to the one in ``into``."""
    for key, count in more.items():
        into[key] = into.get(key, 0) + count
