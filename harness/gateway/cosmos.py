"""The limits of Azure Cosmos DB: request units a second of each physical partition.

The part of the model that the limits of Storage have no place for. A request passes if every
physical partition that it asks has something left of its share. It takes the least that it can cost
when it arrives, and the rest of its charge when it is answered.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from harness.gateway.contents import Contents
from harness.gateway.demand import Place
from harness.gateway.limits import RequestUnitLimits
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked
from harness.gateway.rules.charging import asked_of, charged_for
from harness.gateway.rules.sizes import Growth, VolumeRule, keys_too_long, too_large
from harness.gateway.rules.splitting import Split, SplittingRule
from harness.gateway.rules.throughput import ThroughputRule, scaled_to_ru_per_s
from harness.model.outcome import PARTITION_FULL_SUBSTATUS
from harness.model.request_units import HUNDREDTHS

_THROUGHPUT = "throughput"
_VOLUME = "volume"
_KEPT = 50_000
"""PartitionKeys whose physical partition is remembered."""


class CosmosRule(NamedTuple):
    """How a rule refuses requests; see `harness.gateway.dialect`.

    Attributes:
        of_part: Whether the refusal of a transaction is that of a part of it.
        substatus: The number that tells it from other refusals with the status; 0 for none.
    """

    status: int
    error_code: str
    message: str
    of_part: bool = False
    substatus: int = 0


RULES = {
    _THROUGHPUT: CosmosRule(
        429,
        "TooManyRequests",
        "Request rate is large. More Request Units may be needed, so no changes were made. Please "
        "retry this request later.",
        of_part=True,
    ),
    _VOLUME: CosmosRule(
        403,
        "Forbidden",
        "Partition key reached maximum size of {size} GB",
        of_part=True,
        substatus=PARTITION_FULL_SUBSTATUS,
    ),
    "key_length": CosmosRule(
        400, "KeyValueTooLarge", "A key of the entity is longer than is allowed.", of_part=True
    ),
    "request_size": CosmosRule(413, "RequestEntityTooLarge", "Request size is too large."),
    "verb": CosmosRule(
        405,
        "MethodNotAllowed",
        "PATCH is not supported: send POST with X-HTTP-Method: MERGE.",
    ),
}


class CosmosRefusal(NamedTuple):
    """Why a request is refused: one of `RULES`, and the wait before a retry, 0 if none helps."""

    rule: str
    wait_ms: int = 0


class CosmosLimits:
    """The limits of one stand-in."""

    def __init__(self, limits: RequestUnitLimits, contents: Contents) -> None:
        self._limits = limits
        self._contents = contents
        self._splitting = SplittingRule(limits)
        self._throughput = ThroughputRule(limits)
        self._volume = VolumeRule(limits)
        self._charged: Counter[int] = Counter()
        self._refused: Counter[int] = Counter()
        self._numbers: dict[str, int] = {}

    def loads(self, charges: Mapping[Place, int]) -> Counter[int]:
        """The charges of each physical partition; those of several keys are divided evenly."""
        found: Counter[int] = Counter()
        for (_, key), charged in charges.items():
            for number, part in self._divided(key, charged):
                found[number] += part
        return found

    def serve(
        self, charges: Mapping[Place, int], more: Mapping[Place, int], since_s: float
    ) -> Set[Place]:
        """Pass all requests of a second, unless one could be refused; see `Model.serve`."""
        holds, loads = self._throughput.holds, self.loads(charges)
        # A sum of counters would leave out physical partitions that are charged nothing.
        loads.update(self.loads(more))
        doubtful = {at for at, charged in loads.items() if not holds(at, charged, since_s)}
        refused = set(more)
        for place, charged in charges.items():
            _, key = place
            if place in more or (doubtful and (key is None or self._number(key) in doubtful)):
                refused.add(place)
            else:
                for number, part in self._divided(key, charged):
                    self._throughput.take(number, part, since_s)
        return refused

    def admit(self, key: str | None, charged: int, now_s: float) -> str:
        """The rule that refuses a request with this charge, which is taken if it passes."""
        parts = self._divided(key, charged)
        for number, _ in parts:
            if not self._throughput.allows(number, now_s):
                return _THROUGHPUT
        for number, part in parts:
            self._throughput.take(number, part, now_s)
        return ""

    def retry_after_s(self, key: str | None, now_s: float) -> float:
        """How long a request that was refused now is told to wait."""
        parts = self._divided(key, 0)
        return max(self._throughput.wait_ms(number, now_s) for number, _ in parts) / 1000

    def _divided(self, key: str | None, charged: int) -> Sequence[tuple[int, int]]:
        if key is not None:
            return ((self._number(key), charged),)
        numbers = self._splitting.partitions.numbers
        each, rest = divmod(charged, len(numbers))
        return [(number, each + (place < rest)) for place, number in enumerate(numbers)]

    def _number(self, key: str) -> int:
        """The physical partition of a key, where none is split in the meantime."""
        number = self._numbers.get(key)
        if number is None:
            if len(self._numbers) >= _KEPT:
                self._numbers.clear()
            number = self._numbers[key] = self._splitting.partitions.of(key)
        return number

    def refusal(self, asked: Asked, now_s: float) -> CosmosRefusal | None:
        """Return why a request is refused; if it is not, it takes the least that it can cost."""
        if asked.patches:
            # The SDKs send POST with X-HTTP-Method: MERGE to Cosmos DB.
            return CosmosRefusal("verb")
        if keys_too_long(asked, self._limits):
            return CosmosRefusal("key_length")
        if too_large(asked, self._limits):
            return CosmosRefusal("request_size")
        least = asked_of(asked, self._splitting.partitions)
        for number in least:
            if not self._throughput.allows(number, now_s):
                self._refused[number] += 1
                return CosmosRefusal(_THROUGHPUT, self._throughput.wait_ms(number, now_s))
        if asked.rows and self._volume.exceeds(asked):
            return CosmosRefusal(_VOLUME)
        for number, charged in least.items():
            self._throughput.take(number, charged, now_s)
        return None

    def answered(
        self, asked: Asked, answered: Answered, scanned: Mapping[str | None, int], now_s: float
    ) -> int:
        """End a request that was answered, before its rows are known; returns its charge."""
        partitions = self._splitting.partitions
        charges = charged_for(asked, answered, scanned, self._contents, partitions)
        self.not_done(asked, now_s)
        for number, charged in charges.items():
            self._throughput.take(number, charged, now_s)
            self._charged[number] += charged
        if answered.succeeded and asked.writes:
            self._stored(self._volume.wrote(asked), now_s)
        return sum(charges.values())

    def drop_table(self, table: str) -> None:
        """Free what a deleted table stored."""
        # Nothing grows, so nothing is split.
        self._stored(self._volume.dropped(table), 0.0)

    def not_done(self, asked: Asked, now_s: float) -> None:
        """Give back what a request took when it arrived."""
        # A split in the meantime moves the difference to another physical partition.
        for number, charged in asked_of(asked, self._splitting.partitions).items():
            self._throughput.take(number, -charged, now_s)

    def page(self) -> dict[str, Any]:
        """What the statistics say: charges are in hundredths of an RU, and add up to the total."""
        partitions, limits = self._splitting.partitions, self._limits
        scaled_to = scaled_to_ru_per_s(limits, self._throughput.busiest)
        table, key, stored = self._volume.largest
        return {
            HUNDREDTHS: sum(self._charged.values()),
            "provisioned_ru_per_s": limits.provisioned_ru_per_s,
            "share_ru_per_s": self._throughput.share_ru_per_s,
            **({} if scaled_to is None else {"autoscaled_to_ru_per_s": scaled_to}),
            "physical_partitions": [
                {
                    "number": number,
                    "first_hash": first,
                    HUNDREDTHS: self._charged[number],
                    "refused": self._refused[number],
                    "stored_bytes": self._splitting.stored_bytes(number),
                }
                for first, number in zip(partitions.first, partitions.numbers, strict=True)
            ],
            "largest_logical_partition": {
                "table": table,
                "partition": key,
                "stored_bytes": stored,
                "most_bytes": limits.logical_partition_bytes,
            },
            "splits": [dataclasses.asdict(split) for split in self.splits],
        }

    @property
    def splits(self) -> Sequence[Split]:
        """The latest splits, oldest first."""
        return tuple(self._splitting.splits)

    def message(self, rule: str) -> str:
        """The message of a refusal."""
        size = f"{self._limits.logical_partition_bytes / 1e9:.9f}".rstrip("0").rstrip(".")
        return RULES[rule].message.format(size=size)

    def _stored(self, growth: Growth, now_s: float) -> None:
        for key, by in growth.items():
            if self._splitting.grew(key, by, now_s):
                self._throughput.divide(len(self._splitting.partitions))
