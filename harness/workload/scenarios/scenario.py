"""The base of scenarios: a whole application as one class, with its tables and operations.

Subclass `Scenario`, give each action and its weight in ``actions``, and write a method of that
name for each. A method returns one operation. A method that needs results is a generator instead:
``result = yield operation`` sends an operation and returns its `Result`.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
import itertools
import random
from collections.abc import Iterator, Mapping
from types import GeneratorType
from typing import ClassVar, Generic, TypeVar

from harness.model.errors import SetupError
from harness.model.operation import Operation
from harness.workload.entity_factory import EntityFactory
from harness.workload.keys.pickers import Picker
from harness.workload.mix import ActionMix
from harness.workload.operation_factory import OperationFactory
from harness.workload.operation_source import Task
from harness.workload.tasks import USUAL_MESSAGES, MessageShape

_REMEMBERED = 1000
"""The oldest item is forgotten first."""
_NEW_SHARE = 0.2
"""Share of reads that go to new items, if there are any."""
_READ = 10
"""Reads choose among this many of the newest items."""
_LEFT = 20
"""Deletes spare this many of the newest items."""

MOST_LOADED = 2_000_000
"""Entities that a scenario may load: they are counted by making each of them."""

_T = TypeVar("_T")


@dataclasses.dataclass(slots=True)
class _Loaded:
    """What a scenario loads; the partitions are in order."""

    entities: int = 0
    requests: int = 0
    partitions: dict[str, None] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the profile sets for a scenario.

    Attributes:
        partitions: ``values`` of the profile's field: number of events, tenants, customers ...
        rows: ``keys.rows_per_partition``: number of rows of each of them.
        picker: ``distribution`` of the field: draws the next of them, from 0.
        entities: Marks entities as the run's own, and fills them up to ``entity.size_bytes``.
        worker: Number of the worker, below 10,000; part of every new key, to make it unique.
        actions: ``[actions]``: weights that replace those of the class.
        messages: ``[messages]``: what a scenario on queues asks for.
    """

    partitions: int
    rows: int
    picker: Picker
    entities: EntityFactory
    worker: int = 0
    actions: Mapping[str, float] = dataclasses.field(default_factory=dict)
    messages: MessageShape = USUAL_MESSAGES


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pointers:
    """Rows of an index table that name rows of another table in two properties.

    Attributes:
        table: Ending of the name of the index table.
        to: Ending of the name of the other table.
        partition: Property with the PartitionKey of the other row.
        row: Property with the RowKey of the other row.
    """

    table: str
    to: str = ""
    partition: str = "TargetPartition"
    row: str = "TargetRow"


class Recent(Generic[_T]):
    """The latest items that a worker wrote and the service acknowledged.

    Reads use newer items than deletes, so that no user reads an item that another user of the
    same worker is deleting.

    Attributes:
        written: Number of items added and not taken, forgotten or not.
    """

    __slots__ = ("_items", "written")

    def __init__(self) -> None:
        self._items: collections.deque[_T] = collections.deque(maxlen=_REMEMBERED)
        self.written = 0

    def add(self, item: _T) -> None:
        """Remember an item, after its write succeeded."""
        self._items.append(item)
        self.written += 1

    def sometimes(self, rng: random.Random) -> _T | None:
        """One of the newest items in one case of five; otherwise, or if there is none, None."""
        if not self._items or rng.random() >= _NEW_SHARE:
            return None
        return self._items[-1 - rng.randrange(min(_READ, len(self._items)))]

    def take(self) -> _T | None:
        """Remove and return the oldest item; None if there are only the newest."""
        if len(self._items) <= _LEFT:
            return None
        self.written -= 1
        return self._items.popleft()


class Scenario(OperationFactory):
    """Base of all scenarios; a `SetupError` says that no action has a weight.

    Attributes:
        field: Name of the field of a profile that says how many there are; empty for any.
        loaded_rows: ``values`` of the field times ``keys.rows_per_partition``.
    """

    field: ClassVar[str] = ""
    tables: ClassVar[tuple[str, ...]] = ("",)
    """Endings of the names of its tables: a capital letter, then letters and digits. A single
    table needs none."""
    actions: ClassVar[Mapping[str, float]] = {}
    """Weights by the name of the method that takes the random source and makes a `Task`."""
    pointers: ClassVar[tuple[Pointers, ...]] = ()
    """Index tables that the application keeps consistent; checked after the run."""
    adds_rows = True
    setting: Setting
    loaded_rows: int

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting.entities)
        self.setting = setting
        self.loaded_rows = setting.partitions * setting.rows
        self.__width = len(str(setting.partitions - 1))
        weights = {**self.actions, **setting.actions}
        if not any(weights.values()):
            raise SetupError("[actions]: every weight is 0; nothing would be sent")
        # Two underscores: a user's class may have attributes of its own by any name.
        self.__mix = ActionMix(weights)
        self.__made = 0

    @property
    def loaded_entities(self) -> int:
        """Entities that `loading` puts into all tables together."""
        return self.__loaded.entities

    @property
    def loading_requests(self) -> int:
        return self.__loaded.requests

    def loading(self) -> Iterator[Operation]:
        """The operations that fill the tables before the load, `batched` as a rule."""
        return iter(())

    def partitions(self) -> Iterator[str]:
        return iter(self.__loaded.partitions)

    @functools.cached_property
    def __loaded(self) -> _Loaded:
        loaded = _Loaded()
        for operation in self.loading():
            loaded.requests += 1
            loaded.entities += operation.entities_asked
            loaded.partitions[operation.partition] = None
            if loaded.entities > MOST_LOADED:
                raise SetupError(
                    f"the scenario loads more than {MOST_LOADED:,} entities; lower "
                    "keys.rows_per_partition or the values of the field"
                )
        return loaded

    def next_task(self, rng: random.Random) -> Task:
        """One of the actions, drawn by weight; a `SetupError` names the line of a wrong result."""
        method = getattr(self, self.__mix.draw(rng))
        task: Task = method(rng)
        if not isinstance(task, Operation | GeneratorType):
            where = f"{inspect.getsourcefile(method)}:{inspect.getsourcelines(method)[1]}"
            raise SetupError(
                f"{where}: {method.__qualname__} returned {task!r}; an action returns one "
                "operation or yields several"
            )
        return task

    def does(self, *actions: str) -> bool:
        """Whether any of these actions has a weight above 0."""
        return not set(actions).isdisjoint(self.__mix.actions)

    def places(self) -> Iterator[tuple[int, int]]:
        """Numbers of the partition and of the row within it, for each loaded row."""
        return itertools.product(range(self.setting.partitions), range(self.setting.rows))

    def place(self, rng: random.Random) -> tuple[int, int]:
        """A partition, drawn with `pick`, and any of its loaded rows."""
        return self.pick(rng), rng.randrange(self.setting.rows)

    def named(self, thing: str, number: int) -> str:
        """Name such as ``device-007``, with as many digits as the number of partitions needs."""
        return f"{thing}-{number:0{self.__width}d}"

    def pick(self, rng: random.Random) -> int:
        """Number of the next event, tenant, device ...; the highest is the newest."""
        return self.setting.picker.draw(rng)

    def new_number(self) -> int:
        """1, 2, 3 ...; every worker makes the same numbers."""
        self.__made += 1
        return self.__made

    def new_id(self, after: int = 0) -> str:
        """An identifier that no other worker makes; later ones sort after earlier ones.

        It also sorts after all eight-digit numbers up to ``after``.
        """
        return f"{after + self.new_number():08d}w{self.setting.worker:04d}"
