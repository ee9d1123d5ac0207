"""The actions of a mix and their weights."""

from __future__ import annotations

import enum
import random
from collections.abc import Mapping
from typing import Generic, Self, TypeVar

from harness.model.operation import BESIDE_ROWS
from harness.workload.keys.pickers import Weighted


class Action(enum.StrEnum):
    """What a task does. Most actions are one operation; the three before those of messages are
    several.

    The query types are those of the partitioning strategy, "Determine queries".

    Attributes:
        existing: Entities that it reads or writes of loaded rows; those of a query type are in
            `harness.workload.queries`, those of a transaction in its settings.
        new: Entities that it inserts or deletes: rows that were not loaded.
    """

    existing: float
    new: float

    POINT_QUERY = "point_query", 1
    ROW_RANGE_SCAN = "row_range_scan"
    PARTITION_SCAN = "partition_scan"
    PARTITION_RANGE_SCAN = "partition_range_scan"
    FULL_TABLE_SCAN = "full_table_scan"
    INSERT = "insert", 0, 1
    UPSERT_MERGE = "upsert_merge", 1
    UPSERT_REPLACE = "upsert_replace", 1
    UPDATE_MERGE = "update_merge", 1
    UPDATE_REPLACE = "update_replace", 1
    DELETE = "delete", 0, 1
    TRANSACTION = "transaction"
    SERIES_MERGE = "series_merge", 1
    CONDITIONAL_UPDATE = "conditional_update", 2
    # Half of them find no row, and insert it.
    READ_THEN_WRITE = "read_then_write", 1, 1
    KEY_CHANGE = "key_change", 0, 2
    # Each names a queue, as others do the partition of a loaded row; queues have no rows.
    PUT_MESSAGE = "put_message", 1
    GET_MESSAGES = "get_messages", 1
    PEEK_MESSAGES = "peek_messages", 1
    UPDATE_MESSAGE = "update_message", 1
    DELETE_MESSAGE = "delete_message", 1

    def __new__(cls, value: str, existing: float = 0, new: float = 0) -> Self:
        made = str.__new__(cls, value)
        made._value_ = value
        made.existing, made.new = existing, new
        return made

    @property
    def moves_rows(self) -> bool:
        """Whether it inserts or deletes rows, so that the count of a scan is an estimate."""
        return self.new > 0

    @property
    def on_rows(self) -> bool:
        """Whether it is about rows of a table, which are loaded before."""
        return self.value not in BESIDE_ROWS


_T = TypeVar("_T")


class ActionMix(Generic[_T]):
    """Draws an action in proportion to its weight; ``actions`` are those with one above 0."""

    __slots__ = ("_draw", "actions")

    def __init__(self, weights: Mapping[_T, float]) -> None:
        wanted = {action: weight for action, weight in weights.items() if weight > 0}
        self.actions = tuple(wanted)
        self._draw = Weighted(wanted.values()).draw

    def draw(self, rng: random.Random) -> _T:
        return self.actions[self._draw(rng)]
