"""Watches of small applications, in this process and in their own, and what they left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest

from harness.cli import main
from harness.gateway.limits import limits_path, load_limits
from tests.support.gateways import GatewayThread

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60.0
_ADDRESS = re.compile(r"^(live page|metrics|gateway|authority): +(\S+)", re.MULTILINE)
_NOT_PASSED = ("AZURE_STORAGE_", "GITHUB_STEP_SUMMARY")


def _variables(environ: dict[str, str]) -> dict[str, str]:
    """The environment of a watch: these variables, and what leads to no account."""
    own = {name: v for name, v in os.environ.items() if not name.startswith(_NOT_PASSED)}
    return {**own, "PYTHONPATH": str(ROOT), **environ}


def _recorded(out: Path, stderr: str) -> dict[str, Any]:
    """The one record, which the last lines name."""
    (path,) = out.glob("*/run.json")
    last = [line for line in stderr.splitlines()[-6:] if line.startswith("Record: ")]
    assert last == [f"Record: {path}"], stderr
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


class EndedWatch:
    """What a watch in this process left.

    Attributes:
        stdout: What the application printed.
        stderr: What the watch printed.
    """

    def __init__(self, out: Path, code: int, stdout: str, stderr: str) -> None:
        self.out, self.stdout, self.stderr = out, stdout, stderr
        self._code = code

    def end(self) -> int:
        """The exit code; no traceback may have been printed."""
        assert "Traceback" not in self.stderr
        return self._code

    @property
    def record(self) -> dict[str, Any]:
        return _recorded(self.out, self.stderr)


class Watching:
    """A process of `harness watch`."""

    def __init__(
        self, folder: Path, *arguments: str, stdin: int = subprocess.DEVNULL, **environ: str
    ) -> None:
        self.out = folder / "out"
        self._files = [folder / "stdout", folder / "stderr"]
        with self._files[0].open("wb") as stdout, self._files[1].open("wb") as stderr:
            self.process = psutil.Popen(
                [sys.executable, "-m", "harness", "watch", "--out", str(self.out), *arguments],
                env=_variables(environ),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        self.family: dict[int, psutil.Process] = {}

    @property
    def stdout(self) -> str:
        """What the application printed."""
        return self._files[0].read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        """What the watch printed."""
        return self._files[1].read_text(encoding="utf-8")

    def wait_for(self, true: Callable[[], Any]) -> Any:
        """Wait until ``true`` returns something, and return that."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.look()
            if found := true():
                return found
            assert self.process.poll() is None, self.stderr
            time.sleep(0.05)
        raise AssertionError(f"in vain: {self.stderr}{self.stdout}")

    def look(self) -> list[psutil.Process]:
        """Note the processes below this one."""
        with contextlib.suppress(psutil.Error):
            for process in self.process.children(recursive=True):
                self.family[process.pid] = process
        return list(self.family.values())

    def address(self, of: str) -> str:
        """An address that the watch printed."""
        found: str = self.wait_for(lambda: dict(_ADDRESS.findall(self.stderr)).get(of))
        return found

    def said(self, word: str) -> None:
        """Wait until the application has printed ``word``."""
        self.wait_for(lambda: word in self.stdout)

    def child(self, word: str) -> psutil.Process:
        """The process below this one whose command line has ``word``."""

        def find() -> psutil.Process | None:
            for process in self.look():
                with contextlib.suppress(psutil.Error):
                    if any(word in part for part in process.cmdline()):
                        return process
            return None

        found: psutil.Process = self.wait_for(find)
        return found

    def end(self) -> int:
        """Wait for the end; nothing may be left running, and no traceback be printed."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.stderr
            self.look()
            time.sleep(0.02)
        _, left = psutil.wait_procs(list(self.family.values()), timeout=3.0)
        assert not left
        assert "Traceback" not in self.stderr
        code: int = self.process.returncode
        return code

    @property
    def record(self) -> dict[str, Any]:
        return _recorded(self.out, self.stderr)

    def kill(self) -> None:
        """End whatever is left."""
        for process in (self.process, *self.look()):
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def upstream() -> Iterator[tuple[str, str]]:
    """Options of a watch whose upstream answers and stores nothing, and need not be started."""
    gateway = GatewayThread("none", load_limits(limits_path("none")))
    yield "--upstream", gateway.url
    gateway.stop()


@pytest.fixture
def watch(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., EndedWatch]:
    """Watches a command to its end, with arguments and variables, and leaves no process."""

    def ended(*arguments: str, **environ: str) -> EndedWatch:
        out, before = tmp_path / "out", set(psutil.Process().children(recursive=True))
        capfd.readouterr()
        with mock.patch.dict(os.environ, _variables(environ), clear=True):
            code = main(["watch", "--out", str(out), *arguments])
        _, left = psutil.wait_procs(set(psutil.Process().children(recursive=True)) - before, 3.0)
        assert not left
        return EndedWatch(out, code, *capfd.readouterr())

    return ended


@pytest.fixture
def watch_process(tmp_path: Path) -> Iterator[Callable[..., Watching]]:
    """Starts processes of `harness watch`, for tests of what reaches a process."""
    started: list[Watching] = []

    def start(*arguments: str, stdin: int = subprocess.DEVNULL, **environ: str) -> Watching:
        folder = tmp_path / f"watch{len(started)}"
        folder.mkdir()
        started.append(Watching(folder, *arguments, stdin=stdin, **environ))
        return started[-1]

    yield start
    for watching in started:
        watching.kill()
