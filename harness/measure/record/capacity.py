"""What the generator can make: the part of a record, and of `harness doctor`, that sizes a load.

CPU time is the measure, not wall time: what a process makes in a second of CPU time hardly depends
on what else the machine does meanwhile.
"""

from __future__ import annotations

import math
from typing import Annotated

import pydantic

from harness.measure.record.findings import RecordPart
from harness.model.figures import counted, number, of_core
from harness.model.services.service import CountedUnit

USEFUL_SHARE = 0.8
"""Share of a core up to which a worker sends on time; from 90 % it counts as busy."""
OTHERS = "other processes"
_Figure = Annotated[float, pydantic.Field(ge=0)]
_Count = Annotated[int, pydantic.Field(ge=0)]


class MachineLoadPart(RecordPart):
    """The mean CPU use of one machine, in percent of the cores that workers may use there.

    Attributes:
        busy_share: Share of the seconds in which the machine was saturated.
        cpu_percent: All processes.
        harness_percent: The master, where it is no worker, and the embedded emulator.
    """

    name: str
    cores: _Count
    workers: _Count
    busy_share: _Figure
    cpu_percent: _Figure
    workers_percent: _Figure
    harness_percent: _Figure = 0.0

    @property
    def others_percent(self) -> float:
        """Processes that do not belong to the run."""
        return max(0.0, self.cpu_percent - self.workers_percent - self.harness_percent)

    @property
    def mostly_used_by(self) -> str:
        """Who used more of its CPU than all others together, or the most of it."""
        if self.others_percent > self.workers_percent + self.harness_percent:
            return OTHERS
        harness = self.harness_percent > self.workers_percent
        return "the emulator or the master" if harness else "the workers"

    @property
    def described(self) -> str:
        """Who used its CPU, as a part of a sentence."""
        harness = f", emulator or master {of_core(self.harness_percent)}"
        return (
            f"workers {of_core(self.workers_percent)} of {counted(self.cores, 'core')}"
            f"{harness if self.harness_percent else ''}, {OTHERS} "
            f"{of_core(self.others_percent)}"
        )


class CapacityPart(RecordPart):
    """What worker processes make of CPU time with one session and one mix of operations.

    Attributes:
        operations_per_cpu_s: Operations that a worker completes in a second of CPU time, and so at
            most in a second on a core of its own.
    """

    session: str
    operations_per_cpu_s: _Figure
    entities_per_cpu_s: _Figure
    machines: tuple[MachineLoadPart, ...] = ()

    def described(self, unit: CountedUnit) -> str:
        """What the workers made, as a part of a sentence."""
        return (
            f"{number(self.operations_per_cpu_s)} operations ({number(self.entities_per_cpu_s)} "
            f"{unit.many}) in a second of CPU time with session {self.session!r}"
        )

    @property
    def fullest(self) -> MachineLoadPart | None:
        """The machine that was saturated for the largest share of the time."""
        return max(self.machines, key=lambda machine: machine.busy_share, default=None)

    @property
    def workers(self) -> int:
        return sum(machine.workers for machine in self.machines)

    @property
    def cores(self) -> int:
        return sum(machine.cores for machine in self.machines)

    def processes_for(self, entities_per_s: float) -> int | None:
        """Worker processes that are enough for a rate; None if nothing was counted."""
        if self.entities_per_cpu_s <= 0:
            return None
        return max(1, math.ceil(entities_per_s / (self.entities_per_cpu_s * USEFUL_SHARE)))

    def machines_for(self, entities_per_s: float, cores: int) -> int | None:
        """Machines with so many cores that are enough for a rate; None if nothing was counted."""
        processes = self.processes_for(entities_per_s)
        return None if processes is None or cores <= 0 else math.ceil(processes / cores)
