"""What our own sessions make of answers that fail, and of answers that do not come."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import time
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from harness.endpoint.endpoint import emulator_endpoint
from harness.model.entity import Properties
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Fault, Outcome, Result, Scope
from harness.workload.budget import Budget
from harness.workload.retry import ScheduledBackoff

PROPERTIES: Properties = {"A": 1, "B": "text"}


def op(kind: Kind = Kind.INSERT, row: str = "r", **rest: Any) -> Operation:
    return Operation(kind=kind, partition_key="p", row_key=row, properties=PROPERTIES, **rest)


def statuses(result: Result) -> list[int]:
    return [attempt.status for attempt in result.attempts]


def faults(result: Result) -> list[Fault | None]:
    return [attempt.fault for attempt in result.attempts]


def test_server_busy_is_throttling_of_its_scope(service: Any, scripted: Callable[..., Any]) -> None:
    """503 ServerBusy is throttling, of the partition or of the account as its message says."""
    message = "Ingress is over the account limit."
    busy = service.answer(503, "ServerBusy", f"{message}\nRequestId:1\nTime:2")
    result = scripted(busy, retries=0).execute(op())
    assert result.outcome is Outcome.THROTTLED
    (attempt,) = result.attempts
    assert (attempt.status, attempt.error_code) == (503, "ServerBusy")
    assert (attempt.scope, attempt.message) == (Scope.ACCOUNT, message)
    assert (attempt.request_id, attempt.client_request_id) == ("request-of-the-service", "run-1-0")


def test_every_retry_is_an_attempt_of_its_own(service: Any, scripted: Callable[..., Any]) -> None:
    """An operation that succeeds on its third attempt shows the two that failed before."""
    session = scripted(
        service.answer(503, "ServerBusy"),
        service.answer(500, "OperationTimedOut"),
        service.no_content,
    )
    result = session.execute(op())
    assert (result.outcome, result.entities) == (Outcome.SUCCESS, 1)
    assert statuses(result) == [503, 500, 204]
    assert [attempt.throttled for attempt in result.attempts] == [True, True, False]
    assert session.waits == [0.25, 0.25]
    assert len(service.requests) == 3
    assert service.connections == 1


def test_each_attempt_is_named_and_signed_anew(service: Any, scripted: Callable[..., Any]) -> None:
    """A retry carries a client request id of its own and a signature."""
    session = scripted(service.answer(503, "ServerBusy"), service.no_content)
    session.execute(op())
    first, second = (request.decode().lower() for request in service.requests)
    assert "x-ms-client-request-id: run-1-0\r\n" in first
    assert "x-ms-client-request-id: run-1-1\r\n" in second
    assert "authorization: sharedkey devstoreaccount1:" in second


def test_retries_follow_the_policy_and_end_with_it(
    service: Any, scripted: Callable[..., Any]
) -> None:
    """The waits are those of the policy; after its last retry the last answer stands."""
    session = scripted(
        *[service.answer(503, "ServerBusy")] * 3, retry=ScheduledBackoff(delays_s=(2.0, 4.0))
    )
    result = session.execute(op())
    assert (result.outcome, statuses(result)) == (Outcome.THROTTLED, [503] * 3)
    assert session.waits == [2.0, 4.0]


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/1.1 204 No", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_connection_that_ends_early_is_a_reset(
    service: Any, scripted: Callable[..., Any], head: bytes
) -> None:
    """No answer, half a head and half a body are resets, retried at once on a new connection."""
    session = scripted(service.close_after(head), service.no_content)
    result = session.execute(op(Kind.UPSERT_MERGE))
    assert result.outcome is Outcome.SUCCESS
    assert faults(result) == [Fault.RESET, None]
    assert statuses(result) == [0, 204]
    assert session.waits == [0.0]
    assert service.connections == 2
    assert session.connections_in_use == 0


def test_a_reset_after_the_request_is_a_reset(service: Any, scripted: Callable[..., Any]) -> None:
    """A request that was read and answered with a reset may have been done."""
    session = scripted(service.reset, retries=0)
    result = session.execute(op())
    assert (result.outcome, faults(result)) == (Outcome.CONNECTION, [Fault.RESET])
    assert result.attempts[0].ambiguous
    assert result.attempts[0].error_code == "connection_reset"
    assert result.bytes_sent == len(service.requests[0])


def test_an_answer_that_is_not_http(service: Any, scripted: Callable[..., Any]) -> None:
    """Garbage is a bad answer, and its connection is not used again."""
    session = scripted(b"SSH-2.0-OpenSSH_9\r\n", service.no_content)
    result = session.execute(op())
    assert faults(result) == [Fault.BAD_ANSWER, None]
    assert (service.connections, session.connections_in_use) == (2, 0)


def test_a_transaction_of_which_a_part_is_not_answered(
    service: Any, scripted: Callable[..., Any]
) -> None:
    """One answer to two parts is a bad answer, not a success."""
    session = scripted(service.transaction_answer(b"HTTP/1.1 204 No Content\r\n\r\n"), retries=0)
    result = session.execute(transaction((op(row="a"), op(row="b"))))
    assert (result.outcome, faults(result)) == (Outcome.UNEXPECTED, [Fault.BAD_ANSWER])
    assert result.entities == 0


def test_no_answer_in_time(service: Any, scripted: Callable[..., Any]) -> None:
    """An answer that does not come in time is a time-out, of that length, and ambiguous."""
    session = scripted(service.silence, retries=0, read_timeout_s=0.2)
    result = session.execute(op())
    assert (result.outcome, faults(result)) == (Outcome.TIMEOUT, [Fault.READ_TIMEOUT])
    assert 0.2 <= result.service_s < 5.0
    assert session.connections_in_use == 0


def test_nobody_listens(service: Any, scripted: Callable[..., Any]) -> None:
    """A refused connection was not sent: retried at once, never ambiguous, its place freed."""
    session = scripted()
    service.stop()
    result = session.execute(op())
    assert (result.outcome, faults(result)) == (Outcome.CONNECTION, [Fault.REFUSED] * 4)
    assert not any(attempt.ambiguous for attempt in result.attempts)
    assert session.waits == [0.0] * 3
    assert (result.bytes_sent, session.connections_in_use) == (0, 0)


def test_an_unknown_host_is_not_reached(ours: str, open_to: Callable[..., Any]) -> None:
    """A name that does not resolve was not sent either."""
    session = open_to(ours, emulator_endpoint("http://no-such-host.invalid:1"))
    result = session.execute(op())
    assert faults(result) == [Fault.REFUSED]


@pytest.mark.parametrize(
    ("stored", "outcome"),
    [
        (PROPERTIES, Outcome.SUCCESS_AFTER_AMBIGUITY),
        ({"A": 2, "B": "text"}, Outcome.CONFLICT),
    ],
)
def test_an_insert_whose_answer_was_lost(
    service: Any, scripted: Callable[..., Any], stored: dict[str, Any], outcome: Outcome
) -> None:
    """The row read back after a reset and a 409 holds what was inserted, or is another writer's."""
    session = scripted(
        service.reset, service.answer(409, "EntityAlreadyExists"), service.entity_answer(**stored)
    )
    result = session.execute(op())
    assert (result.outcome, result.entities) == (outcome, int(outcome.succeeded))
    assert statuses(result) == [0, 409, 200]


