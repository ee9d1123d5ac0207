"""What a run says while it goes on, a line at a time."""

from __future__ import annotations

import dataclasses

from harness.measure.generator import BUSY_PERCENT
from harness.report.drawing import FULL, PLAIN, bar
from harness.report.words import (
    counted,
    duration,
    milliseconds,
    number,
    partition_name,
    percent,
    shortened,
)

_STEPS = (
    "Create a test table",
    "Load it with entities of the targeted PartitionKey",
    "Simulate peak load",
    "Examine the throughput",
)
_BAR_WIDTH = 20
_KEY_WIDTH = 12
_PROGRESS_WIDTH = 79


def step(number_of: int, detail: str = "") -> str:
    """One of the four steps of the documented stress-test procedure, 1 to 4, as it begins."""
    line = f"[{number_of}/{len(_STEPS)}] {_STEPS[number_of - 1]}"
    return f"{line}: {detail}" if detail else line


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """How a run goes: figures of the last few seconds, unless said otherwise.

    Attributes:
        elapsed_s: Seconds since the load began.
        step: Number of the step that a search is at; None where nothing is searched.
        achieved_per_s: Entities a second that came through.
        wanted_per_s: Entities a second that the load wanted, or may reach; None is as many as come.
        hottest: The partition with the highest rate; None where none was touched.
        hottest_per_s: Its entities a second.
        target_per_s: What the hottest partition is held against; None where no target holds.
        throttled_ratio: Throttled attempts / all attempts.
        service_p99_s: 99th percentile of service latency, as far as it is measured.
        response_p99_s: The same of response latency; None in a closed loop.
        waiting: Operations that are due and not sent now; None in a closed loop.
        dropped: Operations that were given up unsent since the load began.
        in_flight: Operations that wait for their answer now.
        users: Users that are running now.
        workers: Processes that make load now.
        cpu_percent: CPU of the busiest worker in its last second, in percent of one core.
    """

    elapsed_s: float
    step: int | None
    achieved_per_s: float
    wanted_per_s: float | None
    hottest: str | None
    hottest_per_s: float
    target_per_s: float | None
    throttled_ratio: float
    service_p99_s: float | None
    response_p99_s: float | None
    waiting: int | None
    dropped: int
    in_flight: int
    users: int
    workers: int
    cpu_percent: float


def live_line(live: Live, *, ascii_only: bool = False) -> str:
    """How the run goes, in one line of about 110 characters.

    The generator's CPU is shown where it has no time left: figures are its own from then on.

    Args:
        live: What is known.
        ascii_only: Whether only ASCII can be shown.
    """
    at_step = "" if live.step is None else f"step {live.step}: "
    wanted = "" if live.wanted_per_s is None else f" of {number(live.wanted_per_s)}"
    parts = [
        f"{duration(live.elapsed_s):>5}",
        f"{at_step}{number(live.achieved_per_s)}{wanted} entities/s",
    ]
    if live.hottest is not None:
        ellipsis = (PLAIN if ascii_only else FULL).ellipsis
        name = shortened(partition_name(live.hottest, ascii_only), _KEY_WIDTH, ellipsis)
        if live.target_per_s is None:
            parts.append(f"{name} {number(live.hottest_per_s)}/s")
        else:
            parts.append(f"{name} {percent(live.hottest_per_s / live.target_per_s)} of target")
    parts.append(f"throttled {percent(live.throttled_ratio)}")
    if live.service_p99_s is not None:
        response = live.response_p99_s
        more = "" if response is None else f", response {milliseconds(response * 1000)}"
        parts.append(f"p99 {milliseconds(live.service_p99_s * 1000)}{more} ms")
    if live.waiting is None:
        parts.append(f"{live.in_flight:,} in flight of {counted(live.users, 'user')}")
    else:
        dropped = f", {live.dropped:,} dropped" if live.dropped else ""
        parts.append(f"{live.waiting:,} waiting{dropped}")
    busy = live.cpu_percent >= BUSY_PERCENT
    cpu = f", CPU {live.cpu_percent:.0f}%" if busy else ""
    parts.append(f"{counted(live.workers, 'worker')}{cpu}")
    return " | ".join(parts)


def progress_line(done: int, total: int, elapsed_s: float, *, ascii_only: bool = False) -> str:
    """How far loading has come: a bar, the rate and the time left. Always of one width.

    Args:
        done: Entities that are loaded.
        total: Entities to load.
        elapsed_s: Seconds since loading began.
        ascii_only: Whether only ASCII can be shown.
    """
    share = done / total if total else 1.0
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    if done >= total:
        left = f"done in {duration(elapsed_s)}"
    elif rate > 0:
        left = f"{duration((total - done) / rate)} left"
    else:
        left = ""
    drawn = bar(share, _BAR_WIDTH, PLAIN if ascii_only else FULL)
    line = f"      {drawn} {int(share * 100):3d}%  {done:,} of {total:,}  {rate:,.0f}/s  "
    return (line + left).ljust(_PROGRESS_WIDTH)[:_PROGRESS_WIDTH]
