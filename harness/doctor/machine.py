"""The machine of the generator: its cores, who else uses them, and the limits of its system."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from harness.doctor.checks import CheckResult, judged
from harness.measure.record.measured import MachineLoadPart
from harness.model.figures import counted, data_size
from harness.model.process import this_process_runs_on

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

IDLE_S = 1.0
"""How long the machine is watched while the doctor does nothing."""
_OTHERS_FROM_PERCENT = 20.0
_STOLEN_FROM_PERCENT = 5.0
_MOST_SHOWN = 3
_SHOWN_FROM_PERCENT = 5.0
_FEWEST_FILES = 1024
_FEWEST_PORTS = 10_000
_WORKER_BYTES = 150 * 2**20
"""Memory of a worker process, about."""
_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdleLoad:
    """Who used the CPU while the doctor did nothing.

    Attributes:
        percent: CPU of all processes, in percent of the cores that this process may use.
        stolen_percent: CPU that the hypervisor gave to other machines.
        busiest: Name, process id and percent of one core of other processes, the busiest first.
    """

    percent: float
    stolen_percent: float
    busiest: list[tuple[str, int, float]]


def watch_idle(seconds: float = IDLE_S) -> IdleLoad:
    """Watch the CPU for so long, doing nothing."""
    cores = this_process_runs_on().cores
    psutil.cpu_percent(None, percpu=True)
    psutil.cpu_times_percent(None)
    before, began_s = _used(), time.perf_counter()
    time.sleep(seconds)
    percents = psutil.cpu_percent(None, percpu=True)
    stolen = getattr(psutil.cpu_times_percent(None), "steal", 0.0)
    after, passed_s = _used(), time.perf_counter() - began_s
    used = [
        (name, pid, 100 * (cpu_s - before[pid][1]) / passed_s)
        for pid, (name, cpu_s) in after.items()
        if pid in before
    ]
    allowed = [percents[core] for core in cores if core < len(percents)] or percents
    return IdleLoad(
        percent=sum(allowed) / len(allowed),
        stolen_percent=stolen,
        busiest=sorted(used, key=lambda one: -one[2]),
    )


def _used() -> dict[int, tuple[str, float]]:
    """Name and CPU time of the processes that can be seen, except this one."""
    used = {}
    own = psutil.Process().pid
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            if process.pid != own:
                used[process.pid] = process.name(), times.user + times.system
    return used


def load_part(idle: IdleLoad) -> MachineLoadPart:
    """The same load in the form of a record, where no worker has a part of it."""
    machine = this_process_runs_on()
    return MachineLoadPart(
        name=machine.name,
        cores=len(machine.cores),
        workers=0,
        busy_share=0.0,
        cpu_percent=round(idle.percent, 1),
        workers_percent=0.0,
    )


def machine_checks(idle: IdleLoad) -> Iterator[CheckResult]:
    yield _cores()
    yield _others(idle)
    yield _memory()
    yield _files()
    yield _ports()


def _cores() -> CheckResult:
    cores = len(this_process_runs_on().cores)
    physical = psutil.cpu_count(logical=False)
    text = counted(cores, "core")
    if physical is not None and physical < cores:
        text += f" ({physical:,} physical: two threads of one core are slower than two cores)"
    frequency = None
    with contextlib.suppress(OSError, NotImplementedError, RuntimeError):
        frequency = psutil.cpu_freq()
    if frequency is not None and frequency.current:
        text += f" at {frequency.current / 1000:.1f} GHz"
        if frequency.max > frequency.current:
            text += f" of {frequency.max / 1000:.1f} GHz"
    else:
        text += "; their frequency is unknown"
    figures = {"cores": cores, "physical_cores": physical}
    quota = _quota()
    if quota is None or quota >= cores:
        return judged("CPU", text, figures=figures)
    advice = f"start at most {max(1, int(quota))} worker processes"
    advice += ", or raise the CPU limit of the container"
    text += f", of which the container may use {quota:g}"
    return judged("CPU", text, advice, {**figures, "quota": quota})


def _quota() -> float | None:
    """The cores that a container may use; None without a limit."""
    with contextlib.suppress(OSError, ValueError):
        limit, period = _QUOTA.read_text(encoding="ascii").split()
        return int(limit) / int(period)
    return None


def _others(idle: IdleLoad) -> CheckResult:
    cores = counted(len(this_process_runs_on().cores), "core")
    shown = [one for one in idle.busiest[:_MOST_SHOWN] if one[2] >= _SHOWN_FROM_PERCENT]
    named = ", ".join(f"{name} (pid {pid}) {percent:.0f}%" for name, pid, percent in shown)
    figures = {"percent": round(idle.percent, 1), "stolen_percent": round(idle.stolen_percent, 1)}
    text = f"other processes use {idle.percent:.0f}% of {cores}{named and f': {named} of one core'}"
    advice = ""
    if idle.stolen_percent >= _STOLEN_FROM_PERCENT:
        text += f"; the hypervisor takes {idle.stolen_percent:.0f}%"
        advice = "other virtual machines use the same cores: use a machine with dedicated cores"
    elif idle.percent >= _OTHERS_FROM_PERCENT:
        advice = "stop these processes or use another machine: a run would measure what they leave"
    return judged("other load", text, advice, figures)


def _memory() -> CheckResult:
    available = psutil.virtual_memory().available
    workers = len(this_process_runs_on().cores)
    text = (
        f"{data_size(available)} available; a worker process takes about {data_size(_WORKER_BYTES)}"
    )
    figures = {"available_bytes": available}
    enough = available >= workers * _WORKER_BYTES
    advice = "" if enough else f"free memory before a run with --processes {workers}"
    return judged("memory", text, advice, figures)


def _files() -> CheckResult:
    if resource is None:
        return judged("open files", "no limit is known on this system")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Locust raises its own limit as far as it may.
    limit = hard if hard != resource.RLIM_INFINITY else None
    text = f"at most {'unlimited' if limit is None else f'{limit:,}'} in a process ({soft:,} now)"
    figures = {"soft": soft, "hard": limit}
    advice = ""
    if limit is not None and limit < _FEWEST_FILES:
        advice = "every connection is an open file: raise the hard limit (ulimit -Hn 10000)"
    return judged("open files", text, advice, figures)


def _ports() -> CheckResult:
    try:
        first, last = map(int, _PORT_RANGE.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return judged("local ports", "their range is unknown on this system")
    count = last - first + 1
    text = f"{count:,} for outgoing connections ({first:,} to {last:,}); runs keep theirs open"
    advice = ""
    if count < _FEWEST_PORTS:
        advice = (
            "connections that break take another port each, for a minute: widen "
            "net.ipv4.ip_local_port_range"
        )
    return judged("local ports", text, advice, {"ports": count})
