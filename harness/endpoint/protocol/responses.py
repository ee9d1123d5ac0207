"""Responses: whether a success fits the operation, the entities in it, and what an error says."""

from __future__ import annotations

from typing import Any

import orjson

from harness.endpoint.http.exchange import Exchange, ResponseFault, bad_answer
from harness.endpoint.protocol.edm import ReadEntity, is_etag
from harness.endpoint.protocol.multipart import require_success
from harness.endpoint.protocol.odata import MAX_PAGE_ENTITIES, Token
from harness.model.entity import ETAG
from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault

_WRITTEN = {Kind.TRANSACTION: (202,), Kind.INSERT: (201, 204)}
"""The status of a successful write where it is not 204."""


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


def read_page(exchange: Exchange) -> tuple[list[ReadEntity], Token | None]:
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
