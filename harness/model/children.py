"""Child processes: what they see of the environment, and how they end.

A child gets only the variables that it needs. Credentials and other secrets stay with the harness.
"""

from __future__ import annotations

import fnmatch
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

_NEEDED = ("PATH", "SYSTEMROOT")
_STOPPED_WITHIN_S = 5.0


def child_environment(environ: Mapping[str, str], *more: str) -> dict[str, str]:
    """The environment of a child: PATH, and the variables that match ``more``.

    Args:
        environ: The environment of the harness.
        more: Patterns such as ``NPM_*`` in upper case; variables match in either case.
    """
    return {
        name: value
        for name, value in environ.items()
        if any(fnmatch.fnmatchcase(name.upper(), pattern) for pattern in (*_NEEDED, *more))
    }


class ChildProcess:
    """A child process that ends when it is stopped, and at the latest with this process.

    The child runs in a session of its own, so that Ctrl-C in the terminal ends the load and not the
    endpoint. Its standard input is a pipe that nothing is written to. The pipe closes when this
    process ends, even by kill -9, and the child has to end then. Leaving the context stops it.

    Args:
        command: Program and arguments.
        stdout: File for the output.
        stderr: File for the errors; None sends them to ``stdout``.
        cwd: Working directory; None is this process's.
        environ: Variables besides those of `child_environment`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdout: IO[bytes],
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
        """The process id."""
        return self._popen.pid

    @property
    def running(self) -> bool:
        """False once the child has ended, for whatever reason."""
        return self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code, or None while the child runs."""
        return self._popen.poll()

    def wait(self) -> None:
        """Wait until the child ends by itself."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
