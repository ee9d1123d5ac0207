"""What is seen of the untouched SDK's own retries."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault, Outcome, Result
from harness.workload.budget import Budget

PUT = Operation(kind=Kind.UPSERT_REPLACE, partition_key="p", row_key="r", properties={"A": 1})
POST = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={"A": 1})


def seen(result: Result) -> list[int | Fault]:
    return [attempt.fault or attempt.status for attempt in result.attempts]


def test_attempts_that_the_sdk_hides_are_counted(service: Any, open_to: Callable[..., Any]) -> None:
    """A 503 that the SDK retried by itself is an attempt, with its code, and the budget pays."""
    service.script = [service.answer(503, "ServerBusy"), service.no_content]
    budget = Budget()
    result = open_to("sdk-default", service.endpoint, budget=budget).execute(PUT)
    assert (result.outcome, seen(result)) == (Outcome.SUCCESS, [503, 204])
    assert result.attempts[0].error_code == "ServerBusy"
    assert result.attempts[0].request_id == "request-of-the-service"
    assert budget.spent == len(service.requests) == 2


def test_a_connection_fault_that_the_sdk_hides_is_counted(
    service: Any, open_to: Callable[..., Any]
) -> None:
    """A reset that the SDK retried by itself is an attempt with the fault's name."""
    service.script = [service.close_after(b""), service.no_content]
    result = open_to("sdk-default", service.endpoint).execute(PUT)
    assert (result.outcome, seen(result)) == (Outcome.SUCCESS, [Fault.RESET, 204])


def test_an_answer_that_broke_off_and_that_the_sdk_hides_is_counted(
    service: Any, open_to: Callable[..., Any]
) -> None:
    """A retried answer that ended early is a reset, although the SDK's history leaves it out."""
    whole = b'{"PartitionKey": "p", "RowKey": "r"}'
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(whole)}\r\n"
    head += "Content-Type: application/json\r\n\r\n"
    service.script = [service.close_after(head.encode() + whole[:10]), head.encode() + whole]
    result = open_to("sdk-default", service.endpoint).execute(
        Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
    )
    assert (result.outcome, seen(result)) == (Outcome.SUCCESS, [Fault.RESET, 200])


def test_a_lost_insert_is_ambiguous_here_too(service: Any, open_to: Callable[..., Any]) -> None:
    """409 behind a 500 that the SDK retried is ambiguous, for the SDK reads nothing back."""
    service.script = [
        service.answer(500, "InternalError"),
        service.answer(409, "EntityAlreadyExists"),
    ]
    result = open_to("sdk-default", service.endpoint).execute(POST)
    assert (result.outcome, seen(result)) == (Outcome.AMBIGUOUS, [500, 409])


@pytest.mark.parametrize(
    ("step", "fault", "outcome"),
    [
        ("reset", Fault.RESET, Outcome.CONNECTION),
        ("silence", Fault.READ_TIMEOUT, Outcome.TIMEOUT),
        ("garbage", Fault.BAD_ANSWER, Outcome.UNEXPECTED),
    ],
)
def test_the_last_fault_is_named(
    service: Any, open_to: Callable[..., Any], step: str, fault: Fault, outcome: Outcome
) -> None:
    """An insert that the SDK does not retry ends with the fault's name."""
    service.script = [b"SSH-2.0\r\n\r\n" if step == "garbage" else getattr(service, step)]
    session = open_to("sdk-default", service.endpoint, read_timeout_s=0.2)
    result = session.execute(POST)
    assert (result.outcome, seen(result)) == (outcome, [fault])


QUERY = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
REDIRECTS = [(307, PUT), (308, POST), (307, QUERY), (302, QUERY)]


@pytest.mark.parametrize(("status", "operation"), REDIRECTS)
def test_a_redirect_leads_nowhere(
    service: Any, kind: str, open_to: Callable[..., Any], status: int, operation: Operation
) -> None:
    """An answer that names another place is the operation's answer; nothing is sent there."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0.0)
        place = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/there"
        service.script = [service.answer(status, "Moved", Location=place)]
        result = open_to(kind, service.endpoint).execute(operation)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()
    assert seen(result) == [status]
    assert result.outcome not in (Outcome.SUCCESS, Outcome.SUCCESS_AFTER_AMBIGUITY)
    assert len(service.requests) == 1


def test_nobody_listens(service: Any, open_to: Callable[..., Any]) -> None:
    """A refused connection is no ambiguity."""
    session = open_to("sdk-default", service.endpoint)
    service.stop()
    result = session.execute(POST)
    assert (result.outcome, seen(result)[-1]) == (Outcome.CONNECTION, Fault.REFUSED)
    assert not result.attempts[-1].ambiguous


def test_unknown_kinds_are_refused(service: Any, open_to: Callable[..., Any]) -> None:
    """A session kind that is not there is refused with the names of those that are."""
    with pytest.raises(ValueError, match="session 'lean'; the sessions are sdk, wire, sdk-default"):
        open_to("lean", service.endpoint)


def test_a_retry_that_the_budget_does_not_cover_is_not_sent(
    service: Any, open_to: Callable[..., Any]
) -> None:
    """The SDK would retry, but the call ends with the answer that it has."""
    service.script = [service.answer(503, "ServerBusy")] * 3
    budget = Budget(2)
    result = open_to("sdk-default", service.endpoint, budget=budget).execute(PUT)
    assert (result.outcome, seen(result)) == (Outcome.THROTTLED, [503, 503])
    assert budget.spent == len(service.requests) == 2
