"""Azurite as a child process, in which a guard ends it when its standard input closes."""

from __future__ import annotations

import socket
import ssl
import tempfile
import time
from pathlib import Path
from typing import IO

from harness.endpoint.admin.listing import TABLES
from harness.endpoint.admin.probe import ProbeRequest
from harness.endpoint.azurite.installation import VERSION, installed, node
from harness.endpoint.credential import EMULATOR_ACCOUNT, EMULATOR_KEY, STAND_IN_ACCOUNT
from harness.endpoint.endpoint import emulator_endpoint
from harness.model.errors import SetupError
from harness.model.process import ChildProcess
from harness.model.services.service import Server

_GUARD = Path(__file__).parent / "guard.cjs"
_READY_WITHIN_S = 20.0
_PORT_TRIES = 5
_ACCOUNTS = ";".join(f"{name}:{EMULATOR_KEY}" for name in (EMULATOR_ACCOUNT, STAND_IN_ACCOUNT))


class AzuriteProcess(ChildProcess):
    """An Azurite on loopback that keeps its data in memory."""

    def __init__(
        self,
        entry: Path,
        port: int,
        cert: Path | None,
        key: Path | None,
        log: IO[bytes],
        *,
        oauth: bool = False,
        service: Server = "table",
    ) -> None:
        command = [str(node()), "--require", str(_GUARD), str(entry), "--inMemoryPersistence"]
        command += ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
        command += [f"--{service}Host", "127.0.0.1", f"--{service}Port", str(port)]
        if cert is not None and key is not None:
            command += ["--cert", str(cert.absolute()), "--key", str(key.absolute())]
        if oauth:
            command += ["--oauth", "basic"]
        super().__init__(
            command, cwd=entry.parent, stdout=log, environ={"AZURITE_ACCOUNTS": _ACCOUNTS}
        )
        self.service = service
        self.endpoint = emulator_endpoint(f"{'https' if cert else 'http'}://127.0.0.1:{port}")


def start_azurite(
    *,
    port: int = 0,
    cert: Path | None = None,
    key: Path | None = None,
    oauth: bool = False,
    log_path: Path | None = None,
    service: Server = "table",
) -> AzuriteProcess:
    """Start an Azurite, and wait until it responds.

    Args:
        port: The port to listen on; 0 takes a free port.
        cert: Certificate in PEM, for https.
        oauth: Whether access tokens are accepted too, over https. Their signature is not checked.
        log_path: File for the output; None keeps it only for the message of a failed start.

    Raises:
        SetupError: Azurite is not installed, or did not start within 20 s.
    """
    if not 0 <= port <= 65535:
        raise SetupError(f"invalid port {port}: a port is a number from 0 to 65535")
    entry = installed(service)
    if entry is None:
        raise SetupError(
            f"Azurite {VERSION} is not installed: run `harness azurite install` (or `make azurite`)"
        )
    if port and _taken(port):
        raise SetupError(f"Azurite did not start: port {port} is in use")
    output = ""
    for _ in range(_PORT_TRIES if port == 0 else 1):
        chosen = port or _free_port()
        with _open_log(log_path) as log:
            process = AzuriteProcess(entry, chosen, cert, key, log, oauth=oauth, service=service)
            try:
                if _wait_until_ready(process):
                    return process
            except BaseException:
                process.stop()
                raise
            process.stop()
            output = _last_lines(log)
        # Between the choice of a free port and listening on it, another process may take it.
        if "EADDRINUSE" not in output:
            break
    if "EADDRINUSE" in output:
        raise SetupError(f"Azurite did not start: port {chosen} is in use")
    raise SetupError(
        f"Azurite did not start within {_READY_WITHIN_S:g} s; its last lines:\n{output}"
    )


def _wait_until_ready(process: AzuriteProcess) -> bool:
    """True once Azurite responds to a signed request, False where it ended or took too long."""
    # Nothing secret goes to our own child on loopback; the load checks certificates itself.
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    deadline = time.monotonic() + _READY_WITHIN_S
    while process.running and time.monotonic() < deadline:
        request = ProbeRequest(process.endpoint, TABLES)
        try:
            response = request.send(context=unchecked, timeout_s=2.0, now_s=time.time())
        except SetupError:
            time.sleep(0.05)
            continue
        # A server of anything else has no tables, and refuses. Another server on the same port
        # would respond too; Azurite would then have ended.
        whole = response.status == 200 or process.service != "table"
        if whole and process.running:
            return True
        time.sleep(0.05)
    return False


def _taken(port: int) -> bool:
    """Whether somebody listens there: another Azurite would answer in place of the new one."""
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _open_log(path: Path | None) -> IO[bytes]:
    if path is None:
        return tempfile.TemporaryFile()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w+b")


def _last_lines(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return "\n".join(f"  {line}" for line in lines[-6:])
