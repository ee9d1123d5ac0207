"""A table service of one partition with a known limit, as a program of its own without the harness.

    python -m tests.support.throttled_table '{"per_s": 2000, "burst_s": 1, "noise": 0.1}'

It stores nothing: merges and queries of rows, whose keys are numbers, are throttled and answered,
and everything else succeeds. It prints its address, and ends with its standard input. Merges in one
transaction, or rows of one query, count as that many entities.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
import threading
import time
import urllib.parse

from tests.support.throttles import Throttle, TokenBucket, Unreliable

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ROWS = re.compile(r"RowKey ge '(\d+)' and RowKey lt '(\d+)(!?)'")
_ROW = json.dumps({"PartitionKey": "p0", "RowKey": "%08d", "Text": "x" * 900})
_REFUSED = json.dumps(
    {"odata.error": {"code": "ServerBusy", "message": {"lang": "en-US", "value": "Busy."}}}
).encode()
_PART = (
    b"--changeset\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n\r\n"
)


def answer(status: str, body: bytes = b"", kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Connection(asyncio.Protocol):
    """One connection of a client, whose requests come one after the other."""

    def __init__(self, throttle: Throttle) -> None:
        self._throttle = throttle
        self._data = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember whom to answer."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._data[:end])
            length = _LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._data) < whole:
                return
            body = bytes(self._data[end + 4 : whole])
            del self._data[:whole]
            self._transport.write(self._answered(head, body))

    def _answered(self, head: bytes, body: bytes) -> bytes:
        line = head.partition(b"\r\n")[0].decode()
        parts, merges = body.count(b"HTTP/1.1\r\n"), body.count(b"PATCH ")
        rows = range(0)
        if found := _ROWS.search(urllib.parse.unquote_plus(line)):
            rows = range(int(found[1]), int(found[2]) + len(found[3]))
        entities = merges or len(rows) or line.startswith("PATCH ")
        if entities and not self._throttle(int(entities), time.monotonic()):
            return answer("503 Server Busy", _REFUSED)
        if "/$batch " in line:
            ends = b"--batch\r\nContent-Type: multipart/mixed; boundary=changeset\r\n\r\n"
            whole = ends + parts * _PART + b"--changeset--\r\n--batch--\r\n"
            return answer("202 Accepted", whole, "multipart/mixed; boundary=batch")
        if line.startswith("GET "):
            listed = ",".join(_ROW % row for row in rows)
            return answer("200 OK", f'{{"value":[{listed}]}}'.encode())
        return answer("204 No Content")


async def serve(throttle: Throttle) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(throttle), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/devstoreaccount1", flush=True)
    await server.serve_forever()


def main() -> None:
    said = json.loads(sys.argv[1])
    rng = random.Random(said.pop("seed", 1))
    refused = said.pop("refused", 0.0)
    throttle = Unreliable(throttle=TokenBucket(rng=rng, **said), refused=refused, rng=rng)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    asyncio.run(serve(throttle))


if __name__ == "__main__":
    main()
