"""An application with azure-data-tables that counts its own answers.

``python python_sdk.py sync`` or ``aio``; with ``account`` behind it by the account's name and key
alone, of which the SDK makes the host. Prints one JSON array: each answer with kind, partition,
status, ``x-ms-client-request-id`` and address, as the transport of the SDK received it.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Generator
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.transport import AioHttpTransport, RequestsTransport
from azure.data.tables import TableServiceClient, UpdateMode
from azure.data.tables import aio as async_tables

TABLE = "orders"
STALE = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""
PART_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)

answers: list[dict[str, Any]] = []
step = ["", ""]


def note(request: Any, response: Any) -> None:
    """Keep an answer."""
    status = response.status_code
    if status == 202:
        statuses = [int(part) for part in PART_STATUS.findall(response.content)]
        status = next((part for part in statuses if part >= 300), status)
    answers.append(
        {
            "kind": step[0],
            "partition": step[1],
            "status": status,
            "id": request.headers.get("x-ms-client-request-id", ""),
            "request": f"{request.method} {request.url}",
        }
    )


class SyncTransport(RequestsTransport):  # type: ignore[misc]
    """The transport of the SDK; each answer is noted."""

    def send(self, request: Any, **options: Any) -> Any:
        response = super().send(request, **options)
        if options.get("stream"):
            response.read()
        note(request, response)
        return response


class AsyncTransport(AioHttpTransport):  # type: ignore[misc]
    """The same of the asynchronous SDK."""

    async def send(self, request: Any, **options: Any) -> Any:
        response = await super().send(request, **options)
        if options.get("stream"):
            await response.read()
        note(request, response)
        return response


def entity(key: str, row: str, **more: Any) -> dict[str, Any]:
    """An entity."""
    return {"PartitionKey": key, "RowKey": row, **more}


def upserts(key: str, count: int) -> list[tuple[str, dict[str, Any]]]:
    """The parts of a transaction."""
    return [("upsert", entity(key, f"{number:03d}", N=number)) for number in range(count)]


def steps(table: Any, impatient: Any) -> Generator[tuple[str, str, Callable[[], Any]], None, None]:
    """The kind, the partition and the call of each step; ``impatient`` does not retry."""
    for row in ("1", "2", "3"):
        yield "insert", "p", lambda row=row: table.create_entity(entity("p", row))  # type: ignore[misc]
    yield "insert", "p", lambda: table.create_entity(entity("p", "1"))
    yield "insert", "o'clock ü", lambda: table.create_entity(entity("o'clock ü", "%+ r"))
    for mode in UpdateMode:
        name = mode.value
        written = entity("u", name, Text=name)
        yield f"upsert_{name}", "u", lambda r=written, m=mode: table.upsert_entity(r, mode=m)  # type: ignore[misc]
        yield f"update_{name}", "u", lambda r=written, m=mode: table.update_entity(r, mode=m)  # type: ignore[misc]
        absent = entity("u", "absent")
        yield f"update_{name}", "u", lambda r=absent, m=mode: table.update_entity(r, mode=m)  # type: ignore[misc]
    stale: dict[str, Any] = {
        "etag": STALE,
        "match_condition": MatchConditions.IfNotModified,
    }
    yield (
        "update_replace",
        "p",
        lambda: table.update_entity(entity("p", "1"), mode=UpdateMode.REPLACE, **stale),
    )
    for row_key in ("1", "none"):
        yield "point_query", "p", lambda r=row_key: table.get_entity("p", r)  # type: ignore[misc]
    for _ in range(2):
        yield "delete", "p", lambda: table.delete_entity("p", "2")
    yield "transaction", "t", lambda: table.submit_transaction(upserts("t", 20))
    yield (
        "transaction",
        "t",
        lambda: table.submit_transaction(
            [("upsert", entity("t", "100")), ("create", entity("t", "001"))]
        ),
    )
    pages: dict[str, Any] = {"results_per_page": 7}
    yield "partition_scan", "t", lambda: table.query_entities("PartitionKey eq 't'", **pages)
    rows = "PartitionKey eq 't' and RowKey ge '005' and RowKey lt '015'"
    yield "row_range_scan", "t", lambda: table.query_entities(f"{rows} and N gt 9", **pages)
    keys = "PartitionKey ge 'p' and PartitionKey lt 'q'"
    yield "partition_range_scan", "/", lambda: table.query_entities(keys)
    yield "full_table_scan", "/", lambda: table.list_entities(results_per_page=9)
    for _ in range(2):
        yield "transaction", "hot", lambda: table.submit_transaction(upserts("hot", 100))
    yield "transaction", "hot", lambda: impatient.submit_transaction(upserts("hot", 100))


def run_sync(connection_string: str) -> None:
    """Take every step with the synchronous clients."""
    with contextlib.ExitStack() as stack:
        patient, impatient = (
            stack.enter_context(
                TableServiceClient.from_connection_string(
                    connection_string, transport=SyncTransport(), **options
                )
            )
            for options in ({}, {"retry_total": 0})
        )
        step[:] = "", ""
        table = patient.create_table(TABLE)
        for kind, key, call in steps(table, impatient.get_table_client(TABLE)):
            step[:] = kind, key
            with contextlib.suppress(HttpResponseError):
                found = call()
                if hasattr(found, "by_page"):
                    list(found)


async def run_async(connection_string: str) -> None:
    """Take every step with the asynchronous clients."""
    async with contextlib.AsyncExitStack() as stack:
        patient, impatient = [
            await stack.enter_async_context(
                async_tables.TableServiceClient.from_connection_string(
                    connection_string, transport=AsyncTransport(), **options
                )
            )
            for options in ({}, {"retry_total": 0})
        ]
        table = await patient.create_table(TABLE)
        for kind, key, call in steps(table, impatient.get_table_client(TABLE)):
            step[:] = kind, key
            with contextlib.suppress(HttpResponseError):
                found = call()
                if inspect.isawaitable(found):
                    await found
                else:
                    async for _ in found:
                        pass


if __name__ == "__main__":
    if "account" in sys.argv:
        name, key = os.environ["AZURE_STORAGE_ACCOUNT"], os.environ["AZURE_STORAGE_KEY"]
        text = f"AccountName={name};AccountKey={key};EndpointSuffix=core.windows.net"
    else:
        text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    if sys.argv[1] == "sync":
        run_sync(text)
    else:
        asyncio.run(run_async(text))
    print(json.dumps(answers))
