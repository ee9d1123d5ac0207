"""Schedules: the units that are due over time, at a rate that changes linearly in stages.

Time is seconds since the schedule began. A unit is an entity or an operation. Nothing is due
before 0; after the last stage, its final rate is held for ever.

With rate r and slope k at the beginning of a piece, q = r t + k t^2 / 2 units are due t seconds
into it. The inverse is t = 2 q / (r + sqrt(r^2 + 2 k q)), a form that loses no digits if k is
small or r is 0.
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RateStage:
    """A ramp, or a hold if the rate stays the same.

    Attributes:
        from_per_s: Rate at its beginning; None is the last rate of the stage before, or 0.

    Raises:
        ValueError: the length is not positive, or a rate is negative or infinite.
    """

    for_s: float
    to_per_s: float
    from_per_s: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.for_s < math.inf:
            raise ValueError(f"a stage of {self.for_s:g} s is invalid")
        _require_rate(self.to_per_s)
        if self.from_per_s is not None:
            _require_rate(self.from_per_s)


class _Piece(NamedTuple):
    """The rate is ``per_s + slope * seconds``, counted from ``start_s``."""

    start_s: float
    per_s: float
    slope: float


class Schedule:
    """A rate over time, and the units due by it. Immutable; made by `of` or `constant`."""

    __slots__ = ("_pieces", "_starts_s", "_units")

    def __init__(self, pieces: Iterable[_Piece]) -> None:
        self._pieces = tuple(pieces)
        self._starts_s = [piece.start_s for piece in self._pieces]
        # Units due when each piece begins.
        self._units = [0.0]
        for piece, end_s in zip(self._pieces, self._starts_s[1:], strict=False):
            self._units.append(self._units[-1] + _units_in(piece, end_s - piece.start_s))

    @classmethod
    def constant(cls, per_s: float) -> Schedule:
        """The same rate for ever; a `ValueError` if it is negative or infinite."""
        _require_rate(per_s)
        return cls([_Piece(0.0, per_s, 0.0)])

    @classmethod
    def of(cls, stages: Iterable[RateStage]) -> Schedule:
        """One stage after the other, then the last rate for ever."""
        pieces = []
        start_s = per_s = 0.0
        for stage in stages:
            if stage.from_per_s is not None:
                per_s = stage.from_per_s
            pieces.append(_Piece(start_s, per_s, (stage.to_per_s - per_s) / stage.for_s))
            start_s += stage.for_s
            per_s = stage.to_per_s
        return cls([*pieces, _Piece(start_s, per_s, 0.0)])

    def per_s(self, at_s: float) -> float:
        """The rate at an instant: after the jump if it jumps there, 0 before the start."""
        if at_s < 0.0:
            return 0.0
        return _rate(self._pieces[bisect_right(self._starts_s, at_s) - 1], at_s)

    def due_by(self, at_s: float) -> float:
        """Units that are due by ``at_s``. Never decreases."""
        if at_s <= 0.0:
            return 0.0
        index = bisect_right(self._starts_s, at_s) - 1
        piece = self._pieces[index]
        due = self._units[index] + _units_in(piece, at_s - piece.start_s)
        # Rounding must not put the end of a piece after the beginning of the next one.
        return min(due, self._units[index + 1]) if index + 1 < len(self._units) else due

    def at(self, units: float) -> float:
        """When the unit that follows ``units`` others is due: the inverse of `due_by`.

        The unit that follows a pause is due when the pause ends. Infinity if no more is ever due.
        """
        units = max(units, 0.0)
        index = bisect_right(self._units, units) - 1
        start_s, per_s, slope = self._pieces[index]
        more = units - self._units[index]
        if slope == 0.0:
            at_s = start_s + more / per_s if per_s else math.inf
        else:
            # Rounding may take a ramp down to 0 a little below 0.
            divisor = per_s + math.sqrt(max(per_s * per_s + 2.0 * slope * more, 0.0))
            at_s = start_s + (2.0 * more / divisor if divisor else 0.0)
        return min(at_s, self._starts_s[index + 1]) if index + 1 < len(self._units) else at_s

    def held(self, from_s: float, per_s: float) -> Schedule:
        """The same until ``from_s``, then ``per_s`` for ever; errors as in `constant`."""
        return self.then(from_s, Schedule.constant(per_s))

    def then(self, from_s: float, later: Schedule, part: float = 1.0) -> Schedule:
        """The same until ``from_s``, then the rate of ``later`` at that time, times ``part``."""
        from_s = max(from_s, 0.0)
        kept = self._pieces[: bisect_left(self._starts_s, from_s)]
        index = bisect_right(later._starts_s, from_s)
        current = later._pieces[index - 1]
        replaced = [_Piece(from_s, _rate(current, from_s), current.slope), *later._pieces[index:]]
        added = (
            _Piece(piece.start_s, part * piece.per_s, part * piece.slope) for piece in replaced
        )
        return Schedule([*kept, *added])


def _rate(piece: _Piece, at_s: float) -> float:
    # Rounding may take a ramp down to 0 a little below 0.
    return max(piece.per_s + piece.slope * (at_s - piece.start_s), 0.0)


def _units_in(piece: _Piece, seconds: float) -> float:
    """Units due in the first ``seconds`` of a piece."""
    return max(seconds * (piece.per_s + piece.slope * seconds / 2.0), 0.0)


def _require_rate(per_s: float) -> None:
    if not 0.0 <= per_s < math.inf:
        raise ValueError(f"a rate of {per_s:g} per second is invalid")
