"""What is seen of the untouched SDK's own retries."""

from __future__ import annotations

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
    """A reset that the SDK retried by itself is told by its history."""
    service.script = [service.close_after(b""), service.no_content]
    result = open_to("sdk-default", service.endpoint).execute(PUT)
    assert (result.outcome, seen(result)) == (Outcome.SUCCESS, [Fault.RESET, 204])


def test_a_lost_insert_is_ambiguous_here_too(service: Any, open_to: Callable[..., Any]) -> None:
    """409 behind a 500 that the SDK retried is success after ambiguity."""
    service.script = [
        service.answer(500, "InternalError"),
        service.answer(409, "EntityAlreadyExists"),
    ]
    result = open_to("sdk-default", service.endpoint).execute(POST)
    assert (result.outcome, seen(result)) == (Outcome.SUCCESS_AFTER_AMBIGUITY, [500, 409])


@pytest.mark.parametrize(
    ("step", "fault", "outcome"),
    [
        ("reset", Fault.RESET, Outcome.CONNECTION),
        ("silence", Fault.READ_TIMEOUT, Outcome.TIMEOUT),
        ("garbage", Fault.BAD_ANSWER, Outcome.CONNECTION),
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


def test_nobody_listens(service: Any, open_to: Callable[..., Any]) -> None:
    """A refused connection is no ambiguity."""
    session = open_to("sdk-default", service.endpoint)
    service.stop()
    result = session.execute(POST)
    assert (result.outcome, seen(result)[-1]) == (Outcome.CONNECTION, Fault.REFUSED)
    assert not result.attempts[-1].ambiguous


def test_unknown_kinds_are_refused(service: Any, open_to: Callable[..., Any]) -> None:
    """A session kind that is not there is refused with the names of those that are."""
    with pytest.raises(ValueError, match="called 'lean'; there are sdk, wire, sdk-default"):
        open_to("lean", service.endpoint)
