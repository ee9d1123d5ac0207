"""The tuned SDK session: azure-data-tables without its retries, the harness's retries around it.

One call of the SDK is one attempt and one request. A retry is a new call, signed anew.

`TableClient` offers no way to write an entity that is serialized already, and its own
serialization takes a third of the time of a write. So single inserts, upserts and updates are
azure-core requests over the same pipeline. On the wire they equal those of `TableClient`, which a
test compares.
"""

from __future__ import annotations

from typing import Any, cast

from azure.core.rest import HttpRequest
from azure.data.tables import TableClient

from harness.endpoint.auth.signing import sdk_credential
from harness.endpoint.http.exchange import Exchange, ResponseFault
from harness.endpoint.protocol.edm import EntityWriter
from harness.endpoint.protocol.odata import (
    VERSION_HEADERS,
    Token,
    row_address,
    write_content_type,
    write_request,
)
from harness.endpoint.protocol.responses import require_written
from harness.endpoint.retrying import RetryingSession
from harness.endpoint.sessions.sdk_pipeline import GeventTransport, LeanPipeline
from harness.endpoint.sessions.sdk_shapes import call, read_page
from harness.endpoint.sessions.session import SessionOptions
from harness.model.operation import PART_KINDS, Kind, Operation
from harness.model.outcome import Fault
from harness.model.target import EndpointKind

ENTITY_WRITES = PART_KINDS - {Kind.DELETE}
"""The single writes that carry an entity."""


class SdkSession(RetryingSession):
    """Sends operations through azure-data-tables over a pool of gevent connections."""

    def __init__(self, options: SessionOptions) -> None:
        super().__init__(options)
        self._endpoint = options.endpoint
        self._table = options.table
        self._cosmos = options.endpoint.kind is EndpointKind.COSMOS
        transport = GeventTransport(self._channel)
        self._pipeline = LeanPipeline(transport, options.endpoint.credential)
        self._entities = EntityWriter()
        self._clients: dict[str, TableClient] = {}

    def _client_of(self, operation: Operation) -> TableClient:
        client = self._clients.get(operation.table)
        if client is None:
            client = self._clients[operation.table] = TableClient(
                self._endpoint.url,
                self._table + operation.table,
                credential=sdk_credential(self._endpoint.credential),
                pipeline=self._pipeline,
            )
        return client

    def _send(self, operation: Operation, exchange: Exchange) -> object:
        if operation.kind in ENTITY_WRITES:
            self._write(operation, exchange)
            return None
        client = self._client_of(operation)
        value = call(client, operation, {"exchange": exchange}, lean=True)
        if operation.kind is Kind.TRANSACTION:
            if value != len(operation.parts):
                raise ResponseFault(
                    Fault.BAD_ANSWER, f"{len(operation.parts)} parts, but {value} responses"
                )
            return None
        return cast(object, value)

    def _write(self, operation: Operation, exchange: Exchange) -> None:
        request = write_request_of(
            self._endpoint.url, self._table, operation, self._entities, cosmos=self._cosmos
        )
        self._pipeline.run(request, exchange=exchange)
        require_written(operation, exchange)

    def _page(
        self, query: Operation, token: Token | None, found: int, exchange: Exchange
    ) -> tuple[list[dict[str, Any]], Token | None]:
        return read_page(self._client_of(query), query, token, found, {"exchange": exchange})


def write_request_of(
    url: str, table: str, operation: Operation, entities: EntityWriter, *, cosmos: bool
) -> HttpRequest:
    """The request that `TableClient` would send for one of `ENTITY_WRITES`, but for the signature.

    Args:
        url: Address of the account.
        table: Name of the first table.
        operation: The write.
        entities: Writes the body.
        cosmos: Whether the endpoint is Cosmos DB.

    Raises:
        TypeError: a value has no EDM type, or does not fit into Edm.Int32.
    """
    kind = operation.kind
    address = f"{url}/{table}{operation.table}"
    if kind is not Kind.INSERT:
        address = row_address(address, operation.partition_key, operation.row_key)
    method, headers = write_request(kind, operation.etag, cosmos=cosmos)
    content_type = write_content_type(kind)
    return HttpRequest(
        method,
        address,
        headers={"Content-Type": content_type, **VERSION_HEADERS, **headers},
        content=entities.text(operation).encode("ascii"),
    )
