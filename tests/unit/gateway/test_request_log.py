"""The log of requests that a gateway writes as the service does."""

from __future__ import annotations

import json
from pathlib import Path

from harness.gateway.answers import GatewayAnswer
from harness.gateway.counters import Disposition
from harness.gateway.dialect import Dialect
from harness.gateway.headers import Headers
from harness.gateway.messages import Request
from harness.gateway.proxy import Received
from harness.gateway.request_log import RequestLog
from harness.gateway.rules.counting import NO_ENTITIES


class Here:
    """A client that can receive."""

    gone = ended_input = False


def test_the_signature_of_a_sas_is_not_logged(tmp_path: Path) -> None:
    """The service replaces it too: whoever reads a log may do nothing with it."""
    target = "/account/orders()?sv=2019-02-02&Sig=c2VjcmV0%3D&se=2030-01-01"
    headers = Headers.of({})
    request = Request("GET", target, "127.0.0.1:1", "http", headers, b"", True, "1.1", Here())
    dialect = Dialect()
    received = Received(request, dialect.read("GET", target, headers, b""), 1e9, dialect)
    log = RequestLog(tmp_path / "log", lambda sentence: None)
    answer = GatewayAnswer(status=200, headers={})
    log.ended(received, Disposition("passed", "200"), NO_ENTITIES, answer, 1e9 + 0.1)
    log.close()
    written = json.loads((tmp_path / "log").read_text(encoding="utf-8"))
    assert written["uri"] == f"http://127.0.0.1:1{target}".replace("c2VjcmV0%3D", "XXXXX")
