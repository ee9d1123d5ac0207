"""Scenarios: a whole application as one small class, its tables, its queries, its writes.

Subclass `Scenario`, say in ``actions`` what the application does and how often, and write a
method for each that returns its first operation. What depends on an answer goes into ``then``.
"""

from __future__ import annotations

import collections
import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import ClassVar, Generic, TypeVar

from harness.model.errors import SetupError
from harness.model.operation import Operation
from harness.model.outcome import Result
from harness.workload.entities import EntityFactory
from harness.workload.making import Making
from harness.workload.mix import Mix
from harness.workload.pickers import Picker

_NEW_SHARE = 0.2
"""Share of reads that go to what is new, where something is."""
_READ = 10
"""So many of the newest are read."""
_LEFT = 20
"""So many of the newest are not taken away."""

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a scenario is told by the profile.

    Attributes:
        partitions: ``keys.partitions``: how many events, tenants, devices, customers ...
        rows: ``keys.rows_per_partition``: how much of what belongs to one of them.
        picker: ``keys.distribution``: draws which of them is touched next, from 0.
        entities: Marks entities as the run's own, and fills them up to ``entity.size_bytes``.
        worker: Number of the worker, below 10,000: part of every new key, so that no two workers
            make the same one.
        actions: ``[actions]``: weights that the profile gives otherwise than the class.
    """

    partitions: int
    rows: int
    picker: Picker
    entities: EntityFactory
    worker: int = 0
    actions: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pointers:
    """Rows of one table that name rows of another in two properties; counted after the run.

    Attributes:
        table: Ending of the name of the table that points.
        to: Ending of the name of the table it points to.
        partition: Property that holds the other's PartitionKey.
        row: Property that holds the other's RowKey.
    """

    table: str
    to: str = ""
    partition: str = "TargetPartition"
    row: str = "TargetRow"


class Recent(Generic[_T]):
    """What a worker wrote lately, as far as the service acknowledged it.

    What is read is newer than what is taken away, so that nothing is read that somebody else of
    the same worker is just deleting.

    Args:
        most: So much is remembered; the oldest is forgotten beyond it.

    Attributes:
        written: How much was acknowledged and not taken away, forgotten or not.
    """

    __slots__ = ("_items", "written")

    def __init__(self, most: int = 1000) -> None:
        self._items: collections.deque[_T] = collections.deque(maxlen=most)
        self.written = 0

    def acknowledged(self, item: _T, result: Result) -> None:
        """Remember one more, if it was written."""
        if result.outcome.succeeded:
            self._items.append(item)
            self.written += 1

    def sometimes(self, rng: random.Random) -> _T | None:
        """One of the newest, in one case of five; else, and where there is none, None."""
        if not self._items or rng.random() >= _NEW_SHARE:
            return None
        return self._items[-1 - rng.randrange(min(_READ, len(self._items)))]

    def take(self) -> _T | None:
        """The oldest, which is forgotten by that; None where there are only new ones."""
        if len(self._items) <= _LEFT:
            return None
        self.written -= 1
        return self._items.popleft()


class Scenario(Making):
    """Base of all scenarios.

    Args:
        setting: What the profile says.

    Raises:
        SetupError: no action has a weight.
    """

    tables: ClassVar[tuple[str, ...]] = ("",)
    """Endings of the names of its tables: a capital letter, then letters and digits. A single
    table needs none."""
    actions: ClassVar[Mapping[str, float]] = {}
    """Weights by name of a method, which takes the random source and returns an operation."""
    pointers: ClassVar[tuple[Pointers, ...]] = ()
    """Index tables that are kept in step by the application, not by the service."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting.entities)
        self.setting = setting
        weights = {**self.actions, **setting.actions}
        if not any(weights.values()):
            raise SetupError("[actions]: every weight is 0; nothing would be sent")
        # Two underscores: a user's class may have attributes of its own by any name.
        self.__mix = Mix(weights)
        self.__made = 0

    @property
    def loaded_entities(self) -> int:
        """Entities that `loading` puts into all tables together."""
        return sum(operation.entities_asked for operation in self.loading())

    def loading(self) -> Iterator[Operation]:
        """The operations that fill the tables before the load, `batched` as a rule."""
        return iter(())

    def partitions(self) -> Iterator[str]:
        """Names of the partitions that are loaded."""
        return iter(dict.fromkeys(operation.partition for operation in self.loading()))

    def next(self, rng: random.Random) -> Operation:
        """The first operation of the next task."""
        operation: Operation = getattr(self, self.__mix.draw(rng))(rng)
        return operation

    def does(self, *actions: str) -> bool:
        """Whether any of these actions has a weight, so that what they write to is moving."""
        return not set(actions).isdisjoint(self.__mix.actions)

    def pick(self, rng: random.Random) -> int:
        """Number of the event, tenant, device ... that is touched next; the last is the newest."""
        drawn = self.setting.picker.draw(rng)
        return self.setting.partitions - 1 - drawn if self.setting.picker.newest_first else drawn

    def new_number(self) -> int:
        """1, 2, 3 ...: other workers make the same ones."""
        self.__made += 1
        return self.__made

    def new_id(self, after: int = 0) -> str:
        """An identifier that no other worker makes; later ones sort behind earlier ones.

        Args:
            after: It sorts behind numbers up to this one of eight digits, too.
        """
        return f"{after + self.new_number():08d}w{self.setting.worker:04d}"
