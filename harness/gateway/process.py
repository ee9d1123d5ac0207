"""The gateway as a child process: it is stopped when told to, and dies with the harness anyhow.

It runs in a session of its own, so that Ctrl-C in the terminal ends the load and not what is
stressed. Its standard input is a pipe that nobody writes to; when the harness is gone, even by
kill -9, the pipe ends and the gateway with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from harness.gateway.limits import Limits, load_limits
from harness.gateway.proxy import TRUTH_PATH
from harness.model.errors import SetupError

_PACKAGES = Path(__file__).resolve().parents[2]
_READY_WITHIN_S = 20.0
_STOPPED_WITHIN_S = 5.0
_TOLD_WITHIN_S = 5.0


class GatewayProcess:
    """A running gateway. A context manager that stops it.

    Attributes:
        url: Where it listens: scheme, host and port.
        limits: What it holds a client to.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str, limits: Limits) -> None:
        self._process = process
        self.url = url
        self.limits = limits

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """False once it has ended, for whatever reason."""
        return self._process.poll() is None

    def truth(self) -> bytes:
        """Its truth page, in JSON.

        Raises:
            SetupError: it does not answer.
        """
        # A proxy of the environment is not asked for what is on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(self.url + TRUTH_PATH, timeout=_TOLD_WITHIN_S) as answer:
                content: bytes = answer.read()
        except OSError as error:
            raise SetupError(f"the gateway at {self.url} does not answer: {error}") from error
        return content

    def stop(self) -> None:
        """End it and wait until it is gone. A second call does nothing."""
        _end(self._process)

    def __enter__(self) -> Self:
        """The process itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it."""
        self.stop()


def start_gateway(*, upstream: str, limits: Path, listen: str = "127.0.0.1:0") -> GatewayProcess:
    """Start a gateway, and wait until it listens.

    Args:
        upstream: Scheme, host and port of the endpoint behind it, or ``none``.
        limits: File of the limits it holds.
        listen: Where it listens; port 0 takes a free one.

    Raises:
        SetupError: the limits are wrong, or it did not start within 20 s.
    """
    held_to = load_limits(limits)
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        process = _spawn(upstream, listen, limits, said, complained)
        try:
            url = _wait_until_it_says(process, said)
        except BaseException:
            _end(process)
            raise
        if url:
            return GatewayProcess(process, url, held_to)
        _end(process)
        last_words = _all(complained)
    if process.returncode == 2 and last_words:
        raise SetupError(last_words)
    raise SetupError(
        f"the gateway did not start within {_READY_WITHIN_S:g} s; its last words:\n{last_words}"
    )


def _spawn(
    upstream: str, listen: str, limits: Path, said: IO[bytes], complained: IO[bytes]
) -> subprocess.Popen[bytes]:
    # Nothing of our environment is the gateway's business, credentials least of all.
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "harness.gateway", upstream, listen, str(limits.absolute())],
        env={**kept, "PYTHONPATH": str(_PACKAGES)},
        stdin=subprocess.PIPE,
        stdout=said,
        stderr=complained,
        start_new_session=True,
    )


def _wait_until_it_says(process: subprocess.Popen[bytes], said: IO[bytes]) -> str:
    """Its URL; empty where it ended or took too long."""
    deadline = time.monotonic() + _READY_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        text = _all(said)
        if text.endswith("\n"):
            return text.strip()
        time.sleep(0.02)
    return ""


def _all(file: IO[bytes]) -> str:
    # The child writes at the offset that both share: only pread leaves it where it is.
    return os.pread(file.fileno(), 64 * 1024, 0).decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe that keeps it alive; force it where that does not help."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_STOPPED_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
