"""The command under watch: its environment, its CPU, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

import psutil

from harness.measure.counts.generator import CpuSample
from harness.model.errors import SetupError
from harness.model.figures import agreed, counted

_KILLED_WITHIN_S = 5.0
_LOOKED_EVERY_S = 1.0
_MOST_NAMED = 8
_STANDARD_ERROR = 2
_MARK = "TABLE_WATCH"
"""The variable by which the processes of a watch are found, whoever their parent is."""


def with_addresses(command: Sequence[str], *, connection_string: str, endpoint: str) -> list[str]:
    """Replace ``{connection_string}`` and ``{endpoint}`` in the arguments of a command."""
    return [
        part.replace("{connection_string}", connection_string).replace("{endpoint}", endpoint)
        for part in command
    ]


class Application:
    """A running command, with the standard streams of this process.

    In a terminal the command stays in the foreground, so that it may read from the terminal and
    gets Ctrl-C itself. Elsewhere it gets a process group of its own, and signals are passed on.

    Args:
        mark: What no other command has in its environment.
        with_children: Whether the command goes on until every process that it started has ended.
        as_json: Its standard output is standard error.

    Raises:
        SetupError: the command cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        mark: str,
        *,
        with_children: bool = False,
        as_json: bool = False,
    ) -> None:
        self._in_terminal = os.isatty(0)
        self._mark, self._with_children = mark, with_children
        self._children: list[psutil.Process] = []
        self._look_again_s = 0.0
        try:
            self._popen = subprocess.Popen(
                command,
                env={**environ, _MARK: mark},
                stdout=_STANDARD_ERROR if as_json else None,
                process_group=None if self._in_terminal else 0,
            )
        except OSError as error:
            raise SetupError(
                f"the command {command[0]} cannot be started ({error.strerror or error})"
            ) from error

    @property
    def exit_code(self) -> int | None:
        """The exit code; 128 + N after signal N, as in a shell; None while the command runs."""
        code = self._popen.poll()
        if code is None or (self._with_children and self._has_children()):
            return None
        return 128 - code if code < 0 else code

    def _has_children(self) -> bool:
        """Whether processes go on, by a look at all of them once a second and at the end."""
        now_s = time.monotonic()
        running = any(child.is_running() for child in self._children)
        if not running or now_s >= self._look_again_s:
            self._look_again_s = now_s + _LOOKED_EVERY_S
            self._children = self.children()
        return bool(self._children)

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
    def left(self) -> str:
        """That the command has ended, and what goes on; empty without any."""
        pids = [str(process.pid) for process in self.children()]
        if not pids:
            return ""
        return (
            f"the command ended ({self.ended}), but "
            f"{counted(len(pids), 'process', 'processes')} that it started "
            f"{agreed(len(pids), 'goes', 'go')} on (PID {', '.join(pids[:_MOST_NAMED])})"
        )

    def family(self) -> list[psutil.Process]:
        """The process of the command and those below it; once it has ended, what goes on."""
        if self._popen.poll() is not None:
            return self._children
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self._popen.pid)
            return [process, *process.children(recursive=True)]
        return []

    def children(self) -> list[psutil.Process]:
        """What goes on of the processes that the command started, daemons too."""
        found = []
        for process in psutil.process_iter():
            # Processes of other users cannot be looked at.
            with contextlib.suppress(psutil.Error, OSError):
                if (
                    process.pid != self._popen.pid
                    and process.environ().get(_MARK) == self._mark
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    found.append(process)
        return found

    def is_connected_to(self, host: str, port: int) -> bool:
        """Whether a process of the command has a connection to an address of this machine."""
        for process in self.family():
            with contextlib.suppress(psutil.Error, OSError):
                for connection in process.net_connections("tcp"):
                    if connection.raddr and tuple(connection.raddr) == (host, port):
                        return True
        return False

    def pass_on(self, number: int, *, always: bool = False) -> None:
        """Pass a signal of this process on, unless the terminal has sent it to the command too."""
        if self._in_terminal and number == signal.SIGINT and not always:
            return
        self._signal(number)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        # A command of another user cannot be killed.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_KILLED_WITHIN_S)

    @property
    def killed(self) -> bool:
        """Whether a signal ended the command."""
        return (self._popen.poll() or 0) < 0

    def kill_rest(self) -> None:
        """Kill what the command, which has ended, left running.

        In a terminal the process group is also that of the shell's other commands.
        """
        if not self._in_terminal:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        for process in self.children():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _signal(self, number: int) -> None:
        if not self._in_terminal and self._popen.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, number)
            return
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)


class CpuMeter:
    """Samples the CPU of a command, once a second.

    A thread can use one core. The runtimes of Python and Node execute an application in one thread,
    so that the busiest thread shows whether the application has reserves; where an application
    spreads its work over threads, the load of the machine shows it.
    """

    def __init__(self) -> None:
        self._used_s: dict[tuple[int, int], float] = {}
        self._at_s: float | None = None
        psutil.cpu_percent()

    def sample(self, family: Sequence[psutil.Process], now_s: float) -> CpuSample | None:
        """The busiest thread of ``family`` since the last call; None in the first one."""
        used_s: dict[tuple[int, int], float] = {}
        for process in family:
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
