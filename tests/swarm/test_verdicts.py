"""Verdicts that are reached by real runs in that situation.

Within target is in test_headless.py, throttled in test_throttled.py, client-limited in
test_client_limited.py, a window that is too short in test_startup.py; failed conditions are in
test_situations.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import gevent.lock
import gevent.pool
import pytest

from tests.support.locust_process import QUICK, LocustProcess, Stress
from tests.support.proxy import Proxy, Seen

pytestmark = pytest.mark.azurite

CONDITION = ("--set", "conditions=['throttled_ratio < 1%']")
UNREACHABLE = (
    *("--set", "load.max_entities_per_s=5000"),
    *("--set", "load.emulator_max_entities_per_s=5000"),
)
TRIES = 3
"""Where others keep the whole machine busy meanwhile, a run says so and nothing else."""


@pytest.fixture(scope="module")
def waiting(stress: Stress, proxy_to: Callable[..., Proxy]) -> dict[str, LocustProcess]:
    """Runs whose users wait 200 ms for each answer, or for an endpoint that takes 20 ms for one
    request at a time; at once, ended."""
    turn = gevent.lock.Semaphore()

    def work(seen: Seen) -> None:
        with turn:
            time.sleep(0.02)

    options = {
        "unknown": ("-H", proxy_to(delay_s=0.2).url, "-r", "100"),
        "endpoint": ("-H", proxy_to(before=work).url, "-r", "1"),
    }

    def run(name: str) -> tuple[str, LocustProcess]:
        for _ in range(TRIES):
            process = stress(*QUICK, *CONDITION, *UNREACHABLE, "-u", "8", *options[name])
            process.wait()
            if process.record.generator.machine_busy_share < 0.2:
                break
        return name, process

    return dict(gevent.pool.Pool(2).imap_unordered(run, options))


@pytest.mark.serial
@pytest.mark.parametrize(("limited_by", "code"), [("unknown", 3), ("endpoint", 0)])
def test_users_that_wait_are_too_few_or_the_endpoint_is_at_its_capacity(
    waiting: dict[str, LocustProcess], limited_by: str, code: int
) -> None:
    """Users who all start at once leave it open which of both it is, and whether conditions
    hold."""
    process = waiting[limited_by]
    assert process.process.returncode == code, process.said
    verdict = process.record.verdict
    assert (verdict.result, verdict.limited_by) == ("endpoint_limited", limited_by), verdict
    assert process.record.service_ms is not None
    assert process.record.service_ms.p50 > 100


LATE = '''
from harness.workload.scenarios.scenario import Scenario


class Late(Scenario):
    """What no look at the first operations finds."""

    actions = {"read": 1}
    made = 0

    def loading(self):
        return self.batched(self.insert("p", f"{row:04d}", {"A": 1}) for row in range(10))

    def read(self, rng):
        self.made += 1
        return self.get("\\udc80" if self.made > 6000 else "p", f"{rng.randrange(10):04d}")
'''
LATE_PROFILE = """
question = "What of a key that is none?"
user_class = "ProfileUser"
scenario = "late.py:Late"
"""


def test_a_key_that_is_none_ends_the_run_with_a_sentence(
    stress: Stress, host: str, tmp_path: Path
) -> None:
    """Half a surrogate pair cannot be counted: the run ends at once, and is not valid."""
    (tmp_path / "late.py").write_text(LATE, encoding="utf-8")
    profile = tmp_path / "late.toml"
    profile.write_text(LATE_PROFILE.replace("late.py", str(tmp_path / "late.py")), encoding="utf-8")
    fast = ("--session", "wire", "--set", "load.emulator_max_entities_per_s=2000", "-t", "60s")
    quick = ("--headless", "-u", "2", "-r", "10", "--set", "load.settle_s=0")
    process = stress(*quick, "--profile", str(profile), "-H", host, *fast)
    assert process.wait() == 4
    assert "UnicodeEncodeError" in process.said
    assert "surrogates not allowed" in process.said
    [record] = process.records
    assert record.ended_by == "a mistake in the workload"
