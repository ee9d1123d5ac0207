"""Answers of which anything may be wrong: whatever comes, an operation ends with an outcome."""

from __future__ import annotations

import itertools
import json
import random
import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.model.entity import ETAG
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Outcome
from harness.workload.retry import ScheduledBackoff

MOST_BYTES = 64 * 1024 * 1024
"""Traced memory of client and server together; what is served is far smaller but for a few."""

Answer = tuple[int, list[tuple[str, str]], bytes]

_ENTITY: dict[str, Any] = {
    "odata.metadata": "http://127.0.0.1/$metadata#t",
    "odata.etag": "W/\"datetime'2026-01-01T00%3A00%3A00.0000000Z'\"",
    "PartitionKey": "p",
    "RowKey": "r",
    "Timestamp": "2026-01-01T00:00:00.0000000Z",
    "A": 1,
    "B": "text",
    "C@odata.type": "Edm.Int64",
    "C": "9007199254740993",
    "D@odata.type": "Edm.Guid",
    "D": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "E@odata.type": "Edm.Binary",
    "E": "AAEC",
    "F@odata.type": "Edm.DateTime",
    "F": "2026-01-01T00:00:00Z",
    "G": 1.5,
    "H": True,
}
_ERROR = {"odata.error": {"code": "ServerBusy", "message": {"lang": "en", "value": "Busy.\nId:1"}}}
_ODD_VALUES: list[Any] = [
    None, True, -1, 2**31, 2**70, 10**400, 1e308, -0.0, "", "x" * 5000, "\ud800", "\x00\x1b[31m",
    "ä\u202e", [], {}, [[]], [None], {"a": 1}, "Edm.Int64", "Edm.Nothing", "NaN", "W/", "9" * 5000,
]  # fmt: skip
_ODD_BYTES = [
    b"", b"\x00", b"\xff", b"\r\n", b"\r\n\r\n", b"\n", b"[" * 100_000, b'{"a":' * 5000,
    b"1" * 5000, b"NaN", b"\\ud800", b"--b", b"--b--", b"<code", b"HTTP/1.1 100 X\r\n\r\n",
    b"a: b\r\n" * 20_000, b"0\r\n", b"fffffffff\r\n", b"1e999", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"<?xml", b"]]", b"'",
]  # fmt: skip
_ODD_HEADERS = [
    ("Content-Type", "multipart/mixed; boundary="),
    ("Content-Type", "multipart/mixed; boundary=\"'\xe4"),
    ("Content-Type", "application/xml;charset=nothing"),
    ("Content-Type", ";;;;" * 500),
    ("Content-Encoding", "gzip"),
    ("Transfer-Encoding", "gzip, chunked"),
    ("Content-Length", "-1"),
    ("Content-Length", "9" * 5000),
    ("Content-Length", "+5"),
    ("Connection", "close"),
    ("Connection", "upgrade"),
    ("Retry-After", "1e9"),
    ("Retry-After", "9" * 5000),
    ("Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"),
    ("x-ms-error-code", "TableNotFound"),
    ("x-ms-error-code", "\xe4\t" * 2000),
    ("x-ms-continuation-NextPartitionKey", "\xe4 /\\#?'" * 10),
    ("x-ms-continuation-NextRowKey", ""),
    ("x-ms-request-id", "\x7f" * 5000),
    ("ETag", "\xe4"),
    ("Location", "http://127.0.0.1:9/"),
    ("A" * 70_000, "b"),
]
_STATUSES = [*range(100, 104), *range(199, 210), *range(299, 310), *range(400, 418), 429, 451, 499]
_STATUSES += [500, 501, 502, 503, 504, 505, 599, 600, 700, 999, 0, 99, 1000]


def base_answers() -> list[Answer]:
    """Answers as the service gives them."""
    listed = json.dumps({"value": [_ENTITY, _ENTITY]}).encode()
    is_json = ("Content-Type", "application/json;odata=minimalmetadata")
    error = json.dumps(_ERROR).encode()
    xml = b"<?xml version='1.0'?><m:error xmlns:m='x'><m:code>A</m:code><m:message>B</m:message>"
    mixed = ("Content-Type", "multipart/mixed; boundary=b")
    parts = b"".join(
        b"--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 %s\r\n\r\n%s\r\n" % part
        for part in ((b"204 No Content\r\nETag: W/1", b""), (b"409 Conflict", error))
    )
    changes = (
        b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + parts + b"--c--\r\n--b--"
    )
    return [
        (200, [is_json], json.dumps(_ENTITY).encode()),
        (200, [is_json], listed),
        (200, [is_json, ("x-ms-continuation-NextPartitionKey", "p")], listed),
        (201, [is_json], json.dumps(_ENTITY).encode()),
        (202, [mixed], changes),
        (204, [("ETag", "W/1")], b""),
        (404, [is_json], error),
        (409, [("Content-Type", "application/xml")], xml + b"</m:error>"),
        (503, [is_json, ("Retry-After", "1")], error),
    ]


