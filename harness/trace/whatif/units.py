"""What the operations of a trace ask of the limits: entities, or request units of Cosmos DB.

Limits in entities take the recorded entity counts. Request units are estimated: a trace holds no
charges, because it may be that of another service. The sizes of entities follow from the recorded
bytes; how many properties an entity has is not recorded.
"""

from __future__ import annotations

import re
import zlib
from typing import Protocol

from harness.gateway.limits import Cosmos, GatewayLimits
from harness.model.entity import key_problem
from harness.model.operation import Kind
from harness.model.outcome import FAILURES, Outcome
from harness.model.request_units import MISSING, QUERY_PAGE, RU, UNKNOWN_BYTES, charge
from harness.trace.members import TraceHead
from harness.trace.operations import Batch, Detail, TracedParts, TracedShape
from harness.trace.sizes import ASSUMED_PROPERTIES, part_bytes, read_bytes, sent_bytes

_ROWS = 1 << 24
"""Written rows are remembered by so many digests: 2 MB, whatever the length of the trace is."""
_KEPT = 50_000
"""Charges that are remembered."""
_MISSED = frozenset({Outcome.NOT_FOUND, Outcome.CONFLICT, Outcome.PRECONDITION})
_FREE = FAILURES - {
    Outcome.THROTTLED,
    Outcome.TIMEOUT,
    Outcome.CONNECTION,
    Outcome.SERVER_ERROR,
    Outcome.AMBIGUOUS,
}
"""Outcomes of operations that the service would refuse again, without a charge."""
_QUERY, _POINT_QUERY, _TRANSACTION = Kind.QUERY, Kind.POINT_QUERY, Kind.TRANSACTION
_INSERT, _DELETE = Kind.INSERT, Kind.DELETE


def _up_to(characters: int) -> re.Pattern[str]:
    """Matches keys of so many characters without one that the service refuses."""
    return re.compile(rf"[^/\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]{{0,{characters}}}")


class LoadUnit(Protocol):
    """What is counted of the operations of one trace, under one key scheme.

    Attributes:
        scale: So many of what is counted are one of what outputs show.
        valid_key: A key that matches is valid. Of another one, `key_problem` says whether it is.
    """

    scale: int
    valid_key: re.Pattern[str]

    def amounts(self, batch: Batch) -> list[int]:
        """What each operation asks for, but for `each_asked`."""

    def each_asked(self, shape: TracedShape, *, all_partitions: bool) -> int:
        """What a query asks of every partition in addition, or of all partitions together."""

    def key_problem(self, key: str, *, row: bool) -> str | None:
        """Why the service refuses a PartitionKey, or a RowKey; None where it is valid."""


class Entities:
    """Entity counts, as Azure Storage has them."""

    scale = 1
    valid_key = _up_to(512)

    def amounts(self, batch: Batch) -> list[int]:
        return batch.entities

    def each_asked(self, shape: TracedShape, *, all_partitions: bool) -> int:
        return 0

    def key_problem(self, key: str, *, row: bool) -> str | None:
        return key_problem(key)


class RequestUnits:
    """Charges in hundredths of a request unit; see `harness.model.request_units`.

    Assumed: an upsert replaces an entity that the trace read or wrote before, every page of a query
    asks each of its partitions, and a refused write costs as much as a look at the entity.

    Args:
        cosmos: The limits.
        head: That of the trace.
    """

    scale = RU

    def __init__(self, cosmos: Cosmos, head: TraceHead) -> None:
        # No character takes more than four bytes.
        self.valid_key = _up_to(min(cosmos.partition_key_bytes, cosmos.row_key_bytes) // 4)
        self._cosmos = cosmos
        self._physical = cosmos.physical_partitions
        self._head = head
        self._rows = bytearray(_ROWS // 8)
        self._charges: dict[tuple[Kind, int, bool], int] = {}

    def amounts(self, batch: Batch) -> list[int]:
        return [
            self._charged(*row)
            for row in zip(
                batch.shapes,
                batch.partition_keys,
                batch.row_keys,
                batch.entities,
                batch.returned,
                batch.bytes_sent,
                batch.bytes_received,
                batch.details,
                strict=True,
            )
        ]

    def each_asked(self, shape: TracedShape, *, all_partitions: bool) -> int:
        if shape.outcome in _FREE:
            return 0
        answered = sum(200 <= answer.status < 300 for answer in shape.attempts)
        return max(1, answered) * QUERY_PAGE * (self._physical if all_partitions else 1)

    def key_problem(self, key: str, *, row: bool) -> str | None:
        most = self._cosmos.row_key_bytes if row else self._cosmos.partition_key_bytes
        length = len(key.encode("utf-8", "surrogatepass"))
        if length > most:
            return f"has {length:,} bytes; Cosmos DB allows {most:,}"
        return key_problem(key)

    def _charged(
        self,
        shape: TracedShape,
        partition_key: str | None,
        row_key: str | None,
        entities: int,
        returned: int,
        sent: int,
        received: int,
        detail: Detail,
    ) -> int:
        kind, outcome = shape.kind, shape.outcome
        if outcome in _FREE:
            return 0
        if outcome in _MISSED:
            return MISSING
        attempts = len(shape.attempts)
        if kind is _QUERY:
            read = read_bytes(received, attempts, self._head)
            # A log does not say how many entities a query returned.
            returned = returned or read // UNKNOWN_BYTES
            found = returned and returned * self._of(_POINT_QUERY, read // returned)
            return found + charge(_QUERY, 0, walked=max(0, entities - returned), physical=0)
        place = f"{shape.table}/{partition_key}/"
        if kind is _TRANSACTION:
            if not isinstance(detail, TracedParts):
                size = sent_bytes(sent, attempts, self._head) // max(1, entities)
                return max(1, entities) * self._of(_INSERT, size)
            parts = len(detail.kinds)
            return sum(
                self._written(part, place, row, part_bytes(whole, parts, attempts, self._head))
                for part, row, whole in zip(*detail, strict=True)
            )
        if kind is _POINT_QUERY:
            if row_key is not None:
                self._there(place, row_key)
            return self._of(kind, read_bytes(received, attempts, self._head))
        return self._written(kind, place, row_key, sent_bytes(sent, attempts, self._head))

    def _written(self, kind: Kind, place: str, row_key: str | None, size: int) -> int:
        if kind is _DELETE:
            return self._of(kind, UNKNOWN_BYTES)
        return self._of(kind, size, row_key is not None and self._there(place, row_key))

    def _of(self, kind: Kind, size: int, replaces: bool = False) -> int:
        """The charge for one entity."""
        key = kind, size, replaces
        known = self._charges.get(key)
        if known is None:
            if len(self._charges) >= _KEPT:
                self._charges.clear()
            properties = 0 if kind in (_POINT_QUERY, _DELETE) else ASSUMED_PROPERTIES
            known = charge(kind, size, properties=properties, replaces=replaces)
            self._charges[key] = known
        return known

    def _there(self, place: str, row_key: str) -> bool:
        """Whether a row was noted before, but for about one in a hundred others; note it."""
        digest = zlib.crc32((place + row_key).encode("utf-8", "surrogatepass")) % _ROWS
        at, bit = digest >> 3, 1 << (digest & 7)
        if self._rows[at] & bit:
            return True
        self._rows[at] |= bit
        return False


ENTITIES = Entities()


def unit_of(limits: GatewayLimits, head: TraceHead) -> LoadUnit:
    """The unit of the limits, for one reading of a trace."""
    return ENTITIES if limits.cosmos is None else RequestUnits(limits.cosmos, head)
