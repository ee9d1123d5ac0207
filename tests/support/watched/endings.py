"""An application that does one thing: ``python endings.py THING``.

It prints ``ready`` when it has begun, and ends where it says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections import Counter
from typing import Any

from azure.core.exceptions import AzureError
from azure.data.tables import TableClient

LONGEST_S = 60.0


def write_on(*, pause_s: float = 0.02, count: int = 10**6, forgive: bool = False) -> None:
    """Upsert entities, ``count`` of them at most."""
    text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    with TableClient.from_connection_string(text, "orders", retry_total=0) as table:
        with contextlib.suppress(AzureError):
            table.create_table()
        end = time.monotonic() + LONGEST_S
        for number in range(count):
            try:
                table.upsert_entity({"PartitionKey": "p", "RowKey": f"{number % 10}"})
            except AzureError:
                if not forgive:
                    raise
            if number == 3:
                print("ready", flush=True)
            if time.monotonic() > end:
                break
            time.sleep(pause_s)


def reconnect() -> None:
    """Upsert over a new connection each time; print the attempts of each operation."""
    text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
    attempts: Counter[str] = Counter()

    def note(response: Any) -> None:
        request = response.http_request
        attempts[request.headers["x-ms-client-request-id"]] += 1

    retries = {"retry_backoff_factor": 0.05, "retry_total": 50, "retry_status": 50}
    with TableClient.from_connection_string(text, "orders", **retries, retry_mode="fixed") as table:
        for number in range(16):
            row = {"PartitionKey": "p", "RowKey": f"{number}"}
            table.upsert_entity(row, headers={"Connection": "close"}, raw_response_hook=note)
    print(json.dumps(sorted(attempts.values())))


def main(thing: str) -> None:
    """Do one thing."""
    if thing == "idle":
        print("ready", flush=True)
        time.sleep(LONGEST_S)
    elif thing == "work":
        write_on(count=20)
    elif thing == "fail":
        write_on(count=20)
        sys.exit(3)
    elif thing == "write":
        write_on()
    elif thing == "persist":
        write_on(forgive=True)
    elif thing == "reconnect":
        reconnect()
    elif thing == "ignore":
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        write_on(forgive=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1])
