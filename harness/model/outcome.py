"""Attempts, results and outcomes; `classify` is the one place where a status becomes an outcome."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from harness.model.operation import Operation, lean


class Fault(enum.StrEnum):
    """Why an attempt has no whole answer."""

    REFUSED = "connection_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    RESET = "connection_reset"
    READ_TIMEOUT = "read_timeout"
    BAD_ANSWER = "bad_answer"
    TOO_LARGE = "answer_too_large"
    TLS = "tls"
    CLIENT = "client_error"

    @property
    def sent(self) -> bool:
        """True where the request may have reached the service and have been executed."""
        return self in _AFTER_SENDING


_AFTER_SENDING = (Fault.RESET, Fault.READ_TIMEOUT, Fault.BAD_ANSWER, Fault.TOO_LARGE)


class Scope(enum.StrEnum):
    """What throttled: a partition or the account. Storage tells it in the message only."""

    NONE = ""
    PARTITION = "partition"
    ACCOUNT = "account"


class Traits(NamedTuple):
    """What code asks of an `Outcome`, so that no code lists outcomes.

    Attributes:
        failed: An error of the service, the network or the request.
        wanted_again: The service did not serve the operation, or nobody knows whether it did: an
            application would send it again.
        maybe_applied: A write may have been applied.
        charged: The service does the work of the operation, or would have if it had served it.
            Others it would refuse again, without a charge.
    """

    succeeded: bool = False
    failed: bool = False
    wanted_again: bool = False
    maybe_applied: bool = False
    charged: bool = False


_DONE = Traits(succeeded=True, maybe_applied=True, charged=True)
_ANSWERED = Traits(charged=True)
_NOT_SERVED = Traits(failed=True, wanted_again=True, maybe_applied=True, charged=True)
_REFUSED = Traits(failed=True)
_NOT_UNDERSTOOD = Traits(failed=True, maybe_applied=True)


class Outcome(enum.StrEnum):
    """How an operation ended, all retries included, with its `Traits` as attributes.

    ``UNEXPECTED`` is an answer that no table service gives: an unknown status, a redirect, a body
    that is unreadable or endless. ``DEFECT`` is an error of the harness. ``PARTITION_FULL``: the
    partition stores as much as the service allows.
    """

    succeeded: bool
    failed: bool
    wanted_again: bool
    maybe_applied: bool
    charged: bool

    SUCCESS = "success", _DONE
    SUCCESS_AFTER_AMBIGUITY = "success_after_ambiguity", _DONE
    NOT_FOUND = "not_found", _ANSWERED
    CONFLICT = "conflict", _ANSWERED
    PRECONDITION = "precondition", _ANSWERED
    THROTTLED = "throttled", _NOT_SERVED
    SERVER_ERROR = "server_error", _NOT_SERVED
    TIMEOUT = "timeout", _NOT_SERVED
    CONNECTION = "connection", _NOT_SERVED
    FORBIDDEN = "forbidden", _REFUSED
    REJECTED = "rejected", _REFUSED
    PARTITION_FULL = "partition_full", _REFUSED
    UNEXPECTED = "unexpected", _NOT_UNDERSTOOD
    AMBIGUOUS = "ambiguous", _NOT_SERVED
    DEFECT = "defect", _NOT_UNDERSTOOD

    # The default is for type checkers, which take ``Outcome(value)`` for a call of this method.
    def __new__(cls, value: str, traits: Traits = _ANSWERED) -> Self:
        made = str.__new__(cls, value)
        made._value_ = value
        vars(made).update(traits._asdict())
        return made

    @property
    def regular(self) -> bool:
        """True for an answer about the stored data, which applications expect and handle."""
        return not (self.succeeded or self.failed)


# Looked up once; see `harness.model.operation`.
SUCCESS = Outcome.SUCCESS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One HTTP request on the wire.

    Attributes:
        status: HTTP status; 0 where no whole answer came.
        error_code: The service's error code, or the fault's name; empty on success.
        sent_s: When it left, UTC seconds.
        latency_s: From ``sent_s`` to the whole answer or the fault.
        message: The service's message, shortened; empty on success.
        retry_after_s: The wait that the service asks for; 0 for none.
        request_charge: What Cosmos DB charged for it, in hundredths of a request unit, so that sums
            are exact in any order; 0 where the service charges none.
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
    request_charge: int = 0

    @property
    def ended_s(self) -> float:
        """When its answer was whole, or its fault came, UTC seconds."""
        return self.sent_s + self.latency_s

    @property
    def throttled(self) -> bool:
        return is_throttling(self.status, self.error_code)

    @property
    def ambiguous(self) -> bool:
        """True where the request may have been applied although no success was answered."""
        if self.fault is not None:
            return self.fault.sent
        # A status that does not exist can mean anything.
        return self.status in (408, 500, 502, 504) or not 200 <= self.status < 600


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one operation. All times are UTC seconds of one monotonic clock.

    Attributes:
        due_s: When the schedule wanted it; None in a closed loop.
        sent_s: When its first attempt left.
        done_s: When its answer was whole.
        entities: Its entity count; see `harness.model.target`.
        estimated: True where ``entities`` is a lower bound: a client cannot see what a query
            scanned.
        outside_s: Seconds between attempts in which the operation waited for something other than
            the service: a new access token, or a connection.
        queued_s: Seconds in which it waited for a connection, before any of its attempts.
        value: What a read returned: an entity or a list of them, or the messages of a queue.
        reported: How many of the attempts, oldest first, were passed to ``on_attempt`` of the
            session before the operation ended.
        oldest_s: Age of the oldest message that a get returned; 0 without any.
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
    reported: int = 0
    outside_s: float = 0.0
    queued_s: float = 0.0
    oldest_s: float = 0.0

    @property
    def service_s(self) -> float:
        """Service latency: from sent to done, retries included, waits outside the service not."""
        return self.done_s - self.sent_s - self.outside_s

    @property
    def backing_off_s(self) -> float:
        """Seconds between a failed attempt and the next one, without those of ``outside_s``."""
        waits = (
            later.sent_s - earlier.ended_s
            for earlier, later in itertools.pairwise(self.attempts)
            if earlier.error_code or earlier.status >= 300
        )
        return max(0.0, sum(waits) - self.outside_s)

    @property
    def response_s(self) -> float | None:
        """Response latency: from due to done; None in a closed loop."""
        return None if self.due_s is None else self.done_s - self.due_s


new_attempt = lean(Attempt)
new_result = lean(Result)


_OF_ACCOUNT = "over the account limit"
"""Words of the message by which Storage tells the scope; both have the code ServerBusy."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ThrottlingAnswer:
    """An answer by which a service asks for less load.

    Attributes:
        status: Its HTTP status, which no other entry has.
        error_code: The only error code with which the status means throttling; empty for any.
        usual: Error codes and scopes that services send with it; the gateway sends the first code.
        charged: Whether only services that charge request units send it, as Cosmos DB does.
        late: Whether it is a time-out of the service, and not an answer at once.
        meaning: What it says, as a part of a sentence.
        message: The service's message.
        account_message: The message if it is for the account; empty for the same.
    """

    status: int
    label: str
    error_code: str = ""
    usual: tuple[tuple[str, Scope], ...]
    charged: bool = False
    late: bool = False
    meaning: str = "a limit was exceeded"
    message: str = "The server is busy."
    account_message: str = ""

    def message_for(self, scope: Scope) -> str:
        return (scope is Scope.ACCOUNT and self.account_message) or self.message


