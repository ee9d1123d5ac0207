"""Attempts and outcomes: what came back, and what it means for the operation.

`classify` is the one place where a status becomes an outcome. What it does not know is a
defect of the harness and is shown as such.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from harness.model.lean import lean
from harness.model.operation import Kind, Operation


class Fault(enum.StrEnum):
    """Why an attempt got no whole answer."""

    REFUSED = "connection_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    RESET = "connection_reset"
    READ_TIMEOUT = "read_timeout"
    BAD_ANSWER = "bad_answer"
    TLS = "tls"
    CLIENT = "client_error"

    @property
    def sent(self) -> bool:
        """True where the request may have reached the service, so that it may have been done."""
        return self in (Fault.RESET, Fault.READ_TIMEOUT, Fault.BAD_ANSWER)


class Scope(enum.StrEnum):
    """What a throttling answer is about. Storage tells it in the message only."""

    NONE = ""
    PARTITION = "partition"
    ACCOUNT = "account"


class Outcome(enum.StrEnum):
    """How an operation ended, all retries included."""

    SUCCESS = "success"
    SUCCESS_AFTER_AMBIGUITY = "success_after_ambiguity"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    PRECONDITION = "precondition"
    THROTTLED = "throttled"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    FORBIDDEN = "forbidden"
    REJECTED = "rejected"
    UNDECIDED = "undecided"
    DEFECT = "defect"

    @property
    def succeeded(self) -> bool:
        """True where the service did what was asked."""
        return self is SUCCESS or self is Outcome.SUCCESS_AFTER_AMBIGUITY


# Looked up once, because every operation asks for them; see `harness.model.operation`.
SUCCESS = Outcome.SUCCESS
_ACCOUNT = Scope.ACCOUNT


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One HTTP request on the wire.

    Attributes:
        status: HTTP status; 0 where no whole answer came.
        error_code: The service's error code, or the fault's name; empty on success.
        scope: What a throttling answer is about.
        sent_s: When it left, UTC seconds.
        latency_s: From leaving to the whole answer or the fault.
        fault: Why there is no answer.
        message: The service's message, shortened; empty on success.
        request_id: ``x-ms-request-id`` of a failed attempt.
        client_request_id: ``x-ms-client-request-id`` of a failed attempt.
        retry_after_s: How long the service asks to wait; 0 where it does not say.
    """

    status: int
    sent_s: float
    latency_s: float
    error_code: str = ""
    scope: Scope = Scope.NONE
    fault: Fault | None = None
    message: str = ""
    request_id: str = ""
    client_request_id: str = ""
    retry_after_s: float = 0.0

    @property
    def throttled(self) -> bool:
        """503 ServerBusy, 500 OperationTimedOut or 429: the service asks for less load."""
        return is_throttling(self.status, self.error_code)

    @property
    def ambiguous(self) -> bool:
        """True where the request may have been applied although no success was answered."""
        if self.fault is not None:
            return self.fault.sent
        return self.status in (408, 500, 502, 504)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one operation.

    All times are UTC seconds of one monotonic clock of the process.

    Attributes:
        due_s: When the schedule wanted it; None in a closed loop.
        sent_s: When its first attempt left.
        done_s: When its answer was whole.
        entities: What it counts for by the service's rule (inserted, updated, deleted, scanned).
        entities_returned: What a query brought back.
        estimated: True where ``entities`` is the least it can be, because a client cannot see
            what a query scanned.
        value: What a read returned, for the caller's own use: one entity or a list of them.
    """

    operation: Operation
    outcome: Outcome
    sent_s: float
    done_s: float
    attempts: tuple[Attempt, ...]
    due_s: float | None = None
    entities: int = 0
    entities_returned: int = 0
    estimated: bool = False
    bytes_sent: int = 0
    bytes_received: int = 0
    value: object = None

    @property
    def service_s(self) -> float:
        """Service latency: sent to done, retries included."""
        return self.done_s - self.sent_s

    @property
    def throttled_by_account(self) -> bool:
        """Whether an attempt was refused for the whole account."""
        # A generator would cost more than the loop, for every operation.
        for attempt in self.attempts:  # noqa: SIM110
            if attempt.scope is _ACCOUNT:
                return True
        return False

    @property
    def response_s(self) -> float | None:
        """Response latency: due to done; None in a closed loop, where nothing was due."""
        return None if self.due_s is None else self.done_s - self.due_s


new_attempt = lean(Attempt)
"""Makes an `Attempt`, for those who make one after the other."""
new_result = lean(Result)
"""Makes a `Result`, for those who make one after the other."""


def is_throttling(status: int, error_code: str) -> bool:
    """True for the three answers by which the service asks for less load."""
    if status in (503, 429):
        return True
    return status == 500 and error_code == "OperationTimedOut"


_ACCOUNT_MESSAGES = ("over the account limit",)


def throttling_scope(status: int, error_code: str, message: str) -> Scope:
    """What a throttling answer is about. Both scopes share ServerBusy; only the message differs."""
    if not is_throttling(status, error_code):
        return Scope.NONE
    lowered = message.lower()
    if any(part in lowered for part in _ACCOUNT_MESSAGES):
        return Scope.ACCOUNT
    return Scope.PARTITION


RETRYABLE_STATUSES = frozenset((408, 429, 500, 503, 504))


def is_retryable(attempt: Attempt) -> bool:
    """Whether sending it again can help: connection faults, 408, 429, 500, 503 and 504.

    Other 4xx answers, 501 and 505 are never retried (partitioning strategy, "Retry strategy").
    """
    if attempt.fault is not None:
        return attempt.fault not in (Fault.CLIENT, Fault.TLS)
    return attempt.status in RETRYABLE_STATUSES


_STATUS_OUTCOMES = {
    401: Outcome.FORBIDDEN,
    403: Outcome.FORBIDDEN,
    404: Outcome.NOT_FOUND,
    408: Outcome.TIMEOUT,
    409: Outcome.CONFLICT,
    412: Outcome.PRECONDITION,
    429: Outcome.THROTTLED,
    503: Outcome.THROTTLED,
    504: Outcome.TIMEOUT,
}

_FAULT_OUTCOMES = {
    Fault.REFUSED: Outcome.CONNECTION,
    Fault.CONNECT_TIMEOUT: Outcome.CONNECTION,
    Fault.RESET: Outcome.CONNECTION,
    Fault.BAD_ANSWER: Outcome.CONNECTION,
    Fault.TLS: Outcome.CONNECTION,
    Fault.READ_TIMEOUT: Outcome.TIMEOUT,
    Fault.CLIENT: Outcome.DEFECT,
}


def classify(
    status: int,
    error_code: str,
    message: str,
    fault: Fault | None,
    operation: Operation,
    earlier: Sequence[Attempt] = (),
) -> Outcome:
    """What the last attempt of ``operation`` means.

    Args:
        status: HTTP status; 0 with a fault.
        error_code: The service's code, empty where it gave none.
        message: The service's message.
        fault: Why there is no whole answer; None where there is one.
        operation: What was asked.
        earlier: The attempts before the last, oldest first.

    Returns:
        The outcome. `Outcome.UNDECIDED` asks the session to read back: an earlier attempt of a
        transaction may have been applied, and the answer to the last cannot tell.
    """
    if fault is not None:
        return _FAULT_OUTCOMES[fault]
    if 200 <= status < 300:
        return SUCCESS
    about_the_table = error_code.startswith("Table")
    if status == 404 and about_the_table:
        # There is no table any more: nothing was looked up.
        return Outcome.REJECTED
    if status in (404, 409, 412) and not about_the_table and any(a.ambiguous for a in earlier):
        resolved = _after_ambiguity(status, operation)
        if resolved is not None:
            return resolved
    if is_throttling(status, error_code):
        return Outcome.THROTTLED
    if (known := _STATUS_OUTCOMES.get(status)) is not None:
        return known
    if 500 <= status < 600:
        return Outcome.SERVER_ERROR
    if 400 <= status < 500:
        return Outcome.REJECTED
    return Outcome.DEFECT


def _after_ambiguity(status: int, operation: Operation) -> Outcome | None:
    """What 404, 409 or 412 mean on the retry of a write whose answer was lost."""
    if operation.kind is Kind.TRANSACTION:
        return Outcome.UNDECIDED
    if status == 409 and operation.kind is Kind.INSERT:
        return Outcome.SUCCESS_AFTER_AMBIGUITY
    if status == 404 and operation.kind is Kind.DELETE:
        return Outcome.SUCCESS_AFTER_AMBIGUITY
    conditional = operation.etag not in (None, "*")
    if status == 412 and conditional and operation.kind in (Kind.UPDATE_MERGE, Kind.UPDATE_REPLACE):
        return Outcome.SUCCESS_AFTER_AMBIGUITY
    return None
