"""The tuned SDK session: azure-data-tables without its retries and policies."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from azure.core import MatchConditions
from azure.core.pipeline import Pipeline, PipelineContext, PipelineRequest, PipelineResponse
from azure.core.pipeline.transport import HttpResponse, HttpTransport
from azure.core.rest import HttpRequest
from azure.core.utils import CaseInsensitiveDict
from azure.data.tables import EdmType, EntityProperty, TableClient, TableEntity, UpdateMode

from harness.endpoint.credential import Credential, ServiceDate
from harness.endpoint.http.channel import USER_AGENT, Channel
from harness.endpoint.http.exchange import LIBRARY_ERRORS, Exchange, bad_answer, by_library
from harness.endpoint.protocol.edm import EntityWriter, is_etag
from harness.endpoint.protocol.multipart import part_responses
from harness.endpoint.protocol.requests import (
    JSON,
    JSON_PLAIN,
    VERSION_HEADERS,
    Token,
    filter_of,
    page_size,
    row_address,
    write_request,
)
from harness.endpoint.protocol.responses import document_of, require_written
from harness.endpoint.retrying import RetryingSession
from harness.endpoint.session import SessionOptions
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
    """The SDK's clients of a workload's tables, by the endings of the tables' names."""

    def __init__(self, made: Callable[[str], TableClient], table: str) -> None:
        self._made = made
        self._table = table

    def __missing__(self, ending: str) -> TableClient:
        client = self[ending] = self._made(self._table + ending)
        return client


def entity_of(operation: Operation) -> dict[str, Any]:
    """The entity that a write stores, as the SDK takes it."""
    entity: dict[str, Any] = {"PartitionKey": operation.partition_key, "RowKey": operation.row_key}
    for name, value in (operation.properties or {}).items():
        entity[name] = EntityProperty(value, EdmType.INT64) if type(value) is Int64 else value
    return entity


def value_of(entity: TableEntity) -> dict[str, Any]:
    """An entity as the SDK read it, as a plain dict.

    A `ResponseFault` says that a value or the ETag is invalid.
    """
    value: dict[str, Any] = {
        name: _python_value(stored) if type(stored) in _NOT_PLAIN else stored
        for name, stored in entity.items()
    }
    value[ETAG] = etag = entity.metadata.get("etag")
    if not is_etag(etag):
        raise bad_answer(f"invalid ETag: {etag!r:.40}")
    value["Timestamp"] = entity.metadata.get("timestamp")
    return value


def _python_value(stored: object) -> Any:
    if not isinstance(stored, EntityProperty):
        raise bad_answer(f"invalid value of a property: {type(stored).__name__}")
    return Int64(stored.value) if stored.edm_type == EdmType.INT64 else stored.value


def call(client: TableClient, operation: Operation, options: Mapping[str, Any], lean: bool) -> Any:
    """Execute one operation, other than a query, by one call of the SDK.

    Returns the entity that a point query read. ``options`` are for the SDK's pipeline. A ``lean``
    transaction asks for no echo of the entities that it inserts, and a `ResponseFault` says that it
    has fewer or more responses than parts; an application that just calls the SDK does neither.
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
    """Read the page that begins at ``token``, after ``found`` entities.

    Returns its entities and the token of the next page, None after the last one. ``options`` are
    for the SDK's pipeline.
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


@contextlib.contextmanager
def read_by_sdk(exchange: Exchange) -> Iterator[None]:
    """Around a call of the SDK: what it raises about a response becomes a `ResponseFault`."""
    try:
        yield
    except LIBRARY_ERRORS as error:
        if exchange.status == 0 or not by_library(error):
            raise
        raise bad_answer(f"{type(error).__name__}: {error}") from error


_USER_AGENT = f"User-Agent: {USER_AGENT}\r\n"


