"""The blob session: batches of lines appended to a blob a period, in place of rows of a table.

The performance checklist, "Storing structured data in blobs": data that is inserted in batches and
read in ranges, as a log file is, needs fewer requests and objects as blobs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import gevent.lock
import orjson
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError
from azure.core.rest import HttpRequest

from harness.endpoint.attempts import OperationAttempts, Page
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.entra.login import Login
from harness.endpoint.http.channel import Channel
from harness.endpoint.http.exchange import Exchange, bad_answer
from harness.endpoint.protocol.edm import EntityWriter
from harness.endpoint.protocol.requests import Token
from harness.endpoint.retrying import RetryingSession
from harness.endpoint.session import SessionOptions
from harness.endpoint.sessions.sdk import GeventTransport, SdkResponse, read_by_sdk
from harness.model.errors import SetupError
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Outcome, Result
from harness.model.services.blobs import READ_BYTES

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient


def container_client(endpoint: Endpoint, name: str, **options: Any) -> ContainerClient:
    """A client of a container, which is like a table; a `SetupError` if the library is missing."""
    try:
        from azure.storage.blob import ContainerClient
    except ModuleNotFoundError:
        raise SetupError(
            "session blob needs the package azure-storage-blob: run `pip install "
            "azure-storage-blob`, or install the harness with its extra [blob]"
        ) from None
    return ContainerClient(endpoint.url, name, **endpoint.credential.for_sdk(), **options)


_FIRST_BYTES = 64 * 1024
"""Bytes in which the first line of a blob must end, where lines are read by range."""
_CREATED, _EXISTS = 201, 409
_OFFSET = "offset"


def blob_problem(operation: Operation) -> str | None:
    """Why ``operation`` cannot be one on a blob; None where it can."""
    if operation.kind is not Kind.QUERY:
        writes = operation.parts or (operation,)
        possible = all(write.kind is Kind.INSERT for write in writes)
    else:
        keys = operation.key_range
        counted = keys.preceding is not None and keys.entities is not None
        possible = operation.partition_key != WHOLE_TABLE and (counted or not _ranged(operation))
        possible = possible and not (operation.filter or operation.select or operation.top)
    if possible:
        return None
    return (
        f"the operation {operation.label!r} is not one on blobs: lines are only appended to a blob,"
        " and read back whole or by range. Use inserts, whole partitions, and ranges with known"
        " numbers of entities in and before them, as profile log-in-blobs does"
    )


def _ranged(query: Operation) -> bool:
    return query.key_range.row_from is not None or query.key_range.row_before is not None


class _Content:
    """A body that was read whole, as the stream that the SDK of blobs expects."""

    # The SDK sets the properties from the headers.
    properties: object = None

    def __init__(self, response: SdkResponse) -> None:
        self.response = response
        self.content_length = len(response.content)

    def __iter__(self) -> Iterator[bytes]:
        return iter((self.response.content,))


class _BlobResponse(SdkResponse):
    def stream_download(  # type: ignore[override]
        self, *_pipeline: object, **_options: object
    ) -> _Content:
        return _Content(self)


class _BlobTransport(GeventTransport):
    def __init__(self, channel: Channel, login: Login | None) -> None:
        super().__init__(channel)
        self._login = login

    def send(self, request: HttpRequest, **options: Any) -> SdkResponse:
        if self._login is not None:
            # The SDK keeps a token until shortly before its end, also one that was refused.
            request.headers["Authorization"] = self._login.header
        super().send(request, **options)
        response = _BlobResponse(request, options["exchange"])
        # The SDK would answer a challenge by a second request, which nobody counts.
        response.headers.pop("www-authenticate", None)
        return response


class BlobSession(RetryingSession):
    """Sends inserts and reads of partitions to append blobs, through azure-storage-blob.

    A partition is a blob, whose name is the PartitionKey. An entity is a line: its JSON, as a table
    gets it. So a line counts as an entity, and a batch as a transaction:

    - An insert, or a transaction of inserts, is one append. The first one of this process to a blob
      creates the blob before; that request is an attempt of the same operation, answered with 409
      where the blob exists.
    - A query of a whole partition reads the blob whole, 4 MiB a request.
    - A query of a range of RowKeys reads a range of bytes. All lines must have the same length, so
      that the number of lines before the range says where it begins. The first such query of this
      process reads the beginning of the blob before, to learn the length.

    An append whose answer was lost is not sent again, because that could write its lines twice; it
    is ambiguous.
    """

    def __init__(self, options: SessionOptions) -> None:
        super().__init__(options)
        endpoint = options.endpoint
        self._container = container_client(
            endpoint,
            options.table,
            transport=_BlobTransport(self._channel, endpoint.login),
            # The session itself sends a request again.
            retry_total=0,
            permit_redirects=False,
        )
        self._entities = EntityWriter()
        self._created: set[str] = set()
        self._creating = gevent.lock.BoundedSemaphore()
        self._line_bytes = 0

    def execute(
        self, operation: Operation, due_s: float | None = None, *, keep: bool = True
    ) -> Result:
        if operation.kind is Kind.QUERY:
            return super().execute(operation, due_s, keep=keep)
        attempts = OperationAttempts(operation, self._on_attempt)
        blob = operation.partition_key
        # Users of one process wait for the one that creates the blob, rather than create it too.
        with contextlib.nullcontext() if blob in self._created else self._creating:
            if blob not in self._created:
                outcome, _ = self._attempt(attempts, operation, self._create)
                if attempts.attempts[-1].status not in (_CREATED, _EXISTS):
                    return attempts.result(outcome, None, due_s)
                self._created.add(blob)
                attempts.report()
        outcome, _ = self._attempt(attempts, operation, self._send, resend_lost=False)
        if attempts.attempts[-1].ambiguous:
            outcome = Outcome.AMBIGUOUS
        return attempts.result(outcome, None, due_s)

    def _create(self, operation: Operation, exchange: Exchange) -> None:
        missing = {"match_condition": MatchConditions.IfMissing, **_options(exchange)}
        with read_by_sdk(exchange), contextlib.suppress(ResourceExistsError):
            self._container.get_blob_client(operation.partition_key).create_append_blob(**missing)

    def _send(self, operation: Operation, exchange: Exchange) -> None:
        parts = operation.parts or (operation,)
        lines = "".join(f"{self._entities.text(part)}\n" for part in parts)
        client = self._container.get_blob_client(operation.partition_key)
        with read_by_sdk(exchange):
            client.append_block(lines.encode("ascii"), **_options(exchange))

    def _page(self, query: Operation, exchange: Exchange, token: Token | None, found: int) -> Page:
        if _ranged(query):
            return self._page_of_range(query, exchange, found)
        # Whole lines of the next 4 MiB; the next page begins after the last of them.
        offset = 0 if token is None else int(token[_OFFSET])
        content = self._read(query, exchange, offset, READ_BYTES)
        whole = content.rfind(b"\n") + 1
        end = offset + whole
        if not whole:
            raise bad_answer(f"no line ends in {len(content):,} bytes of a blob")
        # The size in the properties of the SDK is that of what was read.
        size = exchange.header("content-range").rpartition("/")[2]
        if not (size.isascii() and size.isdigit()):
            raise bad_answer("the response does not say how large the blob is")
        return _lines(content[:whole]), None if end >= int(size) else {_OFFSET: str(end)}

    def _page_of_range(self, query: Operation, exchange: Exchange, found: int) -> Page:
        """The next lines of a range; the first page of this process only measures a line."""
        keys = query.key_range
        assert keys.preceding is not None
        assert keys.entities is not None
        if not self._line_bytes:
            self._line_bytes = self._read(query, exchange, 0, _FIRST_BYTES).find(b"\n") + 1
            if not self._line_bytes:
                raise bad_answer(f"no line ends in the first {_FIRST_BYTES:,} bytes of a blob")
            return (), {_OFFSET: "0"}
        size, left = self._line_bytes, keys.entities - found
        count = min(left, READ_BYTES // size)
        first = keys.preceding + found
        content = self._read(query, exchange, first * size, count * size)
        if content[size - 1 :: size] != b"\n" * count or content.count(b"\n") != count:
            raise bad_answer(
                f"{count:,} lines of {size:,} bytes were to be read at line {first:,}, but the "
                "lines of this blob have other lengths, or are fewer"
            )
        lines = _lines(content)
        begin, end = keys.row_from or "", keys.row_before
        for line in lines:
            row = str(line["RowKey"])
            if row < begin or (end is not None and row >= end):
                raise bad_answer(f"line {row!r} of the blob is not in the range, but in its place")
        return lines, None if count == left else {_OFFSET: str(found + count)}

    def _read(self, query: Operation, exchange: Exchange, offset: int, length: int) -> bytes:
        client = self._container.get_blob_client(query.partition_key)
        with read_by_sdk(exchange):
            content: bytes = client.download_blob(offset, length, **_options(exchange)).readall()
        return content


def _lines(content: bytes) -> list[Mapping[str, object]]:
    try:
        lines = [orjson.loads(line) for line in content.splitlines()]
    except orjson.JSONDecodeError as error:
        raise bad_answer(f"a line of the blob is not JSON: {error}") from error
    if not all(type(line) is dict and "RowKey" in line for line in lines):
        raise bad_answer("a line of the blob is not an entity")
    return lines


def _options(exchange: Exchange) -> dict[str, Any]:
    return {"exchange": exchange, "client_request_id": exchange.client_request_id}
