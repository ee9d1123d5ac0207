"""Azurite as a child process: it is stopped when told to, and dies with the harness anyhow.

It runs in a session of its own, so that Ctrl-C in the terminal ends the load and not the
endpoint. Its standard input is a pipe that nobody writes to: when the harness is gone, even by
kill -9, the pipe ends and the guard inside ends Azurite.
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from harness.endpoint.azurite.installing import VERSION, installed, node
from harness.endpoint.connection import Endpoint, emulator_endpoint
from harness.endpoint.knock import knock
from harness.model.errors import SetupError

_GUARD = Path(__file__).parent / "guard.cjs"
_READY_WITHIN_S = 20.0
_STOPPED_WITHIN_S = 5.0
_PORT_TRIES = 5


class AzuriteProcess:
    """A running Azurite. A context manager that stops it."""

    def __init__(self, process: subprocess.Popen[bytes], endpoint: Endpoint) -> None:
        self._process = process
        self.endpoint = endpoint

    @property
    def pid(self) -> int:
        """The process id of Node itself."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """False once it has ended, for whatever reason."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Wait until it has ended by itself."""
        self._process.wait()

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


def start_azurite(
    *,
    port: int = 0,
    cert: Path | None = None,
    key: Path | None = None,
    log_path: Path | None = None,
) -> AzuriteProcess:
    """Start an Azurite on loopback that keeps its data in memory, and wait until it answers.

    Args:
        port: Where it listens; 0 takes a free port.
        cert: Certificate in PEM, for https.
        key: Its private key.
        log_path: Where its output goes; None keeps it only for the sentence of a failed start.

    Raises:
        SetupError: it is not installed, or did not start within 20 s.
    """
    if not 0 <= port <= 65535:
        raise SetupError(f"there is no port {port}: a port is a number from 0 to 65535")
    entry = installed()
    if entry is None:
        raise SetupError(
            f"Azurite {VERSION} is not installed: run `harness azurite install` (or `make azurite`)"
        )
    last_words = ""
    for _ in range(_PORT_TRIES if port == 0 else 1):
        chosen = port or _free_port()
        with _log(log_path) as log:
            process = _spawn(entry, chosen, cert, key, log)
            endpoint = emulator_endpoint(f"{'https' if cert else 'http'}://127.0.0.1:{chosen}")
            try:
                ready = _wait_until_ready(process, endpoint)
            except BaseException:
                _end(process)
                raise
            if ready:
                return AzuriteProcess(process, endpoint)
            _end(process)
            last_words = _tail(log)
        # Between choosing a free port and listening on it, somebody else may take it.
        if "EADDRINUSE" not in last_words:
            break
    if "EADDRINUSE" in last_words:
        raise SetupError(f"Azurite did not start: port {chosen} is in use")
    raise SetupError(
        f"Azurite did not start within {_READY_WITHIN_S:g} s; its last words:\n{last_words}"
    )


def _spawn(
    entry: Path, port: int, cert: Path | None, key: Path | None, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    command = [str(node()), "--require", str(_GUARD), str(entry)]
    command += ["--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    command += ["--tableHost", "127.0.0.1", "--tablePort", str(port)]
    if cert is not None and key is not None:
        command += ["--cert", str(cert.absolute()), "--key", str(key.absolute())]
    # Nothing of our environment is Azurite's business, credentials least of all.
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return subprocess.Popen(
        command,
        cwd=entry.parent,
        env=kept,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _wait_until_ready(process: subprocess.Popen[bytes], endpoint: Endpoint) -> bool:
    """True when it answers a signed request, False when it ended or took too long."""
    # Nothing secret goes to our own child on loopback; the load checks certificates itself.
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    deadline = time.monotonic() + _READY_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            answer = knock(
                endpoint,
                "Tables",
                {"$top": "1"},
                context=unchecked,
                timeout_s=2.0,
                now_s=time.time(),
            )
        except SetupError:
            time.sleep(0.05)
            continue
        # A stranger on the same port would answer too; ours would then have ended.
        if answer.status == 200 and process.poll() is None:
            return True
        time.sleep(0.05)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe that keeps it alive; force it where that does not help."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_STOPPED_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _log(path: Path | None) -> IO[bytes]:
    if path is None:
        return tempfile.TemporaryFile()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w+b")


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return "\n".join(f"  {line}" for line in lines[-6:])
