"""What the operations of a trace ask of which partitions, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.gateway.demand import Place
from harness.model.operation import WHOLE_TABLE, over_partitions, table_and_key
from harness.trace.whatif.rows import Effects


class Walked(int):
    """The entities that an operation takes, although it asks for one: the gateway cannot know more.

    They are those that a query scans, and none if an operation found nothing to write.
    """

    __slots__ = ()


NOTHING = Walked(0)


class Places(dict[str, Place]):
    """Table and PartitionKey, by the names of partitions in counts. Forgotten names are parsed."""

    def __missing__(self, name: str) -> Place:
        over = over_partitions(name)
        table, key = table_and_key(name[:-1] if over else name)
        place = self[name] = table, None if over else key
        return place


def name_of(place: Place) -> str:
    """The name of a place in counts."""
    table, key = place
    key = WHOLE_TABLE if key is None else key
    return f"{table}/{key}" if table else key


class Loads(NamedTuple):
    """What the operations of a batch ask for, in columns of equal length.

    Attributes:
        instants: Milliseconds.
        names: Partitions as named in counts.
        amounts: In the unit of the limits.
        origins: Places of the operations in the batch; negative where the effect on rows is not
            known, as of a transaction that is split.
        effects: The effects of the operations on rows; None where they do not matter.
    """

    instants: Sequence[int]
    names: Sequence[str]
    amounts: Sequence[int]
    origins: Sequence[int]
    effects: Effects | None

    def between(self, start: int, end: int) -> Loads:
        """Those of some rows."""
        return Loads(
            self.instants[start:end],
            self.names[start:end],
            self.amounts[start:end],
            self.origins[start:end],
            self.effects,
        )
