"""Operations: the requests of an application, before anything is sent."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar, cast

from harness.model.entity import MAX_TRANSACTION_OPERATIONS, Properties

_P = ParamSpec("_P")
_T = TypeVar("_T")
_NONE = dataclasses.MISSING


def lean(frozen: Callable[_P, _T]) -> Callable[_P, _T]:
    """A constructor for a frozen, slotted dataclass that takes a third of the usual time.

    Python's own calls ``object.__setattr__`` for each field, and a class that is called with names
    gathers them in a dict first. This function assigns the fields of a subclass that allows it,
    and then sets ``__class__``. The dataclass must have no subclass; its fields can be positional.

    Raises:
        TypeError: the dataclass has a default factory or a ``__post_init__``.
    """
    made = cast("type[Any]", frozen)
    fields = sorted(dataclasses.fields(made), key=lambda field: field.default is not _NONE)
    if hasattr(made, "__post_init__"):
        raise TypeError(f"{made.__name__} has a __post_init__")
    for field in fields:
        if field.default_factory is not _NONE:
            raise TypeError(f"a function makes the default of {made.__name__}.{field.name}")
    # Both, because they share one slot of the type.
    plain = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    opened = type(made.__name__, (made,), {"__slots__": (), **plain})
    names: dict[str, Any] = {"_new": object.__new__, "_opened": opened, "_frozen": made}
    parameters = []
    for place, field in enumerate(fields):
        if field.default is _NONE:
            parameters.append(field.name)
        else:
            names[f"_default_{place}"] = field.default
            parameters.append(f"{field.name}=_default_{place}")
    lines = [
        f"def make({', '.join(parameters)}):",
        "    _made = _new(_opened)",
        *(f"    _made.{field.name} = {field.name}" for field in fields),
        "    _made.__class__ = _frozen",
        "    return _made",
    ]
    # The dataclasses module does the same; no other way leads to a function with these parameters.
    exec("\n".join(lines), names)
    make = names["make"]
    make.__name__ = make.__qualname__ = made.__qualname__
    return cast("Callable[_P, _T]", make)


class KindTraits(NamedTuple):
    """What code asks of a `Kind`, so that no code lists kinds.

    Attributes:
        reads: It is a GET of the documented procedure; others are a PUT.
        on_rows: It is about rows of a table; others say nothing about tables.
        on_messages: It is about messages of a queue.
        untargeted: It is about what no document names a target for, such as a blob. Each request
            counts 1 for its partition, and 0 in sums over partitions, which targets are for.
        receives: It returns messages, as many as there are up to ``Operation.top``.
        part: It writes one row, alone or as a part of a transaction.
        stores: It stores properties of a row.
        upserts: It makes a row, or changes the one that is there.
        updates: It changes a row that is there.
        needs_row: It is refused where there is no row, or the row has another ETag than it names.
        merges: The properties that it does not name stay.
        moves_rows: Its success adds or removes a row.
        doubles: If it is sent twice, it is done twice, and no answer shows that.
        tallied_as: As what the messages of a queue are counted; empty where they are not.
        disputed: Statuses of refusals that an earlier attempt of it can have caused: it inserted
            the row, deleted it, or changed its ETag or the pop receipt of a message. Another writer
            can have caused them as well.
    """

    reads: bool = False
    on_rows: bool = True
    on_messages: bool = False
    untargeted: bool = False
    receives: bool = False
    part: bool = False
    stores: bool = False
    upserts: bool = False
    updates: bool = False
    needs_row: bool = False
    merges: bool = False
    moves_rows: bool = False
    doubles: bool = False
    tallied_as: str = ""
    disputed: tuple[int, ...] = ()


_READ = KindTraits(reads=True)
_INSERT = KindTraits(part=True, stores=True, moves_rows=True, disputed=(409,))
_UPSERT = KindTraits(part=True, stores=True, upserts=True)
_UPDATE = KindTraits(part=True, stores=True, updates=True, needs_row=True, disputed=(404, 412))
_DELETE = KindTraits(part=True, needs_row=True, moves_rows=True, disputed=(404, 412))
_TRANSACTION = KindTraits(disputed=(404, 409, 412))
_BESIDE = KindTraits(on_rows=False)
_ON_MESSAGE = _BESIDE._replace(on_messages=True)
_PUT = _ON_MESSAGE._replace(doubles=True, tallied_as="put")
_RECEIVE = _ON_MESSAGE._replace(reads=True, receives=True)
_HELD = _ON_MESSAGE._replace(disputed=(400, 404))
_DELETED = _HELD._replace(tallied_as="deleted")
_OF_BLOB = _BESIDE._replace(untargeted=True, disputed=(404, 409, 412))
_READ_BLOB = _BESIDE._replace(untargeted=True, reads=True)


class Kind(enum.StrEnum):
    """Kind of an operation, with its `KindTraits` as attributes.

    The value is the name in profiles, metrics and reports. A further kind is an entry here, its
    request in `harness.endpoint.protocol`, and an action in `harness.workload.mix`.

    Attributes:
        logged_as: Name in logs of Azure Storage: "Storage Analytics logged operations and status
            messages".
        method: HTTP method of its request, unless a service has another dialect.
    """

    logged_as: str
    method: str
    reads: bool
    on_rows: bool
    on_messages: bool
    untargeted: bool
    receives: bool
    part: bool
    stores: bool
    upserts: bool
    updates: bool
    needs_row: bool
    merges: bool
    moves_rows: bool
    doubles: bool
    tallied_as: str
    disputed: tuple[int, ...]

    POINT_QUERY = "point_query", "QueryEntity", "GET", _READ
    QUERY = "query", "QueryEntities", "GET", _READ
    INSERT = "insert", "InsertEntity", "POST", _INSERT
    UPSERT_MERGE = "upsert_merge", "InsertOrMergeEntity", "PATCH", _UPSERT._replace(merges=True)
    UPSERT_REPLACE = "upsert_replace", "InsertOrReplaceEntity", "PUT", _UPSERT
    UPDATE_MERGE = "update_merge", "MergeEntity", "PATCH", _UPDATE._replace(merges=True)
    UPDATE_REPLACE = "update_replace", "UpdateEntity", "PUT", _UPDATE
    DELETE = "delete", "DeleteEntity", "DELETE", _DELETE
    TRANSACTION = "transaction", "EntityGroupTransaction", "POST", _TRANSACTION
    PUT_MESSAGE = "put_message", "PutMessage", "POST", _PUT
    GET_MESSAGES = "get_messages", "GetMessages", "GET", _RECEIVE._replace(tallied_as="got")
    PEEK_MESSAGES = "peek_messages", "PeekMessages", "GET", _RECEIVE
    UPDATE_MESSAGE = "update_message", "UpdateMessage", "PUT", _HELD
    DELETE_MESSAGE = "delete_message", "DeleteMessage", "DELETE", _DELETED
    PUT_BLOB = "put_blob", "PutBlob", "PUT", _OF_BLOB
    PUT_BLOCK = "put_block", "PutBlock", "PUT", _OF_BLOB
    PUT_BLOCK_LIST = "put_block_list", "PutBlockList", "PUT", _OF_BLOB
    APPEND_BLOCK = "append_block", "AppendBlock", "PUT", _OF_BLOB._replace(doubles=True)
    PUT_PAGE = "put_page", "PutPage", "PUT", _OF_BLOB
    CHANGE_BLOB = "change_blob", "SetBlobProperties", "PUT", _OF_BLOB
    DELETE_BLOB = "delete_blob", "DeleteBlob", "DELETE", _OF_BLOB
    GET_BLOB = "get_blob", "GetBlob", "GET", _READ_BLOB
    GET_BLOB_PROPERTIES = "get_blob_properties", "GetBlobProperties", "HEAD", _READ_BLOB
    LIST_BLOBS = "list_blobs", "ListBlobs", "GET", _READ_BLOB

    # The defaults are for type checkers, which take ``Kind(value)`` for a call of this method.
    def __new__(
        cls, value: str, logged_as: str = "", method: str = "", traits: KindTraits = _READ
    ) -> Self:
        made = str.__new__(cls, value)
        made._value_ = value
        vars(made).update(traits._asdict(), logged_as=logged_as, method=method)
        return made


BESIDE_ROWS = frozenset(kind.value for kind in Kind if not kind.on_rows)
"""Names of the kinds that are not about rows of a table."""
# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY = Kind.QUERY

WHOLE_TABLE = "/"
"""In place of the PartitionKey of a query over several partitions. No key contains a slash."""

MESSAGE_TEXT = "MessageText"
"""Property of a message that is put or updated: its text. An update without it keeps the text."""
HIDDEN_S = "VisibilityTimeout"
"""Property of a get, put or update: for how many seconds nobody else gets the message."""

FOLDED = "(other)"
"""The row in which partitions, or names of operations, above a limit are counted together."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message that a get or a peek returned, or an update changed.

    Attributes:
        id: Identifies it within its queue.
        receipt: Its pop receipt, which allows to update or delete it until it is visible again;
            empty from a peek.
        text: As it was put; empty from an update.
        gets: How many gets have returned it.
        age_s: Seconds since it was put, by the clock of the service; 0 unless a get returned it.
    """

    id: str
    receipt: str = ""
    text: str = ""
    gets: int = 0
    age_s: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """The keys that a query scans within its partition or table; by default all of them.

    Ranges include their first key (``_from``) and exclude their end (``_before``).

    Attributes:
        entities: Number of entities in the range, before ``filter`` and ``top``; None if unknown.
        exact: False if rows may be inserted into the range or deleted from it during the run.
        wanted: Number of entities, inside the range or not, that the query is meant to return; None
            if unknown.
        preceding: Number of entities of the partition before the range; None if unknown.
        scanned: Entities that a query with a filter scans before its ``top`` ends it, as its
            recording says; None if unknown, because the answer does not show it.
    """

    partition_from: str | None = None
    partition_before: str | None = None
    row_from: str | None = None
    row_before: str | None = None
    entities: int | None = None
    exact: bool = False
    wanted: int | None = None
    preceding: int | None = None
    scanned: int | None = None


new_key_range = lean(KeyRange)
ALL_KEYS = KeyRange()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One request of the application, sent in one or more attempts.

    An operation on messages has the queue as its partition. To update or delete a message takes its
    id, which is the ``row_key``, and the pop receipt of whoever has it, which is the ``etag``.

    Attributes:
        partition_key: `WHOLE_TABLE` for a query over several partitions.
        row_key: Empty for a query and for a transaction.
        table: Ending of the table's name in a workload of several tables; empty is the first.
        name: Name in metrics and reports; empty names it by its kind.
        properties: Properties to write, without the keys.
        etag: For update and delete: act only if the entity has this ETag; None is any.
        parts: The operations of a transaction: at most 100, in one partition, each RowKey once.
        filter: OData filter on properties, in addition to the key range of a query.
        select: Properties to return; empty is all.
        top: The largest number of entities that a query returns; None follows every page. Of a
            get or a peek, that of messages; None is one.
    """

    kind: Kind
    partition_key: str
    row_key: str = ""
    table: str = ""
    name: str = ""
    properties: Properties | None = None
    etag: str | None = None
    parts: tuple[Operation, ...] = ()
    key_range: KeyRange = ALL_KEYS
    filter: str | None = None
    select: tuple[str, ...] = ()
    top: int | None = None

    @property
    def entities_asked(self) -> int:
        """The entity count if it succeeds; for a query, as far as known beforehand."""
        scanned = self.key_range.entities
        if scanned is None:
            if self.top is not None and self.kind.receives:
                return self.top
            # Nothing but a transaction has parts.
            return len(self.parts) or 1
        return max(1, scanned if self.top is None or self.filter else min(scanned, self.top))

    @property
    def partition(self) -> str:
        """Name of the partition in counts: that of its `harness.model.partition.Partition`."""
        return f"{self.table}/{self.partition_key}" if self.table else self.partition_key

    @property
    def label(self) -> str:
        """Name in metrics and reports; by default the kind, or the type of the query."""
        if self.name:
            return self.name
        if self.kind is not _QUERY:
            return self.kind._value_
        keys = self.key_range
        if self.partition_key != WHOLE_TABLE:
            whole = keys.row_from is None and keys.row_before is None
            return "partition_scan" if whole else "row_range_scan"
        whole = keys.partition_from is None and keys.partition_before is None
        return "full_table_scan" if whole else "partition_range_scan"


