"""The CPU that the harness itself uses on the master's machine, apart from its workers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import gevent
import psutil
from locust.env import Environment
from locust.runners import MasterRunner

from harness.model.machine import this_process_runs_on
from harness.swarm.master.embedded import EmbeddedServers
from harness.swarm.master.master_run import MasterRun


def watch_embedded(
    environment: Environment,
    servers: EmbeddedServers | None,
    current: Callable[[], MasterRun | None],
) -> gevent.Greenlet:
    """Record the CPU of the ``servers``, and of a master, once a second.

    A process without other workers is a worker itself, whose CPU it reports as such.
    """
    own = [os.getpid()] if isinstance(environment.runner, MasterRunner) else []

    def pids() -> list[int]:
        return [*own, *([] if servers is None else servers.pids)]

    return gevent.spawn(_watch, pids, current)


def _watch(pids: Callable[[], list[int]], current: Callable[[], MasterRun | None]) -> None:
    machine = this_process_runs_on()
    processes: dict[int, psutil.Process] = {}
    _percent(pids(), processes)
    while pids():
        run = current()
        if run is None:
            gevent.sleep(1.0)
            continue
        # At full seconds, as the samples of the workers.
        gevent.sleep(1.0 - run.clock() % 1.0)
        percent = _percent(pids(), processes)
        run.generator.note_harness(machine, int(run.clock() - 0.5), percent)


def _percent(pids: list[int], processes: dict[int, psutil.Process]) -> float:
    """CPU of processes since the last call, in percent of one core; 0 for new ones."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            if pid not in processes:
                processes[pid] = psutil.Process(pid)
            total += processes[pid].cpu_percent(None)
    return total
