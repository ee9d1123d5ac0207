"""The SDK session: azure-data-tables without its retries, ours around it.

One call of the SDK is one attempt is one request. A retry is a new call, signed anew.
"""

from __future__ import annotations

from typing import Any, cast

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableClient

from harness.endpoint.connection import Sas, SharedKey
from harness.endpoint.envelope import Envelope
from harness.endpoint.exchange import Exchange, ResponseFault
from harness.endpoint.lean_batches import prepare_in_turn
from harness.endpoint.lean_writes import LEAN_KINDS, LeanWrites
from harness.endpoint.persistence import PersistentSession
from harness.endpoint.session import SessionOptions
from harness.endpoint.translate import Token, read_page, send
from harness.endpoint.transport import GeventTransport
from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault


def sdk_credential(credential: SharedKey | Sas) -> AzureNamedKeyCredential | AzureSasCredential:
    """A credential as the SDK takes it."""
    if isinstance(credential, Sas):
        return AzureSasCredential(credential.token)
    return AzureNamedKeyCredential(credential.account, credential.key)


class SdkSession(PersistentSession):
    """Sends operations through azure-data-tables over a pool of gevent connections."""

    def __init__(self, options: SessionOptions) -> None:
        super().__init__(options)
        self._transport = GeventTransport(self._channel)
        self._endpoint = options.endpoint
        self._table = options.table
        self._clients: dict[str, tuple[TableClient, LeanWrites]] = {}

    def _of(self, operation: Operation) -> tuple[TableClient, LeanWrites]:
        """The clients of the table that an operation is about; all share one pool."""
        clients = self._clients.get(operation.table)
        if clients is None:
            client = TableClient(
                self._endpoint.url,
                self._table + operation.table,
                credential=sdk_credential(self._endpoint.credential),
                transport=self._transport,
                policies=[Envelope(self._endpoint.credential)],
            )
            prepare_in_turn(client)
            clients = self._clients[operation.table] = (client, LeanWrites(client))
        return clients

    def _send(self, operation: Operation, exchange: Exchange) -> object:
        client, writes = self._of(operation)
        options = {"exchange": exchange}
        if operation.kind in LEAN_KINDS:
            writes.send(operation, options)
            return None
        value = send(client, operation, options, lean=True)
        if operation.kind is Kind.TRANSACTION:
            if value != len(operation.parts):
                raise ResponseFault(
                    Fault.BAD_ANSWER, f"{len(operation.parts)} parts, but {value} answers"
                )
            return None
        return cast(object, value)

    def _page(
        self, query: Operation, token: Token | None, found: int, exchange: Exchange
    ) -> tuple[list[dict[str, Any]], Token | None]:
        client, _ = self._of(query)
        return read_page(client, query, token, found, {"exchange": exchange})
