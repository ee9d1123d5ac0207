"""Invoices of thirteen companies, one of which is far busier than the others.

PartitionKey is the tenant, RowKey the number of a document. Eight threads look up, write and list
invoices with azure-data-tables; now and then a tenant imports twenty at once.

    harness watch --trace hot-tenant.parquet -- python invoices.py
"""

from __future__ import annotations

import os
import random
import threading
import time

from azure.core.pipeline import PipelineRequest
from azure.data.tables import TableClient, UpdateMode

TABLE = "invoices"
SECONDS = 20
THREADS = 8
PER_S = 160
TENANTS = ["contoso", *(f"tenant-{number:02}" for number in range(1, 13))]
WEIGHTS = [18, *[1] * 12]
INVOICES = 200


def name_client(request: PipelineRequest) -> None:
    """The trace names the clients by their user agents; that of the SDK would name the machine."""
    request.http_request.headers["User-Agent"] = "invoices"


def invoice(tenant: str, number: int) -> dict[str, object]:
    return {
        "PartitionKey": tenant,
        "RowKey": f"invoice-{number:06}",
        "Customer": f"customer {number % 37}",
        "Amount": number * 1.25,
        "Text": "x" * 600,
    }


def work(table: TableClient, thread: int, began_s: float) -> None:
    rng = random.Random(thread)
    at_s = began_s
    while (at_s := at_s + rng.expovariate(PER_S / THREADS)) < began_s + SECONDS:
        time.sleep(max(0.0, at_s - time.monotonic()))
        [tenant] = rng.choices(TENANTS, WEIGHTS)
        number = rng.randrange(INVOICES)
        chance = rng.random()
        if chance < 0.55:
            table.get_entity(tenant, f"invoice-{number:06}")
        elif chance < 0.85:
            table.upsert_entity(invoice(tenant, number), mode=UpdateMode.REPLACE)
        elif chance < 0.97:
            ten = f"invoice-{number // 10:05}"
            rows = f"PartitionKey eq '{tenant}' and RowKey ge '{ten}0' and RowKey lt '{ten}:'"
            list(table.query_entities(rows))
        else:
            first = rng.randrange(INVOICES - 20)
            added = range(first, first + 20)
            table.submit_transaction([("upsert", invoice(tenant, one)) for one in added])


def main() -> None:
    text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    with TableClient.from_connection_string(text, TABLE, raw_request_hook=name_client) as table:
        table.create_table()
        for tenant in TENANTS:
            for first in range(0, INVOICES, 100):
                batch = [invoice(tenant, number) for number in range(first, first + 100)]
                table.submit_transaction([("upsert", one) for one in batch])
        began_s = time.monotonic()
        threads = [
            threading.Thread(target=work, args=(table, number, began_s))
            for number in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


main()
