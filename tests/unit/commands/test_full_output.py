"""Where a subcommand cannot write: one sentence, exit code 2, and nothing half of it is left."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from tests.support.records import KEPT


def harness(*arguments: str, out: int) -> tuple[int, str]:
    """Exit code and standard error of a `harness` process that writes to ``out``."""
    done = subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


def test_a_full_standard_output_is_said() -> None:
    """The output goes to a device that is full: one line, exit code 2."""
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        said = "harness: the output cannot be written (No space left on device)\n"
        assert harness("schema", "profile", out=full) == (2, said)
    finally:
        os.close(full)


def test_a_reader_that_has_gone_is_no_mistake() -> None:
    """As with `head`: nothing is said."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert harness("profiles", out=writing) == (128 + signal.SIGPIPE, "")
    finally:
        os.close(writing)


def test_a_closed_standard_output_changes_no_exit_code() -> None:
    """As in a job without any output: the command works, and says nothing."""
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -m harness schema profile >&-', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_report_that_does_not_fit_leaves_the_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The system refuses to write on half-way: the report that was there stays whole."""
    shutil.copy(KEPT, tmp_path / "run.json")
    (tmp_path / "report.html").write_text("the earlier one", encoding="utf-8")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        assert main(["report", str(tmp_path)]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "report.html cannot be written (File too large)" in capsys.readouterr().err
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "the earlier one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "run.json"]
