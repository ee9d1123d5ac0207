"""Shopping carts: every cart is a partition of its own, and no cart is much busier than another.

PartitionKey is the cart, a hash in hexadecimal digits, RowKey the item. Asynchronous, with the aio
client of azure-data-tables, which needs aiohttp.

    harness watch --trace even-spread.parquet -- python carts.py
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import time

from azure.core.exceptions import ResourceNotFoundError
from azure.core.pipeline import PipelineRequest
from azure.data.tables.aio import TableClient

TABLE = "carts"
SECONDS = 20
PER_S = 150
CARTS = [hashlib.sha256(f"cart {number}".encode()).hexdigest()[:12] for number in range(400)]
ITEMS = 12


def name_client(request: PipelineRequest) -> None:
    """The trace names the clients by their user agents; that of the SDK would name the machine."""
    request.http_request.headers["User-Agent"] = "carts"


def item(cart: str, number: int, pieces: int) -> dict[str, object]:
    return {
        "PartitionKey": cart,
        "RowKey": f"item-{number:02}",
        "Pieces": pieces,
        "Text": "x" * 400,
    }


async def act(table: TableClient, rng: random.Random) -> None:
    cart, number = rng.choice(CARTS), rng.randrange(ITEMS)
    chance = rng.random()
    if chance < 0.45:
        await table.upsert_entity(item(cart, number, rng.randrange(1, 9)))
    elif chance < 0.75:
        with contextlib.suppress(ResourceNotFoundError):
            await table.get_entity(cart, f"item-{number:02}")
    elif chance < 0.9:
        async for _ in table.query_entities(f"PartitionKey eq '{cart}'"):
            pass
    elif chance < 0.95:
        await table.delete_entity(cart, f"item-{number:02}")
    else:
        few = [("upsert", item(cart, one, 1)) for one in range(5)]
        await table.submit_transaction(few)


async def main() -> None:
    rng = random.Random(1)
    text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    async with TableClient.from_connection_string(
        text, TABLE, raw_request_hook=name_client
    ) as table:
        await table.create_table()
        at_s = began_s = time.monotonic()
        async with asyncio.TaskGroup() as group:
            while (at_s := at_s + rng.expovariate(PER_S)) < began_s + SECONDS:
                await asyncio.sleep(max(0.0, at_s - time.monotonic()))
                group.create_task(act(table, rng))


asyncio.run(main())
