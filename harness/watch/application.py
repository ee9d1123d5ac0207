"""The command under watch: its environment, its CPU, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

import psutil

from harness.measure.counts.generator import CpuSample
from harness.model.errors import SetupError

_KILLED_WITHIN_S = 5.0
_CONNECTION_STRING, _ENDPOINT = "{connection_string}", "{endpoint}"


def with_addresses(command: Sequence[str], *, connection_string: str, endpoint: str) -> list[str]:
    """Replace ``{connection_string}`` and ``{endpoint}`` in the arguments of a command."""
    return [
        part.replace(_CONNECTION_STRING, connection_string).replace(_ENDPOINT, endpoint)
        for part in command
    ]


class Application:
    """A running command, with the standard streams of this process.

    In a terminal the command stays in the foreground, so that it may read from the terminal and
    gets Ctrl-C itself. Elsewhere it gets a process group of its own, and signals are passed on.

    Raises:
        SetupError: the command cannot be started.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._in_terminal = os.isatty(0)
        try:
            self._popen = subprocess.Popen(
                command, env=environ, process_group=None if self._in_terminal else 0
            )
        except OSError as error:
            raise SetupError(
                f"the command {command[0]} cannot be started ({error.strerror or error})"
            ) from error

    @property
    def exit_code(self) -> int | None:
        """The exit code; 128 + N after signal N, as in a shell; None while the command runs."""
        code = self._popen.poll()
        return 128 - code if code is not None and code < 0 else code

    @property
    def ended(self) -> str:
        """How the command ended, in words; empty while it runs."""
        code = self._popen.poll()
        if code is None:
            return ""
        if code >= 0:
            return f"exit code {code}"
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
        return f"signal {-code}"

    @property
    def process(self) -> psutil.Process | None:
        """The process; None once it is gone."""
        try:
            return psutil.Process(self._popen.pid)
        except psutil.NoSuchProcess:
            return None

    def pass_on(self, number: int, *, always: bool = False) -> None:
        """Pass a signal of this process on, unless the terminal has sent it to the command too."""
        if self._in_terminal and number == signal.SIGINT and not always:
            return
        self._signal(number)

    def kill(self) -> None:
        """Kill the command and its children."""
        self._signal(signal.SIGKILL)
        # A command of another user cannot be killed.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_KILLED_WITHIN_S)

    @property
    def killed(self) -> bool:
        """Whether a signal ended the command."""
        return (self._popen.poll() or 0) < 0

    def kill_rest(self) -> None:
        """Kill what the command, which has ended, left running in its process group."""
        if not self._in_terminal:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if not self._in_terminal:
                os.killpg(self._popen.pid, number)
                return
            children = []
            with contextlib.suppress(psutil.NoSuchProcess):
                children = psutil.Process(self._popen.pid).children(recursive=True)
            with contextlib.suppress(PermissionError):
                self._popen.send_signal(number)
            for child in children:
                with contextlib.suppress(psutil.Error):
                    child.send_signal(number)


class CpuMeter:
    """Samples the CPU of processes and their descendants, once a second.

    A thread can use one core. The runtimes of Python and Node execute an application in one thread,
    so that the busiest thread shows whether the application has reserves; where an application
    spreads its work over threads, the load of the machine shows it.
    """

    def __init__(self) -> None:
        self._used_s: dict[tuple[int, int], float] = {}
        self._at_s: float | None = None
        psutil.cpu_percent()

    def sample(self, roots: Sequence[psutil.Process], now_s: float) -> CpuSample | None:
        """The busiest thread since the last call; None in the first one."""
        used_s: dict[tuple[int, int], float] = {}
        for root in roots:
            for process in _family(root):
                with contextlib.suppress(psutil.Error):
                    for thread in process.threads():
                        used_s[process.pid, thread.id] = thread.user_time + thread.system_time
        before, before_s = self._used_s, self._at_s
        self._used_s, self._at_s = used_s, now_s
        machine = psutil.cpu_percent()
        if before_s is None or now_s <= before_s:
            return None
        busiest_s = max((used - before.get(key, 0.0) for key, used in used_s.items()), default=0.0)
        return CpuSample(
            second=int(now_s) - 1,
            cpu_percent=min(100.0, 100 * busiest_s / (now_s - before_s)),
            machine_percent=machine,
            lag_s=0.0,
        )


def _family(root: psutil.Process) -> list[psutil.Process]:
    try:
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []
