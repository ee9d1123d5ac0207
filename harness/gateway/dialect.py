"""The form of requests and answers, where a service has its own.

Source of that of Azure Cosmos DB for Table: answers of the service that the tests of azure-data-
tables for Python keep (recorded in 2020 and 2021): errors have a code and a message, which ends
with the request's id, and no header of Storage such as ``x-ms-error-code``; a wrong signature is
401 Unauthorized. Those answers show no ``x-ms-request-charge``; the stand-in states it in every
answer, as other APIs of Azure Cosmos DB do. No answer with 429 is kept there: its message, and that
a transaction is answered with 202 whose part has the 429, follow from reports of users (azure-sdk-
for-net, issue 26960; Streamstone, issue 41); its code, and where the wait is stated, are assumed.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import ClassVar
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from harness.gateway import answers
from harness.gateway.answers import GatewayAnswer, Unpassed
from harness.gateway.cosmos import RULES, CosmosLimits
from harness.gateway.headers import Headers
from harness.gateway.messages import RequestRest
from harness.gateway.model import Decision, Model
from harness.gateway.requests import Asked, read_request, weights_in
from harness.model.operation import Kind
from harness.model.outcome import SUBSTATUS_HEADER
from harness.model.request_units import charge_text
from harness.model.services.service import Server

_TRANSACTION = Kind.TRANSACTION
_JSON = "application/json;odata=minimalmetadata"
_XML = "application/xml"
_SERVER = "Microsoft-HTTPAPI/2.0"
_SIGNED = (
    *("Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type"),
    *("Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"),
)
_REFUSED_CREDENTIALS = ("AuthenticationFailed", "AuthorizationFailure")
_XML_ERROR = re.compile(rb"<Code>(\w+)</Code>\s*<Message>([^<\n]*)")
_PART_ERROR = re.compile(rb'\{"odata\.error":[^\r\n]*\}')
_STORAGE_ONLY = frozenset(
    (
        b"x-ms-error-code",
        b"x-ms-request-id",
        b"x-ms-version",
        b"server",
        b"content-type",
        b"content-length",
    )
)
_CHARGE = "x-ms-request-charge"
_PART_HEAD = re.compile(
    rb"^POST(?=[ \t][^\r\n]*\r?\n(?:[^\r\n]+\r?\n)*?X-HTTP-Method:[ \t]*(\w+))",
    re.MULTILINE | re.IGNORECASE,
)


Ask = Callable[[str, str, Headers, bytes, str, RequestRest | None], Awaitable[GatewayAnswer]]
"""`harness.gateway.upstream.Upstream.ask`."""


class Dialect:
    """That of Table storage, which Azurite speaks: nothing is changed.

    A service beside tables has a subclass, of which the proxy has one object.

    Attributes:
        server: The server that speaks it.
        about_stores: Names in logs of the requests about a whole table, by method.
        opaque: Whether bodies are contents that pass unread, in pieces if they are large.
        shown_by: Whether a target with an account in its path is in this dialect for certain; None
            where no target shows it.
    """

    server: ClassVar[Server] = "table"
    about_stores: ClassVar[Mapping[str, str]] = {
        "GET": "QueryTables",
        "POST": "CreateTable",
        "DELETE": "DeleteTable",
    }

    opaque: ClassVar[bool] = False
    shown_by: ClassVar[staticmethod[[str], bool] | None] = None

    def signed(
        self, method: str, account: str, target: str, headers: Headers, length: int | None
    ) -> str:
        """The text that Shared Key signs, for a target with the account in it."""
        path, _, query = target.partition("?")
        comp = next((part for part in query.split("&") if part.startswith("comp=")), "")
        signed = f"{path}?{comp}" if comp else path
        lines = [headers.get(name, "") for name in ("Content-MD5", "Content-Type", "x-ms-date")]
        return "\n".join([method, *lines, f"/{account}{signed}"])

    read = staticmethod(read_request)
    """Parses a request, with what its limits need."""

    def refusal(
        self, decision: Decision, asked: Asked, headers: Mapping[str, str], now: dt.datetime
    ) -> GatewayAnswer:
        """Return the refusal of a request by a limit."""
        wait_ms = decision.retry_after_ms
        return answers.refusal(
            decision.status, decision.scope, headers, now, retry_after_ms=wait_ms
        )

    def acknowledged(self, request: Unpassed) -> GatewayAnswer:
        """Return the success of a write that was not executed."""
        return answers.acknowledged(request)

    def unstored(self, request: Unpassed) -> GatewayAnswer:
        """Return the answer without an endpoint: writes succeed, reads find nothing."""
        return answers.unstored(request)

    def ask(
        self,
        ask: Ask,
        method: str,
        target: str,
        headers: Headers,
        body: bytes,
        host: str,
        rest: RequestRest | None,
    ) -> Awaitable[GatewayAnswer]:
        """Ask Azurite as it understands a request, and return its answer as the service has it."""
        return ask(method, target, headers, body, host, rest)

    def in_form(self, answer: GatewayAnswer, charged: int) -> GatewayAnswer:
        """Return an answer in the form of the service; ``charged`` is in hundredths of an RU."""
        return answer

    def own(self, answer: GatewayAnswer) -> GatewayAnswer:
        """Return an answer of the gateway itself in the form of the service."""
        return self.in_form(answer, 0)


class XmlDialect(Dialect):
    """What queues and blobs have in common: errors in XML, and what Shared Key signs.

    ``in_path`` tells that the account is in the path of requests whose host does not name it.
    """

    def __init__(self, *, in_path: bool = True) -> None:
        self._in_path = in_path

    def signed(
        self, method: str, account: str, target: str, headers: Headers, length: int | None
    ) -> str:
        path, _, query = target.partition("?")
        lines = [method, *(headers.get(name, "") for name in _SIGNED)]
        lines[1 + _SIGNED.index("Content-Length")] = str(length or "")
        fields = [(name.decode().lower(), text.decode("latin-1")) for name, text in headers.fields]
        own = {name: text.strip() for name, text in fields if name.startswith("x-ms-")}
        lines += [f"{name}:{own[name]}" for name in sorted(own)]
        given = parse_qs(query, keep_blank_values=True)
        asked = {name.lower(): ",".join(sorted(texts)) for name, texts in given.items()}
        lines += [f"/{account}{path}", *(f"{name}:{asked[name]}" for name in sorted(asked))]
        return "\n".join(lines)

    def own(self, answer: GatewayAnswer) -> GatewayAnswer:
        """Return an answer in XML: all errors of the gateway are made in JSON first."""
        if answer.status < 400:
            return answer
        error = json.loads(answer.body)["odata.error"]
        message = escape(error["message"]["value"])
        text = f"<Error><Code>{error['code']}</Code><Message>{message}</Message></Error>"
        return in_xml(answer.status, answer.headers, text)


def in_xml(status: int, headers: Mapping[str, str], text: str) -> GatewayAnswer:
    """Return an answer with the XML of ``text``."""
    body = f'<?xml version="1.0" encoding="utf-8"?>{text}'.encode()
    return GatewayAnswer(status, {**headers, "Content-Type": _XML}, body)


class CosmosDialect(Dialect):
    """That of Cosmos DB: other errors, and a charge in the head of each answer."""

    def __init__(self, limits: CosmosLimits) -> None:
        self._limits = limits

    def read(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Asked:
        """Parse a request, with the sizes of its entities."""
        asked = read_request(method, target, headers, body)
        return asked._replace(weights=weights_in(asked, body))

    def refusal(
        self, decision: Decision, asked: Asked, headers: Mapping[str, str], now: dt.datetime
    ) -> GatewayAnswer:
        """Return the refusal of a request, or of a part of a transaction."""
        rule, wait_ms = RULES[decision.rule], decision.retry_after_ms
        answer = _error(rule.status, rule.error_code, self._limits.message(decision.rule))
        stated = {"x-ms-retry-after-ms": wait_ms, SUBSTATUS_HEADER: rule.substatus}
        further = {name: str(value) for name, value in stated.items() if value}
        answer = answer._replace(headers={**answer.headers, **further})
        if asked.kind is not _TRANSACTION or not rule.of_part:
            return answer
        head = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        line = f"HTTP/1.1 {rule.status} {HTTPStatus(rule.status).phrase}"
        return answers.of_batch(f"{line}\r\n{head}\r\n{answer.body.decode()}", 1, further)

    async def ask(
        self,
        ask: Ask,
        method: str,
        target: str,
        headers: Headers,
        body: bytes,
        host: str,
        rest: RequestRest | None,
    ) -> GatewayAnswer:
        """Ask Azurite, and return its answer, whole: the charge is in its head.

        SDKs send a merge in a transaction as POST with X-HTTP-Method to Cosmos DB. Azurite reads
        that header of whole requests only.
        """
        in_batch = headers.get("Content-Type", "").startswith("multipart/mixed")
        if in_batch and b"X-HTTP-Method" in body:
            body = _PART_HEAD.sub(lambda found: found[1].upper(), body)
        answer = await _whole(await ask(method, target, headers, body, host, rest))
        if answer.status == 403:
            code, message = _code_and_message(answer)
            if code in _REFUSED_CREDENTIALS:
                return _error(401, "Unauthorized", message)
        return answer

    def in_form(self, answer: GatewayAnswer, charged: int) -> GatewayAnswer:
        """Return an answer with its charge."""
        if answer.status >= 400 and answer.rest is None:
            code, message = _code_and_message(answer)
            if code:
                own = _error(answer.status, code, message)
                kept = _fields(answer.headers, _STORAGE_ONLY)
                answer = own._replace(headers=Headers([*kept, *Headers.of(own.headers).fields]))
        elif answer.status == 202 and answer.rest is None:
            answer = answer._replace(body=_PART_ERROR.sub(_part_error, answer.body))
        fields = _fields(answer.headers, frozenset((b"server",)))
        stated = ((b"Server", _SERVER.encode()), (_CHARGE.encode(), charge_text(charged).encode()))
        return answer._replace(headers=Headers([*fields, *stated]))


def dialect_of(model: Model) -> Dialect:
    """The dialect of the service whose limits the model has."""
    return Dialect() if model.units is None else CosmosDialect(model.units)


async def _whole(answer: GatewayAnswer) -> GatewayAnswer:
    """Return an answer with all of its body in memory; `UpstreamBroken` if it broke off."""
    if answer.rest is None:
        return answer
    pieces = [answer.body]
    while piece := await answer.rest.next_piece():
        pieces.append(piece)
    return answer._replace(body=b"".join(pieces), rest=None, length=None)


def _error(status: int, code: str, message: str) -> GatewayAnswer:
    return GatewayAnswer(
        status=status,
        headers={"Content-Type": _JSON},
        body=_document(code, message) + b"\r\n",
    )


def _document(code: str, message: str) -> bytes:
    text = f"{message}\nRequestID:{uuid.uuid4()}\n"
    document = {"odata.error": {"code": code, "message": {"lang": "en-us", "value": text}}}
    return json.dumps(document, separators=(",", ":")).encode()


def _part_error(found: re.Match[bytes]) -> bytes:
    code, message = _of_document(found[0])
    return _document(code, message) if code else found[0]


def _code_and_message(answer: GatewayAnswer) -> tuple[str, str]:
    """Code and first line of the message of an error; empty texts if there are none."""
    if (xml := _XML_ERROR.search(answer.body)) is not None:
        return xml[1].decode(), xml[2].decode("utf-8", "replace")
    return _of_document(answer.body)


def _of_document(body: bytes) -> tuple[str, str]:
    try:
        error = json.loads(body)["odata.error"]
        return str(error["code"]), str(error["message"]["value"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", ""


def _fields(headers: Mapping[str, str], unwanted: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    return [field for field in Headers.of(headers).fields if field[0].lower() not in unwanted]
