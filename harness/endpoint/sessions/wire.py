"""The session on the wire: bytes out, bytes in, and nothing in between that need not be."""

from __future__ import annotations

from harness.endpoint.exchange import Exchange
from harness.endpoint.persistence import PersistentSession
from harness.endpoint.session import SessionOptions
from harness.endpoint.translate import Token
from harness.endpoint.wire import answers
from harness.endpoint.wire.entities import Found
from harness.endpoint.wire.requests import RequestWriter
from harness.model.operation import Kind, Operation

_POINT_QUERY, _TRANSACTION = Kind.POINT_QUERY, Kind.TRANSACTION


class WireSession(PersistentSession):
    """Sends operations by requests of its own over a pool of gevent connections."""

    def __init__(self, options: SessionOptions) -> None:
        super().__init__(options)
        self._requests = RequestWriter(options.endpoint, options.table)

    def _send(self, operation: Operation, exchange: Exchange) -> Found | None:
        request_id = exchange.client_request_id
        kind = operation.kind
        if kind is _TRANSACTION:
            message = self._requests.transaction(operation, request_id)
        else:
            message = self._requests.single(operation, request_id)
        self._channel.send(message, exchange)
        if kind is _POINT_QUERY:
            return answers.entity(exchange)
        # What a single write is answered with, as a rule.
        if exchange.status != 204 or kind is _TRANSACTION:
            answers.written(operation, exchange)
        return None

    def _page(
        self, query: Operation, token: Token | None, found: int, exchange: Exchange
    ) -> tuple[list[Found], Token | None]:
        message = self._requests.page(query, token, found, exchange.client_request_id)
        self._channel.send(message, exchange)
        return answers.page(exchange)
