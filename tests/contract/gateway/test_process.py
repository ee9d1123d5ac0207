"""The gateway as a process: started, said where, ended, and what is said where it cannot start."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.gateway.addresses import COUNTERS_PATH, METRICS_PATH
from harness.gateway.limits import limits_path, load_limits
from harness.gateway.process import gateway_at, start_gateway
from harness.model.errors import SetupError

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


def test_its_limits_are_known_by_its_address() -> None:
    """A run with -H finds them; a server that is none, or nothing, has none."""
    with start_gateway(upstream="none", limits=PUBLISHED) as gateway:
        found = gateway_at(gateway.url)
        assert found is not None
        assert (found.limits, found.before) == (load_limits(PUBLISHED), "none")
        assert found.counters() == gateway.counters()
        assert gateway_at(f"{gateway.url}/elsewhere") is None
    assert gateway_at(gateway.url) is None


def test_its_pages_are_read_under_its_own_names_alone() -> None:
    """A web page whose name was led to this machine reads no keys of it."""
    with start_gateway(upstream="none", limits=PUBLISHED) as gateway:
        place = gateway.url.removeprefix("http://")
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


@pytest.mark.parametrize("module", ["harness.gateway.process", "harness.cli"])
def test_only_the_gateway_itself_imports_what_a_server_needs(module: str) -> None:
    """Every process of a run imports this, and each second of it is waited for."""
    heavy = ("asyncio", "cryptography", "datasketches", "httptools", "numpy", "uvloop")
    script = f"import sys, {module}\nprint([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
