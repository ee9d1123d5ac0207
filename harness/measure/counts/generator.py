"""Load of the generator: CPU of each worker and of its machine, every second."""

from __future__ import annotations

import dataclasses

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import rounded
from harness.measure.record.measured import CapacityPart, GeneratorPart, MachineLoadPart
from harness.model.process import Machine

BUSY_PERCENT = 90.0
"""A worker uses one core; above this share it cannot send every operation on time."""
MACHINE_BUSY_PERCENT = 95.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CpuSample:
    """One second of one worker.

    Attributes:
        cpu_percent: CPU of the worker's process, in percent of one core.
        machine_percent: CPU of all processes, in percent of the cores that the worker may use.
        cpu_s: CPU time of the process since the last sample, which a starved process takes late.
    """

    second: int
    cpu_percent: float
    machine_percent: float
    lag_s: float
    cpu_s: float = 0.0


class SampledGenerator(GeneratorPart):
    """A generator with what was sampled of it in each UTC second of the whole run.

    Attributes:
        offered: Entities that the load asked for; empty in a closed loop.
        cpu_by_second: CPU of the busiest worker.
        machine_by_second: CPU of the busiest machine.
        others_by_second: The part of a machine's CPU that other processes used.
    """

    offered: dict[int, float]
    cpu_by_second: dict[int, float]
    machine_by_second: dict[int, float]
    others_by_second: dict[int, float]


class GeneratorLog:
    """The samples of all workers of a run, and the offered load."""

    def __init__(self) -> None:
        self._samples: dict[str, list[CpuSample]] = {}
        self._offered: dict[int, float] = {}
        self._cpu: dict[int, float] = {}
        self._machine: dict[int, float] = {}
        self._machines: dict[str, Machine] = {}
        self._harness: dict[tuple[str, int], float] = {}
        self._uses: dict[tuple[str, int], dict[str, CpuSample]] = {}

    def note_machine(self, worker: str, machine: Machine) -> None:
        self._machines[worker] = machine

    def note_harness(self, machine: Machine, second: int, percent: float) -> None:
        """Processes of the run that are no workers used ``percent`` of one core in a second."""
        self._harness[machine.id, second] = percent

    def note_offered(self, second: int, per_s: float) -> None:
        """The load asks for ``per_s`` entities per second in a UTC second."""
        self._offered[second] = per_s

    def add(self, worker: str, sample: CpuSample) -> None:
        self._samples.setdefault(worker, []).append(sample)
        second = sample.second
        self._cpu[second] = max(self._cpu.get(second, 0.0), sample.cpu_percent)
        self._machine[second] = max(self._machine.get(second, 0.0), sample.machine_percent)
        if worker in self._machines:
            self._uses.setdefault((self._machines[worker].id, second), {})[worker] = sample

    def latest(self) -> dict[str, CpuSample]:
        return {worker: samples[-1] for worker, samples in self._samples.items()}

    def view(self, start: int, end: int) -> SampledGenerator:
        """The generator over the UTC seconds from ``start`` to before ``end``."""
        windows = list(self._windows(start, end).values())
        every = [sample for window in windows for sample in window]
        means = sorted((_mean([s.cpu_percent for s in window]) for window in windows), reverse=True)
        busy = [_mean([float(s.cpu_percent >= BUSY_PERCENT) for s in w]) for w in windows]
        return SampledGenerator(
            cpu_percent_max=max((sample.cpu_percent for sample in every), default=0.0),
            cpu_percent_mean=means[0] if means else 0.0,
            cpu_percents=tuple(means),
            busy_share=max(busy, default=0.0),
            machine_percent_max=max((sample.machine_percent for sample in every), default=0.0),
            machine_busy_share=max(map(_saturated, windows), default=0.0),
            lag_s_max=max((sample.lag_s for sample in every), default=0.0),
            offered=dict(self._offered),
            cpu_by_second=dict(self._cpu),
            machine_by_second=dict(self._machine),
            others_by_second=self._others(),
        )

    def _windows(self, start: int, end: int) -> dict[str, list[CpuSample]]:
        """The samples of each worker from ``start`` to before ``end`` that has any."""
        windows = (
            (worker, [sample for sample in samples if start <= sample.second < end])
            for worker, samples in self._samples.items()
        )
        return {worker: window for worker, window in windows if window}

    def _others(self) -> dict[int, float]:
        """By second what processes that do not belong to the run used of a machine, at most."""
        most: dict[int, float] = {}
        cores = {identity: self._cores(identity) for identity, _ in self._uses}
        for (identity, second), samples in self._uses.items():
            run = sum(sample.cpu_percent for sample in samples.values())
            run += self._harness.get((identity, second), 0.0)
            machine = sum(sample.machine_percent for sample in samples.values()) / len(samples)
            others = max(0.0, machine - run / cores[identity])
            most[second] = max(most.get(second, 0.0), others)
        return most

    def _cores(self, identity: str) -> int:
        """How many cores of a machine its workers may use together."""
        every = [machine.cores for machine in self._machines.values() if machine.id == identity]
        return len({core for cores in every for core in cores}) or 1

    def capacity(self, snapshot: Snapshot, session: str) -> CapacityPart | None:
        """Operations per CPU time of the workers in the window of ``snapshot``; None if unknown.

        A worker on one core of a machine, and another on another core, share the machine.
        """
        start, end, service = snapshot.start, snapshot.end, snapshot.service_ms
        by_machine: dict[str, dict[str, list[CpuSample]]] = {}
        cpu_s = 0.0
        for worker, window in self._windows(start, end).items():
            if (machine := self._machines.get(worker)) is not None:
                by_machine.setdefault(machine.id, {})[worker] = window
                cpu_s += sum(sample.cpu_s for sample in window)
        if cpu_s <= 0 or service is None:
            return None
        entities = snapshot.entities_per_s.mean * snapshot.length_s
        return CapacityPart(
            session=session,
            operations_per_cpu_s=rounded(service.count / cpu_s),
            entities_per_cpu_s=rounded(entities / cpu_s),
            machines=tuple(
                self._load_of(identity, windows) for identity, windows in by_machine.items()
            ),
        )

    def _load_of(self, identity: str, windows: dict[str, list[CpuSample]]) -> MachineLoadPart:
        machines = [self._machines[worker] for worker in windows]
        cores = len({core for machine in machines for core in machine.cores}) or 1
        every = [sample for window in windows.values() for sample in window]
        seconds = {sample.second for sample in every}
        machine = _mean([sample.machine_percent for sample in every])
        workers = sum(_mean([s.cpu_percent for s in window]) for window in windows.values()) / cores
        harness = _mean([self._harness.get((identity, second), 0.0) for second in seconds]) / cores
        return MachineLoadPart(
            name=machines[0].name,
            cores=cores,
            workers=len(windows),
            busy_share=rounded(max(map(_saturated, windows.values()))),
            cpu_percent=rounded(machine),
            workers_percent=rounded(min(workers, machine)),
            harness_percent=rounded(min(harness, max(0.0, machine - workers))),
        )


def _saturated(window: list[CpuSample]) -> float:
    """The share of seconds in which the machine was saturated."""
    return _mean([float(sample.machine_percent >= MACHINE_BUSY_PERCENT) for sample in window])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
