"""Load balancing: a range that stays hot is offline for seconds while it changes its server.

Source: partitioning strategy, "Load balancing": the service moves a partition after minutes of high
load, and the partition is offline for a few seconds.
"""

from __future__ import annotations

import dataclasses
from collections import deque

from harness.gateway.limits import Moving
from harness.gateway.rules.ranges import Range, Ranges

_MOVES_KEPT = 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The move of a range from one server to another.

    Attributes:
        at_s: When the range went offline, on the model's clock.
        until_s: When the range was available again.
        table: Table of the partition whose refusal caused the move.
        partition_key: That partition.
    """

    at_s: float
    until_s: float
    table: str
    partition_key: str
    from_server: int
    to_server: int


class MovingRule:
    """Moves ranges whose requests are refused for too long."""

    def __init__(self, moving: Moving) -> None:
        self._moving = moving
        self.count = 0
        self.moves: deque[Move] = deque(maxlen=_MOVES_KEPT)

    @staticmethod
    def allows(place: Range, now_s: float) -> bool:
        """Whether the range is available."""
        return now_s >= place.offline_until_s

    def may_move(self, place: Range, since_s: float, until_s: float) -> bool:
        """Whether a refusal in this time could move the range."""
        hot_since_s = since_s if place.hot_since_s is None else place.hot_since_s
        return until_s - hot_since_s >= self._moving.hot_after_s

    def refused(self, place: Range, ranges: Ranges, table: str, key: str, now_s: float) -> None:
        """A limit of a partition or a server refused a request for the range."""
        if place.hot_since_s is None or now_s - place.refused_s > self._moving.cool_after_s:
            place.hot_since_s = now_s
        place.refused_s = now_s
        if now_s - place.hot_since_s < self._moving.hot_after_s:
            return
        target = ranges.emptiest(now_s, other_than=place.server)
        move = Move(
            at_s=now_s,
            until_s=now_s + self._moving.offline_s,
            table=table,
            partition_key=key,
            from_server=place.server,
            to_server=target,
        )
        ranges.move(place, target, now_s)
        place.hot_since_s, place.offline_until_s = None, move.until_s
        self.count += 1
        self.moves.append(move)
