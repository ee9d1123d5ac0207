"""Successful responses: whether they fit the operation, and the entities in them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from harness.endpoint.http.exchange import UNREADABLE, Exchange, ResponseFault
from harness.endpoint.protocol.edm import ReadEntity, is_etag
from harness.endpoint.protocol.multipart import require_success
from harness.endpoint.protocol.odata import MAX_PAGE_ENTITIES, Token
from harness.model.entity import ETAG
from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault


def require_written(operation: Operation, exchange: Exchange) -> None:
    """Check that a write has the response of a successful write.

    Raises:
        PartRefused: the service refused one operation of the transaction.
        ResponseFault: the response is a success of something else.
    """
    if operation.kind is Kind.TRANSACTION:
        _require(exchange, 202)
        if exchange.status == 202:
            content_type = exchange.headers.get("content-type", "")
            require_success(content_type, exchange.body, len(operation.parts))
    elif operation.kind is Kind.INSERT:
        _require(exchange, 201, 204)
    else:
        _require(exchange, 204)


def read_entity(exchange: Exchange) -> ReadEntity | None:
    """The entity that a point query read; None where the service refused.

    Raises:
        ResponseFault: the response is not an entity.
    """
    _require(exchange, 200)
    if exchange.status != 200:
        return None
    document = document_of(exchange.body)
    if type(document.get("value")) is list or not is_etag(document.get(ETAG)):
        raise ResponseFault(Fault.BAD_ANSWER, "the response is not an entity")
    return ReadEntity(document)


def read_page(exchange: Exchange) -> tuple[list[ReadEntity], Token | None]:
    """The entities of a page and where the next page begins; None after the last page.

    Raises:
        ResponseFault: the response is not a page.
    """
    _require(exchange, 200)
    if exchange.status != 200:
        return [], None
    listed = document_of(exchange.body).get("value")
    if type(listed) is not list:
        raise ResponseFault(Fault.BAD_ANSWER, "the response is not a list of entities")
    token = {
        name: key
        for name in ("PartitionKey", "RowKey")
        if (key := exchange.headers.get(f"x-ms-continuation-next{name}"))
    }
    return [ReadEntity(entity) for entity in listed], token or None


def document_of(body: bytes) -> dict[str, Any]:
    """The JSON object in a successful response.

    Raises:
        ResponseFault: the body is not a JSON object, or its list holds something else than
            entities, or more entities than a page can have.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ResponseFault(Fault.BAD_ANSWER, f"the response is not JSON: {error}") from error
    if type(document) is not dict:
        raise ResponseFault(Fault.BAD_ANSWER, "the response is not a JSON object")
    listed = document.get("value")
    if type(listed) is list:
        if len(listed) > MAX_PAGE_ENTITIES:
            raise ResponseFault(
                Fault.TOO_LARGE,
                f"{len(listed):,} entities; a page has at most {MAX_PAGE_ENTITIES:,}",
            )
        if not all(type(entity) is dict for entity in listed):
            raise ResponseFault(Fault.BAD_ANSWER, "the response is not a list of entities")
    return document


def _require(exchange: Exchange, *expected: int) -> None:
    # An unexpected success comes from something that is not the table service.
    if exchange.status < 300 and exchange.status not in expected:
        raise ResponseFault(
            Fault.BAD_ANSWER, f"{exchange.status} is not a response to this request"
        )


_MESSAGE_CHARACTERS = 200
_LONGEST_NUMBER = 15
_ERROR_BYTES = 16 * 1024
"""How much of an error is read. Errors of the service are much shorter."""
_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""A code becomes a name in counts and metrics, so text that does not look like one is dropped."""
_CODE_ELEMENT = re.compile(r"<(?:\w+:)?code(?:\s[^<>]*)?>\s*([^<\s][^<]*)<", re.IGNORECASE)
_MESSAGE_ELEMENT = re.compile(r"<(?:\w+:)?message(?:\s[^<>]*)?>([^<]*)<", re.IGNORECASE)


def read_error(headers: Mapping[str, str], body: bytes) -> tuple[str, str]:
    """The service's error code and message; each is empty where the response holds none.

    Args:
        headers: Headers of the response; their names are found in any case.
        body: Body of the response.
    """
    code = headers.get("x-ms-error-code") or ""
    message = ""
    text = body[:_ERROR_BYTES].decode("utf-8", "replace")
    try:
        error = json.loads(text)["odata.error"]
        code = code or str(error["code"])
        message = str(error["message"]["value"])
    except UNREADABLE:
        if (element := _CODE_ELEMENT.search(text)) is not None:
            code = code or element[1].rstrip()
        message = element[1] if (element := _MESSAGE_ELEMENT.search(text)) is not None else text
    return (code if _CODE.fullmatch(code) else ""), shorten(message)


def shorten(message: str) -> str:
    """The first line of a message, at most 200 characters.

    The service repeats the request id and the time in further lines; attempts record both.
    Characters that cannot be printed, and may not be encodable, become question marks.
    """
    line = message.strip().partition("\n")[0].strip()[:_MESSAGE_CHARACTERS]
    return line if line.isprintable() else "".join(c if c.isprintable() else "?" for c in line)


def retry_after_s(headers: Mapping[str, str]) -> float:
    """How long the service asks to wait, in seconds; 0 where it does not say."""
    for name, unit_s in (("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name) or ""
        if value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER:
            return int(value) * unit_s
    return 0.0
