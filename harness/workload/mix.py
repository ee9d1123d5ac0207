"""The actions of a mix and their weights."""

from __future__ import annotations

import bisect
import enum
import itertools
import random
from collections.abc import Mapping
from typing import Generic, TypeVar


class Action(enum.StrEnum):
    """What a task does. Most actions are one operation; the last three are several.

    The query types are those of the partitioning strategy, "Determine queries".
    """

    POINT_QUERY = "point_query"
    ROW_RANGE_SCAN = "row_range_scan"
    PARTITION_SCAN = "partition_scan"
    PARTITION_RANGE_SCAN = "partition_range_scan"
    FULL_TABLE_SCAN = "full_table_scan"
    INSERT = "insert"
    UPSERT_MERGE = "upsert_merge"
    UPSERT_REPLACE = "upsert_replace"
    UPDATE_MERGE = "update_merge"
    UPDATE_REPLACE = "update_replace"
    DELETE = "delete"
    TRANSACTION = "transaction"
    SERIES_MERGE = "series_merge"
    CONDITIONAL_UPDATE = "conditional_update"
    READ_THEN_WRITE = "read_then_write"
    KEY_CHANGE = "key_change"

    @property
    def moves_rows(self) -> bool:
        """Whether it inserts or deletes rows, so that the count of a scan is an estimate."""
        return self in _MOVING


_MOVING = frozenset((Action.INSERT, Action.DELETE, Action.READ_THEN_WRITE, Action.KEY_CHANGE))
_T = TypeVar("_T")


class ActionMix(Generic[_T]):
    """Draws an action in proportion to its weight."""

    __slots__ = ("_actions", "_cumulated", "_last", "_total")

    def __init__(self, weights: Mapping[_T, float]) -> None:
        wanted = [(action, weight) for action, weight in weights.items() if weight > 0]
        self._actions = tuple(action for action, _ in wanted)
        self._cumulated = tuple(itertools.accumulate(weight for _, weight in wanted))
        self._total = self._cumulated[-1]
        self._last = len(self._actions) - 1

    @property
    def actions(self) -> tuple[_T, ...]:
        """The actions with a weight above 0."""
        return self._actions

    def draw(self, rng: random.Random) -> _T:
        place = bisect.bisect_right(self._cumulated, rng.random() * self._total)
        return self._actions[place if place < self._last else self._last]
