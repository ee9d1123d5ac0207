"""Sends upserts of 1 KB over some connections, and prints how long their answers took.

``point_requests.py PORT CONNECTIONS SECONDS RATE KEYS``: the requests of all connections together
are spread evenly over time; with rate 0 each connection sends as answers come. They go to so many
PartitionKeys in turn. Prints the number of answers and their median in milliseconds.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

_BODY = b'{"PartitionKey":"p","RowKey":"r","Value":"' + b"x" * 980 + b'"}'
_HEADERS = (
    "Host: 127.0.0.1\r\nAccept: application/json;odata=minimalmetadata\r\n"
    "Content-Type: application/json\r\nDataServiceVersion: 3.0\r\nx-ms-version: 2019-02-02\r\n"
    "x-ms-date: Sat, 21 Nov 2026 00:00:00 GMT\r\nUser-Agent: azsdk-python-data-tables\r\n"
    "x-ms-client-request-id: 6f1f8a52-54a7-4a3a-9c4b-0d4e6f0c7a11\r\n"
    "Authorization: SharedKey account:c2lnbmF0dXJlIG9mIG5vYm9keQ==\r\n"
    f"Content-Length: {len(_BODY)}\r\n\r\n"
)


async def send(
    port: int,
    rank: int,
    count: int,
    until_s: float,
    every_s: float,
    keys: int,
    took: list[float],
) -> None:
    """The requests of one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    due_s = time.monotonic() + every_s * rank / count
    number = 0
    while (now := time.monotonic()) < until_s:
        if every_s:
            if due_s > now:
                await asyncio.sleep(due_s - now)
            due_s += every_s
        key = (number * count + rank) % keys
        path = f"/account/table(PartitionKey='p{key:05d}',RowKey='r{number:07d}')"
        sent_s = time.monotonic()
        writer.write(f"PUT {path} HTTP/1.1\r\n{_HEADERS}".encode() + _BODY)
        head = await reader.readuntil(b"\r\n\r\n")
        took.append(time.monotonic() - sent_s)
        if b" 204 " not in head[:20]:
            raise SystemExit(f"not an answer to an upsert: {head[:200]!r}")
        number += 1
    writer.close()


async def main(port: int, connections: int, seconds: float, rate: float, keys: int) -> None:
    """Send over all connections, and say what came of it."""
    took: list[float] = []
    every_s = connections / rate if rate else 0.0
    until_s = time.monotonic() + seconds
    await asyncio.gather(
        *(
            send(port, rank, connections, until_s, every_s, keys, took)
            for rank in range(connections)
        )
    )
    print(len(took), statistics.median(took) * 1000.0)


if __name__ == "__main__":
    asyncio.run(
        main(
            int(sys.argv[1]),
            int(sys.argv[2]),
            float(sys.argv[3]),
            float(sys.argv[4]),
            int(sys.argv[5]),
        )
    )
