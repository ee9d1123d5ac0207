"""The wire session: requests built as bytes and responses parsed from bytes, without the SDK."""

from __future__ import annotations

from harness.endpoint.http.exchange import Exchange
from harness.endpoint.protocol.edm import ReadEntity
from harness.endpoint.protocol.requests import RequestWriter, Token
from harness.endpoint.protocol.responses import read_entity, read_page, require_written
from harness.endpoint.retrying import RetryingSession
from harness.endpoint.session import SessionOptions
from harness.model.operation import Kind, Operation

_POINT_QUERY, _TRANSACTION = Kind.POINT_QUERY, Kind.TRANSACTION


class WireSession(RetryingSession):
    """Sends operations as requests of its own over a pool of gevent connections."""

    def __init__(self, options: SessionOptions) -> None:
        super().__init__(options)
        self._requests = RequestWriter(options.endpoint, options.table)

    def _send(self, operation: Operation, exchange: Exchange) -> ReadEntity | None:
        request_id = exchange.client_request_id
        kind = operation.kind
        if kind is _TRANSACTION:
            message = self._requests.transaction(operation, request_id)
        else:
            message = self._requests.single(operation, request_id)
        self._channel.send(message, exchange)
        if kind is _POINT_QUERY:
            return read_entity(exchange)
        # The usual response to a single write needs no further check.
        if exchange.status != 204 or kind is _TRANSACTION:
            require_written(operation, exchange)
        return None

    def _page(
        self, query: Operation, exchange: Exchange, token: Token | None, found: int
    ) -> tuple[list[ReadEntity], Token | None]:
        message = self._requests.page(query, token, found, exchange.client_request_id)
        self._channel.send(message, exchange)
        return read_page(exchange)
