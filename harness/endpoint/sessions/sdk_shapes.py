"""Calls of azure-data-tables: operations as its arguments, and what it returns as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from azure.core import MatchConditions
from azure.data.tables import EdmType, EntityProperty, TableClient, TableEntity, UpdateMode

from harness.endpoint.protocol.edm import is_etag
from harness.endpoint.protocol.odata import Token, filter_of, page_size
from harness.model.entity import ETAG, Int64
from harness.model.operation import Kind, Operation

_NO_ECHO = {"response_preference": "return-no-content"}


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
    """An entity as the SDK read it, as a plain dict.

    Raises:
        TypeError: a property has no valid value, or the ETag is invalid.
    """
    value: dict[str, Any] = {
        name: _python_value(stored) if type(stored) in _NOT_PLAIN else stored
        for name, stored in entity.items()
    }
    value[ETAG] = etag = entity.metadata.get("etag")
    if not is_etag(etag):
        raise TypeError(f"invalid ETag: {etag!r:.40}")
    value["Timestamp"] = entity.metadata.get("timestamp")
    return value


_NOT_PLAIN = frozenset((EntityProperty, list, dict))


def _python_value(stored: object) -> Any:
    if not isinstance(stored, EntityProperty):
        raise TypeError(f"invalid value of a property: {type(stored).__name__}")
    return Int64(stored.value) if stored.edm_type == EdmType.INT64 else stored.value


def _condition(operation: Operation) -> dict[str, Any]:
    if operation.etag in (None, "*"):
        return {"match_condition": MatchConditions.Unconditionally}
    return {"etag": operation.etag, "match_condition": MatchConditions.IfNotModified}


def call(client: TableClient, operation: Operation, options: Mapping[str, Any], lean: bool) -> Any:
    """Execute one operation, other than a query, by one call of the SDK.

    Args:
        client: The SDK's client of the table.
        operation: The operation.
        options: Keywords for the SDK's pipeline.
        lean: Ask for no echo of the entities that a transaction inserts. False is what an
            application gets that just calls the SDK.

    Returns:
        The entity that a point query read; None for a write; for a transaction the number of
        responses to its parts.
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


def read_page(
    client: TableClient,
    operation: Operation,
    token: Token | None,
    found: int,
    options: Mapping[str, Any],
) -> tuple[list[dict[str, Any]], Token | None]:
    """Read one page of a query.

    Args:
        client: The SDK's client of the table.
        operation: The query.
        token: Where the page begins; None is the first page.
        found: Entities that earlier pages returned.
        options: Keywords for the SDK's pipeline.

    Returns:
        The entities, and where the next page begins; None after the last page.
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
