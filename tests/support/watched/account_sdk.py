"""An application with a table, a queue and blobs of one account that counts its own answers.

``python account_sdk.py [BYTES]``. Prints one JSON array: each answer with kind, partition as a
record names it, status, ``x-ms-client-request-id`` and address, as the transport of the SDKs
received it. Blobs have up to BYTES.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient, BlobType, LinearRetry
from azure.storage.queue import QueueServiceClient

NAMES = (
    "plain",
    "a/b//c",
    "100%",
    "question?mark",
    "ünï 日本",
    "x" * 900,
    "a+b&c=d#e",
    "dir/",
    "/",
)
answers: list[dict[str, Any]] = []
PUTS = {
    "": "put_blob",
    "block": "put_block",
    "blocklist": "put_block_list",
    "appendblock": "append_block",
    "page": "put_page",
}


def about_blob(method: str, url: str) -> tuple[str, str]:
    """Kind and partition of a request to the blob service, the first empty if it is of neither."""
    parts = urlsplit(url)
    given = {name.lower(): texts[0] for name, texts in parse_qs(parts.query).items()}
    _, _, container, *name = parts.path.split("/", 3)
    comp = given.get("comp", "")
    if given.get("restype") == "container":
        return ("list_blobs" if comp == "list" else ""), f"(blobs)/{unquote(container)}/"
    if not name:
        return "", ""
    partition = f"(blobs)/{unquote(container)}/{unquote(name[0])}"
    if method == "PUT":
        return PUTS.get(comp, "change_blob"), partition
    if method == "GET":
        return "get_blob_properties" if comp else "get_blob", partition
    return {"HEAD": "get_blob_properties", "DELETE": "delete_blob"}[method], partition


class Noting(RequestsTransport):  # type: ignore[misc]
    """The transport of the SDKs; each answer is noted. ``step`` is the kind and partition."""

    def __init__(self) -> None:
        super().__init__()
        self.step: tuple[str, str] | None = ("", "")

    def send(self, request: Any, **options: Any) -> Any:
        kind, partition = self.step or about_blob(request.method, request.url)
        noted = {
            "kind": kind,
            "partition": partition,
            "status": 0,
            "id": request.headers.get("x-ms-client-request-id", ""),
            "request": f"{request.method} {request.url}",
        }
        answers.append(noted)
        response = super().send(request, **options)
        # Half an answer has its status, and is none.
        read = not options.get("stream") and request.method != "HEAD"
        length = int(response.headers.get("Content-Length", 0)) if read else 0
        if "Date" not in response.headers or (length and len(response.content) != length):
            raise AzureError("half an answer")
        noted["status"] = response.status_code
        return response


def surely(call: Callable[[], Any]) -> Any:
    """Call again after what an application would try again: its SDK has given up."""
    for _ in range(9):
        try:
            return call()
        except ResourceNotFoundError:
            raise
        except AzureError:
            continue
    return call()


def content_of(blob: BlobClient) -> bytes:
    """The whole content of a blob."""
    content: bytes = blob.download_blob().readall()
    return content


def work(connection_string: str, size: int) -> None:
    """Write, read, change, list and delete blobs, and put a message and an entity for each."""
    noting = [Noting(), Noting(), Noting()]
    noting[2].step = None
    # A policy belongs to one client.
    often: dict[str, Any] = {"backoff": 1, "retry_total": 6, "random_jitter_range": 0}
    pieces: dict[str, Any] = {"max_single_put_size": 1 << 20, "max_block_size": 1 << 20}
    pieces |= {"max_single_get_size": 1 << 20, "max_chunk_get_size": 1 << 20}
    with (
        TableServiceClient.from_connection_string(
            connection_string, transport=noting[0], retry_total=6
        ) as tables,
        QueueServiceClient.from_connection_string(
            connection_string, transport=noting[1], retry_policy=LinearRetry(**often)
        ) as queues,
        BlobServiceClient.from_connection_string(
            connection_string, transport=noting[2], retry_policy=LinearRetry(**often), **pieces
        ) as blobs,
    ):
        table = tables.create_table("orders")
        queue = queues.create_queue("orders")
        container = blobs.create_container("orders")
        noting[0].step = "insert", "orders/all"
        noting[1].step = "put_message", "(queues)/orders"
        for number, name in enumerate(NAMES):
            for row in range(10):
                row_of = {"PartitionKey": "all", "RowKey": f"{number}-{row}"}
                surely(partial(table.create_entity, row_of))
            surely(partial(queue.send_message, name))
            blob = container.get_blob_client(name)
            surely(partial(blob.upload_blob, b"x" * number))
            surely(blob.get_blob_properties)
            surely(partial(blob.set_blob_metadata, {"a": "b"}))
            assert surely(partial(content_of, blob)) == b"x" * number
            with contextlib.suppress(ResourceNotFoundError):
                surely(container.get_blob_client(f"{name} missing").download_blob)
        large = container.get_blob_client("large")
        surely(partial(large.upload_blob, os.urandom(size), overwrite=True))
        assert len(surely(partial(content_of, large))) == size
        log = container.get_blob_client("log")
        surely(log.create_append_blob)
        for number in range(5):
            surely(partial(log.append_block, f"line {number}\n".encode()))
        page = container.get_blob_client("page")
        paged: dict[str, Any] = {"blob_type": BlobType.PAGEBLOB, "overwrite": True}
        surely(partial(page.upload_blob, b"p" * 1024, **paged))
        snapshot = str(surely(log.create_snapshot)["snapshot"])
        surely(partial(content_of, container.get_blob_client("log", snapshot=snapshot)))
        names = surely(lambda: {one.name for one in container.list_blobs()})
        assert names >= {"large", "log", "page"}
        surely(partial(log.delete_blob, delete_snapshots="include"))
        surely(large.delete_blob)
        blobs.delete_container("orders")


if __name__ == "__main__":
    work(
        os.environ["AZURE_STORAGE_CONNECTION_STRING"],
        int(sys.argv[1]) if sys.argv[1:] else 3 << 20,
    )
    print(json.dumps(answers))
