"""Starts `locust` processes without importing Locust and the harness again for each of them.

The imports take longer than most runs of the tests. One process imports once, and forks for each
run, as `locust --processes` forks its workers. A forked process runs Locust's own `main`, in a
session, a folder and an environment of its own, like one that was started anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.network.hosts import Host, enter

_ROOT = Path(__file__).parents[2]
_OUTPUTS = ("stdout.txt", "stderr.txt")
_LOOK_EVERY_S = 0.02
_START_WITHIN_S = 60.0


class ForkServer:
    """The process that forks. It ends with the process that started it, and the forks of that."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self._wanted = os.fdopen(writing, "wb", buffering=0)
        self._process = subprocess.Popen(
            # The last argument is for tests that look for processes of this name.
            [sys.executable, "-m", "tests.support.fork_server", "locust"],
            cwd=_ROOT,
            stdin=reading,
        )
        os.close(reading)

    def start(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        environ: Mapping[str, str],
        hook: Path,
        host: Host | None = None,
    ) -> ForkedProcess:
        """Start `locust`.

        Args:
            arguments: What follows `locust` on the command line.
            folder: The working folder; `stdout.txt` and `stderr.txt` are written there.
            environ: The whole environment.
            hook: A file of Python code that runs before Locust.
            host: The host that it runs on; None is this machine.
        """
        for name in _OUTPUTS:
            (folder / name).touch()
        wanted = {
            "arguments": list(arguments),
            "folder": str(folder),
            "environ": dict(environ),
            "hook": str(hook),
            "host": None if host is None else (host.name, host.namespace),
        }
        file = folder / "wanted.json"
        file.write_text(json.dumps(wanted), encoding="utf-8")
        # What is so short is written in one piece: several processes may write.
        self._wanted.write(f"{file}\n".encode())
        return ForkedProcess(folder)

    def end(self) -> None:
        """End the process; those that it forked go on."""
        self._wanted.close()
        self._process.wait(_START_WITHIN_S)


class ForkedProcess:
    """A forked process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, folder: Path) -> None:
        self._exit_code = folder / "exit_code"
        self.returncode: int | None = None
        pid = folder / "pid"
        deadline = time.monotonic() + _START_WITHIN_S
        while not pid.exists():
            assert time.monotonic() < deadline, "the fork server did not start the process"
            time.sleep(_LOOK_EVERY_S)
        self.pid = int(pid.read_text())

    def poll(self) -> int | None:
        """The exit code, or None while the process runs."""
        if self.returncode is None:
            with contextlib.suppress(FileNotFoundError):
                self.returncode = int(self._exit_code.read_text())
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once the process has ended.

        Raises:
            subprocess.TimeoutExpired: It still runs after so many seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self._exit_code.parent), timeout or 0.0)
            time.sleep(_LOOK_EVERY_S)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """End it as a supervisor does."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _become(wanted: Mapping[str, Any]) -> None:
    """Make this process look like `locust` that was started in a folder with an environment."""
    os.setsid()
    if wanted["host"] is not None:
        enter(*wanted["host"])
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environ"])
    for number, name in enumerate((os.devnull, *_OUTPUTS)):
        opened = os.open(name, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    # As Python opens standard error: line by line, and what cannot be encoded is escaped.
    sys.stderr = os.fdopen(
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.argv = ["locust", *wanted["arguments"]]
    sys.path[0] = wanted["folder"]
    exec(compile(Path(wanted["hook"]).read_bytes(), wanted["hook"], "exec"), {})


def _written(file: Path, number: int) -> None:
    """Write a file that is there with its whole content or not at all."""
    beside = file.with_suffix(".tmp")
    beside.write_text(str(number))
    beside.rename(file)


def _wait_for(folder: Path, pid: int, waitpid: Callable[[int, int], tuple[int, int]]) -> None:
    _written(folder / "pid", pid)
    _, status = waitpid(pid, 0)
    _written(folder / "exit_code", os.waitstatus_to_exitcode(status))


def main() -> None:
    """Fork for each line of standard input; a forked process returns when its run is over."""
    # Those of Python: Locust replaces them by gevent's, which need a loop in this process.
    fork, waitpid = os.fork, os.waitpid

    import gc

    import gevent
    import locust.main

    import harness.swarm  # noqa: F401

    gc.freeze()
    # Nobody waits for the processes between this one and those that run.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        if fork() != 0:
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        file = Path(line.decode().rstrip("\n"))
        wanted = json.loads(file.read_bytes())
        # It may hold secrets, for which tests look through the folder.
        file.unlink()
        pid = fork()
        if pid != 0:
            _wait_for(Path(wanted["folder"]), pid, waitpid)
            os._exit(0)
        gevent.reinit()
        _become(wanted)
        locust.main.main()
        return


if __name__ == "__main__":
    main()