def test_a_delete_whose_answer_was_lost(service: Any, scripted: Callable[..., Any]) -> None:
    """A reset and a 404: the row is gone, and nothing tells who deleted it."""
    gone = service.answer(404, "ResourceNotFound")
    session = scripted(service.reset, gone, gone)
    result = session.execute(op(Kind.DELETE))
    assert (result.outcome, result.entities) == (Outcome.AMBIGUOUS, 0)
    assert statuses(result) == [0, 404, 404]


@pytest.mark.parametrize("kind", [Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE])
@pytest.mark.parametrize(
    ("stored", "outcome"),
    [
        (PROPERTIES, Outcome.SUCCESS_AFTER_AMBIGUITY),
        # Another writer won before it, or after it.
        ({"A": 2, "B": "text"}, Outcome.AMBIGUOUS),
    ],
)
def test_a_conditional_update_whose_answer_was_lost(
    service: Any,
    scripted: Callable[..., Any],
    kind: Kind,
    stored: dict[str, Any],
    outcome: Outcome,
) -> None:
    """A 412 on the retry proves nothing: what is stored decides, where it can."""
    session = scripted(
        service.close_after(b""),
        service.answer(412, "UpdateConditionNotSatisfied"),
        service.entity_answer(**stored),
    )
    result = session.execute(op(kind, etag='W/"0"'))
    assert (result.outcome, statuses(result)) == (outcome, [0, 412, 200])


