"""The highest rates of any one partition, and of all together, over 1 s, 10 s and a minute.

Queries over several partitions count for all together only: the share of each partition is unknown.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping

from harness.model.operation import over_partitions

WINDOWS_S = (1, 10, 60)


@dataclasses.dataclass(slots=True)
class PeakRate:
    """The highest mean rate over a window.

    Attributes:
        entities_per_s: The rate.
        at_s: Second of the trace at which the window begins.
        partition: Its partition; empty for all partitions together.
    """

    entities_per_s: float = 0.0
    at_s: int = 0
    partition: str = ""


class _Window:
    def __init__(self, width_s: int) -> None:
        self._width_s = width_s
        self._seconds: deque[tuple[int, Mapping[str, int]]] = deque()
        self._sums: dict[str, int] = {}
        self._total = 0
        self.partition = PeakRate()
        self.account = PeakRate()

    def add(self, second: int, entities: Mapping[str, int]) -> None:
        seconds, sums, width_s = self._seconds, self._sums, self._width_s
        while seconds and seconds[0][0] <= second - width_s:
            for name, count in seconds.popleft()[1].items():
                self._total -= count
                left = sums[name] - count
                if left:
                    sums[name] = left
                else:
                    del sums[name]
        seconds.append((second, entities))
        most, most_name = self.partition.entities_per_s * width_s, ""
        get = sums.get
        for name, count in entities.items():
            total = sums[name] = get(name, 0) + count
            if total > most and not over_partitions(name):
                most, most_name = total, name
        self._total += sum(entities.values())
        since = max(0, second - width_s + 1)
        if most_name:
            self.partition = PeakRate(most / width_s, since, most_name)
        if self._total > self.account.entities_per_s * width_s:
            self.account = PeakRate(self._total / width_s, since)


class Peaks:
    """Takes the entities of each second, in order. Memory is that of one minute.

    In a trace that is shorter than a window, the rate is the mean over the trace.
    """

    def __init__(self) -> None:
        self._windows = {width_s: _Window(width_s) for width_s in WINDOWS_S}
        self._first = self._last = 0

    def add(self, second: int, entities: Mapping[str, int]) -> None:
        """Add the entities of a later second by partition. The mapping is kept."""
        if not self._last:
            self._first = second
        self._last = second + 1
        for window in self._windows.values():
            window.add(second, entities)

    @property
    def partition(self) -> dict[int, PeakRate]:
        """The highest rate of any one partition, by width of the window in seconds."""
        return {
            width_s: self._over(width_s, window.partition)
            for width_s, window in self._windows.items()
        }

    @property
    def account(self) -> dict[int, PeakRate]:
        """The highest rate of all partitions together."""
        return {
            width_s: self._over(width_s, window.account)
            for width_s, window in self._windows.items()
        }

    def _over(self, width_s: int, peak: PeakRate) -> PeakRate:
        length_s = max(1, self._last - self._first)
        factor = max(1.0, width_s / length_s)
        return dataclasses.replace(peak, entities_per_s=peak.entities_per_s * factor)
