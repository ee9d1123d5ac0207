"""Attempts are told as soon as they are answered, and nothing leaves once nobody counts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gevent
import pytest
from gevent import GreenletExit

from harness.endpoint.attempts import LOOP
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation
from harness.model.outcome import Attempt, Fault, Outcome
from harness.workload.budget import Budget, BudgetSpent
from harness.workload.retry import ScheduledBackoff

PUT = Operation(kind=Kind.UPSERT_REPLACE, partition_key="p", row_key="r", properties={"A": 1})
INSERT = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={"A": 1})
SCAN = Operation(
    kind=Kind.QUERY, partition_key=WHOLE_TABLE, key_range=KeyRange(entities=2, exact=False)
)


class Told:
    """What ``on_attempt`` is told, and what ``pace`` is asked."""

    def __init__(self) -> None:
        self.attempts: list[int | Fault] = []
        self.scanned_entities: list[int] = []
        self.waits = 0

    def on_attempt(self, operation: Operation, attempt: Attempt) -> None:
        self.attempts.append(attempt.fault or attempt.status)

    def scanned(self, entities: int) -> None:
        self.scanned_entities.append(entities)

    def wait_page(self) -> None:
        self.waits += 1


def page(rows: int, following: str = "") -> bytes:
    """A page of so many entities, with the continuation token ``following``."""
    entities = [{"PartitionKey": "p", "RowKey": str(row)} for row in range(rows)]
    body = json.dumps({"value": entities}).encode()
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json;odata=minimalmetadata\r\n"
    if following:
        head += f"x-ms-continuation-NextPartitionKey: {following}\r\n"
        head += f"x-ms-continuation-NextRowKey: {following}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def until(true: Callable[[], bool]) -> None:
    with gevent.Timeout(5.0):
        while not true():
            gevent.sleep(0.005)


@pytest.mark.parametrize("step", ["busy", "reset"])
def test_an_attempt_is_told_while_its_operation_is_in_back_off(
    service: Any, open_to: Callable[..., Any], ours: str, step: str
) -> None:
    """What was answered, or lost, is known before the retry leaves."""
    busy = service.answer(503, "ServerBusy", Retry_After="60")
    service.script = [busy if step == "busy" else service.close_after(b"")]
    told = Told()
    session = open_to(
        ours,
        service.endpoint,
        retry=ScheduledBackoff(delays_s=(60.0,) * 1),
        on_attempt=told.on_attempt,
        sleep=lambda _: gevent.sleep(60.0),
    )
    user = gevent.spawn(session.execute, PUT)
    until(lambda: bool(told.attempts))
    assert told.attempts == [503 if step == "busy" else Fault.RESET]
    user.kill()


def test_a_result_says_how_many_attempts_were_told(
    service: Any, scripted: Callable[..., Any]
) -> None:
    """Told attempts and those of the result from ``told`` on are all attempts, each once."""
    told = Told()
    session = scripted(
        service.answer(503, "ServerBusy"),
        service.reset,
        service.answer(409, "EntityAlreadyExists"),
        service.entity_answer(A=1),
        on_attempt=told.on_attempt,
    )
    result = session.execute(INSERT)
    assert told.attempts == [503, Fault.RESET, 409]
    assert [attempt.status for attempt in result.attempts[result.reported :]] == [200]


def test_an_abandoned_session_sends_nothing_more(
    service: Any, open_to: Callable[..., Any], ours: str
) -> None:
    """An operation that would be sent again is ended; its requests are those that were told."""
    service.script = [service.answer(503, "ServerBusy")] * 50
    told, budget = Told(), Budget()
    session = open_to(
        ours,
        service.endpoint,
        retry=ScheduledBackoff(delays_s=(0.01,) * 50),
        on_attempt=told.on_attempt,
        budget=budget,
    )
    user = gevent.spawn(session.execute, PUT)
    until(lambda: bool(told.attempts))
    session.abandon()
    with gevent.Timeout(10.0):
        assert isinstance(user.get(), GreenletExit)
    assert len(service.requests) == len(told.attempts) == budget.spent


@pytest.mark.parametrize("step", ["busy", "reset"])
def test_the_retries_of_the_untouched_sdk_are_told_and_abandoned(
    service: Any, open_to: Callable[..., Any], step: str
) -> None:
    """The SDK waits in a thread of its own here, for it knows nothing of greenlets."""
    failed = service.answer(503, "ServerBusy") if step == "busy" else service.close_after(b"")
    service.script = [failed] * 5
    told, budget = Told(), Budget()
    session = open_to("sdk-default", service.endpoint, on_attempt=told.on_attempt, budget=budget)
    with ThreadPoolExecutor(1) as pool:
        user = pool.submit(session.execute, PUT)
        until(lambda: bool(told.attempts))
        session.abandon()
        assert isinstance(user.exception(timeout=10.0), GreenletExit)
    assert told.attempts[0] == (503 if step == "busy" else Fault.RESET)
    assert len(service.requests) == len(told.attempts) == budget.spent


def test_a_request_that_waits_for_a_connection_is_not_billed(
    service: Any, open_to: Callable[..., Any], ours: str
) -> None:
    """The budget is taken from as a request leaves, not before."""
    service.script = [service.silence]
    budget = Budget()
    session = open_to(ours, service.endpoint, connections=1, budget=budget)
    users = [gevent.spawn(session.execute, PUT) for _ in range(3)]
    until(lambda: bool(service.requests))
    gevent.sleep(0)
    assert budget.spent == 1
    gevent.killall(users)


def test_a_request_that_finds_the_budget_spent_does_not_leave(
    service: Any, open_to: Callable[..., Any], kind: str
) -> None:
    """Whoever comes after the last transaction of the budget is told so, and sends nothing."""
    session = open_to(kind, service.endpoint, budget=Budget(0))
    with pytest.raises(BudgetSpent):
        session.execute(PUT)
    assert service.requests == []


def test_pages_are_told_and_expected_ones_leave_at_once(
    service: Any, open_to: Callable[..., Any], kind: str
) -> None:
    """Pages of the range that is known leave at once; every other one waits for its place."""
    service.script = [page(1, "a"), page(1, "b"), page(0, "c"), page(1)]
    told = Told()
    session = open_to(kind, service.endpoint, on_attempt=told.on_attempt, pace=told)
    result = session.execute(SCAN)
    assert (result.outcome, result.entities_returned) == (Outcome.SUCCESS, 3)
    assert (told.attempts, result.reported, len(result.attempts)) == ([200] * 3, 3, 4)
    # Two entities were expected: one page behind them leaves at once, and each counts for one.
    assert (told.waits, sum(told.scanned_entities)) == (1, 2)


def test_pages_with_little_in_them_wait_long_before_the_range_is_scanned(
    service: Any, open_to: Callable[..., Any], kind: str
) -> None:
    """For 1,000 entities a dozen pages are enough; each page behind them waits for its place."""
    pages = 30
    service.script = [*(page(1, f"t{number}") for number in range(1, pages)), page(1)]
    told = Told()
    session = open_to(kind, service.endpoint, on_attempt=told.on_attempt, pace=told)
    whole = dataclasses.replace(SCAN, key_range=KeyRange(entities=1000, exact=False))
    assert session.execute(whole).entities_returned == pages
    assert told.waits == pages - 1 - 12
    assert sum(told.scanned_entities) == pages - 12


@pytest.mark.parametrize("tokens", [["a"], ["a", "b", "c"], ["x", "y", "a", "b"]])
def test_a_continuation_token_that_leads_back_is_a_named_fault(
    service: Any, open_to: Callable[..., Any], kind: str, tokens: list[str]
) -> None:
    """A query whose pages go round in a circle ends, whatever the length of the circle."""
    service.script = [page(0, token) for token in tokens * 20]
    session = open_to(kind, service.endpoint)
    result = session.execute(SCAN)
    assert (result.outcome, result.attempts[-1].error_code) == (Outcome.UNEXPECTED, LOOP)
    assert len(service.requests) <= 4 * len(tokens) + 2


def test_entities_that_nobody_needs_are_not_kept(
    service: Any, open_to: Callable[..., Any], kind: str
) -> None:
    """They are counted, and that is all."""
    service.script = [page(2, "a"), page(2)] * 2
    session = open_to(kind, service.endpoint)
    kept, counted = session.execute(SCAN), session.execute(SCAN, keep=False)
    assert (len(kept.value), counted.value) == (4, [])
    assert kept.entities_returned == counted.entities_returned == 4
