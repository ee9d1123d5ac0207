"""Practices about what limits a measurement: generator, users, gateway, and where the client runs.

More processes help a worker whose core is full on a machine with idle cores. On a full machine they
take CPU time from each other, and only less work for each operation, or another machine, helps.
"""

from __future__ import annotations

import math

from harness.measure.record.measured import CapacityPart, MachineLoadPart
from harness.measure.record.record import RunRecord
from harness.measure.verdict.client_limit import BUSY_SHARE, LATE_S
from harness.model.figures import counted, milliseconds, number, of_core
from harness.model.services.service import Targets
from harness.model.sessions import session_named
from harness.profile.checks.seen import Seen
from harness.profile.practices.practice import (
    ACCOUNTS,
    CHECKLIST,
    EVERYWHERE,
    PROFILES,
    SESSIONS,
    WATCH,
    Assessment,
    offends,
    practice,
    remedy,
    says,
)

_OTHERS_FROM_PERCENT = 20.0
"""Share of a full machine from which its other processes are the cause."""
_FAR_MS = 25.0
"""If no answer is faster, the client is probably not in the account's region."""
_GENERATOR = ("generator", "machine")


@practice("the generator is large enough", applies=EVERYWHERE, relieves=_GENERATOR)
@says(CHECKLIST, "Unbounded parallelism", "an overloaded client measures its own limit")
def generator_size(seen: Seen) -> Assessment | None:
    record = _limited(seen, *_GENERATOR)
    if record is None or _connections_used_up(record):
        return None
    capacity, full = record.generator.capacity, _full_machine(record)
    if capacity is not None and full is not None:
        return _on_full_machine(record, seen.targets, capacity, full)
    if _held_up(record):
        late = f"{milliseconds(record.generator.lag_s_max * 1000)} ms"
        return offends(
            f"No worker had a full core, and operations were sent up to {late} late.",
            change="Find what held the generator up, such as a suspended machine or a stopped "
            "process, and repeat the run.",
        )
    rate, named = _rate(record, seen.targets)
    processes = None if capacity is None or rate is None else capacity.processes_for(rate)
    if capacity is None or processes is None or not capacity.machines:
        return offends(
            "An overloaded client measures its own limit.",
            change="Use more worker processes (--processes) or machines, or a smaller load.",
        )
    # The workers had no reserve, whatever their mean says.
    processes = max(processes, capacity.workers + 1)
    cores = max(machine.cores for machine in capacity.machines)
    where = f"--processes {processes}"
    if processes > capacity.cores:
        machines = counted(math.ceil(processes / cores), "machine")
        where = f"{machines} with {counted(cores, 'core')} each"
    return offends(
        f"A worker made {number(capacity.entities_per_cpu_s)} {record.endpoint.service.unit.many} "
        "in a second of CPU time, and sends on time while it uses at most 80% of a core.",
        change=f"Use {where} for {named}.",
    )


def _on_full_machine(
    record: RunRecord, targets: Targets, capacity: CapacityPart, full: MachineLoadPart
) -> Assessment:
    more = "more worker processes there would only take CPU time from each other."
    workers, cores = of_core(full.workers_percent), counted(full.cores, "core")
    if full.others_percent >= _OTHERS_FROM_PERCENT:
        emulated = record.endpoint.service.emulated and not full.harness_percent
        emulator = ", the emulator among them," if emulated else ""
        return offends(
            f"Other processes{emulator} took {of_core(full.others_percent)} of its {cores}, and "
            f"the workers {workers}; {more}",
            change=f"Free the CPU of {full.name}, or use another machine.",
        )
    if full.harness_percent >= full.workers_percent:
        return offends(
            f"Emulator and master took {of_core(full.harness_percent)} of the CPU of {full.name}, "
            f"and the workers {workers}; {more}",
            change="Run the emulator on another machine, or lower the load.",
        )
    rate, named = _rate(record, targets)
    machines = None if rate is None else capacity.machines_for(rate, full.cores)
    change = "Use more machines."
    if machines is not None:
        # If they are as many, the rate was nearly reached, and too little CPU was left.
        machines = max(machines, len(capacity.machines) + 1)
        change = f"Use {machines:,} machines such as this one for {named}."
    return offends(
        f"The workers took {workers} of the {cores} of {full.name}; {more}", change=change
    )


