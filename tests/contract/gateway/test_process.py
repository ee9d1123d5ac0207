"""The gateway as a process: started, said where, ended, and what is said where it cannot start."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.endpoint.http.pool import CA_VARIABLES, trust_context
from harness.gateway.addresses import COUNTERS_PATH, METRICS_PATH
from harness.gateway.limits import limits_path, load_limits
from harness.gateway.process import gateway_at, read_counters, start_gateway
from harness.model.errors import SetupError
from tests.support.certificates import CertificateFiles, certificate
from tests.support.gateways import GatewayThread, StartGateway

ROOT = Path(__file__).parents[3]
PUBLISHED = limits_path("published")


def test_it_answers_until_it_is_stopped() -> None:
    """A started gateway tells its counters; a stopped one is gone, and says so when asked."""
    with start_gateway(upstream="none", limits=PUBLISHED) as gateway:
        assert b'"requests": 0' in gateway.counters()
        assert gateway.running
    assert not gateway.running
    with pytest.raises(SetupError, match="does not respond"):
        gateway.counters()
    gateway.stop()


@pytest.mark.parametrize("name", ["published", "cosmos"])
def test_its_limits_are_known_by_its_address(name: str) -> None:
    """A run with -H finds them; a server that is none, or nothing, has none."""
    limits = load_limits(limits_path(name))
    gateway = GatewayThread("none", limits)
    found = gateway_at(gateway.url)
    assert found is not None
    assert (found.limits, found.before) == (limits, "none")
    assert found.counters() == gateway.counters()
    assert gateway_at(f"{gateway.url}/elsewhere") is None
    gateway.stop()
    assert gateway_at(gateway.url) is None


GOOD = json.dumps({"limits": {}, "upstream": "none"}).encode()


@contextlib.contextmanager
def served(
    body: bytes, *, status: int = 200, to: str = "", tls: CertificateFiles | None = None
) -> Iterator[str]:
    """A server on this machine that answers everything alike."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Location", to)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.cert, tls.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_no_redirect_leads_a_run_to_another_host() -> None:
    """Where -H sends a run may be asked; where that server points, may not, whatever it is."""
    with served(GOOD) as elsewhere, served(b"", status=302, to=elsewhere) as url:
        assert gateway_at(elsewhere) is not None
        assert gateway_at(url) is None
        with pytest.raises(SetupError, match="302"):
            read_counters(url)


@pytest.mark.parametrize("variable", CA_VARIABLES)
def test_the_authority_of_a_gateway_is_that_of_the_run(variable: str, tmp_path: Path) -> None:
    """What requests trust finds the gateway too."""
    files = certificate(tmp_path)
    with served(GOOD, tls=files) as url:
        assert gateway_at(url, trust_context({variable: str(files.authority)})) is not None
        assert gateway_at(url, trust_context({})) is None


@pytest.mark.parametrize(
    "page",
    [
        *(b"", b"[]", b"\xff", b"[" * 100_000, b'{"limits": {}}'),
        b'{"limits": {}, "upstream": 5}',
        b'{"limits": 5, "upstream": "none"}',
        b'{"limits": {}, "upstream": "http://u:secret@127.0.0.1:1"}',
        b'{"limits": {"partition": {"entities_per_s": Infinity}}, "upstream": "none"}',
        b'{"limits": {"partition": {"entities_per_s": NaN}}, "upstream": "none"}',
        GOOD + b" " * 9_000_000,
    ],
    ids=lambda page: repr(page[:60]),
)
def test_a_page_that_is_none_of_a_gateway_is_no_error(page: bytes) -> None:
    """Anything may listen on this machine: such a run goes on as one without a gateway."""
    with served(page) as url:
        assert gateway_at(url) is None


def test_a_page_that_never_ends_is_given_up() -> None:
    """A byte now and then keeps a socket from its own time-out."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            client, _ = listener.accept()
            with client, contextlib.suppress(OSError):
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                for _ in range(50):
                    client.sendall(b" ")
                    time.sleep(0.1)

        threading.Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(SetupError, match=r"no whole page within 0\.5 s"):
            read_counters(url, within_s=0.5)


def test_its_pages_are_read_under_its_own_names_alone(gateway_to: StartGateway) -> None:
    """A web page whose name was led to this machine reads no keys of it."""
    place = gateway_to(upstream="none").url.removeprefix("http://")
    for path in (COUNTERS_PATH, METRICS_PATH, "/-/nosuchpage"):
        for host, refused in ((place, False), ("localhost", False), ("evil.example", True)):
            connection = http.client.HTTPConnection(place, timeout=10)
            connection.request("GET", path, headers={"Host": host})
            assert (connection.getresponse().status == 403) is refused
            connection.close()


def test_it_outlives_nobody() -> None:
    """After kill -9 of the process that started it, it ends by itself."""
    script = (
        "import time\n"
        "from harness.gateway.limits import limits_path\n"
        "from harness.gateway.process import start_gateway\n"
        "gateway = start_gateway(upstream='none', limits=limits_path('published'))\n"
        "print(gateway.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10.0)
    deadline = time.monotonic() + 10.0
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_port_in_use_is_named() -> None:
    """A wanted port that somebody else listens at is a sentence with its number."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"port {port} of 127.0.0.1 is in use"):
            start_gateway(upstream="none", limits=PUBLISHED, listen=f"127.0.0.1:{port}")


def test_mistakes_of_the_limits_reach_who_started_it(tmp_path: Path) -> None:
    """A child that cannot read its limits ends, and its sentence is the starter's."""
    file = tmp_path / "mine.toml"
    file.write_text("[partition]\ncolour = 1\n[account]\nshape = 2\n", encoding="utf-8")
    with pytest.raises(SetupError) as caught:
        start_gateway(upstream="none", limits=file)
    for place in ("partition.colour", "account.shape"):
        assert place in str(caught.value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_it_ends_at_a_signal(number: signal.Signals) -> None:
    """`harness gateway` says where it listens and before whom, and a signal ends it with 0."""
    arguments = ["--upstream", "none", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-m", "harness", "gateway", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "-> none, limits: published" in process.stdout.readline()
        process.stdout.readline()
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")


OF_A_SERVER = ("asyncio", "cryptography", "datasketches", "httptools", "numpy", "uvloop")


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("harness.gateway.process", OF_A_SERVER),
        ("harness.cli", OF_A_SERVER),
        ("harness.watch.metering", ("azure.data.tables", "cryptography", "gevent")),
    ],
)
def test_a_process_imports_only_what_it_needs(module: str, heavy: tuple[str, ...]) -> None:
    """Each of a run or a watch imports one of these, and each second of it is waited for."""
    script = f"import sys, {module}\nprint([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
