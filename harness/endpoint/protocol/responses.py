"""Responses: whether a success fits the operation, the entities in it, and what an error says."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from harness.endpoint.http.exchange import (
    CHARGE_HEADER,
    Exchange,
    ResponseFault,
    ResponseHeaders,
    bad_answer,
)
from harness.endpoint.protocol.edm import ReadEntity, is_etag
from harness.endpoint.protocol.multipart import part_responses, require_success
from harness.model.entity import ETAG, MAX_PAGE_ENTITIES
from harness.model.errors import printable
from harness.model.operation import Kind, Operation
from harness.model.outcome import SUBSTATUS_HEADER, Fault, attempt_code
from harness.model.request_units import hundredths

_MESSAGE_CHARACTERS = 200
_LONGEST_NUMBER = 15
_ERROR_BYTES = 16 * 1024
"""How much of an error is read. Errors of the service are much shorter."""
_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""A code becomes a name in counts and metrics, so text that does not look like one is dropped."""
_CODE_ELEMENT = re.compile(r"<(?:\w+:)?code(?:\s[^<>]*)?>\s*([^<\s][^<]*)<", re.IGNORECASE)
_MESSAGE_ELEMENT = re.compile(r"<(?:\w+:)?message(?:\s[^<>]*)?>([^<]*)<", re.IGNORECASE)
_NO_ERROR = (ValueError, LookupError, TypeError, RecursionError)
_WRITTEN = {Kind.TRANSACTION: (202,), Kind.INSERT: (201, 204)}
"""The status of a successful write where it is not 204."""
_NAME = CHARGE_HEADER.encode()
_TRANSACTION = 202


def read_error(headers: Mapping[str, str], body: bytes) -> tuple[str, str]:
    """The error code and message of an attempt, each empty where the response holds none.

    The table service responds in JSON; front ends and gateways before it respond in XML. Nothing
    that a response can hold raises an error. Names of headers are found in any case.
    """
    code = headers.get("x-ms-error-code") or ""
    message = ""
    text = body[:_ERROR_BYTES].decode("utf-8", "replace")
    try:
        error = json.loads(text)["odata.error"]
        code = code or str(error["code"])
        message = str(error["message"]["value"])
    except _NO_ERROR:
        if (element := _CODE_ELEMENT.search(text)) is not None:
            code = code or element[1].rstrip()
        message = element[1] if (element := _MESSAGE_ELEMENT.search(text)) is not None else text
    code = attempt_code(code, message, headers.get(SUBSTATUS_HEADER) or "")
    return (code if _CODE.fullmatch(code) else ""), shorten(message)


def shorten(message: str) -> str:
    """The first line of a message, `printable`, at most 200 characters.

    Further lines of the service repeat the request id and the time, which attempts record.
    """
    line = message.strip().partition("\n")[0].strip()[:_MESSAGE_CHARACTERS]
    return printable(line)[:_MESSAGE_CHARACTERS]


def retry_after_s(headers: Mapping[str, str]) -> float:
    """The wait that the service asks for, in seconds; 0 for none."""
    for name, unit_s in (("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name) or ""
        if value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER:
            return int(value) * unit_s
    return 0.0


def require_written(operation: Operation, exchange: Exchange) -> None:
    """Check that a write has the response of a successful write.

    Raises:
        PartRefused: the service refused one operation of the transaction.
        ResponseFault: the response is a success of something else.
    """
    _require(exchange, *_WRITTEN.get(operation.kind, (204,)))
    if operation.kind is Kind.TRANSACTION and exchange.status == 202:
        content_type = exchange.headers.get("content-type", "")
        require_success(content_type, exchange.body, len(operation.parts))


def read_entity(exchange: Exchange) -> ReadEntity | None:
    """The entity that a point query read, None if refused; a `ResponseFault` for anything else."""
    _require(exchange, 200)
    if exchange.status != 200:
        return None
    document = document_of(exchange.body)
    if type(document.get("value")) is list or not is_etag(document.get(ETAG)):
        raise bad_answer("the response is not an entity")
    return ReadEntity(document)


def read_page(exchange: Exchange) -> tuple[list[ReadEntity], Mapping[str, str] | None]:
    """The entities of a page and the next page's token; a `ResponseFault` for anything else."""
    _require(exchange, 200)
    if exchange.status != 200:
        return [], None
    listed = document_of(exchange.body).get("value")
    if type(listed) is not list:
        raise bad_answer("the response is not a list of entities")
    token = {
        name: key
        for name in ("PartitionKey", "RowKey")
        if (key := exchange.headers.get(f"x-ms-continuation-next{name}"))
    }
    return [ReadEntity(entity) for entity in listed], token or None


def document_of(body: bytes) -> dict[str, Any]:
    """The JSON object of a success; a `ResponseFault` if it is none, or its list is not a page."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_answer(f"the response is not JSON: {error}") from error
    if type(document) is not dict:
        raise bad_answer("the response is not a JSON object")
    listed = document.get("value")
    if type(listed) is list:
        if len(listed) > MAX_PAGE_ENTITIES:
            raise ResponseFault(
                Fault.TOO_LARGE,
                f"{len(listed):,} entities; a page has at most {MAX_PAGE_ENTITIES:,}",
            )
        if not all(type(entity) is dict for entity in listed):
            raise bad_answer("the response is not a list of entities")
    return document


def _require(exchange: Exchange, *expected: int) -> None:
    # An unexpected success comes from something that is not the table service.
    if exchange.status < 300 and exchange.status not in expected:
        raise bad_answer(f"{exchange.status} is not a response to this request")


def charge_of(status: int, header: Callable[[str], str | None], body: bytes) -> int:
    """The charge of a response, in hundredths of a request unit.

    It is 0 where the service names none, or none that can be read. For a transaction it is that of
    the whole response, or the sum of the parts if only they name one.

    Args:
        header: Returns a header by its name in lower case; empty or None if there is none.
    """
    if text := header(CHARGE_HEADER):
        return hundredths(text) or 0
    if status != _TRANSACTION or _NAME not in body:
        return 0
    with contextlib.suppress(ResponseFault):
        parts = part_responses(header("content-type") or "", body)
        texts = [ResponseHeaders.of(part.head).get(CHARGE_HEADER, "") for part in parts]
        return sum(hundredths(text) or 0 for text in texts)
    return 0