_TIMED_OUT = "Operation could not be completed within the specified time."
THROTTLING_ANSWERS = (
    # Performance checklist, "Timeout and Server Busy errors". A 500 with another code is an error
    # of the server.
    ThrottlingAnswer(
        status=503,
        label="503 ServerBusy",
        usual=(("ServerBusy", Scope.PARTITION), ("ServerBusy", Scope.ACCOUNT)),
        account_message=f"Operations per second is {_OF_ACCOUNT}.",
    ),
    ThrottlingAnswer(
        status=500,
        label="500 OperationTimedOut",
        error_code="OperationTimedOut",
        usual=(("OperationTimedOut", Scope.PARTITION),),
        late=True,
        meaning="a limit was exceeded, or a partition is being moved",
        message=_TIMED_OUT,
    ),
    # Partitioning strategy, "Retry strategy": 503 and 504 are the answers of a service that moves a
    # partition. A front end answers 504 if the server of the partition did not, with or without an
    # error code. A time-out of the client is a `Fault`: nobody knows why no answer came.
    ThrottlingAnswer(
        status=504,
        label="504 Timeout",
        usual=(("OperationTimedOut", Scope.PARTITION), ("", Scope.PARTITION)),
        late=True,
        meaning="no answer in time from the server of a partition, as while a partition is being "
        "moved; a proxy on the way may answer it too",
        message=_TIMED_OUT,
    ),
    # Cosmos DB: the request rate is over the provisioned request units.
    ThrottlingAnswer(
        status=429,
        label="429",
        usual=(("TooManyRequests", Scope.PARTITION),),
        charged=True,
        meaning="the provisioned request units were exceeded (Cosmos DB only)",
        message="The request rate is too large.",
    ),
)
"""Every throttling answer, in the order of columns and charts. Retries, counts, records, reports,
metrics, dashboards and the gateway follow these entries."""

