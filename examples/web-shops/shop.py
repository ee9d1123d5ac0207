"""Orders of eight web shops, of which one is busy: ``python shop.py SECONDS [EVERY]``.

Each of 16 customers places an order every so many seconds, 0.1 by default; one that takes longer
delays the next.

It knows nothing of a harness, and lets azure-data-tables retry. At its end it prints how many
orders were placed, and how many failed.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections import Counter

from azure.core.exceptions import AzureError
from azure.data.tables import TableClient, TableServiceClient

CUSTOMERS = 16
LINES = 5
EVERY_S = 0.1


def connected() -> TableClient:
    """A client of the table of orders, with retries after at most a second."""
    return TableClient.from_connection_string(
        os.environ["AZURE_STORAGE_CONNECTION_STRING"], "orders", retry_backoff_max=1
    )


def buy(customer: int, until_s: float, every_s: float, orders: Counter[str]) -> None:
    """Place orders, most of them at one shop, and look at some of them again."""
    rng = random.Random(customer)
    with connected() as table:
        number, next_s = 0, time.monotonic()
        while time.monotonic() < until_s:
            number, next_s = number + 1, next_s + every_s
            shop = "shop-1" if rng.random() < 0.7 else f"shop-{rng.randint(2, 8)}"
            order = f"{customer:02}-{number:06}"
            lines = [
                ("upsert", {"PartitionKey": shop, "RowKey": f"{order}-{line}", "Note": "x" * 300})
                for line in range(LINES)
            ]
            try:
                table.submit_transaction(lines)
                if rng.random() < 0.3:
                    table.get_entity(shop, f"{order}-0")
                orders["placed"] += 1
            except AzureError:
                orders["failed"] += 1
            now_s = time.monotonic()
            next_s = max(next_s, now_s)
            time.sleep(next_s - now_s)


def main(seconds: float, every_s: float = EVERY_S) -> None:
    """Let all customers buy for some seconds."""
    text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    with TableServiceClient.from_connection_string(text) as service:
        service.create_table_if_not_exists("orders")
    until_s = time.monotonic() + seconds
    orders: Counter[str] = Counter()
    customers = [
        threading.Thread(target=buy, args=(number, until_s, every_s, orders))
        for number in range(CUSTOMERS)
    ]
    for customer in customers:
        customer.start()
    for customer in customers:
        customer.join()
    print(json.dumps(orders))


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
