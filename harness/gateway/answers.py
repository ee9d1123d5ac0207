"""Responses of the gateway itself, in the wording of the table service.

Errors are an ``odata.error`` with code and message; the scope of throttling is in the message only.
Successes acknowledge writes that are not executed.

The service answers pages of other origins by the CORS rules of the account, which the gateway does
not have. The gateway repeats what the endpoint last allowed the origin; otherwise a browser would
hide a 503 from the page. Without an endpoint every origin is allowed everything, because nothing is
stored.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Mapping
from typing import NamedTuple, Protocol
from urllib.parse import quote

from harness.gateway.headers import Headers
from harness.gateway.requests import Asked
from harness.model.operation import Kind
from harness.model.outcome import THROTTLING_STATUSES, Scope


class UpstreamBroken(Exception):
    """There was no complete response; the endpoint may have executed the request."""


class ClientBroke(UpstreamBroken):
    """The client broke off while it sent a request, which may have been executed."""


class BodyRest(Protocol):
    """The pieces of a large body after its beginning."""

    async def next_piece(self) -> bytes:
        """Return the next piece; empty at the end.

        Raises:
            UpstreamBroken: the endpoint broke off.
        """

    def close(self) -> None:
        """Give up the pieces that are left."""


class GatewayAnswer(NamedTuple):
    """Status, headers and body.

    Attributes:
        headers: Header fields; names are case-insensitive in an endpoint's answer.
        body: The body; its beginning if there is a ``rest``.
        reason: Reason phrase; empty for that of the status.
        rest: The pieces of a large body after its beginning; None if ``body`` is complete.
        length: Length of a body with a ``rest`` if the endpoint declared it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    reason: bytes = b""
    rest: BodyRest | None = None
    length: int | None = None


