"""Samples the CPU use of a worker and its machine every second."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import gevent
import psutil

from harness.endpoint.clock import Clock
from harness.measure.counts.generator import CpuSample


def sample_forever(
    clock: Clock, lag_s: Callable[[], float], keep: Callable[[CpuSample], None]
) -> None:
    """Take one sample a second until the greenlet is killed.

    Args:
        clock: UTC seconds.
        lag_s: Returns the longest delay since its last call, in seconds.
        keep: Takes each sample.
    """
    process = psutil.Process()
    process.cpu_percent(None)
    psutil.cpu_percent(None, percpu=True)
    while True:
        # At full seconds, so that a sample covers one second of the time series.
        gevent.sleep(1.0 - clock() % 1.0)
        keep(
            CpuSample(
                second=int(clock() - 0.5),
                cpu_percent=process.cpu_percent(None),
                machine_percent=_machine_percent(),
                lag_s=lag_s(),
            )
        )


def _machine_percent() -> float:
    """Use of the cores that this process may run on, since the last call.

    A process that is pinned to one core is limited by that core, however idle the others are.
    """
    percents = psutil.cpu_percent(None, percpu=True)
    if sys.platform == "linux":
        allowed = [core for core in os.sched_getaffinity(0) if core < len(percents)]
        percents = [percents[core] for core in allowed] or percents
    return float(sum(percents) / len(percents))
