"""A table service with faults: a proxy before a real one that follows rules and keeps books."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any

import gevent

from tests.support.faulty_service.asked import Asked, asked_by
from tests.support.faulty_service.books import ABANDONED, Row, seen_in
from tests.support.faulty_service.rules import Rule, Script
from tests.support.faulty_service.stored import Stored
from tests.support.proxy import Proxy, Seen, Upstream, read_request, reset_on_close

_NOBODY_WAITS_S = 60.0
_HOST = re.compile(rb"(\r\nhost: *)[^:\r]+", re.IGNORECASE)
_EARLY_S = 0.2
_TCP_INFO = struct.Struct("=B51xI")
"""Of `struct tcp_info` of Linux, the state and tcpi_last_data_recv."""
_CLOSED = (7, 8)
"""TCP_CLOSE, where the connection was reset, and TCP_CLOSE_WAIT, where the other end closed it."""
_CONTINUED = "NextPartitionKey=loop"
_EMPTY_PAGE = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n"
    "x-ms-continuation-NextPartitionKey: {0}\r\nx-ms-continuation-NextRowKey: {0}\r\n\r\n"
    '{{"value":[]}}'
)


@dataclasses.dataclass(slots=True)
class _Request:
    """One request, and what became of it so far: until it is answered nobody knows."""

    asked: Asked
    phase: str
    seen_as: str = ABANDONED
    acknowledged: bool = False
    applied: int = 0
    returned: int = 0

    @property
    def row(self) -> Row:
        return Row(
            phase=self.phase,
            kind=self.asked.kind,
            table=self.asked.table,
            partition=self.asked.partition,
            seen_as=self.seen_as,
            acknowledged=self.acknowledged,
            applied=self.applied,
            returned=self.returned,
        )


class _Run:
    """What one run met and did: it begins with a look at the tables, and ends with deleting."""

    def __init__(self, script: Script, loading_entities: int) -> None:
        self.script = script
        self.requests: list[_Request] = []
        self.rows: set[tuple[str, str, str]] = set()
        self.to_load = loading_entities
        self.load_since_s: float | None = None
        self.cleaning = False


class FaultyTable(Proxy):
    """The service.

    Args:
        upstream_port: Port of the real one on loopback; None where it stores the entities itself.
        loading_entities: With so many entities written, loading is over and the load begins.
        seed: Of all chance.
        scripts: The rules of each run after another; behind the last there are none.
        certificate: Files of certificate and key, for https.
        address: Where it listens.
    """

    def __init__(
        self,
        upstream_port: int | None,
        *,
        loading_entities: int,
        seed: int,
        scripts: Iterable[Iterable[dict[str, Any]]],
        certificate: tuple[str, str] | None,
        address: str,
    ) -> None:
        self._stored = Stored() if upstream_port is None else None
        self._seed = seed
        self._scripts = [list(rules) for rules in scripts]
        self._loading_entities = loading_entities
        self._runs: list[_Run] = []
        self._begin()
        super().__init__(upstream_port, certificate=certificate, address=address)

    def books(self) -> list[dict[str, Any]]:
        """What was counted of each run, as `tests.support.faulty_service.books.Books` reads it."""
        return [
            {
                "requests": [dataclasses.asdict(request.row) for request in run.requests],
                "rows_left": len(run.rows),
            }
            for run in self._runs
        ]

    def _upstream(self) -> Upstream:
        return super()._upstream() if self._stored is None else self._stored

    def _begin(self) -> None:
        number = len(self._runs)
        rules = self._scripts[number] if number < len(self._scripts) else ()
        self._runs.append(_Run(Script(rules, self._seed), self._loading_entities))

    def reply(self, seen: Seen, upstream: Upstream, client: socket.socket) -> bool:
        """Do to one request what the rules say."""
        request = self._received(seen)
        run = self._runs[-1]
        load_s = 0.0 if run.load_since_s is None else seen.at_s - run.load_since_s
        rule = run.script.rule_for(request.asked, seen.path, request.phase, load_s)
        sent_s = time.monotonic() - _connection(client)[1]
        answer = self._answered(rule, request, seen, upstream)
        if held_s := rule.delay_s + run.script.work_s(rule, load_s):
            gevent.sleep(held_s)
        if rule.stall_s:
            gevent.sleep(max(0.0, rule.stall_s - time.time() % 1.0))
        if rule.how == "hang":
            _wait_until_closed(client)
        if _connection(client)[0] in _CLOSED:
            # A client that goes before its own time-out was broken off.
            if time.monotonic() - sent_s > rule.timeout_s - _EARLY_S:
                request.seen_as = "read_timeout"
            return False
        if rule.how == "reset" or answer is None:
            reset_on_close(client)
            request.seen_as = "connection_reset"
            return False
        if rule.how == "truncate":
            head, _, body = answer.partition(b"\r\n\r\n")
            client.sendall(answer[: -len(body) // 2] if body else head[: len(head) // 2])
            request.seen_as = "connection_reset"
            return False
        client.sendall(answer)
        self._delivered(rule, request, answer)
        if rule.how == "loop" and _CONTINUED in seen.path:
            request.seen_as = "200 ContinuationLoop"
        if rule.how == "close":
            self._close(client)
            return False
        return True

    def _received(self, seen: Seen) -> _Request:
        asked = asked_by(seen)
        if self._runs[-1].cleaning and asked.kind == "tables":
            self._begin()
        run = self._runs[-1]
        run.cleaning |= asked.kind == "delete table"
        phase = "load"
        if not asked.of_entities or run.cleaning:
            phase = "cleaning" if run.cleaning else "making"
        elif run.to_load > 0:
            phase = "loading"
        elif run.load_since_s is None:
            run.load_since_s = seen.at_s
        run.requests.append(_Request(asked, phase))
        return run.requests[-1]

    def _answered(
        self, rule: Rule, request: _Request, seen: Seen, upstream: Upstream
    ) -> bytes | None:
        """The answer under this rule; the request is passed on where it says so."""
        if not rule.passes_on:
            if rule.how not in ("loop", "endless"):
                return rule.answer
            token = "loop" if rule.how == "loop" else f"page{len(self._runs[-1].requests)}"
            return _EMPTY_PAGE.format(token).encode()
        # Azurite reads the account off a host that it does not take for an address.
        raw = _HOST.sub(b"\\g<1>127.0.0.1", seen.raw, count=1)
        real = upstream.ask(dataclasses.replace(seen, raw=raw))
        if real is not None and seen_in(request.asked, real)[1]:
            self._applied(request)
        return real if rule.answer is None else rule.answer

    def _applied(self, request: _Request) -> None:
        asked, run = request.asked, self._runs[-1]
        request.applied = asked.entities
        for one in asked.parts or (asked,):
            if one.writes:
                key = (one.table, one.partition, one.row)
                (run.rows.discard if one.kind == "delete" else run.rows.add)(key)
        run.to_load -= request.applied

    def _delivered(self, rule: Rule, request: _Request, answer: bytes) -> None:
        request.seen_as, request.acknowledged, _ = seen_in(request.asked, answer)
        if request.acknowledged and rule.status:
            # A success that is not the one that this request has.
            request.seen_as, request.acknowledged = "bad_answer", False
        if request.asked.kind == "query" and request.acknowledged:
            body = answer.partition(b"\r\n\r\n")[2]
            request.returned = len(json.loads(_unchunked(answer, body))["value"])

    def _close(self, client: socket.socket) -> None:
        """Send nothing more; a request that was on its way already gets no answer."""
        client.shutdown(socket.SHUT_WR)
        client.settimeout(_NOBODY_WAITS_S)
        late = read_request(client)
        if late is not None:
            self._received(late).seen_as = "connection_reset"


def _connection(client: socket.socket) -> tuple[int, float]:
    """State of a connection, and the seconds since its last bytes arrived, read or not.

    A service that gets no processor time for a second reads a request a second late, but its client
    counts from when it was sent.
    """
    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    state, received_ms = _TCP_INFO.unpack(info)
    return state, received_ms / 1000


def _wait_until_closed(client: socket.socket) -> None:
    client.settimeout(_NOBODY_WAITS_S)
    with contextlib.suppress(OSError):
        while client.recv(65536):
            pass


def _unchunked(answer: bytes, body: bytes) -> bytes:
    """The body itself, which may have come in pieces."""
    if not re.search(rb"(?i)\r\ntransfer-encoding: *chunked", answer.partition(b"\r\n\r\n")[0]):
        return body
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        whole += body[:length]
        body = body[length + 2 :]
        if not length:
            break
    return whole
