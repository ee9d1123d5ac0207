"""The size of a generator: how many processes or machines would have been enough, and why.

More processes help a worker whose core is full on a machine with idle cores. On a full machine they
take CPU time from each other, and only less work for each operation, or another machine, helps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.measure.record.capacity import CapacityPart, MachineLoadPart
from harness.measure.record.findings import AdvicePart
from harness.measure.verdict.advice import CHECKLIST, README, SESSIONS
from harness.measure.verdict.evidence import BUSY_SHARE, Evidence
from harness.model.figures import counted, number, of_core

OTHERS_FROM_PERCENT = 20.0
"""Share of a full machine from which its other processes are the cause."""


def on_generator(evidence: Evidence) -> Iterator[AdvicePart]:
    """Advice for a run whose generator was the limit."""
    if evidence.connections_used_up:
        yield AdvicePart(
            text=f"raise session.connections from {evidence.connections:,}: all were in use by "
            f"{evidence.users:,} users",
            document=CHECKLIST,
            section="Increase default connection limit",
        )
        return
    capacity = evidence.generator.capacity
    fullest = None if capacity is None else capacity.fullest
    if capacity is not None and fullest is not None and fullest.busy_share >= BUSY_SHARE:
        yield from _on_full_machine(evidence, capacity, fullest)
        return
    yield AdvicePart(
        text=_more_processes(evidence, capacity),
        document=CHECKLIST,
        section="Unbounded parallelism",
    )
    yield from _on_session(evidence)


def _on_full_machine(
    evidence: Evidence, capacity: CapacityPart, full: MachineLoadPart
) -> Iterator[AdvicePart]:
    more = "more worker processes there would only take CPU time from each other"
    if full.others_percent >= OTHERS_FROM_PERCENT:
        emulator = ", the emulator among them," if evidence.kind.emulated else ""
        if full.harness_percent > 0:
            emulator = ""
        yield AdvicePart(
            text=f"free the CPU of {full.name}, or use another machine: other processes{emulator} "
            f"took {of_core(full.others_percent)} of its {counted(full.cores, 'core')}, and the "
            f"workers {of_core(full.workers_percent)}; {more}",
            document=README,
            section="Against your own account",
        )
    elif full.harness_percent >= full.workers_percent:
        yield AdvicePart(
            text=f"run the emulator on another machine, or lower the load: emulator and master "
            f"took {of_core(full.harness_percent)} of the CPU of {full.name}, and the workers "
            f"{of_core(full.workers_percent)}; {more}",
            document=README,
            section="Against your own account",
        )
    else:
        yield from _on_session(evidence)
        yield AdvicePart(
            text=f"{_more_machines(evidence, capacity, full)}: the workers took "
            f"{of_core(full.workers_percent)} of the {counted(full.cores, 'core')} of {full.name}; "
            f"{more}",
            document=CHECKLIST,
            section="Unbounded parallelism",
        )
        return
    yield from _on_session(evidence)


def _on_session(evidence: Evidence) -> Iterator[AdvicePart]:
    if evidence.leaner_session is not None:
        yield AdvicePart(
            text=f"use session {evidence.leaner_session!r}, which uses less CPU per operation",
            document=SESSIONS,
            section="Sessions",
        )


def _more_processes(evidence: Evidence, capacity: CapacityPart | None) -> str:
    rate, named = _rate(evidence)
    processes = None if capacity is None or rate is None else capacity.processes_for(rate)
    if capacity is None or processes is None or not capacity.machines:
        return (
            "use more worker processes (--processes) or machines, or a smaller load: an "
            "overloaded client measures its own limit"
        )
    # The workers had no reserve, whatever their mean says.
    processes = max(processes, capacity.workers + 1)
    cores = max(machine.cores for machine in capacity.machines)
    where = f"--processes {processes}"
    if processes > capacity.cores:
        where = f"{counted(math.ceil(processes / cores), 'machine')} with {counted(cores, 'core')}"
        where += " each"
    return (
        f"use {where} for {named}: a worker made {number(capacity.entities_per_cpu_s)} entities in "
        "a second of CPU time, and sends on time up to 80% of a core"
    )


def _more_machines(evidence: Evidence, capacity: CapacityPart, full: MachineLoadPart) -> str:
    rate, named = _rate(evidence)
    machines = None if rate is None else capacity.machines_for(rate, full.cores)
    if machines is None:
        return "use more machines"
    if machines <= len(capacity.machines):
        # The rate was nearly reached, but too little CPU is left to send on time.
        machines = len(capacity.machines) + 1
    return f"use {machines:,} machines such as this one for {named}"


def _rate(evidence: Evidence) -> tuple[float | None, str]:
    """The rate that the generator should have made, and its name."""
    wanted, targets = evidence.wanted_per_s, evidence.targets
    if wanted is not None:
        return wanted, f"the wanted {number(wanted)} entities/s"
    if targets is None:
        return None, ""
    for target, of in ((targets.partition, "one partition"), (targets.account, "the account")):
        if evidence.achieved_per_s < target:
            return target, f"{number(target)} entities/s, the target of {of}"
    return None, ""
