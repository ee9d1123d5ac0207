"""Single writes of an entity, by the SDK's generated operations.

`TableClient`'s own methods for them spend a third of their time on what is of no use here: each
string of the entity costs several exceptions in the SDK's general serializer, the headers of the
answer are tidied for a caller who asks for none, and two decorators look for somebody who traces.
The generated operations of updates take a body that is bytes already. On the wire both are the
same.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from azure.core import MatchConditions
from azure.data.tables import TableClient

from harness.model.entity import EdmValue, Int64
from harness.model.operation import Kind, Operation

_MERGES = frozenset((Kind.UPSERT_MERGE, Kind.UPDATE_MERGE))
_UPDATES = frozenset((Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE))

LEAN_KINDS = _MERGES | _UPDATES | {Kind.INSERT, Kind.UPSERT_REPLACE}
"""What `LeanWrites` can send."""


class LeanWrites:
    """Sends inserts, upserts and updates.

    Args:
        client: The SDK's client of the table; it sends nothing but entities and reads.
    """

    def __init__(self, client: TableClient) -> None:
        self._name = client.table_name
        operations = cast(Any, client)._client.table
        # An insert takes no bytes. It is given JSON, which has nothing left to be serialized.
        operations._serialize.body = _as_it_is
        self._insert = _untraced(operations.insert_entity)
        self._merge = _untraced(operations.merge_entity)
        self._update = _untraced(operations.update_entity)

    def send(self, operation: Operation, options: Mapping[str, Any]) -> None:
        """Do one operation of `LEAN_KINDS`.

        Args:
            operation: What is wanted.
            options: Keywords for the SDK's pipeline.
        """
        kind, entity = operation.kind, json_of(operation)
        if kind is Kind.INSERT:
            self._insert(
                self._name,
                table_entity_properties=entity,
                response_preference="return-no-content",
                cls=_discard,
                **options,
            )
            return
        write = self._merge if kind in _MERGES else self._update
        condition = _condition(operation) if kind in _UPDATES else {}
        write(
            self._name,
            _quotable(operation.partition_key),
            _quotable(operation.row_key),
            json.dumps(entity).encode(),
            cls=_discard,
            **condition,
            **options,
        )


def json_of(operation: Operation) -> dict[str, Any]:
    """The entity of a write as the table service's JSON, types annotated as the SDK does.

    Raises:
        TypeError: a value has no Edm type, or does not fit into Edm.Int32.
    """
    entity: dict[str, Any] = {
        "PartitionKey": operation.partition_key,
        "PartitionKey@odata.type": "Edm.String",
        "RowKey": operation.row_key,
        "RowKey@odata.type": "Edm.String",
    }
    for name, value in (operation.properties or {}).items():
        edm_type, entity[name] = edm_json(value)
        if edm_type:
            entity[f"{name}@odata.type"] = edm_type
    return entity


def edm_json(value: EdmValue) -> tuple[str, Any]:
    """Edm type and JSON value of a property; no type where JSON tells it.

    Raises:
        TypeError: it has no Edm type, or does not fit into Edm.Int32.
    """
    if isinstance(value, str):
        return "Edm.String", value
    if isinstance(value, bool):
        return "", value
    if isinstance(value, Int64):
        return "Edm.Int64", str(value)
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise TypeError(f"{value} does not fit into Edm.Int32; wrap it in Int64")
        return "", value
    if isinstance(value, float):
        return "Edm.Double", value if math.isfinite(value) else _NOT_FINITE[str(value)]
    if isinstance(value, bytes):
        return "Edm.Binary", base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        return "Edm.DateTime", _utc(value)
    if isinstance(value, uuid.UUID):
        return "Edm.Guid", str(value)
    raise TypeError(f"no Edm type for {type(value).__name__}")


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _utc(moment: dt.datetime) -> str:
    # What was read is written as it was: the service is ten times as precise as Python.
    as_read: str | None = getattr(moment, "tables_service_value", None)
    if as_read:
        return as_read
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _quotable(key: str) -> str:
    """A key as it stands between quotation marks."""
    return key.replace("'", "''")


def _condition(operation: Operation) -> dict[str, Any]:
    if operation.etag in (None, "*"):
        return {"match_condition": MatchConditions.IfPresent}
    return {"etag": operation.etag, "match_condition": MatchConditions.IfNotModified}


def _as_it_is(entity: dict[str, Any], _data_type: str) -> dict[str, Any]:
    return entity


def _untraced(method: Any) -> Callable[..., None]:
    """A generated operation without the decorator that traces it."""
    return cast("Callable[..., None]", partial(method.__func__.__wrapped__, method.__self__))


def _discard(_response: object, _content: object, _headers: object) -> None:
    return None
