"""The highest rates of any one partition, and of all together, over 1 s, 10 s and a minute.

Queries over several partitions count for all together only: the share of each partition is unknown.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence

WINDOWS_S = (1, 10, 60)


@dataclasses.dataclass(slots=True)
class PeakRate:
    """The highest mean rate over a window.

    Attributes:
        per_s: The rate.
        at_s: Second of the trace at which the window begins.
        partition: Its partition; empty for all partitions together.
    """

    per_s: float = 0.0
    at_s: int = 0
    partition: str = ""


class _Window:
    """Entities by partition over the latest seconds.

    Args:
        width_s: How many seconds.
        wider: A wider window, to which a second has been added before it is added here. A partition
            is looked at only if its entities there exceed the peak here.
    """

    def __init__(self, width_s: int, wider: _Window | None = None) -> None:
        self._width_s, self._wider = width_s, wider
        self._seconds: deque[tuple[int, Mapping[str, int]]] = deque()
        self._sums: dict[str, int] = {}
        self.peak = (0, 0, "")
        """The most entities, the first second of that window, and the partition."""

    def add(self, second: int, entities: Mapping[str, int]) -> None:
        seconds, sums, wider = self._seconds, self._sums, self._wider
        while seconds and seconds[0][0] <= second - self._width_s:
            for name, count in seconds.popleft()[1].items():
                if name in sums:
                    left = sums[name] - count
                    if left:
                        sums[name] = left
                    else:
                        del sums[name]
        seconds.append((second, entities))
        most, found = self.peak[0], None
        for name, count in entities.items():
            if name in sums:
                total = sums[name] = sums[name] + count
            elif wider is None:
                total = sums[name] = count
            elif wider._sums[name] > most:
                before = [counts[name] for _, counts in seconds if name in counts]
                total = sums[name] = sum(before)
            else:
                continue
            if total > most:
                most, found = total, name
        if found is not None:
            self.peak = most, max(0, second - self._width_s + 1), found


class _Total:
    """Entities of all partitions together over the latest seconds."""

    def __init__(self, width_s: int) -> None:
        self._width_s = width_s
        self._seconds: deque[tuple[int, int]] = deque()
        self._sum = 0
        self.peak = (0, 0, "")
        """As that of `_Window`."""

    def add(self, second: int, entities: int) -> None:
        seconds = self._seconds
        while seconds and seconds[0][0] <= second - self._width_s:
            self._sum -= seconds.popleft()[1]
        seconds.append((second, entities))
        self._sum += entities
        if self._sum > self.peak[0]:
            self.peak = self._sum, max(0, second - self._width_s + 1), ""


class Peaks:
    """Takes the entities of each second, in order. Memory is that of one minute.

    In a trace that is shorter than a window, the rate is the mean over the trace.
    """

    def __init__(self) -> None:
        second_s, *wider_s = WINDOWS_S
        assert second_s == 1
        self._second = (0, 0, "")
        self._wider: list[_Window] = []
        for width_s in reversed(wider_s):
            self._wider.append(_Window(width_s, self._wider[-1] if self._wider else None))
        self._account = [_Total(width_s) for width_s in WINDOWS_S]
        self._first = self._last = 0

    def add(self, second: int, entities: Mapping[str, int], over_partitions: int = 0) -> None:
        """Add a later second.

        Args:
            second: Its number.
            entities: By partition. The mapping is kept.
            over_partitions: Entities of queries over several partitions.
        """
        if not self._last:
            self._first = second
        self._last = second + 1
        most = max(entities.values(), default=0)
        if most > self._second[0]:
            name = next(name for name, count in entities.items() if count == most)
            self._second = most, second, name
        for window in self._wider:
            window.add(second, entities)
        everything = sum(entities.values()) + over_partitions
        for total in self._account:
            total.add(second, everything)

    @property
    def partition(self) -> dict[int, PeakRate]:
        """The highest rate of any one partition, by width of the window in seconds."""
        return self._rates([self._second, *(window.peak for window in reversed(self._wider))])

    @property
    def account(self) -> dict[int, PeakRate]:
        """The highest rate of all partitions together."""
        return self._rates([total.peak for total in self._account])

    def _rates(self, peaks: Sequence[tuple[int, int, str]]) -> dict[int, PeakRate]:
        length_s = max(1, self._last - self._first)
        return {
            width_s: PeakRate(most / min(width_s, length_s), since, name)
            for width_s, (most, since, name) in zip(WINDOWS_S, peaks, strict=True)
        }
