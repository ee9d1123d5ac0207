"""A response that comes byte by byte, each in time, ends at the time limit for a response.

The session `sdk-default` is here, because only gevent's sockets can be interrupted in `requests`.
"""

from __future__ import annotations

import random
import socket
import threading
from time import monotonic, sleep

import pytest

from harness.endpoint.endpoint import emulator_endpoint
from harness.endpoint.session import SessionOptions
from harness.endpoint.sessions import open_session
from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault
from harness.model.process import steady_clock
from harness.workload.budget import Budget
from harness.workload.retry import ScheduledBackoff

READ = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n"


def serve(listener: socket.socket, first: bytes) -> None:
    """Send ``first`` to every client, and then a byte every 50 ms."""

    def drip(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                connection.sendall(first)
                while True:
                    connection.sendall(b"a")
                    sleep(0.05)
            except OSError:
                return

    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=drip, args=(connection,), daemon=True).start()


@pytest.mark.parametrize("first", [HEAD, HEAD + b"\r\n"], ids=["head", "body"])
@pytest.mark.parametrize("kind", ["sdk", "wire", "sdk-default"])
def test_a_response_that_drips_is_a_time_out(kind: str, first: bytes) -> None:
    """Head or body: the attempt ends, and the operation with it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, first), daemon=True).start()
        session = open_session(
            kind,
            SessionOptions(
                endpoint=emulator_endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}"),
                table="dripping",
                run_id="run",
                retry=ScheduledBackoff(),
                # The SDK would go on for minutes by itself.
                budget=Budget(1),
                clock=steady_clock(),
                rng=random.Random(1),
                connections=1,
                connect_timeout_s=0.5,
                read_timeout_s=0.5,
            ),
        )
        began_s = monotonic()
        result = session.execute(READ)
        assert [attempt.fault for attempt in result.attempts] == [Fault.READ_TIMEOUT]
        assert monotonic() - began_s < 10
        session.close()
