"""The embedded Azurite: it starts on demand, is stopped when told to, and outlives nobody."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import cast

import psutil
import pytest
import trustme

from harness.endpoint.admin.probe import check
from harness.endpoint.azurite import process as embedded
from harness.endpoint.azurite.process import (
    _GUARD,
    AzuriteProcess,
    installed,
    node,
    start_azurite,
)
from harness.endpoint.credential import EMULATOR_KEY
from harness.model.auth_mode import CREDENTIAL_VARIABLES
from harness.model.errors import SetupError
from harness.model.services.service import Server
from tests.support.certificates import certificate

pytestmark = pytest.mark.azurite

ROOT = Path(__file__).parents[3]


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def gone_within(port: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not listens(port):
            return True
        time.sleep(0.05)
    return False


def test_it_answers_until_it_is_stopped() -> None:
    """A started Azurite answers signed requests on loopback; a stopped one is gone."""
    with start_azurite() as process:
        check(process.endpoint)
        assert process.running
        assert process.endpoint.loopback
    assert not process.running
    assert not listens(process.endpoint.port)
    process.stop()


def test_two_of_them_take_two_ports(azurite: AzuriteProcess) -> None:
    """Without a port each start finds a free one."""
    with start_azurite() as other:
        assert other.endpoint.port != azurite.endpoint.port
        assert other.endpoint.fingerprint != azurite.endpoint.fingerprint


def test_the_port_of_another_azurite_is_named(azurite: AzuriteProcess) -> None:
    """The other one, which answers, is not taken for the new one."""
    port = azurite.endpoint.port
    with pytest.raises(SetupError, match=f"port {port} is in use"):
        start_azurite(port=port)


def test_a_port_in_use_is_named() -> None:
    """A wanted port that somebody else has is a sentence with its number."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"port {port} is in use"):
            start_azurite(port=port)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_cannot_be_is_told(port: int) -> None:
    """A number that is no port is a sentence."""
    with pytest.raises(SetupError, match=f"invalid port {port}"):
        start_azurite(port=port)


