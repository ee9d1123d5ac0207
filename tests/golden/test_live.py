"""What a run says while it goes on must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the file anew.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.measure.counts.snapshot import Snapshot
from harness.model.services.service import PUBLISHED
from harness.model.target import Throughput
from harness.profile.load.search import Limit, Step, StepOutcome
from harness.report.terminal.live import (
    live_line,
    progress_line,
    step,
    step_begins,
    step_taken,
    watch_line,
)
from tests.support.charged import charged
from tests.support.evidence import snapshot_of
from tests.support.golden import check
from tests.support.summary_parts import HOTTEST, OPEN

CLOSED: dict[str, Any] = {"response_p99_s": None, "waiting": None, "dropped": 0}
STEP = Step(rate_per_s=450.0, settle_s=3.0, hold_s=10.0, confirming=False)
CONFIRMING = dataclasses.replace(STEP, confirming=True)
CAME = StepOutcome(
    rate_per_s=450.0,
    achieved_per_s=312.4,
    throttled_ratio=0.301,
    p99_ms=12.5,
    client_limited=False,
    endpoint_limited=False,
    billable_transactions=1204,
    hold_s=10.0,
    confirming=False,
)
NOTHING_CAME = CAME.model_copy(update={"p99_ms": None})
LIVE: dict[str, dict[str, Any]] = {
    "an open load": {},
    "behind a gateway: its limit is the one that refuses": {
        "hottest": HOTTEST._replace(limit_per_s=250.0)
    },
    "in request units": {
        "ru_per_s": 5200.0,
        "hottest": HOTTEST._replace(per_s=4000.0, target_per_s=6000.0),
    },
    "a closed loop: nothing is due": {**CLOSED, "throttled_ratio": 0.0},
    "a load that is kept up with": {
        "throttled_ratio": 0.0,
        "waiting": 0,
        "dropped": 0,
        "response_p99_s": 0.0159,
    },
    "a step of a search": {"step": 3},
    "before anything was measured": {
        **CLOSED,
        "wanted_per_s": None,
        "hottest": None,
        "throttled_ratio": 0.0,
        "service_p99_s": None,
        "workers": 1,
    },
    "without a target": {"hottest": HOTTEST._replace(target_per_s=None)},
    "a generator with time": {"cpu_percent": 89.9},
    "a busy generator": {"cpu_percent": 97.0},
}


def taken(outcome: StepOutcome, failed: Limit | None, **more: bool) -> str:
    return step_taken(4, outcome.model_copy(update={"failed": failed, **more}))


def watched(snapshot: Snapshot, limit_per_s: float | None = None, **changes: Any) -> str:
    """The line of a watch after 75 s."""
    throughput = Throughput(ru_per_s=18_000.0, physical_partitions=3)
    held = snapshot.held(PUBLISHED, throughput, limit_per_s)
    known: dict[str, Any] = {"elapsed_s": 75.0, "held": held, "p99_ms": None, "in_flight": 0}
    return watch_line(snapshot, **known | {"senders": "2 clients"} | changes)


def test_what_a_run_says_while_it_goes_on() -> None:
    """Its four steps, its loading, a line every few seconds, and the steps of a search."""
    lines = {
        **{name: live_line(dataclasses.replace(OPEN, **parts)) for name, parts in LIVE.items()},
        "a step begins": step_begins(1, STEP),
        "a step to confirm": step_begins(9, CONFIRMING),
        **{f"a step failed: {limit.value}": taken(CAME, limit) for limit in Limit},
        "a step passed": taken(CAME, None),
        "a step passed without an answer": taken(NOTHING_CAME, None),
        "a rate is confirmed": taken(CAME, None, confirming=True),
        "a limit is measured": taken(CAME, Limit.THROTTLED, measuring=True),
        "a watch begins": watched(snapshot_of({}), senders="0 clients"),
        "a watched application": watched(snapshot_of({"shop/p0": 1000}), limit_per_s=500.0),
        "a watched application in back-off": watched(
            snapshot_of({"shop/p0": 1000}, throttled_per_s=1), p99_ms=101.0, in_flight=3
        ),
        "in request units, watched": watched(charged({"p0": (600, 0)})),
        "loading begins": progress_line(0, 2000, 0.0),
        "loading goes on": progress_line(500, 2000, 0.5),
        "loading of a silent endpoint": progress_line(500, 2000, 20.0, 7.0),
        "loading of one that is slow": progress_line(500, 2000, 20.0, 4.0),
        "loading is done": progress_line(2000, 2000, 62.0),
        "nothing to load": progress_line(0, 0, 0.0),
        **{f"step {number}": step(number, "stress1") for number in (1, 2, 3, 4)},
    }
    check("live.txt", "".join(f"{name}\n  {line.rstrip()}\n" for name, line in lines.items()))
