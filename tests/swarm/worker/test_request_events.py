"""Locust is told of every operation once, some of them together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from locust.env import Environment
from locust.exception import StopUser

from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome, Result
from harness.swarm.worker.request_events import RequestEvents
from tests.support.results import done

START_S = 1_790_000_000.0


def result(
    number: int = 0,
    done_s: float = 0.0,
    received: int = 100,
    outcome: Outcome = Outcome.SUCCESS,
) -> Result:
    """An upsert with a number for its name, done so many seconds after the start."""
    sent = Operation(kind=Kind.UPSERT_MERGE, partition_key="p", row_key="r", name=str(number))
    at_s = START_S + done_s
    return done(sent, at_s - 0.25, 0.25, outcome=outcome, bytes_received=received)


def listening(told: Callable[..., None]) -> RequestEvents:
    """Request events that go to one listener."""
    environment = Environment()
    environment.events.request.add_listener(told)
    return RequestEvents(environment)


@pytest.fixture
def told() -> list[dict[str, Any]]:
    """What was told."""
    return []


@pytest.fixture
def events(told: list[dict[str, Any]]) -> RequestEvents:
    """Request events that are kept in ``told``."""
    return listening(lambda **event: told.append(event))


def names(told: list[dict[str, Any]]) -> list[str]:
    return [event["name"] for event in told]


def test_an_operation_is_told_as_locust_wants_it(
    events: RequestEvents, told: list[dict[str, Any]]
) -> None:
    """Verb, name, milliseconds, bytes, and no failure."""
    events.fire(result(7))
    assert told == [
        {
            "request_type": "PATCH",
            "name": "7",
            "response_time": pytest.approx(250.0),
            "response_length": 100,
            "exception": None,
            "context": {},
        }
    ]


@pytest.mark.parametrize("outcome", Outcome)
def test_a_failure_is_what_fails_everywhere(
    events: RequestEvents, told: list[dict[str, Any]], outcome: Outcome
) -> None:
    """Locust's failures are those of conditions and verdicts; a conflict is an answer."""
    events.fire(result(outcome=outcome))
    assert (told[0]["exception"] is not None) is outcome.failed


def test_all_are_told_once_and_in_order(events: RequestEvents, told: list[dict[str, Any]]) -> None:
    """However many there are, and whenever somebody wants all of them told."""
    for number in range(1000):
        events.enqueue(result(number))
        if number % 37 == 0:
            events.flush()
            assert len(told) == number + 1
    events.flush_without_user()
    assert names(told) == [str(number) for number in range(1000)]


@pytest.mark.parametrize(
    ("later", "count"),
    [
        (result(1, done_s=0.01), 0),
        (result(1, done_s=0.06), 2),
        (result(1, done_s=0.01, received=100_000), 2),
        (result(1, done_s=0.01, outcome=Outcome.THROTTLED), 2),
    ],
    ids=["soon", "late", "large", "failed"],
)
def test_what_is_old_or_large_or_failed_is_not_kept(
    events: RequestEvents, told: list[dict[str, Any]], later: Result, count: int
) -> None:
    """A moment later all are told, and at once where much was read or something went wrong."""
    events.enqueue(result(0))
    events.enqueue(later)
    assert len(told) == count


def test_few_are_kept(events: RequestEvents, told: list[dict[str, Any]]) -> None:
    """Of those that end at the same moment, fewer than a hundred are untold at any time."""
    for number in range(500):
        events.enqueue(result(number))
        assert number + 1 - len(told) < 100


def test_a_listener_may_stop_a_user() -> None:
    """What it raises goes through, and nothing is told twice or left out."""
    told: list[str] = []

    def stop_at_every_third(name: str, **_: Any) -> None:
        told.append(name)
        if len(told) % 3 == 0:
            raise StopUser

    events = listening(stop_at_every_third)
    for number in range(8):
        events.enqueue(result(number))
    with pytest.raises(StopUser):
        events.flush()
    assert told == ["0", "1", "2"]
    events.flush_without_user()
    assert told == [str(number) for number in range(8)]