class Fuzz:
    """One answer made from a number."""

    def __init__(self, number: int) -> None:
        self.rng = random.Random(number)

    def answer(self) -> bytes:
        """The answer, with up to three things wrong."""
        rng = self.rng
        status, headers, body = rng.choice(base_answers())
        for _ in range(rng.randrange(4)):
            kind = rng.randrange(5)
            if kind == 0:
                status = rng.choice(_STATUSES)
            elif kind == 1:
                headers = [*headers, rng.choice(_ODD_HEADERS)]
            elif kind == 2:
                body = self.document(body)
            elif kind == 3:
                body = self.spoiled(body)
            else:
                headers = [one for one in headers if rng.random() < 0.5]
        head = f"HTTP/1.{rng.choice('1110')} {status} Words\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in headers
        )
        raw = head.encode("latin-1") + self.framed(body)
        if rng.random() < 0.1:
            raw = b"HTTP/1.1 %d \r\n\r\n" % rng.choice((100, 102, 199)) + raw
        return self.spoiled(raw) if rng.random() < 0.2 else raw

    def framed(self, body: bytes) -> bytes:
        """The end of the head, and the body: of a length, in chunks, or up to the end."""
        rng = self.rng
        kind = rng.randrange(6)
        if kind == 0:
            return b"\r\n" + body
        if kind == 1:
            size = rng.choice((1, 7, 4096))
            pieces = [body[at : at + size] for at in range(0, len(body), size)][:5000]
            chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
            return b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nTrailer: a\r\n\r\n"
        return b"Content-Length: %d\r\n\r\n" % len(body) + body

    def document(self, body: bytes) -> bytes:
        """JSON in which one value is another, or which is something else altogether."""
        rng = self.rng
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return json.dumps(rng.choice(_ODD_VALUES)).encode()
        place = document
        while isinstance(place, (dict, list)) and place:
            key: Any = (
                rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
            )
            if not isinstance(place[key], (dict, list)) or rng.random() < 0.4:
                place[key] = rng.choice(_ODD_VALUES)
                if isinstance(place, dict) and rng.random() < 0.2:
                    place[f"{key}@odata.type"] = rng.choice(_ODD_VALUES)
                break
            place = place[key]
        else:
            document = rng.choice(_ODD_VALUES)
        return json.dumps(document).encode()

    def spoiled(self, data: bytes) -> bytes:
        """Bytes of which some are missing, doubled, others or too many."""
        rng = self.rng
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.randrange(1, 50))
        return data[:at] + rng.choice((
            data[to:],
            data[at:to] * rng.randrange(2, 200) + data[to:],
            rng.randbytes(to - at) + data[to:],
            rng.choice(_ODD_BYTES) + data[at:],
            rng.choice(_ODD_BYTES),
        ))  # fmt: skip


class Script:
    """Answers one after the other; the last byte of each is the last of its connection."""

    def __init__(self) -> None:
        self.number = 0
        self.sent = b""

    def pop(self, _: int) -> Callable[[socket.socket], bool]:
        fuzz = Fuzz(self.number)
        self.number += 1
        self.sent = fuzz.answer()

        def step(connection: socket.socket) -> bool:
            connection.sendall(self.sent)
            return fuzz.rng.random() < 0.2

        return step


def operations() -> Iterator[Operation]:
    """Each kind, again and again."""
    write: dict[str, Any] = {"partition_key": "p", "properties": {"A": 1}}
    parts = tuple(Operation(kind=Kind.INSERT, row_key=row, **write) for row in "ab")
    yield from itertools.cycle(
        (
            Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r"),
            Operation(kind=Kind.QUERY, partition_key="p", top=5),
            Operation(kind=Kind.INSERT, row_key="r", **write),
            transaction(parts),
            Operation(kind=Kind.UPDATE_MERGE, row_key="r", etag="W/1", **write),
            Operation(kind=Kind.DELETE, partition_key="p", row_key="r"),
            Operation(kind=Kind.UPSERT_REPLACE, row_key="r", **write),
        )
    )


def fuzz(session: Any, script: Script, seconds: float) -> None:
    """Do operations for so long; each has to end with an outcome, and what was read be readable."""
    ends_s = time.monotonic() + seconds
    for operation in operations():
        if time.monotonic() > ends_s:
            break
        first = script.number
        result = session.execute(operation)
        told = (first, script.number, operation.kind, result.attempts, script.sent[:2000])
        assert result.outcome is not Outcome.DEFECT, told
        read = result.value if isinstance(result.value, list) else [result.value]
        for entity in read:
            if entity is None:
                continue
            assert dict(entity), told
            again = Operation(
                kind=Kind.UPDATE_MERGE,
                partition_key="p",
                row_key="r",
                properties={},
                etag=entity[ETAG],
            )
            assert session.execute(again).outcome is not Outcome.DEFECT, told
    assert script.number > seconds


@pytest.mark.apart
@pytest.mark.parametrize(
    "seconds", [3.0, pytest.param(120.0, marks=(pytest.mark.long, pytest.mark.thorough))]
)
def test_every_answer_has_an_outcome(
    service: Any, ours: str, open_to: Callable[..., Any], seconds: float
) -> None:
    """Bytes, heads, chunks, JSON, parts and tokens at random: no defect, and little memory."""
    service.script = script = Script()
    session = open_to(ours, service.endpoint, retry=ScheduledBackoff(), read_timeout_s=0.1)
    tracemalloc.start()
    try:
        fuzz(session, script, seconds)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
