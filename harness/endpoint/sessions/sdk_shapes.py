"""Operations and entities in the SDK's shapes and back; errors out of answers.

A value that was read is a plain dict with ``PartitionKey`` and ``RowKey``, the properties as
Python values (`Int64` for Edm.Int64), ``Timestamp``, and the ETag under ``odata.etag``. These are
the names on the wire; no property of an entity can have them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from azure.core import MatchConditions
from azure.data.tables import EdmType, EntityProperty, TableClient, TableEntity, UpdateMode

from harness.model.entity import ETAG, Int64
from harness.model.operation import WHOLE_TABLE, Kind, Operation

MAX_PAGE_ENTITIES = 1000
_MESSAGE_CHARACTERS = 200

_NO_ECHO = {"response_preference": "return-no-content"}

_CODE_ELEMENT = re.compile(r"<(?:\w+:)?code[^>]*>([^<]*)<", re.IGNORECASE)
_MESSAGE_ELEMENT = re.compile(r"<(?:\w+:)?message[^>]*>([^<]*)<", re.IGNORECASE)

Token = Mapping[str, str]
"""Where the next page of a query begins."""


def entity_of(operation: Operation) -> dict[str, Any]:
    """The entity that a write stores, as the SDK takes it."""
    entity: dict[str, Any] = {
        "PartitionKey": operation.partition_key,
        "RowKey": operation.row_key,
    }
    if operation.properties:
        for name, value in operation.properties.items():
            entity[name] = EntityProperty(value, EdmType.INT64) if type(value) is Int64 else value
    return entity


def value_of(entity: TableEntity) -> dict[str, Any]:
    """An entity as the SDK read it, as a plain dict."""
    value: dict[str, Any] = {
        name: _python_value(stored) if type(stored) is EntityProperty else stored
        for name, stored in entity.items()
    }
    value[ETAG] = entity.metadata.get("etag")
    value["Timestamp"] = entity.metadata.get("timestamp")
    return value


def _python_value(stored: EntityProperty) -> Any:
    return Int64(stored.value) if stored.edm_type == EdmType.INT64 else stored.value


def filter_of(operation: Operation) -> str:
    """The OData filter of a query; empty for the whole table."""
    terms = []
    if operation.partition_key != WHOLE_TABLE:
        terms.append(f"PartitionKey eq {_literal(operation.partition_key)}")
    if operation.partition_from is not None:
        terms.append(f"PartitionKey ge {_literal(operation.partition_from)}")
    if operation.partition_before is not None:
        terms.append(f"PartitionKey lt {_literal(operation.partition_before)}")
    if operation.row_from is not None:
        terms.append(f"RowKey ge {_literal(operation.row_from)}")
    if operation.row_before is not None:
        terms.append(f"RowKey lt {_literal(operation.row_before)}")
    if operation.filter:
        terms.append(f"({operation.filter})" if terms else operation.filter)
    return " and ".join(terms)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _condition(operation: Operation) -> dict[str, Any]:
    if operation.etag in (None, "*"):
        return {"match_condition": MatchConditions.Unconditionally}
    return {"etag": operation.etag, "match_condition": MatchConditions.IfNotModified}


def send(client: TableClient, operation: Operation, options: Mapping[str, Any], lean: bool) -> Any:
    """Do one operation, a query excepted, by one call of the SDK.

    Args:
        client: The SDK's client of the table.
        operation: What is wanted.
        options: Keywords for the SDK's pipeline.
        lean: Ask for no echo of the entities that a transaction inserts. False is what an
            application gets that just calls the SDK.

    Returns:
        The entity a point query read; None for a write; for a transaction how many parts were
        answered.
    """
    return _CALLS[operation.kind](client, operation, options, lean)


def _point_query(client: TableClient, op: Operation, options: Mapping[str, Any], _: bool) -> Any:
    select = list(op.select) or None
    return value_of(client.get_entity(op.partition_key, op.row_key, select=select, **options))


def _insert(client: TableClient, op: Operation, options: Mapping[str, Any], _: bool) -> None:
    client.create_entity(entity_of(op), **options)


def _upsert(client: TableClient, op: Operation, options: Mapping[str, Any], _: bool) -> None:
    client.upsert_entity(entity_of(op), _MODES[op.kind], **options)


def _update(client: TableClient, op: Operation, options: Mapping[str, Any], _: bool) -> None:
    client.update_entity(entity_of(op), _MODES[op.kind], **_condition(op), **options)


def _delete(client: TableClient, op: Operation, options: Mapping[str, Any], _: bool) -> None:
    client.delete_entity(op.partition_key, op.row_key, **_condition(op), **options)


def _transaction(client: TableClient, op: Operation, options: Mapping[str, Any], lean: bool) -> int:
    return len(client.submit_transaction([_part(part, lean) for part in op.parts], **options))


def _part(part: Operation, lean: bool) -> tuple[str, dict[str, Any], dict[str, Any]]:
    if part.kind is Kind.INSERT:
        return "create", entity_of(part), _NO_ECHO if lean else {}
    if part.kind is Kind.DELETE:
        return "delete", entity_of(part), _condition(part)
    if part.kind in (Kind.UPSERT_MERGE, Kind.UPSERT_REPLACE):
        return "upsert", entity_of(part), {"mode": _MODES[part.kind]}
    return "update", entity_of(part), {"mode": _MODES[part.kind], **_condition(part)}


_MODES = {
    Kind.UPSERT_MERGE: UpdateMode.MERGE,
    Kind.UPSERT_REPLACE: UpdateMode.REPLACE,
    Kind.UPDATE_MERGE: UpdateMode.MERGE,
    Kind.UPDATE_REPLACE: UpdateMode.REPLACE,
}

_CALLS: dict[Kind, Callable[[TableClient, Operation, Mapping[str, Any], bool], Any]] = {
    Kind.POINT_QUERY: _point_query,
    Kind.INSERT: _insert,
    Kind.UPSERT_MERGE: _upsert,
    Kind.UPSERT_REPLACE: _upsert,
    Kind.UPDATE_MERGE: _update,
    Kind.UPDATE_REPLACE: _update,
    Kind.DELETE: _delete,
    Kind.TRANSACTION: _transaction,
}


def page_size(query: Operation, found: int) -> int | None:
    """How many entities the next page is to have; None is as many as the service gives.

    Args:
        query: The query.
        found: Entities that earlier pages brought.
    """
    return None if query.top is None else min(query.top - found, MAX_PAGE_ENTITIES)


def read_page(
    client: TableClient,
    operation: Operation,
    token: Token | None,
    found: int,
    options: Mapping[str, Any],
) -> tuple[list[dict[str, Any]], Token | None]:
    """One page of a query.

    Args:
        client: The SDK's client of the table.
        operation: The query.
        token: Where the page begins; None is the first page.
        found: Entities that earlier pages brought.
        options: Keywords for the SDK's pipeline.

    Returns:
        The entities, and where the next page begins; None behind the last.
    """
    size = page_size(operation, found)
    select = list(operation.select) or None
    wanted = filter_of(operation)
    if wanted:
        listing = client.query_entities(wanted, results_per_page=size, select=select, **options)
    else:
        listing = client.list_entities(results_per_page=size, select=select, **options)
    pages = listing.by_page(cast("str | None", token))
    entities = [value_of(entity) for entity in next(pages)]
    return entities, cast("Token | None", cast(Any, pages).continuation_token)


def read_error(headers: Mapping[str, str], body: bytes) -> tuple[str, str]:
    """The service's error code and message; empty where the answer holds none.

    The table service answers in JSON; what stands before it (front ends, gateways) in XML.

    Args:
        headers: Of the answer; names in any case.
        body: Of the answer.
    """
    code = headers.get("x-ms-error-code") or ""
    message = ""
    text = body.decode("utf-8", "replace")
    try:
        error = json.loads(text)["odata.error"]
        code = code or str(error["code"])
        message = str(error["message"]["value"])
    except (ValueError, KeyError, TypeError):
        if (element := _CODE_ELEMENT.search(text)) is not None:
            code = code or element[1]
        message = element[1] if (element := _MESSAGE_ELEMENT.search(text)) is not None else text
    return code, shorten(message)


def shorten(message: str) -> str:
    """The first line of a message, at most 200 characters.

    The lines behind it repeat the request id and the time, which attempts have of their own.
    """
    return message.strip().partition("\n")[0].strip()[:_MESSAGE_CHARACTERS]


def retry_after_s(headers: Mapping[str, str]) -> float:
    """How long the service asks to wait, in seconds; 0 where it does not say."""
    for name, unit_s in (("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name) or ""
        if value.isascii() and value.isdigit():
            return int(value) * unit_s
    return 0.0
