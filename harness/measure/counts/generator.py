"""Load of the generator: CPU of each worker and of its machine, every second."""

from __future__ import annotations

import dataclasses

from harness.measure.record.record import GeneratorPart

BUSY_PERCENT = 90.0
"""A worker uses one core; above this share it has no time left to be punctual."""
MACHINE_BUSY_PERCENT = 95.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CpuSample:
    """One second of one worker.

    Attributes:
        cpu_percent: CPU of the worker's process, in percent of one core.
        machine_percent: CPU of all processes, in percent of the cores that the worker may use.
        lag_s: The largest delay between the time a pacer set for an operation and its sending.
    """

    second: int
    cpu_percent: float
    machine_percent: float
    lag_s: float


class GeneratorLog:
    """The samples of all workers of a run, and the offered load."""

    def __init__(self) -> None:
        self._samples: dict[str, list[CpuSample]] = {}
        self._offered: dict[int, float] = {}
        self._cpu: dict[int, float] = {}

    def note_offered(self, second: int, per_s: float) -> None:
        """The load asks for ``per_s`` entities per second in a UTC second."""
        self._offered[second] = per_s

    def add(self, worker: str, sample: CpuSample) -> None:
        self._samples.setdefault(worker, []).append(sample)
        self._cpu[sample.second] = max(self._cpu.get(sample.second, 0.0), sample.cpu_percent)

    def latest(self) -> dict[str, CpuSample]:
        return {worker: samples[-1] for worker, samples in self._samples.items()}

    def view(self, start: int, end: int) -> GeneratorPart:
        """The generator over the UTC seconds from ``start`` to before ``end``."""
        windows = [
            inside
            for samples in self._samples.values()
            if (inside := [sample for sample in samples if start <= sample.second < end])
        ]
        every = [sample for window in windows for sample in window]
        means = sorted((_mean([s.cpu_percent for s in window]) for window in windows), reverse=True)
        busy = [_mean([float(s.cpu_percent >= BUSY_PERCENT) for s in w]) for w in windows]
        saturated = [
            _mean([float(s.machine_percent >= MACHINE_BUSY_PERCENT) for s in w]) for w in windows
        ]
        return GeneratorPart(
            cpu_percent_max=max((sample.cpu_percent for sample in every), default=0.0),
            cpu_percent_mean=means[0] if means else 0.0,
            cpu_percents=tuple(means),
            busy_share=max(busy, default=0.0),
            machine_percent_max=max((sample.machine_percent for sample in every), default=0.0),
            machine_busy_share=max(saturated, default=0.0),
            lag_s_max=max((sample.lag_s for sample in every), default=0.0),
            offered=dict(self._offered),
            cpu_by_second=dict(self._cpu),
        )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
