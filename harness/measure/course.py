"""The course of a run, in memory that neither its length nor its keys let grow."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

from harness.measure.heatmap import HeatMap, HeatView
from harness.measure.latency_course import LatencyCourse, LatencyCourseView


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CourseView:
    """A course at one moment; None where nothing was counted, or was not asked for."""

    heat: HeatView | None = None
    service: LatencyCourseView | None = None
    response: LatencyCourseView | None = None


class Course:
    """Counts results by partition, by latency, and by the UTC second in which they were done."""

    __slots__ = ("_heat", "_response", "_service")

    def __init__(self) -> None:
        self._heat = HeatMap()
        self._service = LatencyCourse()
        self._response = LatencyCourse()

    def add(self, key: str, second: int, entities: int) -> None:
        """Count entities of partition ``key``, which were done in ``second``."""
        if entities:
            self._heat.add(key, second, entities)

    def add_latencies(
        self, second: int, service_s: Sequence[float], response_s: Sequence[float]
    ) -> None:
        """Count latencies of results that were done in ``second``."""
        if service_s:
            self._service.add(second, service_s)
        if response_s:
            self._response.add(second, response_s)

    def add_throttled(self, key: str, second: int) -> None:
        """Count one throttled attempt."""
        self._heat.add_throttled(key, second)

    def merge(self, other: Course) -> None:
        """Add every count of ``other``."""
        self._heat.merge(other._heat)
        self._service.merge(other._service)
        self._response.merge(other._response)

    def view(self, *, latencies: bool) -> CourseView:
        """What was counted; without ``latencies`` the heat map alone."""
        heat = self._heat.view()
        if not latencies:
            return CourseView(heat=heat)
        return CourseView(heat=heat, service=self._service.view(), response=self._response.view())

    def encode(self) -> list[Any]:
        """Its content for the wire."""
        return [self._heat.encode(), self._service.encode(), self._response.encode()]

    @classmethod
    def decode(cls, content: list[Any]) -> Self:
        """What `encode` gave."""
        made = cls()
        made._heat = HeatMap.decode(content[0])
        made._service = LatencyCourse.decode(content[1])
        made._response = LatencyCourse.decode(content[2])
        return made
