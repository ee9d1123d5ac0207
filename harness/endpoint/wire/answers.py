"""What answers mean, without reading more of them than that takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from harness.endpoint.exchange import Exchange, ResponseFault
from harness.endpoint.wire.entities import Found
from harness.endpoint.wire.multipart import require_success
from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault

_WRITTEN = (204,)
_INSERTED = (201, 204)
_READ = (200,)
_CARRIED_OUT = (202,)


def written(operation: Operation, exchange: Exchange) -> None:
    """See to it that a write was answered as it should be.

    Raises:
        PartRefused: a part of a transaction was refused.
        ResponseFault: it is a success of something else.
    """
    if operation.kind is Kind.TRANSACTION:
        _require(exchange, _CARRIED_OUT)
        if exchange.status == 202:
            content_type = exchange.headers.get("content-type", "")
            require_success(content_type, exchange.body, len(operation.parts))
    elif operation.kind is Kind.INSERT:
        _require(exchange, _INSERTED)
    else:
        _require(exchange, _WRITTEN)


def entity(exchange: Exchange) -> Found | None:
    """The entity that a point query read; None where it was refused.

    Raises:
        ResponseFault: it is no entity.
    """
    _require(exchange, _READ)
    return Found(_document(exchange)) if exchange.status == 200 else None


def page(exchange: Exchange) -> tuple[list[Found], Mapping[str, str] | None]:
    """The entities of a page, and where the next one begins; None behind the last.

    Raises:
        ResponseFault: it is no page.
    """
    _require(exchange, _READ)
    if exchange.status != 200:
        return [], None
    listed = _document(exchange).get("value")
    if not isinstance(listed, list) or not all(type(found) is dict for found in listed):
        raise ResponseFault(Fault.BAD_ANSWER, "the answer is no list of entities")
    token = {
        name: key
        for name in ("PartitionKey", "RowKey")
        if (key := exchange.headers.get(f"x-ms-continuation-next{name}"))
    }
    return [Found(found) for found in listed], token or None


def _require(exchange: Exchange, expected: tuple[int, ...]) -> None:
    """A success that is not one the operation has: somebody else answered."""
    if exchange.status < 300 and exchange.status not in expected:
        raise ResponseFault(Fault.BAD_ANSWER, f"{exchange.status} is no answer to what was asked")


def _document(exchange: Exchange) -> dict[str, Any]:
    try:
        document = orjson.loads(exchange.body)
    except orjson.JSONDecodeError as error:
        raise ResponseFault(Fault.BAD_ANSWER, f"the answer is not JSON: {error}") from error
    if type(document) is not dict:
        raise ResponseFault(Fault.BAD_ANSWER, "the answer is no JSON object")
    return document
