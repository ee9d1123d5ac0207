"""Whatever arrives at the port of a master, its run goes on: what is malformed is refused.

The messages are sent by ZeroMQ as Locust's workers send them, while the run measures.
"""

from __future__ import annotations

import time

import msgpack
import pytest
import zmq

from tests.support.locust_process import QUICK, LocustProcess, Stress, wait_until
from tests.support.ports import free_port

pytestmark = pytest.mark.azurite


def message(*parts: object) -> bytes:
    packed: bytes = msgpack.dumps(parts)
    return packed


STRANGER, CLEAR_SCREEN = "stranger", "\x1b[2J\x07"
MALFORMED = {
    "no msgpack": b"\xc1\x00\xff",
    "nothing": b"",
    "no message": msgpack.dumps(5),
    "too few parts": message("heartbeat"),
    "too many parts": message("heartbeat", None, STRANGER, 1),
    "no types": message([1], {}, {}),
    "a time that is none": message({"__datetime__": True, "as_str": "x"}, None, STRANGER),
    "another sender": message("heartbeat", {"state": "running"}, "somebody"),
    "a version that is none": message("client_ready", [5], STRANGER),
    "statistics of nobody": message("stats", {}, STRANGER),
    "a failure without text": message("exception", None, STRANGER),
    "no log": message("logs", None, STRANGER),
    "no locustfile": message("locustfile", None, STRANGER),
    "a name that clears the screen": message(CLEAR_SCREEN, None, STRANGER),
    "a report without counts": message("aztables-WorkerReport", {"run_id": 5}, STRANGER),
    "a greeting that is none": message("aztables-Hello", 7, STRANGER),
    "a question without a time": message("aztables-ClockQuestion", {"run_id": "r"}, STRANGER),
}
NOTE = message("aztables-LoginNote", {"text": f"note {CLEAR_SCREEN}"}, STRANGER)
"""Well-formed, so it is shown."""


@pytest.fixture(scope="module")
def run(stress: Stress, host: str) -> tuple[LocustProcess, LocustProcess]:
    """A master with a worker, and what a stranger sends to it meanwhile."""
    port = free_port()
    master = stress(
        *QUICK,
        *("-H", host, "-t", "8s", "--master", "--expect-workers", "1"),
        *("--master-bind-port", str(port)),
    )
    worker = stress("--worker", "--master-port", str(port))
    master.until_said("[3/4]")
    with zmq.Context() as context:
        for content in (*MALFORMED.values(), NOTE):
            with context.socket(zmq.DEALER) as stranger:
                stranger.setsockopt(zmq.IDENTITY, STRANGER.encode())
                stranger.connect(f"tcp://127.0.0.1:{port}")
                stranger.send(content)
                time.sleep(0.05)
                stranger.close(linger=1000)
    wait_until(lambda: "note" in master.stdout, "the last message was read")
    master.wait()
    worker.wait()
    return master, worker


def test_malformed_messages_end_no_run(run: tuple[LocustProcess, LocustProcess]) -> None:
    """The run is whole, and the worker takes part to its end."""
    master, worker = run
    assert (master.process.returncode, worker.process.returncode) == (0, 0), master.said
    assert "Traceback" not in master.said + worker.said
    assert master.record.complete
    assert master.record.workers == 1


def test_malformed_messages_are_counted_and_logged(
    run: tuple[LocustProcess, LocustProcess],
) -> None:
    """Each is counted in the record; the first ones are said, and what they hold is printable."""
    master, _ = run
    assert master.record.refused_messages == len(MALFORMED)
    assert master.said.count("refused a message") == 10
    assert "\x1b" not in master.said
    assert "note \\u001b[2J\\u0007" in master.stdout
