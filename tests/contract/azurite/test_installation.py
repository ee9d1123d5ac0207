"""An install of Azurite that is interrupted leaves nothing that is not whole."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[3]
_WITHIN_S = 60.0


@pytest.fixture
def registry() -> Iterator[socket.socket]:
    """A registry that takes connections and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


class Installs:
    """`harness azurite install`, into an environment of the test's own.

    Args:
        prefix: The environment.
        registry: Where npm asks.
    """

    def __init__(self, prefix: Path, registry: socket.socket) -> None:
        self._prefix = prefix
        self._registry = registry
        self._started: list[subprocess.Popen[str]] = []
        self._asked: list[socket.socket] = []
        self._npm: list[psutil.Process] = []

    @property
    def partial(self) -> set[str]:
        return {path.name for path in (self._prefix / "share").glob("*.partial")}

    def start(self) -> subprocess.Popen[str]:
        # npm opens several connections; those of an install before are not of this one.
        while select.select([self._registry], [], [], 0)[0]:
            self._asked.append(self._registry.accept()[0])
        script = (
            f"import sys; sys.prefix = {str(self._prefix)!r}\n"
            "from harness.cli import main\n"
            "sys.exit(main(['azurite', 'install']))"
        )
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", script],
            cwd=ROOT,
            env={
                **os.environ,
                "npm_config_registry": f"http://127.0.0.1:{self._registry.getsockname()[1]}/",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def until_npm_asks(self, process: subprocess.Popen[str]) -> psutil.Process:
        """Wait until it downloads; the process of npm."""
        assert select.select([self._registry], [], [], _WITHIN_S)[0], "npm has asked for nothing"
        self._asked.append(self._registry.accept()[0])
        (npm,) = psutil.Process(process.pid).children()
        self._npm.append(npm)
        return npm

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate(timeout=_WITHIN_S)
        for npm in self._npm:
            with contextlib.suppress(psutil.NoSuchProcess):
                npm.kill()
        for connection in self._asked:
            connection.close()


@pytest.fixture
def installs(tmp_path: Path, registry: socket.socket) -> Iterator[Installs]:
    """Those of one test, ended with it."""
    made = Installs(tmp_path, registry)
    yield made
    made.end()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_install_leaves_nothing(installs: Installs, number: int) -> None:
    """A signal to the harness alone ends npm, removes the folder, and is told in a sentence."""
    process = installs.start()
    npm = installs.until_npm_asks(process)
    assert len(installs.partial) == 1
    process.send_signal(number)
    _, errors = process.communicate(timeout=_WITHIN_S)
    assert (process.returncode, errors) == (130, "harness: interrupted\n")
    assert installs.partial == set()
    assert not npm.is_running()


def test_what_a_killed_install_left_is_removed_by_the_next(installs: Installs) -> None:
    """kill -9 ends npm too. The next install removes the folder, but none that is in progress."""
    killed = installs.start()
    npm = installs.until_npm_asks(killed)
    killed.kill()
    killed.wait(_WITHIN_S)
    npm.wait(_WITHIN_S)
    left = installs.partial
    assert len(left) == 1

    second = installs.start()
    installs.until_npm_asks(second)
    in_progress = installs.partial
    assert len(in_progress) == 1
    assert in_progress != left

    third = installs.start()
    assert third.stdout is not None
    assert third.stdout.readline().startswith("waiting for another install to finish")
    assert installs.partial == in_progress
    third.send_signal(signal.SIGINT)
    _, errors = third.communicate(timeout=_WITHIN_S)
    assert (third.returncode, errors) == (130, "harness: interrupted\n")
    assert installs.partial == in_progress
