"""This process and its children.

The machine it runs on, its clock, its search for reference cycles, work with a time limit; of child
processes what they get of the environment, and how they end.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import gc
import os
import platform
import queue
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Self, TypeVar

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""The same in all containers of a machine, whose CPU they share."""
_OBJECTS_BETWEEN_SEARCHES = 50_000
_T = TypeVar("_T")
_NEEDED = ("PATH", "SYSTEMROOT")
_STOPPED_WITHIN_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine of a process.

    Attributes:
        id: Equal for all processes on one machine, those in containers included.
        cores: Numbers of the logical cores that the process may use.
    """

    id: str
    name: str
    cores: tuple[int, ...]


def this_process_runs_on() -> Machine:
    """The machine of this process. Cores are those of its affinity, where the system has one."""
    try:
        identity = _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        identity = f"{uuid.getnode():x}"
    if hasattr(os, "sched_getaffinity"):
        cores = tuple(sorted(os.sched_getaffinity(0)))
    else:
        cores = tuple(range(os.cpu_count() or 1))
    return Machine(id=identity, name=platform.node() or "this machine", cores=cores)


def search_rarely() -> None:
    """Search for cycles after 50,000 new objects instead of 700, and not in those that exist.

    For a process of its own, whose many short-lived objects form no cycles.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES)


def bounded(work: Callable[[], _T], within_s: float) -> _T:
    """Do ``work`` in a thread of its own, which is abandoned after ``within_s`` seconds.

    Raises:
        TimeoutError: it took longer. Errors of ``work`` are raised as they are.
    """
    results: queue.SimpleQueue[tuple[_T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put((work(), None))
        except BaseException as error:  # Raised again in the thread that waits.
            results.put((None, error))

    threading.Thread(target=run, daemon=True, name="bounded").start()
    try:
        result, error = results.get(timeout=within_s)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def child_environment(environ: Mapping[str, str], *more: str) -> dict[str, str]:
    """The variables that a child needs, so that credentials stay with the harness.

    ``more`` are patterns of further variables, in upper case and matched in any case: ``NPM_*``.
    """
    return {
        name: value
        for name, value in environ.items()
        if any(fnmatch.fnmatchcase(name.upper(), pattern) for pattern in (*_NEEDED, *more))
    }


Clock = Callable[[], float]
"""Returns UTC seconds."""


def epoch_now_s() -> float:
    """UTC seconds at zero of ``time.perf_counter``, by the machine's time of now."""
    return time.time() - time.perf_counter()


def steady_clock(epoch_s: float | None = None) -> Clock:
    """A clock of UTC seconds by ``time.perf_counter``: no step of the machine's time moves it.

    Processes of one machine with the same ``epoch_s`` read the same time; None is `epoch_now_s`.
    """
    counter = time.perf_counter
    epoch_s = epoch_now_s() if epoch_s is None else epoch_s
    return lambda: epoch_s + counter()


class ChildProcess:
    """A child process that ends when it is stopped, and at the latest with this process.

    The child has a session of its own: Ctrl-C in the terminal ends the load, not the endpoint. Its
    standard input is an empty pipe, which closes when this process ends, even by kill -9; the child
    has to end then. Leaving the context stops the child.

    Without ``stderr``, errors go to ``stdout``. ``environ`` is added to `child_environment`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdout: IO[bytes] | int,
        stderr: IO[bytes] | None = None,
        cwd: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._popen = subprocess.Popen(
            command,
            cwd=cwd,
            env={**child_environment(os.environ), **(environ or {})},
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.STDOUT if stderr is None else stderr,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the child runs."""
        return self._popen.poll()

    @property
    def running(self) -> bool:
        return self.exit_code is None

    def wait(self) -> None:
        self._popen.wait()

    def stop(self) -> None:
        """End the child and wait until it is gone. A second call does nothing."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        try:
            self._popen.wait(_STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
