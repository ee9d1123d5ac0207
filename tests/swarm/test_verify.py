"""Runs held against the log of the stand-in, which agrees, also under faults, unless changed."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.measure.record.record import RunRecord
from tests.support.command import Command
from tests.support.locust_process import QUICK, ROOT, LocustProcess, Stress, forked, spread_over

pytestmark = pytest.mark.azurite

MORE = ("--set", "load.max_entities_per_s=100")
"""So many that some are throttled."""
FAULTS = """\
[partition]
entities_per_s = 25
[faults]
error_500 = 0.03
reset = 0.03
half_answer = 0.03
lost_answer = 0.03
"""


class Logged:
    """A run through a gateway that writes a log."""

    def __init__(self, process: LocustProcess, log: Path) -> None:
        self.process, self.log = process, log

    @property
    def folder(self) -> Path:
        return self.process.folder / "out" / self.process.record.run_id

    def verify(
        self, command: Command, log: Path | None = None, *options: str, code: int = 0
    ) -> dict[str, Any]:
        """The object of ``harness verify``, which ends with this exit code."""
        asked = ("verify", self.folder, "--json", "--log", log or self.log, *options)
        found: dict[str, Any] = json.loads(command(*asked, code=code))
        return found


@contextlib.contextmanager
def gateway(host: str, folder: Path, limits: str) -> Iterator[tuple[str, Path]]:
    """The URL of a gateway in front of Azurite, and its log."""
    file, log = folder / "limits.toml", folder / "requests.jsonl"
    file.write_text(limits, encoding="utf-8")
    command = [sys.executable, "-m", "harness", "gateway", "--upstream", host]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", "--limits", str(file), "--log", str(log)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1], log
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)


@pytest.fixture(scope="module")
def logged(stress: Stress, host: str, tmp_path_factory: pytest.TempPathFactory) -> Logged:
    """A run with two workers under faults and a limit, ended."""
    with gateway(host, tmp_path_factory.mktemp("logged"), FAULTS) as (url, log):
        process = stress(*QUICK, *MORE, *spread_over(3, 30), *forked(2), "-H", url)
        process.wait(90.0)
    return Logged(process, log)


def changed(logged: Logged, name: str, change: Callable[[dict[str, Any]], bool]) -> Path:
    """A copy of the log with the lines that ``change`` keeps."""
    lines = map(json.loads, logged.log.read_text(encoding="utf-8").splitlines())
    file = logged.log.with_name(name)
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines if change(line)))
    return file


def test_the_log_agrees_with_a_run_under_faults(logged: Logged, command: Command) -> None:
    """Every answered attempt is in the log, and every kept failure by its id."""
    found = logged.verify(command)
    record, part = logged.process.record, found["service_log"]
    assert found["sentence"].startswith("The service's log agrees")
    assert part["answered"] + part["unanswered"] == record.counts.attempts
    assert part["unanswered"] > 0
    assert part["joined"] == part["found"] > 0


def test_the_record_and_the_report_keep_what_the_log_says(logged: Logged, command: Command) -> None:
    """The files of the run are written again with the part about the log."""
    logged.verify(command)
    record = RunRecord.from_json((logged.folder / "run.json").read_text(encoding="utf-8"))
    report = (logged.folder / "report.html").read_text(encoding="utf-8")
    assert record.service_log is not None
    assert record.service_log.server_ms is not None
    assert "Log of the service" in report


def test_a_log_without_some_throttled_requests_does_not_agree(
    logged: Logged, command: Command
) -> None:
    """Attempts that are missing with one status are a contradiction."""
    log = changed(logged, "few.jsonl", lambda line: line["statusCode"] != 503)
    found = logged.verify(command, log, "--no-write", code=1)
    assert "differs" in found["sentence"]


def test_a_log_of_other_requests_is_bad_input(logged: Logged, command: Command) -> None:
    """The sentence says that the lines of that time have other ids."""

    def renamed(line: dict[str, Any]) -> bool:
        line["properties"]["clientRequestId"] = "another"
        return True

    log = changed(logged, "other.jsonl", renamed)
    found = logged.verify(command, log, "--no-write", code=2)
    assert "other request ids" in found["error"]
