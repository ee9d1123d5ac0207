"""Parses responses: status, entities by partition, and where the next page begins."""

from __future__ import annotations

import collections
import dataclasses
import functools
import gzip
import io
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, quote

from harness.gateway.answers import GatewayAnswer
from harness.gateway.key_ranges import Key
from harness.gateway.requests import Asked, continuation_key
from harness.model.operation import Kind

MAX_PAGE_BYTES = 8 * 1024 * 1024
"""Most bytes of a page without its content coding; a page of Azure has 4 MiB."""
MESSAGE_START = b"<QueueMessage>"
"""The beginning of a message in an answer; inside a text ``<`` would be escaped."""

# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY, _POINT_QUERY = Kind.QUERY, Kind.POINT_QUERY
_NOT_A_PAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_PART_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)
_ERROR_CODE = re.compile(rb'"odata\.error"\s*:\s*\{\s*"code"\s*:\s*"(\w+)"')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the endpoint answered.

    Attributes:
        status: HTTP status; of the part that failed, or of the only query, in a batch.
        error_code: Error code of the service; empty without one.
        found: Number of returned entities by PartitionKey; None stands for entities without one.
        keys: For each returned entity its PartitionKey, in order; empty if they were not kept.
        last: Keys of the last returned entity; None if the answer does not contain them.
        next_key: Key at which the next page begins; None on the last page.
        body_bytes: Bytes of the body with the entities that a request reads.
        certain: Whether ``found`` is what the answer contains, and not the most that it can.
    """

    status: int
    error_code: str = ""
    found: Mapping[str | None, int] = dataclasses.field(default_factory=dict)
    keys: tuple[str | None, ...] = ()
    last: Key | None = None
    next_key: Key | None = None
    body_bytes: int = 0
    certain: bool = True

    @property
    def succeeded(self) -> bool:
        """Whether the endpoint executed the request."""
        return 200 <= self.status < 300

    @property
    def returned(self) -> int:
        return sum(self.found.values())


def read_answer(
    asked: Asked, answer: GatewayAnswer, found: Mapping[str | None, int] | None = None
) -> Answered:
    """Parse the answer to a request.

    ``found`` are the entities by PartitionKey in a page whose body was not kept, or the messages.
    """
    status, headers = answer.status, answer.headers
    if status == 200 and asked.receives:
        messages = _messages(answer) if found is None else sum(found.values())
        count = messages if messages is not None else asked.top or 1
        found = {asked.partition_key: count}
        return Answered(status=status, found=found, certain=messages is not None)
    if status == 202 and asked.kind is not None:
        status = _status_in_batch(answer.body, query=not asked.writes)
    if status >= 400:
        return Answered(status=status, error_code=_error_code(headers, answer.body))
    read = asked.kind is _POINT_QUERY or (asked.kind is _QUERY and status == 200)
    if not read:
        return _without_error(status)
    body_bytes = len(answer.body) if answer.length is None else answer.length
    if asked.kind is _POINT_QUERY:
        return Answered(status=status, body_bytes=body_bytes)
    next_key = continuation_key(headers)
    if found is not None:
        return Answered(status=status, found=found, next_key=next_key, body_bytes=body_bytes)
    entities = entities_in(headers, answer.body)
    keys = tuple(partition for partition, _ in entities)
    last_key, last_row = entities[-1] if entities else (None, None)
    return Answered(
        status=status,
        found=collections.Counter(keys),
        keys=keys,
        last=None if last_key is None or last_row is None else (last_key, last_row),
        next_key=next_key,
        body_bytes=body_bytes,
    )


def entities_in(headers: Mapping[str, str], body: bytes) -> Sequence[tuple[str | None, str | None]]:
    """Return PartitionKey and RowKey of each entity in the page of a query.

    None are returned for an unreadable page, and for one that gzip unpacks to more than
    `MAX_PAGE_BYTES`.
    """
    try:
        if headers.get("Content-Encoding", "") == "gzip":
            body = unpacked(body)
        if not body.lstrip().startswith(b"{"):
            # The only part of a batch.
            body = body[body.index(b"{") : body.rindex(b"}") + 1]
        document = json.loads(body)
        return [(row.get("PartitionKey"), row.get("RowKey")) for row in document["value"]]
    except _NOT_A_PAGE:
        return []


def _messages(answer: GatewayAnswer) -> int | None:
    """Return the number of messages in an answer; None if it cannot be read whole."""
    coding = answer.headers.get("Content-Encoding", "")
    if answer.rest is not None or coding not in ("", "gzip"):
        return None
    try:
        return (unpacked(answer.body) if coding else answer.body).count(MESSAGE_START)
    except ValueError:
        return None


def unpacked(body: bytes, most: int = MAX_PAGE_BYTES) -> bytes:
    """Undo gzip; a `ValueError` if it is incomplete or another text, or holds more bytes."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            plain = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError("not gzip") from error
    if len(plain) > most:
        raise ValueError("too large")
    return plain


def with_top(target: str, rows: int) -> str:
    """Return the target of a query with ``$top``, which no signature covers."""
    return with_parameters(target, {"$top": str(rows)})


def with_parameters(target: str, said: Mapping[str, str | None]) -> str:
    """Return a target whose query has these parameters, or not if None, and others as before."""
    path, _, query = target.partition("?")
    kept = [item for item in parse_qsl(query, keep_blank_values=True) if item[0] not in said]
    kept += [(name, value) for name, value in said.items() if value is not None]
    encoded = "&".join(f"{quote(name, safe='$')}={quote(text)}" for name, text in kept)
    return f"{path}?{encoded}" if encoded else path


@functools.lru_cache(maxsize=256)
def _without_error(status: int) -> Answered:
    return Answered(status=status)


def _status_in_batch(body: bytes, *, query: bool) -> int:
    """Return the status of the part that failed, else 202; of the only part if it is a query."""
    for match in _PART_STATUS.finditer(body):
        status = int(match[1])
        if query or status >= 300:
            return status
    return 202


def _error_code(headers: Mapping[str, str], body: bytes) -> str:
    if code := headers.get("x-ms-error-code"):
        return code
    match = _ERROR_CODE.search(body)
    return "" if match is None else match[1].decode()