THROTTLING_STATUSES = {answer.status: answer for answer in THROTTLING_ANSWERS}


def is_throttling(status: int, error_code: str) -> bool:
    """True for one of `THROTTLING_ANSWERS`."""
    answer = THROTTLING_STATUSES.get(status)
    return answer is not None and answer.error_code in ("", error_code)


AttemptKey = tuple[int, str, Scope]
"""Status, error code and scope of an attempt; the status is 0 where no whole answer came."""


def throttled_of(attempts: Mapping[AttemptKey, int], scope: Scope | None = None) -> int:
    """The number of throttled attempts; with ``scope``, of that scope only."""
    return sum(
        count
        for (status, code, of), count in attempts.items()
        if is_throttling(status, code) and scope in (None, of)
    )


def throttling_scope(status: int, error_code: str, message: str) -> Scope:
    """The scope of an answer, by its message."""
    if not is_throttling(status, error_code):
        return Scope.NONE
    return Scope.ACCOUNT if _OF_ACCOUNT in message.lower() else Scope.PARTITION


SUBSTATUS_HEADER = "x-ms-substatus"
PARTITION_FULL_SUBSTATUS = 1014
PARTITION_FULL_CODE = "PartitionKeyQuotaOverLimit"
"""The error code of attempts that Cosmos DB refused with 403 because a PartitionKey is full. The
service says Forbidden, as to whoever has no rights: its sub-status or its message tells them apart
("Diagnose and troubleshoot Azure Cosmos DB forbidden exceptions"). The code is the name of the sub-
status in its SDK for .NET."""
_FULL = "partition key reached maximum size"


def attempt_code(error_code: str, message: str, substatus: str = "") -> str:
    """The error code of an attempt by the service's code, message and sub-status."""
    full = substatus == str(PARTITION_FULL_SUBSTATUS) or _FULL in message.lower()
    return PARTITION_FULL_CODE if full else error_code


RETRY_WITH = 449
"""Cosmos DB met a conflict within itself and did not write; "it is safe to retry the operation"
("HTTP status codes for Azure Cosmos DB")."""

RETRYABLE_STATUSES = frozenset((408, 500, RETRY_WITH, *THROTTLING_STATUSES))


def is_retryable(attempt: Attempt) -> bool:
    """Whether another attempt can help: connection faults, 408, 449, 500 and throttling.

    Other 4xx answers, 501 and 505 are never retried (partitioning strategy, "Retry strategy").
    502 is not retried either: no document names it, and azure-core repeats it only for reads,
    replacements and deletes.
    """
    if attempt.fault is not None:
        return attempt.fault not in (Fault.CLIENT, Fault.TLS, Fault.TOO_LARGE)
    return attempt.status in RETRYABLE_STATUSES


