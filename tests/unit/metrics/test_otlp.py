"""What an OpenTelemetry receiver is sent, held against the page that Prometheus scrapes."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness.metrics.export import OtlpExport
from harness.metrics.exposition import Exposed
from harness.model.errors import SetupError
from tests.support.metrics_page import WHOLE, received, rendered, series

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otlp is missing")


class Receiver:
    """Takes what is exported, and answers with a status."""

    def __init__(self, status: int = 200) -> None:
        self.taken: list[tuple[str, bytes]] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.taken.append((self.path, body))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def test_a_receiver_is_sent_every_series(receiver: Receiver) -> None:
    """The last state has each series of the metrics page, with its labels and its value."""
    problems: list[str] = []
    OtlpExport(receiver.url, lambda: WHOLE, problems.append).close()
    path, body = receiver.taken[-1]
    assert path == "/v1/metrics"
    assert received(body) == series(rendered(lambda: WHOLE))
    assert problems == []


def test_before_the_first_run_nothing_is_sent(receiver: Receiver) -> None:
    """A process that never ran has no state."""
    OtlpExport(receiver.url, lambda: None, print).close()
    assert receiver.taken == []


@pytest.mark.parametrize("url", ["collector:4318", "ftp://collector", "http://a:b@collector"])
def test_what_is_no_address_is_a_sentence(url: str) -> None:
    """Before a run begins, and a login belongs into a variable."""
    with pytest.raises(SetupError, match="--otlp takes the http or https URL"):
        OtlpExport(url, lambda: None, print)


def test_what_did_not_arrive_is_said() -> None:
    """At the end, with the number of states."""
    receiver = Receiver(400)
    problems: list[str] = []
    shown: Exposed = WHOLE
    OtlpExport(receiver.url, lambda: shown, problems.append).close()
    receiver.close()
    assert problems == ["1 of 1 states of the metrics did not arrive at 127.0.0.1"]
