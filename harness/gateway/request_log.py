"""A log of requests as the service writes it: resource logs of Azure Monitor as JSON lines.

Fields: "Azure Table storage monitoring data reference". As there, an insert and a transaction do
not say their keys, because the log has the URL and not the body. The server's latency is the whole
time in the gateway and the endpoint behind it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

import orjson

from harness.gateway.answers import GatewayAnswer
from harness.gateway.counters import Disposition
from harness.gateway.proxy import Meter, Received
from harness.gateway.rules.counting import Count
from harness.model.errors import SetupError, cut

_SIGNATURE = re.compile(r"(?i)(?<=[?&]sig=)[^&]+")
"""That of a SAS, a secret: the service writes it so too."""
_CATEGORIES = {"GET": "StorageRead", "DELETE": "StorageDelete"}


class RequestLog(Meter):
    """Writes a line for each request that the service answered.

    A request whose answer was lost on its way has the status with which the service answered. One
    that never reached the service has no line.

    ``complain`` takes a sentence if the log ends early because the disk is full. A `SetupError`
    says that the file cannot be written.
    """

    def __init__(self, path: Path, complain: Callable[[str], None]) -> None:
        self._path, self._complain = path, complain
        self._broken = False
        try:
            # Who reads it meanwhile finds every request.
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise SetupError(
                f"{cut(str(path))} of --log cannot be written ({error.strerror or error})"
            ) from error

    def close(self) -> None:
        # What a full disk did not take was complained of.
        with contextlib.suppress(OSError):
            self._file.close()

    def ended(
        self,
        received: Received,
        disposition: Disposition,
        count: Count,
        answer: GatewayAnswer | None,
        now_s: float,
    ) -> None:
        status = next(filter(str.isdigit, (disposition.sent, disposition.upstream)), None)
        if status is None or self._broken:
            return
        try:
            self._file.write(_line(received, int(status), answer, now_s))
        except OSError as error:
            self._broken = True
            self._complain(f"{self._path} ends here ({error.strerror or error})")


def _line(received: Received, status: int, answer: GatewayAnswer | None, now_s: float) -> bytes:
    request = received.request
    headers, took_ms = request.headers, round(1000 * (now_s - received.arrived_s), 3)
    arrived = dt.datetime.fromtimestamp(received.arrived_s, dt.UTC)
    text = "Success"
    if status >= 400:
        text = "" if answer is None else answer.headers.get("x-ms-error-code", "")
    return orjson.dumps(
        {
            "time": f"{arrived:%Y-%m-%dT%H:%M:%S.%f}0Z",
            "category": _CATEGORIES.get(request.method, "StorageWrite"),
            "operationName": _name(received),
            "operationVersion": headers.get("x-ms-version", ""),
            "schemaVersion": "1.0",
            "statusCode": status,
            "statusText": text or "ClientOtherError",
            "durationMs": took_ms,
            "correlationId": "" if answer is None else answer.headers.get("x-ms-request-id", ""),
            "uri": f"{request.scheme}://{request.host}{_SIGNATURE.sub('XXXXX', request.target)}",
            "protocol": request.scheme.upper(),
            "properties": {
                "clientRequestId": headers.get("x-ms-client-request-id", ""),
                "userAgentHeader": headers.get("user-agent", ""),
                "serverLatencyMs": took_ms,
                "serviceType": received.dialect.server,
                "operationCount": 0,
                "requestBodySize": request.body_bytes,
                "responseBodySize": 0 if answer is None else answer.length or len(answer.body),
            },
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


def _name(received: Received) -> str:
    if received.asked.kind is not None:
        return received.asked.kind.logged_as
    return received.dialect.about_stores.get(received.request.method, "Unknown")