new_operation = lean(Operation)


def require_text(operation: Operation) -> None:
    """Check that the keys and names of ``operation`` are valid text.

    Raises:
        AttributeError, TypeError: one is not a string.
        UnicodeEncodeError: one contains half a surrogate pair.
    """
    # One check for all of them, because every operation passes here.
    text = operation.partition_key + operation.row_key + operation.table + operation.name
    if not text.isascii():
        text.encode()


def transaction_problem(parts: tuple[Operation, ...]) -> str | None:
    """Why ``parts`` cannot be one entity group transaction; None where they can."""
    if not 1 <= len(parts) <= MAX_TRANSACTION_OPERATIONS:
        return f"a transaction has 1 to {MAX_TRANSACTION_OPERATIONS} operations, not {len(parts)}"
    if any(not part.kind.part for part in parts):
        return "a transaction holds only single writes"
    if len({part.partition for part in parts}) > 1:
        return "a transaction stays in one partition of one table"
    if len({part.row_key for part in parts}) < len(parts):
        return "a transaction names each RowKey once"
    return None


def transaction(parts: tuple[Operation, ...], *, name: str = "") -> Operation:
    """The entity group transaction of ``parts``; a `ValueError` says why they cannot be one."""
    problem = transaction_problem(parts)
    if problem is not None:
        raise ValueError(problem)
    return new_operation(
        kind=Kind.TRANSACTION,
        partition_key=parts[0].partition_key,
        table=parts[0].table,
        name=name,
        parts=parts,
    )
