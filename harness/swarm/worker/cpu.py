"""Samples how busy the generator is, every second."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import gevent
import psutil

from harness.endpoint.clock import Clock
from harness.measure.generator import CpuSample


def sample_forever(
    clock: Clock, lag_s: Callable[[], float], keep: Callable[[CpuSample], None]
) -> None:
    """Keep one sample a second until the greenlet is killed.

    Args:
        clock: UTC seconds.
        lag_s: The greatest lag since it was last asked.
        keep: Takes each sample.
    """
    process = psutil.Process()
    process.cpu_percent(None)
    psutil.cpu_percent(None, percpu=True)
    while True:
        # On the second, so that a sample stands for one second of the series.
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
    """Use of the cores that this process may run on, since it was last asked.

    A process that is held to one core has no time left when that core has none, however idle the
    others are.
    """
    percents = psutil.cpu_percent(None, percpu=True)
    if sys.platform == "linux":
        allowed = [core for core in os.sched_getaffinity(0) if core < len(percents)]
        percents = [percents[core] for core in allowed] or percents
    return float(sum(percents) / len(percents))
