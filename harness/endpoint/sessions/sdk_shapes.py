"""Calls of azure-data-tables: operations as its arguments, and what it returns as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from azure.core import MatchConditions
from azure.data.tables import EdmType, EntityProperty, TableClient, TableEntity, UpdateMode

from harness.endpoint.http.exchange import bad_answer
from harness.endpoint.protocol.edm import is_etag
from harness.endpoint.protocol.odata import Token, filter_of, page_size
from harness.model.entity import ETAG, Int64
from harness.model.operation import Kind, Operation

_WRITES: dict[Kind, tuple[str, dict[str, Any]]] = {
    Kind.INSERT: ("create", {}),
    Kind.UPSERT_MERGE: ("upsert", {"mode": UpdateMode.MERGE}),
    Kind.UPSERT_REPLACE: ("upsert", {"mode": UpdateMode.REPLACE}),
    Kind.UPDATE_MERGE: ("update", {"mode": UpdateMode.MERGE}),
    Kind.UPDATE_REPLACE: ("update", {"mode": UpdateMode.REPLACE}),
    Kind.DELETE: ("delete", {}),
}
"""The SDK's name of each single write, and its options."""
_NO_ECHO = {"response_preference": "return-no-content"}
_NOT_PLAIN = frozenset((EntityProperty, list, dict))


class Clients(dict[str, TableClient]):
    """The SDK's clients of a workload's tables, by the endings of their names.

    Args:
        made: Makes the client of a table.
        table: Name of the first table.
    """

    def __init__(self, made: Callable[[str], TableClient], table: str) -> None:
        self._made = made
        self._table = table

    def __missing__(self, ending: str) -> TableClient:
        client = self[ending] = self._made(self._table + ending)
        return client


def entity_of(operation: Operation) -> dict[str, Any]:
    """The entity that a write stores, as the SDK takes it."""
    entity: dict[str, Any] = {
        "PartitionKey": operation.partition_key,
        "RowKey": operation.row_key,
    }
    for name, value in (operation.properties or {}).items():
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


def _python_value(stored: object) -> Any:
    if not isinstance(stored, EntityProperty):
        raise TypeError(f"invalid value of a property: {type(stored).__name__}")
    return Int64(stored.value) if stored.edm_type == EdmType.INT64 else stored.value


def call(client: TableClient, operation: Operation, options: Mapping[str, Any], lean: bool) -> Any:
    """Execute one operation, other than a query, by one call of the SDK.

    Args:
        client: The SDK's client of the table.
        operation: The operation.
        options: Keywords for the SDK's pipeline.
        lean: Whether a transaction asks for no echo of the entities that it inserts, and checks
            the number of responses. An application that just calls the SDK does neither.

    Returns:
        The entity that a point query read, else None.
    """
    if operation.kind is Kind.POINT_QUERY:
        select = list(operation.select) or None
        key = operation.partition_key, operation.row_key
        return value_of(client.get_entity(*key, select=select, **options))
    if operation.kind is Kind.TRANSACTION:
        parts = [_write(part, lean) for part in operation.parts]
        responses = client.submit_transaction(parts, **options)
        if lean and len(responses) != len(parts):
            raise bad_answer(f"{len(parts)} parts, but {len(responses)} responses")
        return None
    name, entity, own = _write(operation, lean=False)
    getattr(client, f"{name}_entity")(entity, **own, **options)
    return None


def _write(operation: Operation, lean: bool) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A single write as the SDK's transactions take it: its name, the entity and its options."""
    name, options = _WRITES[operation.kind]
    if name == "create" and lean:
        options = _NO_ECHO
    elif name in ("update", "delete"):
        if operation.etag in (None, "*"):
            options = {**options, "match_condition": MatchConditions.Unconditionally}
        else:
            condition = MatchConditions.IfNotModified
            options = {**options, "etag": operation.etag, "match_condition": condition}
    return name, entity_of(operation), options


def read_page(
    client: TableClient,
    query: Operation,
    options: Mapping[str, Any],
    token: Token | None,
    found: int,
) -> tuple[list[dict[str, Any]], Token | None]:
    """Read one page of a query.

    Args:
        client: The SDK's client of the table.
        query: The query.
        options: Keywords for the SDK's pipeline.
        token: Where the page begins; None is the first page.
        found: Entities that earlier pages returned.

    Returns:
        The entities, and where the next page begins; None after the last page.
    """
    shape: dict[str, Any] = {
        "results_per_page": page_size(query, found),
        "select": list(query.select) or None,
    }
    wanted = filter_of(query)
    listing = (
        client.query_entities(wanted, **shape, **options)
        if wanted
        else client.list_entities(**shape, **options)
    )
    pages = listing.by_page(cast("str | None", token))
    entities = [value_of(entity) for entity in next(pages)]
    return entities, cast("Token | None", cast(Any, pages).continuation_token)
