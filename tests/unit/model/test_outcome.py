"""What an answer means: outcomes, ambiguity, throttling and its scope, retrying."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.operation import Kind, Operation
from harness.model.outcome import (
    PARTITION_FULL_CODE,
    Attempt,
    Fault,
    Outcome,
    Result,
    Scope,
    Traits,
    classify,
    is_retryable,
    is_throttling,
    throttling_scope,
)


def operation(kind: Kind, etag: str | None = None, parts: int = 0) -> Operation:
    return Operation(
        kind=kind,
        partition_key="p",
        row_key="r",
        etag=etag,
        parts=tuple(
            Operation(kind=Kind.INSERT, partition_key="p", row_key=str(n)) for n in range(parts)
        ),
    )


def attempt(status: int = 0, code: str = "", fault: Fault | None = None) -> Attempt:
    return Attempt(status=status, error_code=code, fault=fault, sent_s=0.0, latency_s=0.1)


INSERT = operation(Kind.INSERT)
DELETE = operation(Kind.DELETE)
UPDATE = operation(Kind.UPDATE_MERGE, etag='W/"1"')
REPLACE = operation(Kind.UPDATE_REPLACE, etag='W/"1"')
READ = operation(Kind.POINT_QUERY)
BLOB = operation(Kind.GET_BLOB)
UPSERT = operation(Kind.UPSERT_MERGE)
BATCH = operation(Kind.TRANSACTION, parts=3)
LOST = attempt(fault=Fault.RESET)
LATE = attempt(fault=Fault.READ_TIMEOUT)
HALF = attempt(fault=Fault.BAD_ANSWER)
FAILED = attempt(500, "InternalError")
GATEWAY = attempt(504)
BUSY = attempt(503, "ServerBusy")
REFUSED = attempt(fault=Fault.REFUSED)


@pytest.mark.parametrize(
    ("status", "code", "of", "earlier", "expected"),
    [
        # Every 2xx is success.
        (200, "", READ, (), Outcome.SUCCESS),
        (201, "", INSERT, (), Outcome.SUCCESS),
        (202, "", BATCH, (), Outcome.SUCCESS),
        (204, "", UPSERT, (BUSY, BUSY), Outcome.SUCCESS),
        # What the service refuses has an outcome of its own.
        (400, "InvalidInput", UPSERT, (), Outcome.REJECTED),
        (401, "", UPSERT, (), Outcome.FORBIDDEN),
        (403, "AuthenticationFailed", UPSERT, (), Outcome.FORBIDDEN),
        (403, "Forbidden", UPSERT, (), Outcome.FORBIDDEN),
        (403, PARTITION_FULL_CODE, UPSERT, (FAILED,), Outcome.PARTITION_FULL),
        (404, "ResourceNotFound", READ, (), Outcome.NOT_FOUND),
        (408, "", UPSERT, (), Outcome.TIMEOUT),
        (449, "RetryWith", UPSERT, (), Outcome.SERVER_ERROR),
        (409, "EntityAlreadyExists", INSERT, (), Outcome.CONFLICT),
        (412, "UpdateConditionNotSatisfied", UPDATE, (), Outcome.PRECONDITION),
        (413, "RequestBodyTooLarge", UPSERT, (), Outcome.REJECTED),
        (415, "", READ, (), Outcome.REJECTED),
        # Throttling is told from other failures of the server.
        (429, "TooManyRequests", UPSERT, (), Outcome.THROTTLED),
        (503, "ServerBusy", UPSERT, (), Outcome.THROTTLED),
        (500, "OperationTimedOut", UPSERT, (), Outcome.THROTTLED),
        (500, "InternalError", UPSERT, (), Outcome.SERVER_ERROR),
        (501, "NotImplemented", UPSERT, (), Outcome.SERVER_ERROR),
        (502, "", UPSERT, (), Outcome.SERVER_ERROR),
        (504, "", UPSERT, (), Outcome.THROTTLED),
        (504, "OperationTimedOut", READ, (), Outcome.THROTTLED),
        # What no table service answers is unexpected; no status and no fault is a defect.
        (100, "", UPSERT, (), Outcome.UNEXPECTED),
        (302, "", UPSERT, (), Outcome.UNEXPECTED),
        (304, "", READ, (), Outcome.UNEXPECTED),
        (416, "", READ, (), Outcome.REJECTED),
        (304, "", BLOB, (), Outcome.PRECONDITION),
        (416, "InvalidRange", BLOB, (), Outcome.PRECONDITION),
        (600, "", UPSERT, (), Outcome.UNEXPECTED),
        (999, "", BATCH, (), Outcome.UNEXPECTED),
        (0, "", UPSERT, (), Outcome.DEFECT),
        # The conflict of an insert whose answer was lost may be its own effect or another's.
        (409, "EntityAlreadyExists", INSERT, (LOST,), Outcome.AMBIGUOUS),
        (409, "EntityAlreadyExists", INSERT, (LATE,), Outcome.AMBIGUOUS),
        (409, "EntityAlreadyExists", INSERT, (HALF,), Outcome.AMBIGUOUS),
        (409, "EntityAlreadyExists", INSERT, (FAILED,), Outcome.AMBIGUOUS),
        (409, "EntityAlreadyExists", INSERT, (GATEWAY, BUSY), Outcome.AMBIGUOUS),
        # A refused insert was not applied: its retry's conflict is a conflict.
        (409, "EntityAlreadyExists", INSERT, (BUSY,), Outcome.CONFLICT),
        (409, "EntityAlreadyExists", INSERT, (REFUSED,), Outcome.CONFLICT),
        # Nobody knows who deleted what the retry of a delete does not find.
        (404, "ResourceNotFound", DELETE, (LOST,), Outcome.AMBIGUOUS),
        (404, "ResourceNotFound", DELETE, (BUSY,), Outcome.NOT_FOUND),
        # An old ETag proves nothing: another writer may have won.
        (412, "UpdateConditionNotSatisfied", UPDATE, (LOST,), Outcome.AMBIGUOUS),
        (412, "UpdateConditionNotSatisfied", REPLACE, (LATE,), Outcome.AMBIGUOUS),
        (412, "UpdateConditionNotSatisfied", UPDATE, (BUSY,), Outcome.PRECONDITION),
        # Of a whole transaction only a read-back can tell.
        (409, "EntityAlreadyExists", BATCH, (LOST,), Outcome.AMBIGUOUS),
        (404, "ResourceNotFound", BATCH, (FAILED,), Outcome.AMBIGUOUS),
        (412, "UpdateConditionNotSatisfied", BATCH, (LATE,), Outcome.AMBIGUOUS),
        # An update may have been applied before somebody deleted its row.
        (404, "ResourceNotFound", UPDATE, (LOST,), Outcome.AMBIGUOUS),
        (409, "EntityAlreadyExists", BATCH, (BUSY,), Outcome.CONFLICT),
        (409, "EntityAlreadyExists", BATCH, (), Outcome.CONFLICT),
        # Other answers on a retry mean what they say.
        (404, "ResourceNotFound", READ, (LOST,), Outcome.NOT_FOUND),
        (409, "", UPSERT, (LOST,), Outcome.CONFLICT),
        (409, "EntityAlreadyExists", DELETE, (LOST,), Outcome.CONFLICT),
        (503, "ServerBusy", INSERT, (LOST,), Outcome.THROTTLED),
        # An answer about the table says nothing about the entity.
        (404, "TableNotFound", DELETE, (LOST,), Outcome.REJECTED),
        (409, "TableBeingDeleted", INSERT, (LOST,), Outcome.REJECTED),
        (404, "TableNotFound", BATCH, (LOST,), Outcome.REJECTED),
    ],
)
def test_classify(
    status: int, code: str, of: Operation, earlier: tuple[Attempt, ...], expected: Outcome
) -> None:
    """A status, a code and what went before mean one thing for the operation."""
    assert classify(of, attempt(status, code), earlier) is expected


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.REFUSED, Outcome.CONNECTION),
        (Fault.CONNECT_TIMEOUT, Outcome.CONNECTION),
        (Fault.RESET, Outcome.CONNECTION),
        (Fault.BAD_ANSWER, Outcome.UNEXPECTED),
        (Fault.TOO_LARGE, Outcome.UNEXPECTED),
        (Fault.TLS, Outcome.CONNECTION),
        (Fault.READ_TIMEOUT, Outcome.TIMEOUT),
        (Fault.CLIENT, Outcome.DEFECT),
    ],
)
def test_faults(fault: Fault, expected: Outcome) -> None:
    """A fault has its outcome whatever went before."""
    assert classify(INSERT, attempt(0, str(fault), fault), (LOST,)) is expected


@given(
    st.integers(0, 999),
    st.sampled_from(["", "ServerBusy", "OperationTimedOut", "TableNotFound", "x"]),
    st.none() | st.sampled_from(Fault),
    st.sampled_from([INSERT, DELETE, UPDATE, READ, UPSERT, BATCH, operation(Kind.QUERY)]),
    st.lists(st.sampled_from([LOST, LATE, FAILED, BUSY, REFUSED]), max_size=3),
)
def test_classify_knows_an_outcome_for_everything(
    status: int, code: str, fault: Fault | None, of: Operation, earlier: list[Attempt]
) -> None:
    """Every answer has one outcome, which says if it may be applied; a success is a 2xx."""
    last = attempt(status, code, fault)
    outcome = classify(of, last, earlier)
    assert isinstance(outcome, Outcome)
    if outcome is Outcome.SUCCESS:
        assert 200 <= status < 300
    if last.ambiguous:
        assert outcome.maybe_applied
    assert outcome is not Outcome.SUCCESS_AFTER_AMBIGUITY
    if outcome is Outcome.AMBIGUOUS:
        assert any(one.ambiguous for one in earlier)


@pytest.mark.parametrize(
    ("status", "code", "message", "expected"),
    [
        (503, "ServerBusy", "The server is busy.", Scope.PARTITION),
        (503, "ServerBusy", "Operations per second is over the account limit.", Scope.ACCOUNT),
        (503, "ServerBusy", "Ingress is over the account limit.", Scope.ACCOUNT),
        (503, "ServerBusy", "EGRESS IS OVER THE ACCOUNT LIMIT.", Scope.ACCOUNT),
        (500, "OperationTimedOut", "Operation could not be completed in time.", Scope.PARTITION),
        (429, "TooManyRequests", "", Scope.PARTITION),
        (504, "OperationTimedOut", "Operation could not be completed.", Scope.PARTITION),
        (504, "", "", Scope.PARTITION),
        (502, "", "", Scope.NONE),
        (500, "InternalError", "over the account limit", Scope.NONE),
        (404, "ResourceNotFound", "over the account limit", Scope.NONE),
    ],
)
def test_scope_of_throttling(status: int, code: str, message: str, expected: Scope) -> None:
    """Partition and account share a code; only the message of a throttling answer tells them."""
    assert throttling_scope(status, code, message) is expected
    assert is_throttling(status, code) is (expected is not Scope.NONE)


@pytest.mark.parametrize(
    ("one", "retried", "ambiguous"),
    [
        (attempt(408), True, True),
        (attempt(449), True, False),
        (attempt(429, "TooManyRequests"), True, False),
        (attempt(500, "InternalError"), True, True),
        (attempt(500, "OperationTimedOut"), True, True),
        (attempt(503, "ServerBusy"), True, False),
        (attempt(504), True, True),
        (attempt(400), False, False),
        (attempt(403), False, False),
        (attempt(404), False, False),
        (attempt(409), False, False),
        (attempt(412), False, False),
        (attempt(501), False, False),
        (attempt(502), False, True),
        (attempt(505), False, False),
        (attempt(fault=Fault.REFUSED), True, False),
        (attempt(fault=Fault.CONNECT_TIMEOUT), True, False),
        (attempt(fault=Fault.RESET), True, True),
        (attempt(fault=Fault.READ_TIMEOUT), True, True),
        (attempt(fault=Fault.BAD_ANSWER), True, True),
        (attempt(fault=Fault.TOO_LARGE), False, True),
        (attempt(302), False, False),
        (attempt(100), False, True),
        (attempt(600), False, True),
        (attempt(fault=Fault.TLS), False, False),
        (attempt(fault=Fault.CLIENT), False, False),
    ],
)
def test_what_is_retried_and_what_may_have_been_applied(
    one: Attempt, retried: bool, ambiguous: bool
) -> None:
    """408, 429, 449, 500, 503, 504 and connection faults are retried; other 4xx, 501, 505 never."""
    assert is_retryable(one) is retried
    assert one.ambiguous is ambiguous


def test_latencies_of_a_result() -> None:
    """Service is from sent to done; response is from due, and missing in a closed loop."""
    closed = Result(
        operation=READ, outcome=Outcome.SUCCESS, sent_s=10.0, done_s=10.5, attempts=(attempt(200),)
    )
    assert (closed.service_s, closed.response_s) == (0.5, None)
    scheduled = Result(
        operation=READ,
        outcome=Outcome.SUCCESS,
        due_s=8.0,
        sent_s=10.0,
        done_s=10.5,
        attempts=(attempt(200),),
    )
    assert (scheduled.service_s, scheduled.response_s) == (0.5, 2.5)


def test_every_outcome_has_every_trait() -> None:
    """Each trait is held by the outcomes listed here, and by no others."""
    having = {
        trait: {outcome for outcome in Outcome if getattr(outcome, trait)}
        for trait in (*Traits._fields, "regular")
    }
    done = {Outcome.SUCCESS, Outcome.SUCCESS_AFTER_AMBIGUITY}
    answered = {Outcome.NOT_FOUND, Outcome.CONFLICT, Outcome.PRECONDITION}
    refused = {Outcome.FORBIDDEN, Outcome.REJECTED, Outcome.PARTITION_FULL}
    not_understood = {Outcome.UNEXPECTED, Outcome.DEFECT}
    assert having == {
        "succeeded": done,
        "regular": answered,
        "failed": set(Outcome) - done - answered,
        "wanted_again": set(Outcome) - done - answered - refused - not_understood,
        "maybe_applied": set(Outcome) - answered - refused,
        "charged": set(Outcome) - refused - not_understood,
    }