def refused_transaction(
    service: Any, status: int = 409, code: str = "EntityAlreadyExists"
) -> bytes:
    body = b'{"odata.error":{"code":"%s","message":{"lang":"en","value":"0:No."}}}' % code.encode()
    part = (
        b"HTTP/1.1 %d Reason\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % (status, len(body))
    ) + body
    answer: bytes = service.transaction_answer(part)
    return answer


def test_a_transaction_that_had_been_applied(service: Any, scripted: Callable[..., Any]) -> None:
    """After a lost answer and a 409, the row read back is ours: the transaction succeeded."""
    session = scripted(
        service.reset,
        refused_transaction(service),
        service.entity_answer(RowKey="a", **PROPERTIES),
    )
    result = session.execute(transaction((op(row="a"), op(row="b"))))
    assert (result.outcome, result.entities) == (Outcome.SUCCESS_AFTER_AMBIGUITY, 2)
    assert statuses(result) == [0, 409, 200]
    assert result.attempts[1].error_code == "EntityAlreadyExists"


def test_a_transaction_that_missed_a_row(service: Any, scripted: Callable[..., Any]) -> None:
    """404 on the retry of a transaction, and its insert is not there: it was not applied."""
    session = scripted(
        service.reset,
        refused_transaction(service, 404, "ResourceNotFound"),
        service.answer(404, "ResourceNotFound"),
    )
    result = session.execute(transaction((op(Kind.UPDATE_MERGE, "b"), op(row="a"))))
    assert (result.outcome, statuses(result)) == (Outcome.NOT_FOUND, [0, 404, 404])
    assert b"RowKey='a'" in service.requests[-1]


def test_the_read_back_is_retried_and_may_fail(service: Any, scripted: Callable[..., Any]) -> None:
    """A read-back that gets no answer either leaves the transaction undecided, all seen."""
    session = scripted(
        service.reset,
        refused_transaction(service),
        service.answer(503, "ServerBusy"),
        service.answer(503, "ServerBusy"),
        retries=1,
    )
    result = session.execute(transaction((op(row="a"), op(row="b"))))
    assert (result.outcome, result.entities) == (Outcome.AMBIGUOUS, 0)
    assert statuses(result) == [0, 409, 503, 503]


def test_the_budget_ends_retries(service: Any, scripted: Callable[..., Any]) -> None:
    """A retry that the budget does not cover is not sent; what is known stands."""
    session = scripted(*[service.answer(503, "ServerBusy")] * 2, retries=5, budget=Budget(2))
    result = session.execute(op())
    assert (result.outcome, statuses(result)) == (Outcome.THROTTLED, [503, 503])
    assert len(service.requests) == 2


def test_the_budget_ends_a_read_back(service: Any, scripted: Callable[..., Any]) -> None:
    """A read-back that the budget does not cover leaves the transaction undecided."""
    session = scripted(service.reset, refused_transaction(service), budget=Budget(2))
    result = session.execute(transaction((op(row="a"),)))
    assert (result.outcome, len(service.requests)) == (Outcome.AMBIGUOUS, 2)


