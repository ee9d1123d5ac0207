"""What a key scheme loses: entities that share new keys, and recorded keys that a service refuses.

Azure Storage takes longer keys than Cosmos DB.
"""

from __future__ import annotations

import zlib

from harness.model.errors import echoed
from harness.model.operation import Kind
from harness.trace.operations import Batch, TracedParts
from harness.trace.whatif.units import ENTITIES, LoadUnit

_MOST_TRACKED = 50_000
_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION


class Collisions:
    """Entities that would share both keys with another one.

    Exact for up to 50,000 entities. Of more, a part chosen by hash is tracked, and its number is
    scaled up.

    Attributes:
        mask: Entities whose digest has one of these bits are not tracked.
    """

    def __init__(self) -> None:
        self._bits = 0
        self.mask = 0
        self._tracked: dict[tuple[str, str], set[tuple[str, str]]] = {}

    @property
    def estimated(self) -> bool:
        return self._bits > 0

    @property
    def count(self) -> int:
        found = sum(len(recorded) - 1 for recorded in self._tracked.values())
        return found << self._bits

    def add(self, digest: int, new: tuple[str, str], recorded: tuple[str, str]) -> None:
        """Note an entity; ``digest`` is that of its new keys."""
        if digest & self.mask:
            return
        self._tracked.setdefault(new, set()).add(recorded)
        while len(self._tracked) > _MOST_TRACKED:
            self._bits += 1
            self.mask = mask = (1 << self._bits) - 1
            self._tracked = {
                new: found
                for new, found in self._tracked.items()
                if not digest_of(new[1], digest_of(new[0])) & mask
            }


def digest_of(text: str, start: int = 0) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), start)


def refused_as_recorded(batch: Batch, unit: LoadUnit) -> list[str]:
    """Why the service refuses operations as they were recorded, for each that it refuses."""
    if unit is ENTITIES:
        # Recorded keys are those that Azure Storage takes.
        return []
    keys = batch.partition_keys, batch.row_keys
    longest = max(max(map(len, filter(None, one)), default=0) for one in keys)
    together = any(shape.kind is _TRANSACTION for shape in set(batch.shapes))
    if longest <= unit.sure_length and not together:
        return []
    found = []
    for shape, partition_key, row_key, detail in zip(
        batch.shapes, *keys, batch.details, strict=True
    ):
        if shape.kind is _QUERY:
            continue
        row_keys = detail.row_keys if isinstance(detail, TracedParts) else (row_key,)
        problems = [_problem(key, unit, row=True) for key in row_keys]
        problems.append(_problem(partition_key, unit, row=False))
        if any(problems):
            found.append(max(problems, key=bool))
    return found


def _problem(key: str | None, unit: LoadUnit, *, row: bool) -> str:
    if key is None or len(key) <= unit.sure_length:
        return ""
    problem = unit.key_problem(key, row=row)
    return f"{'RowKey' if row else 'PartitionKey'} {echoed(key)} {problem}" if problem else ""
