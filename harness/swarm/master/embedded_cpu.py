"""The CPU that the harness itself uses on the master's machine, apart from its workers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable

import gevent
import psutil
from locust.env import Environment
from locust.runners import MasterRunner

from harness.model.machine import this_process_runs_on
from harness.swarm.master.master_run import MasterRun


def watch_embedded(
    environment: Environment, servers: Iterable[int], current: Callable[[], MasterRun | None]
) -> gevent.Greenlet:
    """Record the CPU of the processes ``servers``, and of a master, once a second.

    A process without other workers is a worker itself, whose CPU it reports as such.
    """
    pids = [*servers, *([os.getpid()] if isinstance(environment.runner, MasterRunner) else [])]
    return gevent.spawn(_watch, [psutil.Process(pid) for pid in pids], current)


def _watch(processes: list[psutil.Process], current: Callable[[], MasterRun | None]) -> None:
    machine = this_process_runs_on()
    _percent(processes)
    while processes:
        run = current()
        if run is None:
            gevent.sleep(1.0)
            continue
        # At full seconds, as the samples of the workers.
        gevent.sleep(1.0 - run.clock() % 1.0)
        run.generator.note_harness(machine, int(run.clock() - 0.5), _percent(processes))


def _percent(processes: list[psutil.Process]) -> float:
    """CPU of processes since the last call, in percent of one core."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += process.cpu_percent(None)
    return total
