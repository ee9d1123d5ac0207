"""The live page and the metrics page of a watch, while it goes on."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.contract.watch.conftest import ROOT
from tests.support.ports import free_port

pytestmark = pytest.mark.azurite

PROGRAM = str(ROOT / "tests" / "support" / "watched" / "endings.py")


def get(url: str, path: str, host: str = "", method: str = "GET") -> tuple[int, str, str]:
    """Status, content type and text of an answer."""
    place = urlsplit(url).netloc
    connection = http.client.HTTPConnection(place, timeout=10.0)
    connection.request(method, path, headers={"Host": host or place})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers.get_content_type(), text


@pytest.mark.long
def test_pages_of_a_watch(watch_process: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """The page shows the counts of now, for its own names alone; so do the metrics."""
    watching = watch_process(
        *upstream, "--metrics-port", str(free_port()), "--", sys.executable, PROGRAM, "persist"
    )
    watching.said("ready")
    url, metrics = watching.address("live page"), watching.address("metrics")
    assert get(url, "/")[:2] == (200, "text/html")
    status, kind, text = get(url, "/page.js")
    assert (status, kind, len(text) > 1000) == (200, "text/javascript", True)
    assert get(url, "/page.css")[:2] == (200, "text/css")
    for path in ("/nothing", "/../etc/passwd"):
        assert get(url, path)[0] == 404
    assert get(url, "/data", method="POST")[0] == 501

    def counted() -> dict[str, Any] | None:
        status, kind, text = get(url, "/data")
        assert (status, kind) == (200, "application/json")
        return json.loads(text) if "orders/p" in text else None

    assert watching.wait_for(counted)

    def exposed() -> bool:
        text = get(metrics, "/metrics")[2]
        return 'partition="orders/p"' in text

    assert watching.wait_for(exposed)
    for path in ("/", "/data", "/page.js", "/nothing"):
        for host, status in (("localhost", 200), ("evil.example", 403), ("evil.example:80", 403)):
            found = get(url, path, host)[0]
            assert found == (404 if status == 200 and path == "/nothing" else status)
    assert get(metrics, "/metrics", "evil.example")[0] == 403
    # A browser that closes its page resets its connections.
    for _ in range(5):
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port), timeout=10.0) as connection:
            connection.sendall(b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
            reset = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    assert get(url, "/")[0] == 200
    watching.process.send_signal(signal.SIGINT)
    assert watching.end() == 0, watching.stderr
    assert "Exception" not in watching.stderr


def test_a_used_port_is_a_sentence(watch: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """A port of the live page that another listens on is named, with 2."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        watching = watch(*upstream, "--page-port", str(port), "--", "true")
        assert watching.end() == 2
    assert f"127.0.0.1:{port}" in watching.stderr
    assert "--page-port" in watching.stderr


@pytest.mark.long
def test_no_page(watch: Callable[..., Any], upstream: tuple[str, str]) -> None:
    """-1 serves no page."""
    watching = watch(*upstream, "--page-port", "-1", "--", "true")
    assert watching.end() == 0
    assert "live page" not in watching.stderr
    assert watching.record["counts"]["due"] == 0
