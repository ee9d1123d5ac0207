"""Child processes: what they get of the environment, and how they end."""

from __future__ import annotations

import fnmatch
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

_NEEDED = ("PATH", "SYSTEMROOT")
_STOPPED_WITHIN_S = 5.0


def child_environment(environ: Mapping[str, str], *more: str) -> dict[str, str]:
    """The variables that a child needs, so that credentials stay with the harness.

    ``more`` are patterns of further variables, in upper case and matched in any case: ``NPM_*``.
    """
    return {
        name: value
        for name, value in environ.items()
        if any(fnmatch.fnmatchcase(name.upper(), pattern) for pattern in (*_NEEDED, *more))
    }


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
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the child runs."""
        return self._popen.poll()

    @property
    def running(self) -> bool:
        return self.exit_code is None

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

    def __exit__(self, *_error: object) -> None:
        self.stop()