def test_a_killed_greenlet_gives_its_connection_up(
    service: Any, scripted: Callable[..., Any]
) -> None:
    """Killed while it waits for an answer, a user leaves a free place and no used connection."""
    session = scripted(service.silence, service.no_content, connections=1)
    user = gevent.spawn(session.execute, op())
    _until(lambda: bool(service.requests))
    assert session.connections_in_use == 1
    user.kill()
    assert isinstance(user.value, gevent.GreenletExit)
    assert session.connections_in_use == 0
    assert session.execute(op()).outcome is Outcome.SUCCESS
    assert service.connections == 2


def test_a_time_limit_of_the_caller_passes_through(
    service: Any, scripted: Callable[..., Any]
) -> None:
    """A gevent.Timeout of the caller is no result of the service."""
    session = scripted(service.silence, connections=1)
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.1):
        session.execute(op())
    assert session.connections_in_use == 0


def test_connections_are_bounded_and_shared(service: Any, scripted: Callable[..., Any]) -> None:
    """Twenty users of one session use no more connections than it may have."""
    session = scripted(*[service.no_content] * 60, connections=3)
    users = [gevent.spawn(lambda: [session.execute(op()) for _ in range(3)]) for _ in range(20)]
    gevent.joinall(users, timeout=20.0, raise_error=True)
    assert len(service.requests) == 60
    assert service.connections <= 3
    assert session.connections_in_use == 0


def test_the_wait_for_a_connection_is_no_latency_of_the_service(
    service: Any, scripted: Callable[..., Any]
) -> None:
    """Neither before the first attempt nor before a retry; it is counted apart."""

    def late(connection: socket.socket) -> bool:
        time.sleep(0.6)
        connection.sendall(service.no_content)
        return True

    busy = service.answer(503, "ServerBusy")
    session = scripted(busy, late, service.no_content, connections=1, sleep=gevent.sleep)
    retrying, late_user = gevent.spawn(session.execute, op()), gevent.spawn(session.execute, op())
    gevent.joinall([retrying, late_user], timeout=20.0, raise_error=True)
    first, second = retrying.value, late_user.value
    # The retry is due while the other request has the only connection.
    assert statuses(first) == [503, 204]
    assert first.queued_s == first.outside_s > 0.0
    assert first.backing_off_s == pytest.approx(0.25, abs=0.1)
    assert second.queued_s > second.outside_s == 0.0
    assert second.service_s == second.attempts[0].latency_s


def test_an_idle_connection_that_was_closed_is_not_used(
    service: Any, scripted: Callable[..., Any]
) -> None:
    """A connection that the service closed while idle costs no attempt."""
    session = scripted(service.close_after(service.no_content), service.no_content)
    assert session.execute(op()).outcome is Outcome.SUCCESS
    time.sleep(0.2)
    assert statuses(session.execute(op())) == [204]
    assert service.connections == 2


def test_a_connection_that_says_too_much_is_not_used(
    service: Any, scripted: Callable[..., Any]
) -> None:
    """Bytes behind an answer mean a connection out of step; the next request takes another."""
    session = scripted(service.no_content * 2, service.no_content)
    assert statuses(session.execute(op())) == [204]
    assert statuses(session.execute(op())) == [204]
    assert service.connections == 2


def test_idle_connections_are_checked_above_1024_descriptors(
    service: Any, scripted: Callable[..., Any]
) -> None:
    """With more than 1,024 descriptors open, as with many users, connections are kept as ever."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("the machine allows fewer than 2,048 open files: raise `ulimit -Hn`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            stack.enter_context(open(os.devnull))
        session = scripted(*[service.no_content] * 3)
        for _ in range(3):
            assert statuses(session.execute(op())) == [204]
    assert service.connections == 1


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(200):
        if condition():
            return
        gevent.sleep(0.02)
    raise AssertionError("did not happen within 4 s")
