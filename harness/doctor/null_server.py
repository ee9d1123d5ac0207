"""A server that only answers: enough of a table service for a run, and as little work as can be.

A write is answered with 204, a transaction with a 204 for each of its parts, a point query with an
entity of 1 KiB, any other list is empty. Nothing is stored and no signature is looked at. It prints
its port and serves until it is killed. With a certificate and its key as arguments it listens with
TLS too, at a port that it prints behind the other. With ``--guarded`` as the first argument it ends
when its standard input closes. ``GET /entities`` gives how many entities were written or read one
by one so far.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
import threading

_BOUND_S = 600.0
_NO_CONTENT = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
_BATCH_TYPE = b"multipart/mixed; boundary=batchresponse"
_CHANGESET = (
    b"--batchresponse\r\nContent-Type: multipart/mixed; boundary=changesetresponse\r\n\r\n",
    b"--changesetresponse\r\nContent-Type: application/http\r\n"
    b"Content-Transfer-Encoding: binary\r\n\r\n"
    b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n\r\n",
    b"--changesetresponse--\r\n--batchresponse--\r\n",
)


class NullConnection(asyncio.Protocol):
    """One connection of a client; requests come one after the other."""

    entities = 0

    def __init__(self) -> None:
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember whom to answer."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end]
            whole = end + 4 + _content_length(head)
            if len(self._data) < whole:
                return
            body, self._data = self._data[end + 4 : whole], self._data[whole:]
            self._transport.write(_answer(head, body))


def _content_length(head: bytes) -> int:
    lowered = head.lower()
    at = lowered.find(b"\r\ncontent-length:")
    return int(lowered[at + 17 :].partition(b"\r\n")[0]) if at >= 0 else 0


def _answer(head: bytes, body: bytes) -> bytes:
    if head.startswith((b"PATCH ", b"PUT ")):
        NullConnection.entities += 1
        return _NO_CONTENT
    if head.startswith(b"GET /entities "):
        return _with_body(b"200 OK", b"text/plain", str(NullConnection.entities).encode())
    if head.startswith(b"GET "):
        if b"(PartitionKey=" in head.partition(b"\r\n")[0]:
            NullConnection.entities += 1
            return _ENTITY
        return _with_body(b"200 OK", b"application/json", b'{"value":[]}')
    if b"/$batch " in head.partition(b"\r\n")[0]:
        begin, part, end = _CHANGESET
        parts = body.count(b"Content-Type: application/http")
        NullConnection.entities += parts
        return _with_body(b"202 Accepted", _BATCH_TYPE, begin + parts * part + end)
    return _NO_CONTENT


def _with_body(status: bytes, content_type: bytes, body: bytes) -> bytes:
    return (
        b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
        % (status, content_type, len(body))
        + body
    )


_ENTITY = _with_body(
    b"200 OK",
    b"application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
    json.dumps(
        {
            "odata.metadata": "http://127.0.0.1/account/$metadata#table/@Element",
            "odata.etag": "W/\"datetime'2026-11-21T00%3A00%3A00.1234567Z'\"",
            "PartitionKey": "p0",
            "RowKey": "0-00000000",
            "Timestamp": "2026-11-21T00:00:00.1234567Z",
            "Total@odata.type": "Edm.Int64",
            "Total": "1099511627776",
            "Created@odata.type": "Edm.DateTime",
            "Created": "2024-01-01T00:00:00Z",
            "Ratio": 0.5,
            "Text": "x" * 600,
        }
    ).encode(),
)


async def serve(*certificate: str) -> None:
    """Listen on a free port of this machine, and on another with TLS if there is a certificate.

    The certificate is a file, or two: the certificate and its key.
    """
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(NullConnection, "127.0.0.1", 0)]
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*certificate)
        servers.append(await loop.create_server(NullConnection, "127.0.0.1", 0, ssl=context))
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    # Bounded, so that nothing is left behind by a benchmark that was killed.
    await asyncio.sleep(_BOUND_S)


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["--guarded"]:
        given = given[1:]
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    sys.exit(asyncio.run(serve(*given)))