def is_repeated(attempt: Attempt) -> bool:
    """Whether SDKs send a request again after this attempt: those of Azure do after 502 too."""
    return attempt.status == 502 or is_retryable(attempt)


_STATUS_OUTCOMES = {
    401: Outcome.FORBIDDEN,
    403: Outcome.FORBIDDEN,
    404: Outcome.NOT_FOUND,
    408: Outcome.TIMEOUT,
    409: Outcome.CONFLICT,
    412: Outcome.PRECONDITION,
    # Of blobs: a read that asked for what changed, and a range behind the end.
    304: Outcome.PRECONDITION,
    416: Outcome.PRECONDITION,
    RETRY_WITH: Outcome.SERVER_ERROR,
}

_UNCONDITIONAL = {304: Outcome.UNEXPECTED, 416: Outcome.REJECTED}
"""What they are of requests that never have such conditions."""
_LOST_RECEIPT = "PopReceiptMismatch"
"""Error code of a 400: the message was hidden for too short a time, and somebody else got it."""

REGULAR_STATUSES = {
    outcome: next(status for status, means in _STATUS_OUTCOMES.items() if means is outcome)
    for outcome in Outcome
    if outcome.regular
}
"""The status of each regular answer; of several, the first."""

_FAULT_OUTCOMES: dict[str, Outcome] = {
    Fault.REFUSED: Outcome.CONNECTION,
    Fault.CONNECT_TIMEOUT: Outcome.CONNECTION,
    Fault.RESET: Outcome.CONNECTION,
    Fault.BAD_ANSWER: Outcome.UNEXPECTED,
    Fault.TOO_LARGE: Outcome.UNEXPECTED,
    Fault.TLS: Outcome.CONNECTION,
    Fault.READ_TIMEOUT: Outcome.TIMEOUT,
    Fault.CLIENT: Outcome.DEFECT,
}


def classify(operation: Operation, last: Attempt, earlier: Sequence[Attempt] = ()) -> Outcome:
    """What the last attempt of ``operation`` means.

    The outcome is ambiguous where one of the ``earlier`` attempts may have been applied and the
    last one does not show whether it was.
    """
    if last.fault is not None:
        return _FAULT_OUTCOMES[last.fault]
    status = last.status
    if 200 <= status < 300:
        return SUCCESS
    disputed = status in operation.kind.disputed and not _of_store(last.error_code)
    if disputed and any(attempt.ambiguous for attempt in earlier):
        return Outcome.AMBIGUOUS
    if status in _UNCONDITIONAL and not operation.kind.untargeted:
        return _UNCONDITIONAL[status]
    return outcome_of(status, last.error_code)


def outcome_of(status: int, error_code: str) -> Outcome:
    """What one answer means by itself; without a whole answer the code is the fault's name."""
    if 200 <= status < 300:
        # Only an answer that was found to be wrong has a code.
        return Outcome.UNEXPECTED if error_code else SUCCESS
    if not status:
        return _FAULT_OUTCOMES.get(error_code, Outcome.DEFECT)
    if is_throttling(status, error_code):
        return Outcome.THROTTLED
    if status in (404, 409) and _of_store(error_code):
        # What would hold it does not exist, or is being deleted: nothing was looked up.
        return Outcome.REJECTED
    if (status, error_code) == (403, PARTITION_FULL_CODE):
        return Outcome.PARTITION_FULL
    if error_code == _LOST_RECEIPT:
        return Outcome.PRECONDITION
    if (known := _STATUS_OUTCOMES.get(status)) is not None:
        return known
    if 500 <= status < 600:
        return Outcome.SERVER_ERROR
    return Outcome.REJECTED if 400 <= status < 500 else Outcome.UNEXPECTED


def _of_store(error_code: str) -> bool:
    return error_code.startswith(("Table", "Queue", "Container"))
