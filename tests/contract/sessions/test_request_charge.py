"""What an answer of Cosmos DB charged is in the attempt that it answered, in every session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Outcome
from harness.workload.retry import ScheduledBackoff

READ = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
WRITE = Operation(kind=Kind.UPSERT_REPLACE, partition_key="p", row_key="r", properties={"A": 1})
INSERT = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={"A": 1})


def charged(answer: bytes, charge: str, name: str = "x-ms-request-charge") -> bytes:
    """The answer with a charge in its head."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return head + f"\r\n{name}: {charge}\r\n\r\n".encode() + body


def test_every_attempt_holds_its_charge(
    service: Any, open_to: Callable[..., Any], kind: str
) -> None:
    """Writes, reads, refusals and both forms of a transaction hold what was charged."""
    part = b"HTTP/1.1 204 No Content\r\nETag: x\r\nx-ms-request-charge: 5.5\r\n\r\n"
    refused = b"HTTP/1.1 409 Conflict\r\nx-ms-request-charge: 1.5\r\n\r\n{}"
    batch = transaction((INSERT, Operation(kind=Kind.INSERT, partition_key="p", row_key="s")))
    service.script = [
        charged(service.no_content, "10.67"),
        charged(service.no_content, "1.07", name="X-Ms-Request-Charge"),
        charged(service.entity_answer(RowKey="r"), "1"),
        charged(service.transaction_answer(part, part), "20"),
        service.transaction_answer(part, part),
        charged(service.transaction_answer(part, refused), "7.25"),
        charged(service.answer(404, "ResourceNotFound"), "2"),
        charged(service.no_content, "much"),
        service.no_content,
    ]
    session = open_to(kind, service.endpoint)
    asked = (WRITE, WRITE, READ, batch, batch, batch, READ, WRITE, WRITE)
    results = [session.execute(operation) for operation in asked]
    charges = [[attempt.request_charge for attempt in result.attempts] for result in results]
    assert charges == [[1067], [107], [100], [2000], [1100], [725], [200], [0], [0]]


def test_a_throttled_attempt_holds_its_charge(
    service: Any, open_to: Callable[..., Any], ours: str
) -> None:
    """A refusal is charged by itself, not added to the attempt that succeeds."""
    service.script = [
        charged(service.answer(429, "TooManyRequests"), "0.38"),
        charged(service.no_content, "10.29"),
    ]
    session = open_to(
        ours, service.endpoint, retry=ScheduledBackoff(delays_s=(0.01,)), sleep=lambda _: None
    )
    result = session.execute(WRITE)
    assert result.outcome is Outcome.SUCCESS
    assert [attempt.request_charge for attempt in result.attempts] == [38, 1029]
