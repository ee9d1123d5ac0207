"""Parses requests as far as the limits need it: kind, keys and entity count.

Keys are in the path of a request about one entity, in the JSON body of an insert, in the parts of
a ``$batch``, and in the ``$filter`` of a query. An unreadable request is not an error here; the
endpoint responds to it. All forms that the table service or Azurite accepts are parsed, including
unusual ones: ``POST table()``, a slash at the end, a method in ``X-HTTP-Method``.

A batch is multipart: a change set of writes, or one query (Microsoft, "Performing entity group
transactions"). Its lines may end with LF alone, and a URL may contain blanks.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

from harness.gateway.key_ranges import IndexRange, Key, index_range
from harness.model.entity import MAX_TRANSACTION_BYTES, canonical_text
from harness.model.operation import Kind
from harness.model.partition import is_beside

_BOUNDARY = re.compile(rb"boundary=\"?([^\s\";]+)")
_FIRST_DELIMITER = re.compile(rb"\A\s*--([^\s]+)")
_REQUEST_LINE = re.compile(
    rb"^(GET|POST|PUT|PATCH|MERGE|DELETE)[ \t]+(\S.*?)(?:[ \t]+HTTP/\d\.\d)?[ \t]*\r?$",
    re.MULTILINE,
)
_IF_MATCH = re.compile(rb"^If-Match:", re.MULTILINE | re.IGNORECASE)
_OVERRIDE = re.compile(rb"^X-HTTP-Method:[ \t]*(\w+)", re.MULTILINE | re.IGNORECASE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_HOST = re.compile(r"[A-Za-z]+://[^/]*")


@dataclasses.dataclass(frozen=True, slots=True)
class BatchPart:
    """One request of a batch.

    Attributes:
        method: That of X-HTTP-Method where POST stands in for it.
        target: Path and query, without scheme and host.
        conditional: It has the header If-Match.
    """

    method: str
    target: str
    body: bytes
    conditional: bool = False


def batch_parts(body: bytes) -> list[BatchPart]:
    """Return the requests in a batch; empty if there are none."""
    boundary = _BOUNDARY.search(body) or _FIRST_DELIMITER.search(body)
    if boundary is None:
        return []
    delimiter = re.compile(rb"(?:\A|\r?\n)--" + re.escape(boundary[1]) + rb"(?=\s|--|\Z)")
    parts = []
    for piece in delimiter.split(body)[1:]:
        line = _REQUEST_LINE.search(piece)
        if line is None:
            continue
        blank = _BLANK_LINE.search(piece, line.end(2))
        target = _HOST.sub("", line[2].decode("utf-8", "replace"), count=1)
        head_end = len(piece) if blank is None else blank.start()
        override = _OVERRIDE.search(piece, line.end(2), head_end)
        method = override[1].upper() if override and line[1] == b"POST" else line[1]
        parts.append(
            BatchPart(
                method.decode(),
                target,
                b"" if blank is None else piece[blank.end() :],
                _IF_MATCH.search(piece, line.end(2), head_end) is not None,
            )
        )
    return parts


_TABLE = r"[A-Za-z][A-Za-z0-9]{2,62}"
_TABLE_PATH = re.compile(rf"({_TABLE})(?:\(\s*\))?")
_TEXT = r"'([^']*(?:''[^']*)*)'"
_ENTITY_PATH = re.compile(
    rf"({_TABLE})\(\s*(PartitionKey|RowKey)\s*=\s*{_TEXT}\s*,"
    rf"\s*(PartitionKey|RowKey)\s*=\s*{_TEXT}\s*\)"
)
_NAMED_TABLE = re.compile(rf"Tables\('({_TABLE})'\)")
# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_POINT_QUERY = Kind.POINT_QUERY
_DELETE = Kind.DELETE
_INSERT = Kind.INSERT
_OVERRIDES = ("GET", "PUT", "PATCH", "MERGE", "DELETE")
_KEYS = ("PartitionKey", "RowKey")
_NOT_ABOUT_ENTITIES = ("acl", "properties", "stats", "list", "metadata")
"""The last two are not of tables, before an answer told that the endpoint has none."""
_WRITES = {
    "PUT": Kind.UPSERT_REPLACE,
    "PATCH": Kind.UPSERT_MERGE,
    "MERGE": Kind.UPSERT_MERGE,
    # Azurite merges.
    "POST": Kind.UPSERT_MERGE,
}
_UPDATES = {
    Kind.UPSERT_REPLACE: Kind.UPDATE_REPLACE,
    Kind.UPSERT_MERGE: Kind.UPDATE_MERGE,
}


# Tuples, because a frozen dataclass takes three times as long to make.
class RowWrite(NamedTuple):
    """An entity that a request writes; ``stays`` is False for a deletion.

    A key is None if it cannot be read.
    """

    partition_key: str | None
    row_key: str | None
    stays: bool = True


class Weight(NamedTuple):
    """How large a written entity is: bytes of its JSON, and properties besides the keys."""

    size: int
    properties: int = 0


class Asked(NamedTuple):
    """One parsed request.

    Attributes:
        kind: Kind of operation; None for requests that are not about entities.
        table: Name of the table in lower case, because names are case-insensitive; empty without
            one.
        spelled: The name of the table as the request spells it.
        partition_key: The partition; None for several partitions, or if unknown.
        entities: Entity count if the request succeeds; for a query the minimum.
        keys: The range of keys that a query scans; that of a continued query begins at the
            continuation.
        row_key: The row of a request about one entity; empty if unknown.
        rows: The entities that a write changes.
        kinds: Kind of each write in a transaction, in the order of ``rows``.
        in_batch: A query is the only request of a batch.
        sizes: Bytes of the body of each write in a transaction.
        patches: The method of the request, or of a part of it, is PATCH.
        weights: How large the entities in ``rows`` are, where the limits need it.

    Beside tables a request has `Service.beside` as its table. ``top`` is the most messages that one
    to a queue gets.
    """

    kind: Kind | None
    table: str = ""
    spelled: str = ""
    partition_key: str | None = None
    entities: int = 0
    keys: IndexRange | None = None
    top: int | None = None
    row_key: str = ""
    rows: tuple[RowWrite, ...] = ()
    kinds: tuple[Kind, ...] = ()
    in_batch: bool = False
    makes_table: bool = False
    drops_table: bool = False
    query: str = ""
    sizes: tuple[int, ...] = ()
    patches: bool = False
    weights: tuple[Weight, ...] = ()

    @property
    def writes(self) -> bool:
        return self.kind is not None and not self.kind.reads

    @property
    def limited(self) -> bool:
        """Whether a limit can be for it: one about entities, or about messages."""
        return self.kind is not None and not self.kind.untargeted

    @property
    def receives(self) -> bool:
        """Whether it gets messages, or peeks at them."""
        return self.kind is not None and self.kind.receives

    @property
    def ranged_table(self) -> str:
        """The table whose ranges hold the partition; beside tables a name for it alone.

        Each queue is on one server, and different queues may be on different ones.
        """
        return f"{self.table}/{self.partition_key}" if is_beside(self.table) else self.table


NOTHING = Asked(kind=None)
"""A request about neither entities nor tables."""


def read_request(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Asked:
    """Parse a request; ``target`` is percent-encoded."""
    path, _, query = target.partition("?")
    segment = _resource(path)
    patches = method == "PATCH"
    if "X-HTTP-Method" in headers:
        override = headers["X-HTTP-Method"].strip().upper()
        if override in _OVERRIDES and (method == "POST" or override != "PUT"):
            method = override
    if segment == "$batch":
        return _read_batch(body) if method == "POST" else NOTHING
    if (match := _ENTITY_PATH.fullmatch(segment)) is not None:
        asked = _read_entity(method, match, headers)
        return asked._replace(patches=True) if patches else asked
    if segment == "Tables" or segment.startswith("Tables("):
        return _read_tables(method, segment, body)
    if (match := _TABLE_PATH.fullmatch(segment)) is not None:
        if method == "POST":
            return _read_insert(match[1], body)
        if method == "GET":
            return _read_query(match[1], query)
    return NOTHING


def _resource(path: str) -> str:
    """Return the decoded part of the path behind the account.

    The account is the first segment, or in the name of the host; then there is only one segment. No
    key contains a slash, and a path may end with one.
    """
    segments = list(filter(None, path.split("/")))
    if not segments:
        return ""
    segment = segments[1] if len(segments) > 1 else segments[0]
    return unquote(segment) if "%" in segment else segment


def _read_tables(method: str, segment: str, body: bytes) -> Asked:
    if method == "POST" and segment in ("Tables", "Tables()"):
        name = _text_of(body, "TableName")
        if name is not None and _TABLE_PATH.fullmatch(name) is not None:
            return Asked(kind=None, table=name.lower(), spelled=name, makes_table=True)
    if method == "DELETE" and (match := _NAMED_TABLE.fullmatch(segment)) is not None:
        return Asked(kind=None, table=match[1].lower(), spelled=match[1], drops_table=True)
    return NOTHING


def _keys_of(match: re.Match[str]) -> Key | None:
    _, name, text, other_name, other_text = match.groups()
    if name == other_name:
        return None
    key, other_key = _plain(text), _plain(other_text)
    return (key, other_key) if name == "PartitionKey" else (other_key, key)


def _read_entity(method: str, match: re.Match[str], headers: Mapping[str, str]) -> Asked:
    keys = _keys_of(match)
    if keys is None:
        return NOTHING
    kind = _kind_of(method, conditional="If-Match" in headers)
    if kind is None:
        return NOTHING
    partition_key, row_key = keys
    spelled = match[1]
    rows = () if kind is _POINT_QUERY else (RowWrite(partition_key, row_key, kind is not _DELETE),)
    # By position, which takes half the time.
    return Asked(kind, spelled.lower(), spelled, partition_key, 1, None, None, row_key, rows)


def _kind_of(method: str, *, conditional: bool) -> Kind | None:
    """Return the kind of a request about one entity."""
    if method == "GET":
        return _POINT_QUERY
    if method == "DELETE":
        return _DELETE
    kind = _WRITES.get(method)
    return _UPDATES[kind] if kind is not None and conditional else kind


def _read_query(table: str, query: str) -> Asked:
    parameters = {
        name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()
    }
    if parameters.get("comp") in _NOT_ABOUT_ENTITIES:
        return NOTHING
    keys = index_range(parameters.get("$filter", ""))
    partition_key = keys.only
    first = _continued_at(parameters.get("NextPartitionKey"), parameters.get("NextRowKey"))
    if first is not None:
        keys = keys.within(first)
    top = parameters.get("$top", "")
    return Asked(
        kind=Kind.QUERY,
        table=table.lower(),
        spelled=table,
        partition_key=partition_key,
        entities=1,
        keys=keys,
        top=int(top) if top.isdecimal() and len(top) < 10 else None,
        query=query,
    )


def _continued_at(partition_token: str | None, row_token: str | None) -> Key | None:
    partition_key = None if partition_token is None else _decoded(partition_token)
    return None if partition_key is None else (partition_key, _decoded(row_token or "") or "")


def _decoded(token: str) -> str | None:
    """Decode a continuation: base64; Azure puts exclamation marks before it and - for =."""
    try:
        encoded = token.rpartition("!")[2].replace("-", "=")
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def continuation_key(headers: Mapping[str, str]) -> Key | None:
    """Return the key at which the next page of a query begins; None on the last page."""
    tokens = (headers.get(f"x-ms-continuation-Next{name}") for name in _KEYS)
    return _continued_at(*tokens)


def _read_insert(table: str, body: bytes) -> Asked:
    row = _row_of(body)
    return Asked(
        kind=Kind.INSERT,
        table=table.lower(),
        spelled=table,
        partition_key=row.partition_key,
        entities=1,
        row_key=row.row_key or "",
        rows=(row,),
    )


def _read_batch(body: bytes) -> Asked:
    parts = batch_parts(body)
    writes = [part for part in parts if part.method != "GET"]
    if parts and not writes:
        # A batch may hold one query instead of writes. Azurite responds to the first of several.
        asked = read_request("GET", parts[0].target, {}, b"")
        return asked._replace(in_batch=True)
    table, rows, kinds = "", [], []
    # The service refuses a query beside writes; Azurite executes the writes alone.
    for part in writes:
        name, row = _read_part(part)
        table = table or name
        rows.append(row)
        inserts = part.method == "POST"
        kind = None if inserts else _kind_of(part.method, conditional=part.conditional)
        kinds.append(kind or _INSERT)
    if not table:
        return NOTHING
    # The service refuses a transaction over several partitions; Azurite accepts it.
    keys = {row.partition_key for row in rows}
    return Asked(
        kind=Kind.TRANSACTION,
        table=table.lower(),
        spelled=table,
        partition_key=keys.pop() if len(keys) == 1 else None,
        entities=len(writes),
        rows=tuple(rows),
        kinds=tuple(kinds),
        sizes=tuple([len(part.body) for part in writes]),
        patches=any(part.method == "PATCH" for part in writes),
    )


def _read_part(part: BatchPart) -> tuple[str, RowWrite]:
    """Return the table of a part, empty if it cannot be read, and the entity."""
    segment = _resource(part.target.partition("?")[0])
    if (match := _ENTITY_PATH.fullmatch(segment)) is not None:
        keys = _keys_of(match)
        if keys is not None:
            return match[1], RowWrite(*keys, part.method != "DELETE")
    if (match := _TABLE_PATH.fullmatch(segment)) is not None:
        return match[1], _row_of(part.body)
    return "", RowWrite(None, None)


def _row_of(body: bytes) -> RowWrite:
    return RowWrite(_text_of(body, "PartitionKey"), _text_of(body, "RowKey"))


def _text_of(body: bytes, name: str) -> str | None:
    try:
        value = json.loads(body)[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return _text(value) if isinstance(value, str) else None


def _text(value: str) -> str:
    # Half of a surrogate pair is no text; nothing could count or show it.
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def _plain(text: str) -> str:
    """Undo the doubled quotes of the protocol."""
    return text.replace("''", "'") if "''" in text else text


def properties_in(asked: Asked, body: bytes, names: Sequence[str]) -> tuple[dict[str, str], ...]:
    """Return texts of named properties of each entity that a request writes, as ``asked.rows``.

    What cannot be read has no values.
    """
    return tuple([_values(written, names) for written in _written_bodies(asked, body)])


def _written_bodies(asked: Asked, body: bytes) -> Sequence[bytes]:
    if asked.kind is Kind.TRANSACTION:
        return [part.body for part in batch_parts(body) if part.method != "GET"]
    return (body,) if asked.writes else ()


def _values(body: bytes, names: Sequence[str]) -> dict[str, str]:
    try:
        document = json.loads(body) if len(body) <= MAX_TRANSACTION_BYTES else {}
    except (ValueError, RecursionError):
        return {}
    found = {}
    for name in names if isinstance(document, dict) else ():
        text = canonical_text(document.get(name), str(document.get(f"{name}@odata.type", "")))
        if text is not None:
            found[name] = _text(text)
    return found


def weights_in(asked: Asked, body: bytes) -> tuple[Weight, ...]:
    """Return the weight of each entity that a request writes, in the order of ``asked.rows``."""
    return tuple([_weight(written) for written in _written_bodies(asked, body)])


def _weight(body: bytes) -> Weight:
    body = body.strip()
    try:
        names = tuple(json.loads(body)) if body.startswith(b"{") else ()
    except (ValueError, RecursionError):
        names = ()
    # Annotations are the names of types, such as ``Total@odata.type``, and ``odata.etag``.
    own = [name for name in names if "@" not in name and not name.startswith("odata.")]
    return Weight(len(body), sum(name not in _KEYS for name in own))
