"""An application with a table and queues that counts its own answers.

``python queue_sdk.py``. Prints one JSON array: each answer with kind, partition as a record names
it, status, ``x-ms-client-request-id`` and address, as the transport of the SDKs received it.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import TableServiceClient
from azure.storage.queue import LinearRetry, QueueServiceClient

answers: list[dict[str, Any]] = []
step = ["", ""]


class Noting(RequestsTransport):  # type: ignore[misc]
    """The transport of the SDKs; each answer is noted."""

    def send(self, request: Any, **options: Any) -> Any:
        response = super().send(request, **options)
        answers.append(
            {
                "kind": step[0],
                "partition": step[1],
                "status": response.status_code,
                "messages": response.content.count(b"<QueueMessage>"),
                "id": request.headers.get("x-ms-client-request-id", ""),
                "request": f"{request.method} {request.url}",
            }
        )
        return response


def work(connection_string: str) -> None:
    """Put, get, peek, update and delete messages, and write an entity for each."""
    patience = LinearRetry(backoff=1, retry_total=8, random_jitter_range=0)
    with (
        TableServiceClient.from_connection_string(connection_string, transport=Noting()) as tables,
        QueueServiceClient.from_connection_string(
            connection_string, transport=Noting(), retry_policy=patience
        ) as queues,
    ):
        table = tables.create_table("orders")
        for name in ("orders", "bills"):
            step[:] = "", ""
            queue = queues.create_queue(name)
            partition = f"(queues)/{name}"
            for number in range(6):
                step[:] = "put_message", partition
                queue.send_message(f"{name} {number}")
                step[:] = "insert", f"orders/{name}"
                table.create_entity({"PartitionKey": name, "RowKey": f"{number}"})
            step[:] = "peek_messages", partition
            queue.peek_messages(max_messages=4)
            step[:] = "get_messages", partition
            first, second = queue.receive_messages(max_messages=2)
            step[:] = "update_message", partition
            changed = queue.update_message(first, content="changed", visibility_timeout=30)
            step[:] = "delete_message", partition
            for message in (changed, second, second):
                with contextlib.suppress(HttpResponseError):
                    queue.delete_message(message)
        step[:] = "", ""
        list(queues.list_queues())


if __name__ == "__main__":
    work(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
    print(json.dumps(answers))
