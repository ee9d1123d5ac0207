"""The commands and health checks of the compose file, without containers: a run is led and ended.

The words are the file's; only ports are others, and the table is small.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import compose_file as composed
from tests.support.compose_file import ROOT
from tests.support.locust_process import LocustProcess, Stress, wait_until
from tests.support.ports import free_port

pytestmark = pytest.mark.azurite

SERVICES = composed.services()
WEB_PORT, METRICS_PORT, WORKER_PORT = "8089", "9646", "5557"
SMALL = ("--set", "keys.rows_per_partition=200", "--set", "conditions=[]")
STOPPED_WITHIN_S = 60.0


@functools.cache
def here_of(port: str) -> str:
    """The port that stands for one of the file's in this test."""
    return str(free_port())


def here(words: list[str]) -> list[str]:
    """The words with the ports of this test, listening on this machine alone."""
    known = re.compile(rf"\b(?:{WEB_PORT}|{METRICS_PORT}|{WORKER_PORT}|10002|10102)\b")
    return [
        known.sub(lambda port: here_of(port[0]), word).replace("0.0.0.0", "127.0.0.1")
        for word in words
    ]


def healthy(service: str) -> bool:
    """What the service's health check says."""
    test = here(SERVICES[service]["healthcheck"]["test"])
    assert test[:2] == ["CMD", "python"]
    done = subprocess.run([sys.executable, *test[2:]], capture_output=True, check=False)
    return done.returncode == 0


def page(port: str, path: str, form: dict[str, str] | None = None) -> str:
    """What is answered at one of the file's ports; nothing where nobody listens."""
    data = urllib.parse.urlencode(form).encode() if form else None
    with contextlib.suppress(urllib.error.URLError):
        url = f"http://127.0.0.1:{here_of(port)}{path}"
        with urllib.request.urlopen(url, data, timeout=20) as answer:
            text: str = answer.read().decode()
            return text
    return ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """What was seen, and what is left."""

    seen_healthy: list[str]
    healthy_at_the_end: list[str]
    master: LocustProcess
    workers: list[LocustProcess]
    codes: dict[str, int]


class Stand:
    """Processes of `harness ...`; those of Locust are the fixture's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, service: str) -> None:
        words = here(SERVICES[service]["command"])
        assert words[0] == "harness"
        with (self._folder / f"{service}.txt").open("wb") as log:
            self.started[service] = subprocess.Popen(
                [sys.executable, "-m", "harness", *words[1:]],
                cwd=self._folder,
                env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def stop(self, service: str) -> int:
        """Its exit code after SIGTERM."""
        self.started[service].terminate()
        return self.started[service].wait(STOPPED_WITHIN_S)

    def end(self) -> None:
        for process in self.started.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def stood(stress: Stress, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stood]:
    """Started in the file's order, a run from the form, stopped in the other order meanwhile."""
    stand = Stand(tmp_path_factory.mktemp("stand"))
    try:
        yield stood_by(stand, stress)
    finally:
        stand.end()


def stood_by(stand: Stand, stress: Stress) -> Stood:
    seen: list[str] = []

    def wait_for(service: str) -> None:
        # Each question is a process of its own.
        wait_until(lambda: healthy(service), f"{service} healthy", every_s=0.3)
        seen.append(service)

    assert not healthy("azurite")
    for service in ("azurite", "gateway"):
        stand.start(service)
        wait_for(service)

    meeting = ("--master-port", here_of(WORKER_PORT))
    words = here(SERVICES["worker"]["command"])[1:]
    workers = [stress(*words, *meeting) for _ in range(SERVICES["worker"]["scale"])]
    assert not healthy("worker")
    ports = ("--master-bind-port", here_of(WORKER_PORT), "--web-port", here_of(WEB_PORT))
    words = here(SERVICES["master"]["command"])[1:]
    master = stress(*words, *ports, "--metrics-port", here_of(METRICS_PORT), *SMALL)
    wait_for("master")
    wait_for("worker")

    def workers_ready() -> bool:
        status: dict[str, Any] = json.loads(page(WEB_PORT, "/stats/requests") or "{}")
        return len(status.get("workers", [])) == len(workers)

    wait_until(workers_ready, "the workers at the master")
    form = {"user_count": "20", "spawn_rate": "50", "profile": "single-partition"}
    assert json.loads(page(WEB_PORT, "/swarm", form))["success"]
    master.until_said("[3/4]")
    throttled = re.compile(r'^aztables_attempts_total\{.*status="503".*\} [1-9]', re.MULTILINE)
    wait_until(lambda: throttled.search(page(METRICS_PORT, "/metrics")), "a 503 in the metrics")

    master.terminate()
    codes = {"master": master.wait()}
    codes |= {f"worker{index}": worker.wait() for index, worker in enumerate(workers)}
    codes |= {service: stand.stop(service) for service in ("gateway", "azurite")}
    return Stood(
        seen_healthy=seen,
        healthy_at_the_end=[name for name in seen if healthy(name)],
        master=master,
        workers=workers,
        codes=codes,
    )


def test_health_checks_tell_what_runs(stood: Stood) -> None:
    """Each is healthy when it has started, and not any more when it has ended."""
    assert stood.seen_healthy == ["azurite", "gateway", "master", "worker"]
    assert stood.healthy_at_the_end == []


def test_a_stopped_stand_has_its_record(stood: Stood) -> None:
    """SIGTERM in mid-run, the master first: every worker's last report is in the record."""
    record = stood.master.record
    assert record.complete
    assert record.ended_by == "SIGTERM"
    assert record.workers == len(stood.workers) == 2
    assert record.counts.sent > 0
    assert sum(record.throttled.values()) > 0


def test_everybody_ends_when_told(stood: Stood) -> None:
    """Nobody has to be killed: the workers leave with the master, the others at SIGTERM."""
    codes = dict(stood.codes)
    # What the run was worth is the master's exit code.
    assert codes.pop("master") in (0, 3)
    assert codes == dict.fromkeys(("worker0", "worker1", "gateway", "azurite"), 0)
