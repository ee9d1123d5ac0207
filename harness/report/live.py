"""What a run says while it goes on, a line at a time."""

from __future__ import annotations

from harness.measure.snapshot import Snapshot
from harness.model.target import Targets
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
_KEY_WIDTH = 20
_PROGRESS_WIDTH = 79


def step(number_of: int, detail: str = "") -> str:
    """One of the four steps of the documented stress-test procedure, 1 to 4, as it begins."""
    line = f"[{number_of}/{len(_STEPS)}] {_STEPS[number_of - 1]}"
    return f"{line}: {detail}" if detail else line


def live_line(
    snapshot: Snapshot,
    *,
    earlier: Snapshot | None,
    elapsed_s: float,
    users: int,
    workers: int,
    in_flight: int,
    cpu_percent: float,
    wanted_per_s: float | None,
    targets: Targets | None,
    ascii_only: bool = False,
) -> str:
    """How the run goes, in one line.

    Args:
        snapshot: Taken with the last few whole UTC seconds as its window: rates are over these,
            percentiles over what was measured so far.
        earlier: The snapshot of the line before; None for the first.
        elapsed_s: Seconds since the load began.
        users: Users that are running.
        workers: Processes that make load.
        in_flight: Operations that wait for their answer.
        cpu_percent: CPU of the busiest worker in its last second, in percent of one core.
        wanted_per_s: Entities a second that the profile allows; None is as many as come.
        targets: What the hottest partition is held against; None where no target holds.
        ascii_only: Whether only ASCII can be shown.
    """
    wanted = "" if wanted_per_s is None else f" of {number(wanted_per_s)}"
    parts = [
        f"{duration(elapsed_s):>5}",
        f"{number(snapshot.entities_per_s.mean)}{wanted} entities/s",
    ]
    hottest = snapshot.hottest
    if hottest is not None:
        ellipsis = (PLAIN if ascii_only else FULL).ellipsis
        name = shortened(partition_name(hottest.key, ascii_only), _KEY_WIDTH, ellipsis)
        rate = hottest.entities_per_s.mean
        share = "" if targets is None else f", {percent(rate / targets.partition)} of target"
        parts.append(f"hottest {name} {number(rate)}/s{share}")
    throttled = snapshot.throttled - (0 if earlier is None else earlier.throttled)
    parts.append(f"throttled +{throttled:,}")
    service = snapshot.service
    if service is not None:
        parts.append(
            f"p50 {milliseconds(service.p50_s * 1000)} p99 {milliseconds(service.p99_s * 1000)} ms"
        )
    parts.append(f"{in_flight:,} in flight of {counted(users, 'user')}")
    parts.append(f"{counted(workers, 'worker')}, CPU {cpu_percent:.0f}%")
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
