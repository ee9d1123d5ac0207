"""Which rows each worker looks up after a run, and what it has to know of the others for that."""

from __future__ import annotations

import array
import collections
import dataclasses
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Self

from harness.measure.audit.audit import ANYBODY, Others
from harness.measure.audit.journal import PLACES, Written, places_in


@dataclasses.dataclass(frozen=True, kw_only=True)
class LookUp:
    """What one worker is to look up.

    Attributes:
        below: Rows with places below this one.
        rows: How many these are.
        wrote: Places of those that other workers wrote too, as unsigned 64-bit integers.
        deleted: Places of those that other workers deleted, or may have.
        strangers: Whether there was a worker of whose writes nothing is known.
    """

    below: int
    rows: int
    wrote: bytes
    deleted: bytes
    strangers: bool

    def others(self, place: int) -> Others:
        """What other workers may have done to the row with this place."""
        if self.strangers:
            return ANYBODY
        return Others(wrote=place in self._wrote, deleted=place in self._deleted)

    @cached_property
    def _wrote(self) -> frozenset[int]:
        return frozenset(places_in(self.wrote))

    @cached_property
    def _deleted(self) -> frozenset[int]:
        return frozenset(places_in(self.deleted))

    def to_message(self) -> dict[str, Any]:
        """What is to be looked up, in the types that Locust can send."""
        return {**dataclasses.asdict(self), "below": str(self.below)}

    @classmethod
    def from_message(cls, content: Mapping[str, Any]) -> Self:
        """What `to_message` gave."""
        return cls(**{**content, "below": int(content["below"])})


def look_ups(
    written: Mapping[str, Written], *, most_rows: int, strangers: bool
) -> dict[str, LookUp]:
    """What each worker is to look up.

    Args:
        written: What each of them wrote.
        most_rows: At most so many rows together. Of more it is those with the smallest places,
            all of which every worker has kept.
        strangers: Whether there was a worker of whose writes nothing is known.
    """
    below = min((part.below for part in written.values()), default=PLACES)
    places = {worker: set(places_in(part.places)) for worker, part in written.items()}
    everything = sorted(place for of in places.values() for place in of if place < below)
    if len(everything) > most_rows:
        below = everything[most_rows]
    deleted = {worker: set(places_in(part.deleted)) for worker, part in written.items()}
    writers = collections.Counter(place for of in places.values() for place in of)
    deleters = collections.Counter(place for of in deleted.values() for place in of)
    found = {}
    for worker, own in places.items():
        mine = [place for place in own if place < below]
        found[worker] = LookUp(
            below=below,
            rows=len(mine),
            wrote=_packed(place for place in mine if writers[place] > 1),
            deleted=_packed(
                place for place in mine if deleters[place] > (place in deleted[worker])
            ),
            strangers=strangers,
        )
    return found


def _packed(places: Iterable[int]) -> bytes:
    return array.array("Q", places).tobytes()