class SdkResponse(HttpResponse):
    """A response that was read whole, in the shape that the SDK expects."""

    def __init__(self, request: HttpRequest, exchange: Exchange) -> None:
        # The base class is not initialised: it would set the same attributes a second time.
        self.request = cast(Any, request)
        self.headers = exchange.headers
        self.status_code = exchange.status
        self.reason = ""
        self.content = exchange.body

    @property
    def content_type(self) -> str | None:  # type: ignore[override]
        value: str | None = self.headers.get("content-type")
        return value

    def body(self) -> bytes:
        return self.content

    def read(self) -> bytes:
        return self.content

    def parts(self) -> Iterator[SdkResponse]:
        """The responses inside the response to a transaction; a `ResponseFault` if unreadable."""
        # The SDK's own parser, made for mail, takes a minute for two megabytes of small parts.
        for part in part_responses(self.content_type or "", self.content):
            exchange = Exchange("")
            exchange.status, exchange.head, exchange.body = part
            yield SdkResponse(cast(HttpRequest, self.request), exchange)


class GeventTransport(HttpTransport[HttpRequest, SdkResponse]):
    """Sends the SDK's requests over a channel, to whose origin they have to go."""

    def __init__(self, channel: Channel) -> None:
        parts = urlsplit(channel.url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._fixed_head = f" HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        self._channel = channel

    def open(self) -> None:
        """Do nothing: connections are opened when they are needed."""

    def close(self) -> None:
        self._channel.close()

    def __exit__(self, *details: object) -> None:
        self.close()

    def send(self, request: HttpRequest, **options: Any) -> SdkResponse:
        """Send ``request`` once and read its response whole; errors as in `Channel.send`.

        The option ``exchange`` is filled in, also where this raises. Other options are ignored. A
        `ValueError` says that the URL leads to another origin.
        """
        exchange: Exchange = options["exchange"]
        self._channel.send(self._message(request), exchange)
        return SdkResponse(request, exchange)

    def _message(self, request: HttpRequest) -> bytes:
        """Head and body in one piece, so that they leave in one segment where they fit."""
        url = request.url
        if not url.startswith(self._origin + "/"):
            raise ValueError(f"a request to {urlsplit(url).netloc} does not belong to this session")
        content = request.content
        body: bytes = content.encode() if isinstance(content, str) else content or b""
        lines = [request.method, " ", url[len(self._origin) :], self._fixed_head]
        headers = cast(CaseInsensitiveDict, request.headers)
        for name, value in headers.lowerkey_items():
            lines += (name, ": ", value, "\r\n")
        if "user-agent" not in headers:
            # The SDK's own list of policies adds one, and a second one would be invalid.
            lines.append(_USER_AGENT)
        if body and "content-length" not in headers:
            lines += ("Content-Length: ", str(len(body)), "\r\n")
        lines.append("\r\n")
        return "".join(lines).encode("ascii") + body


class LeanPipeline(Pipeline[HttpRequest, SdkResponse]):
    """Dates, names and signs each request, sends it, and decodes the JSON of successes.

    The SDK's own thirteen policies cost as much as building the request. What they do and this
    pipeline does not: retry, log, trace, redirect. Every call has to bring its `Exchange` as the
    option ``exchange``.

    ``run`` replaces that of azure-core, and with it the thread pool that prepares the parts of each
    transaction. Under load a greenlet waits hundreds of milliseconds for those threads before
    anything is sent: time of the generator that no latency shows.
    """

    def __init__(self, transport: GeventTransport, credential: Credential) -> None:
        super().__init__(transport)
        self._sends = transport
        self._signer = credential
        self._date = ServiceDate()

    def run(
        self, request: HttpRequest, **options: Any
    ) -> PipelineResponse[HttpRequest, SdkResponse]:
        """Send ``request`` once; errors as in `GeventTransport.send` and `document_of`."""
        exchange: Exchange = options["exchange"]
        multipart: Any = request
        if multipart.multipart_mixed_info:
            _prepare_parts(multipart)
            multipart.prepare_multipart_body()
        headers = request.headers
        headers["x-ms-date"] = date = self._date.now()
        headers["x-ms-client-request-id"] = exchange.client_request_id
        url, signer = request.url, self._signer
        path = url[url.index("/", url.index("//") + 2) :].partition("?")[0]
        content_type = headers.get("Content-Type", "")
        if signature := signer.authorization(request.method, content_type, date, path):
            headers["Authorization"] = signature
        if signer.query:
            request.url = f"{url}{'&' if '?' in url else '?'}{signer.query}"
        context = PipelineContext(self._sends, **options)
        response = self._sends.send(request, **options)
        # The SDK's pager expects what its retry policy leaves here.
        context["location_mode"] = "primary"
        if exchange.status in (200, 201):
            context["deserialized_data"] = document_of(exchange.body)
        return PipelineResponse(request, response, context)


def _prepare_parts(request: Any) -> None:
    parts, policies, _, options = request.multipart_mixed_info
    for part in parts:
        if part.multipart_mixed_info:
            _prepare_parts(part)
        prepared: PipelineRequest[Any] = PipelineRequest(part, PipelineContext(None, **options))
        for policy in policies:
            policy.on_request(prepared)


class SdkSession(RetryingSession):
    """Sends operations through azure-data-tables over a pool of gevent connections.

    One call of the SDK is one attempt and one request. A retry is a new call, signed anew.

    `TableClient` offers no way to write an entity that is serialized already, and its own
    serialization takes a third of the time of a write. So single inserts, upserts and updates are
    requests of azure-core over the same pipeline. On the wire they equal those of `TableClient`,
    which a test compares.
    """

    def __init__(self, options: SessionOptions) -> None:
        super().__init__(options)
        # `TableClient` asks for it, which runs `uname` and yields: without an answer that Python
        # keeps, each of the users that start together would run one, for many seconds.
        platform.platform()
        endpoint = options.endpoint
        self._url = endpoint.url
        self._table = options.table
        self._merges_by_post = endpoint.kind.merges_by_post
        self._pipeline = LeanPipeline(GeventTransport(self._channel), endpoint.credential)
        self._entities = EntityWriter()

        def client(table: str) -> TableClient:
            signed = endpoint.credential.for_sdk()
            made = TableClient(endpoint.url, table, **signed, pipeline=self._pipeline)
            # To hosts of Cosmos DB that the SDK does not recognize it would send PATCH.
            made._cosmos_endpoint = self._merges_by_post
            return made

        self._clients = Clients(client, options.table)

    def _send(self, operation: Operation, exchange: Exchange) -> object:
        if not operation.kind.stores:
            client = self._clients[operation.table]
            with read_by_sdk(exchange):
                return cast(object, call(client, operation, {"exchange": exchange}, lean=True))
        request = write_request_of(
            self._url,
            self._table,
            operation,
            self._entities,
            merges_by_post=self._merges_by_post,
        )
        self._pipeline.run(request, exchange=exchange)
        require_written(operation, exchange)
        return None

    def _page(
        self, query: Operation, exchange: Exchange, token: Token | None, found: int
    ) -> tuple[list[dict[str, Any]], Token | None]:
        client = self._clients[query.table]
        with read_by_sdk(exchange):
            return read_page(client, query, {"exchange": exchange}, token, found)


def write_request_of(
    url: str, table: str, operation: Operation, entities: EntityWriter, *, merges_by_post: bool
) -> HttpRequest:
    """The unsigned request that `TableClient` would send for a write that stores an entity."""
    kind = operation.kind
    address = f"{url}/{table}{operation.table}"
    if kind is not Kind.INSERT:
        address = row_address(address, operation.partition_key, operation.row_key)
    method, headers = write_request(kind, operation.etag, merges_by_post=merges_by_post)
    content_type = JSON_PLAIN if kind is Kind.INSERT else JSON
    return HttpRequest(
        method,
        address,
        headers={"Content-Type": content_type, **VERSION_HEADERS, **headers},
        content=entities.text(operation).encode("ascii"),
    )