def test_its_telemetry_is_not_loaded() -> None:
    """Telemetry is disabled, and loading it would take as long as most of the rest."""
    entry = installed()
    assert entry is not None
    done = subprocess.run(
        [node(), "--require", _GUARD, "-p", "require('applicationinsights').setup"],
        cwd=entry.parent,
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "undefined\n"


@pytest.mark.parametrize("patch", ["", "import gevent.monkey; gevent.monkey.patch_all()"])
def test_it_dies_with_a_killed_parent(patch: str) -> None:
    """After kill -9 of the process that started it nobody listens any more."""
    script = (
        f"{patch}\n"
        "import sys, time\n"
        "from harness.endpoint.azurite.process import start_azurite\n"
        "process = start_azurite()\n"
        "print(process.endpoint.port, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        assert listens(port)
        parent.kill()
    assert gone_within(port, 5)


def test_ctrl_c_in_the_terminal_does_not_reach_it(azurite: AzuriteProcess) -> None:
    """It leads a session of its own, so that signals to our process group pass it by."""
    assert os.getsid(azurite.pid) == azurite.pid


def test_it_is_told_nothing_of_our_environment(azurite: AzuriteProcess) -> None:
    """No variable but PATH reaches it; its accounts have the key that every emulator has."""
    environ = Path(f"/proc/{azurite.pid}/environ")
    if not environ.exists():
        pytest.skip("allowed: no /proc on this system")
    entries = [entry.partition(b"=") for entry in environ.read_bytes().split(b"\0") if entry]
    found = {name: text.decode() for name, _, text in entries}
    assert found.keys() <= {b"PATH", b"AZURITE_ACCOUNTS"}
    accounts = [account.split(":") for account in found[b"AZURITE_ACCOUNTS"].split(";")]
    assert {key for _, key in accounts} == {EMULATOR_KEY}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def trusting(authority: trustme.CA, folder: Path) -> dict[str, str]:
    file = folder / "authority.pem"
    authority.cert_pem.write_to_path(file)
    return {"SSL_CERT_FILE": str(file)}


def serving(authority: trustme.CA, name: str, folder: Path) -> AzuriteProcess:
    files = certificate(folder, name, authority=authority)
    return start_azurite(cert=files.cert, key=files.key)


def test_https_is_checked_against_the_authority_of_the_environment(
    authority: trustme.CA, tmp_path: Path
) -> None:
    """A certificate of the named authority is taken, either variable; one of another is refused."""
    with serving(authority, "127.0.0.1", tmp_path) as process:
        assert process.endpoint.url.startswith("https://")
        environ = trusting(authority, tmp_path)
        check(process.endpoint, environ=environ)
        check(process.endpoint, environ={"REQUESTS_CA_BUNDLE": environ["SSL_CERT_FILE"]})
        stranger = trusting(trustme.CA(), tmp_path)
        with pytest.raises(SetupError, match=r"is not trusted.*SSL_CERT_FILE"):
            check(process.endpoint, environ=stranger)


def test_a_certificate_for_another_host_is_refused(authority: trustme.CA, tmp_path: Path) -> None:
    """The right authority does not help where the certificate names another host."""
    with (
        serving(authority, "elsewhere.test", tmp_path) as process,
        pytest.raises(SetupError, match="is not trusted"),
    ):
        check(process.endpoint, environ=trusting(authority, tmp_path))


def test_a_certificate_file_that_holds_none_is_named(
    azurite: AzuriteProcess, tmp_path: Path
) -> None:
    """A variable that leads nowhere is a sentence with its name."""
    with pytest.raises(SetupError, match=r"SSL_CERT_FILE=.* holds no certificates"):
        check(azurite.endpoint, environ={"SSL_CERT_FILE": str(tmp_path / "none.pem")})


def test_npm_is_told_nothing_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """npm finds its registry by its own variables, and sees no credential of the environment."""
    told: list[dict[str, str]] = []

    class Registry(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            for child in psutil.Process().children():
                if "npm" in " ".join(child.cmdline()):
                    told.append(child.environ())
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            pass

    for variable in (*CREDENTIAL_VARIABLES, "GITHUB_TOKEN", "GF_SECURITY_ADMIN_PASSWORD"):
        monkeypatch.setenv(variable, "secret")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as registry:
        threading.Thread(target=registry.serve_forever).start()
        url = f"http://127.0.0.1:{registry.server_port}/"
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", url)
        try:
            with pytest.raises(SetupError, match="npm could not install"):
                embedded.install(lambda line: None)
        finally:
            registry.shutdown()
    environ = told[0]
    assert environ["NPM_CONFIG_REGISTRY"] == url
    assert environ["PATH"].endswith(os.environ["PATH"])
    assert "secret" not in environ.values()


def test_a_second_install_does_nothing() -> None:
    """Installing what is installed only says so."""
    lines: list[str] = []
    assert embedded.install(lines.append) == embedded.installed()
    assert lines == [f"Azurite {embedded.VERSION} is installed"]


def test_a_server_that_azurite_does_not_have_is_not_one_to_install() -> None:
    """The sentence about a service without a server there names no command that installs it."""
    with pytest.raises(SetupError, match="Azurite has no file server"):
        start_azurite(service=cast("Server", "file"))


def test_a_missing_azurite_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment without Azurite is a sentence with the command that installs it."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(SetupError, match="harness azurite install"):
        start_azurite()


def test_in_the_foreground_it_ends_at_ctrl_c() -> None:
    """`harness azurite start` says where it listens, and SIGINT ends it with exit code 0."""
    with subprocess.Popen(
        [sys.executable, "-m", "harness", "azurite", "start", "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.split("127.0.0.1:")[1].split()[0])
        assert listens(port)
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    assert gone_within(port, 5)