class Unpassed(NamedTuple):
    """A request that the gateway answers in place of an endpoint, and the time of the answer."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    asked: Asked
    now: dt.datetime


def refusal(
    status: int,
    scope: Scope,
    headers: Mapping[str, str],
    now: dt.datetime,
    *,
    retry_after_ms: int = 0,
) -> GatewayAnswer:
    """Return the refusal of a request with these headers; ``retry_after_ms`` is 0 for no wait."""
    throttling = THROTTLING_STATUSES[status]
    code, _ = throttling.usual[0]
    answer = error(status, code, throttling.message_for(scope), headers, now)
    if not retry_after_ms:
        return answer
    waited = {**answer.headers, "x-ms-retry-after-ms": str(retry_after_ms)}
    return answer._replace(headers=waited)


def error(
    status: int, code: str, message: str, headers: Mapping[str, str], now: dt.datetime
) -> GatewayAnswer:
    """Return the error of a request with these headers. Id and time are added to the message."""
    request_id = str(uuid.uuid4())
    text = f"{message}\nRequestId:{request_id}\nTime:{now:%Y-%m-%dT%H:%M:%S.%f}0Z"
    document = {"odata.error": {"code": code, "message": {"lang": "en-US", "value": text}}}
    return GatewayAnswer(
        status=status,
        headers=usual_headers(headers, request_id)
        | {"Content-Type": _json_type(headers), "x-ms-error-code": code},
        body=json.dumps(document, separators=(",", ":")).encode(),
    )


def page(status: int, text: str, content_type: str = "text/plain") -> GatewayAnswer:
    return GatewayAnswer(
        status=status,
        headers={"Content-Type": f"{content_type}; charset=utf-8"},
        body=text.encode(),
    )


def acknowledged(request: Unpassed) -> GatewayAnswer:
    """Return the success of a write that was not executed."""
    asked, headers, now = request.asked, request.headers, request.now
    common = usual_headers(headers, str(uuid.uuid4()))
    etag = f"W/\"datetime'{quote(f'{now:%Y-%m-%dT%H:%M:%S.%f}0Z')}'\""
    if asked.kind is Kind.TRANSACTION:
        part = (
            "HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\n"
            f"DataServiceVersion: 1.0;\r\nETag: {etag}\r\n\r\n\r\n"
        )
        return of_batch(part, asked.entities, common)
    if asked.kind is Kind.DELETE:
        return GatewayAnswer(status=204, headers=common)
    if asked.kind is not Kind.INSERT:
        return GatewayAnswer(status=204, headers=common | {"ETag": etag})
    prefer = headers.get("Prefer", "")
    if prefer == "return-no-content":
        applied = {"Preference-Applied": prefer, "ETag": etag}
        return GatewayAnswer(status=204, headers=common | applied)
    return GatewayAnswer(
        status=201,
        headers=common | {"ETag": etag, "Content-Type": _json_type(headers)},
        body=request.body,
    )


_NOTHING_LISTED = (
    b'<?xml version="1.0" encoding="utf-8"?>'
    b"<EnumerationResults><Queues /><Containers /><NextMarker /></EnumerationResults>"
)


def unstored(request: Unpassed) -> GatewayAnswer:
    """Return the response of a gateway without an endpoint: writes succeed, reads find nothing."""
    method, asked, headers, now = request.method, request.asked, request.headers, request.now
    if asked.writes:
        return acknowledged(request)
    if asked.kind is Kind.POINT_QUERY:
        message = "The specified resource does not exist."
        return error(404, "ResourceNotFound", message, headers, now)
    common = usual_headers(headers, str(uuid.uuid4()))
    typed = common | {"Content-Type": _json_type(headers)}
    about_tables = request.target.partition("?")[0].rpartition("/")[2].startswith("Tables")
    if asked.kind is Kind.QUERY or (about_tables and method == "GET"):
        return GatewayAnswer(status=200, headers=typed, body=b'{"value":[]}')
    if about_tables and method in ("POST", "DELETE"):
        if method == "DELETE" or headers.get("Prefer") == "return-no-content":
            return GatewayAnswer(status=204, headers=common)
        return GatewayAnswer(status=201, headers=typed, body=request.body)
    path, _, query = request.target.partition("?")
    if method == "GET" and "comp=list" in query:
        typed = common | {"Content-Type": "application/xml"}
        return GatewayAnswer(status=200, headers=typed, body=_NOTHING_LISTED)
    if path.count("/") == 2 and method in ("PUT", "DELETE") and "comp=" not in query:
        # A queue or a container. Requests of this form that are about tables have ``comp``.
        return GatewayAnswer(status=201 if method == "PUT" else 204, headers=common)
    message = (
        "Without an endpoint the gateway responds only to requests about entities, messages and "
        "blobs, and to those that create, delete or list tables, queues and containers."
    )
    return error(501, "NotImplemented", message, headers, now)


def of_batch(part: str, count: int, headers: Mapping[str, str]) -> GatewayAnswer:
    """Return the response to a transaction with the HTTP response ``part``, ``count`` times."""
    batch, changeset = (f"{name}_{uuid.uuid4()}" for name in ("batchresponse", "changesetresponse"))
    head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary"
    whole = f"--{changeset}\r\n{head}\r\n\r\n{part}"
    text = (
        f"--{batch}\r\nContent-Type: multipart/mixed; boundary={changeset}\r\n\r\n"
        f"{whole * count}--{changeset}--\r\n--{batch}--\r\n"
    )
    content_type = {"Content-Type": f"multipart/mixed; boundary={batch}"}
    return GatewayAnswer(status=202, headers={**headers, **content_type}, body=text.encode())


def usual_headers(headers: Mapping[str, str], request_id: str) -> dict[str, str]:
    """Headers of every response of the service."""
    common = {
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
        "x-ms-request-id": request_id,
        "x-ms-version": headers.get("x-ms-version", "2019-02-02"),
    }
    if (client_id := headers.get("x-ms-client-request-id")) is not None:
        common["x-ms-client-request-id"] = client_id
    return common


def _json_type(headers: Mapping[str, str]) -> str:
    metadata = "nometadata" if "nometadata" in headers.get("Accept", "") else "minimalmetadata"
    return f"application/json;odata={metadata};streaming=true;charset=utf-8"


_MOST_ORIGINS = 100
_ALLOWED = "Access-Control-Allow-Origin"
_ASKED_METHOD = "Access-Control-Request-Method"
_ASKED_HEADERS = "Access-Control-Request-Headers"
_FIELDS = (_ALLOWED, "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers", "Vary")


def is_preflight(method: str, headers: Headers) -> bool:
    """True if a browser asks whether a page of another origin may send a request."""
    return method == "OPTIONS" and "Origin" in headers and _ASKED_METHOD in headers


def permission(headers: Headers) -> GatewayAnswer:
    """Return the answer to a preflight request that allows what it asks for."""
    allowed = {"Access-Control-Allow-Methods": headers[_ASKED_METHOD]}
    if _ASKED_HEADERS in headers:
        allowed["Access-Control-Allow-Headers"] = headers[_ASKED_HEADERS]
    return GatewayAnswer(status=200, headers=allowed | {"Access-Control-Max-Age": "60"})


class CorsAnswers:
    """What the endpoint allowed to origins."""

    def __init__(self) -> None:
        self._by_origin: dict[str, dict[str, str]] = {}

    def learn(self, headers: Headers, answer: GatewayAnswer) -> None:
        """Store what an answer of the endpoint allows the origin of a request that has one."""
        if _ALLOWED not in answer.headers:
            return
        origin = headers["Origin"]
        allowed = {name: answer.headers[name] for name in _FIELDS if name in answer.headers}
        known = self._by_origin.pop(origin, {})
        if len(self._by_origin) >= _MOST_ORIGINS:
            del self._by_origin[next(iter(self._by_origin))]
        # A preflight names no headers to expose.
        self._by_origin[origin] = known | allowed

    def allow(self, headers: Headers, answer: GatewayAnswer) -> GatewayAnswer:
        """Return an answer that pages of the origin of the request may read, and store that."""
        if "Origin" not in headers:
            return answer
        allowed = {_ALLOWED: headers["Origin"], "Access-Control-Expose-Headers": "*"}
        answer = answer._replace(headers={**answer.headers, **allowed, "Vary": "Origin"})
        self.learn(headers, answer)
        return answer

    def add(self, headers: Headers, answer: GatewayAnswer) -> GatewayAnswer:
        """Return an answer of the gateway with the CORS headers for the origin of the request."""
        allowed = self._by_origin.get(headers.get("Origin", ""))
        if not allowed:
            return answer
        return answer._replace(headers={**answer.headers, **allowed})