@practice("the session uses little CPU", "session.kind", relieves=_GENERATOR)
@says(SESSIONS, "Sessions", "a session without an SDK takes less CPU")
@remedy("Use session 'wire'.")
def session(seen: Seen) -> Assessment | None:
    record = _limited(seen, *_GENERATOR)
    if record is None or _connections_used_up(record) or _held_up(record):
        return None
    full = _full_machine(record)
    if full is not None and full.workers_percent < max(full.others_percent, full.harness_percent):
        # What others use is not saved.
        return None
    if not session_named(record.session).by_sdk:
        return None
    return offends(f"Session 'wire' uses less CPU per operation than session {record.session!r}.")


@practice("there are enough users for the rate", "load.users", relieves=("users",))
@says(PROFILES, "Load models", "each user has one operation in progress")
def users(seen: Seen) -> Assessment | None:
    record = _limited(seen, "users")
    wanted, service = (None, None) if record is None else (_wanted(record), record.service_ms)
    if record is None or service is None or not wanted or not record.account.entities_per_s.mean:
        return None
    waiting = service.total_s / max(1, record.measured_s)
    needed = waiting * wanted / record.account.entities_per_s.mean
    needed = max(needed, record.users)
    return offends(
        "By Little's law, that many operations are in progress at the wanted rate.",
        change=f"Raise load.users from {record.users:,} to more than {needed:,.0f}.",
    )


@practice("the gateway is no bottleneck", relieves=("gateway",))
@says(WATCH, "What it costs", "each gateway process uses one core")
@remedy("Share the requests among several gateway processes (harness watch --processes).")
def gateway_processes(seen: Seen) -> Assessment | None:
    record = _limited(seen, "gateway")
    if record is None or record.watched is None:
        return None
    busy = of_core(100 * record.watched.gateway_busy_share)
    return offends(f"The gateway had no reserve in {busy} of the seconds.")


@practice("limits are those of an account", applies=EVERYWHERE, relieves=("endpoint",))
@says(ACCOUNTS, "A stress test of your own account", "an emulator has a capacity of its own")
@remedy("Repeat the run against an account.")
def emulator(seen: Seen) -> Assessment | None:
    record = _limited(seen, "endpoint")
    if record is None or not record.endpoint.service.emulated:
        return None
    return offends("The limit here is the capacity of an emulator.")


@practice("the client is near the account", applies=EVERYWHERE, relieves=("users", "endpoint"))
@says(CHECKLIST, "Location", "run in the account's region")
@remedy("Run the generator in the account's region.")
def location(seen: Seen) -> Assessment | None:
    record = _limited(seen, "users", "endpoint")
    latencies = None if record is None else record.service_over_time
    if record is None or latencies is None or record.endpoint.service.emulated:
        return None
    bounds = [
        bound for bound, row in zip(latencies.bounds_ms, latencies.rows, strict=True) if any(row)
    ]
    # A row begins a tenth of a decade below its bound.
    fastest = min(bounds, default=0.0) / 10**0.1
    if fastest < _FAR_MS * 0.999:
        return None
    return offends(f"No answer took less than {milliseconds(fastest)} ms.")


def _limited(seen: Seen, *limits: str) -> RunRecord | None:
    """The record of a run that was held back by one of ``limits``."""
    return seen.record if set(limits).intersection(seen.limits) else None


def _connections_used_up(record: RunRecord) -> bool:
    """Whether `harness.profile.practices.load.connections` says what to do."""
    limit, in_use = record.generator.connections, record.generator.connections_in_use
    return limit is not None and in_use is not None and in_use >= limit < record.users


def _held_up(record: RunRecord) -> bool:
    """Whether a generator that had CPU time sent late: something stopped it."""
    generator = record.generator
    return (
        generator.lag_s_max >= LATE_S
        and generator.busy_share < BUSY_SHARE
        and _full_machine(record) is None
    )


def _full_machine(record: RunRecord) -> MachineLoadPart | None:
    capacity = record.generator.capacity
    fullest = None if capacity is None else capacity.fullest
    return fullest if fullest is not None and fullest.busy_share >= BUSY_SHARE else None


def _wanted(record: RunRecord) -> float | None:
    """The rate that the load asked for: of stages the highest one; a search asks for many."""
    if record.search is not None:
        return None
    most = max((point.offered or 0.0 for point in record.series), default=0.0)
    return most if record.by_best else record.offered_per_s


def _rate(record: RunRecord, targets: Targets) -> tuple[float | None, str]:
    """The rate that the generator should have made, and its name."""
    unit = record.endpoint.service.unit.rate
    if (wanted := _wanted(record)) is not None:
        return wanted, f"the wanted {number(wanted)} {unit}"
    if record.account.target is None:
        return None, ""
    for target, of in ((targets.partition, "one partition"), (targets.account, "the account")):
        if record.account.entities_per_s.mean < target:
            return target, f"{number(target)} {unit}, the target of {of}"
    return None, ""
