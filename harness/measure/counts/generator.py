"""How busy the generator was: each worker's CPU and the machine's, every second."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

BUSY_PERCENT = 90.0
"""A worker is one core; from here on it has no time left to be punctual."""
MACHINE_BUSY_PERCENT = 95.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CpuSample:
    """One second of one worker.

    Attributes:
        second: UTC second.
        cpu_percent: Of one core, used by the worker's process.
        machine_percent: Of all cores that the process may run on, used by anybody.
        lag_s: The most by which an operation left later than its pacer allowed.
    """

    second: int
    cpu_percent: float
    machine_percent: float
    lag_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorView:
    """The generator over the measured window.

    Attributes:
        workers: How many workers sent samples.
        cpu_percent_max: The busiest second of any worker, in percent of one core.
        cpu_percent_mean: Mean of the busiest worker.
        cpu_percents: Mean of each worker, the busiest first.
        busy_share: Share of seconds in which that worker used `BUSY_PERCENT` of its core or more.
        machine_busy_share: Share of seconds in which its machine had no time left.
        lag_s_max: The most by which an operation left later than its pacer allowed.
        offered: Entities a second that the load asked for by UTC second, of the whole run; nothing
            where it takes what comes.
        cpu_by_second: CPU of the busiest worker by UTC second, of the whole run.
    """

    workers: int = 0
    cpu_percent_max: float = 0.0
    cpu_percent_mean: float = 0.0
    cpu_percents: tuple[float, ...] = ()
    busy_share: float = 0.0
    machine_percent_max: float = 0.0
    machine_busy_share: float = 0.0
    lag_s_max: float = 0.0
    offered: Mapping[int, float] = dataclasses.field(default_factory=dict)
    cpu_by_second: Mapping[int, float] = dataclasses.field(default_factory=dict)


class GeneratorLog:
    """Samples of every worker of a run, and what was asked of them."""

    def __init__(self) -> None:
        self._samples: dict[str, list[CpuSample]] = {}
        self._offered: dict[int, float] = {}
        self._cpu: dict[int, float] = {}

    def note_offered(self, second: int, per_s: float) -> None:
        """The load asks for so many entities a second in UTC second ``second``."""
        self._offered[second] = per_s

    def add(self, worker: str, sample: CpuSample) -> None:
        """Keep one sample."""
        self._samples.setdefault(worker, []).append(sample)
        self._cpu[sample.second] = max(self._cpu.get(sample.second, 0.0), sample.cpu_percent)

    def latest(self) -> dict[str, CpuSample]:
        """Each worker's last sample."""
        return {worker: samples[-1] for worker, samples in self._samples.items()}

    def view(self, start: int, end: int) -> GeneratorView:
        """The generator over the UTC seconds from ``start`` up to, not including, ``end``."""
        windows = [
            inside
            for samples in self._samples.values()
            if (inside := [sample for sample in samples if start <= sample.second < end])
        ]
        offered, cpu_by_second = dict(self._offered), dict(self._cpu)
        if not windows:
            return GeneratorView(
                workers=len(self._samples), offered=offered, cpu_by_second=cpu_by_second
            )
        means = sorted((_mean([s.cpu_percent for s in inside]) for inside in windows), reverse=True)
        every = [sample for samples in windows for sample in samples]
        return GeneratorView(
            workers=len(self._samples),
            cpu_percent_max=max(sample.cpu_percent for sample in every),
            cpu_percent_mean=means[0],
            cpu_percents=tuple(means),
            busy_share=max(
                _mean([float(s.cpu_percent >= BUSY_PERCENT) for s in window]) for window in windows
            ),
            machine_percent_max=max(sample.machine_percent for sample in every),
            machine_busy_share=max(
                _mean([float(s.machine_percent >= MACHINE_BUSY_PERCENT) for s in window])
                for window in windows
            ),
            lag_s_max=max(sample.lag_s for sample in every),
            offered=offered,
            cpu_by_second=cpu_by_second,
        )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
