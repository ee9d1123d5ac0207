"""The messages between master and workers, which Locust carries.

Between processes a message travels as a dictionary of plain values. In a local run, where master
and worker share a process, the receiver gets the sent object itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import pydantic
from locust.env import Environment
from locust.rpc import Message
from locust.runners import LocalRunner, Runner

from harness.measure.audit.audit import AuditTally, LookUp
from harness.measure.audit.journal import Written
from harness.measure.counts.generator import CpuSample
from harness.measure.counts.ledger import Delta
from harness.model.process import Machine

REPORTS_WITHIN_S = 15.0
"""How long the last reports of the workers may take to arrive."""

_M = TypeVar("_M", bound="SwarmMessage")


class SwarmMessage(pydantic.BaseModel):
    """Base of all messages. ``NAME`` is the message type that Locust sees."""

    model_config = pydantic.ConfigDict(frozen=True)

    NAME: ClassVar[str]
    KINDS: ClassVar[dict[str, type[SwarmMessage]]] = {}
    """Every message by its name."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.NAME = f"aztables-{cls.__name__}"
        cls.KINDS[cls.NAME] = cls


class RunMessage(SwarmMessage):
    """Base of the messages about one run."""

    run_id: str


# From the master to a worker.


class Share(RunMessage):
    """The part of the load that one worker sends. Sent again whenever it changes.

    Attributes:
        rank: Number of the worker among the ``count`` workers that send load, from 0.
        budget: Most billable transactions of this worker, by account; None is unlimited.
        epoch_s: When the schedule begins, UTC seconds.
        from_s: Second of the schedule from which rank and count apply, the same for all workers.
        hold: Second of the schedule and total rate of all workers from then on; None keeps the
            rate of the profile.
        window: Start and end of the measured window, UTC seconds; None while it is not open.
    """

    rank: int
    count: int
    budget: tuple[int, ...] | None = None
    epoch_s: float
    from_s: float = 0.0
    hold: tuple[float, float] | None = None
    window: tuple[float, float] | None = None


class ClockAnswer(RunMessage):
    """The time of the run when the master got the question asked at ``asked_s``; UTC seconds."""

    asked_s: float
    answered_s: float


class ReportTaken(RunMessage):
    """The master has counted the report with this ``number``."""

    number: int


class RunStop(RunMessage):
    """What is due at ``at_s``, UTC, or later is not sent; the rest may take ``grace_s`` seconds."""

    at_s: float
    grace_s: float


class AuditRequest(RunMessage):
    """The worker reads back the rows of ``plan``, as number ``rank`` of ``count`` workers."""

    rank: int
    count: int
    plan: LookUp


class AuditStop(RunMessage):
    """The worker stops reading back and reports the result so far."""


class SignIn(RunMessage):
    """The worker gets a token for ``host``, before the load; ``plan`` is the `RunPlan` as options.

    The worker answers with `SignedIn`.
    """

    host: str
    plan: dict[str, Any]


# From a worker to the master.


class SignedIn(RunMessage):
    """The worker has a token; or ``problem`` is the sentence why it has none."""

    problem: str


class LoginNote(SwarmMessage):
    """The worker could not renew its token, or could again; ``text`` is the sentence."""

    text: str


class Hello(SwarmMessage):
    """The worker is ready to take messages; it may have missed earlier ones."""


class ClockQuestion(RunMessage):
    """The worker asks for the time of the run; ``asked_s`` is its own, UTC seconds."""

    asked_s: float


class WorkerRefusal(RunMessage):
    """The worker cannot take part; ``reason`` is a sentence."""

    reason: str


class WorkloadFailure(RunMessage):
    """The workload raised an exception; ``reason`` is a sentence."""

    reason: str


class AccountThrottled(RunMessage):
    """The service throttled an attempt for a whole account. Sent once."""

    account: int


@dataclasses.dataclass(slots=True, kw_only=True)
class WorkerState:
    """The state of a worker at the time of its report.

    Attributes:
        final: True in the last report of the run.
        in_flight: Operations that were sent and have no answer.
        attempts_in_flight: Counted attempts of operations in flight.
        waiting: Operations that are due and not sent.
        connections_in_use: Most connections in use at the same time.
        light_operations: Operations that were alone in the process.
        light_s: Sum of their service latencies in seconds.
        defects: Exceptions of the harness or of the workload.
        billable_transactions: Requests to each account.
        exhausted: True when the budget of billable transactions of an account is used up.
        finished_s: When the last operation of a replay ended, UTC seconds; None before.
        written: The rows that the worker wrote; None without an audit, and before the last report.
    """

    final: bool = False
    in_flight: int = 0
    attempts_in_flight: int = 0
    waiting: int = 0
    connections_in_use: int = 0
    light_operations: int = 0
    light_s: float = 0.0
    defects: int = 0
    billable_transactions: tuple[int, ...] = ()
    exhausted: bool = False
    finished_s: float | None = None
    written: Written | None = None


class WorkerReport(RunMessage):
    """What a worker counted since its last report, and its state. Sent every second.

    A report that the master does not confirm is sent again, with the same ``number``: messages that
    are underway when a connection breaks are lost. The first number is 1. ``trace`` are blocks of a
    trace.
    """

    number: int
    machine: Machine
    delta: Delta
    samples: tuple[CpuSample, ...]
    state: WorkerState
    trace: tuple[bytes, ...] = ()


class AuditResult(RunMessage):
    """What the worker found so far while it reads back rows. Sent every second.

    Attributes:
        done: True in the last message.
        cut_short: Why rows are left unread; empty if none are.
        billable_transactions: Requests of the worker in the whole run, by account.
    """

    tally: AuditTally
    done: bool
    cut_short: str
    billable_transactions: tuple[int, ...]


def send(runner: Runner, message: SwarmMessage, worker: str | None = None) -> None:
    """Send a message to the master or, from the master, to the worker with the id ``worker``."""
    local = isinstance(runner, LocalRunner)
    runner.send_message(message.NAME, message if local else message.model_dump(), worker)


def on(runner: Runner, kind: type[_M], handle: Callable[[_M, str], None]) -> None:
    """Call ``handle`` with every message of class ``kind`` and the id of its sender."""

    def on_message(environment: Environment, msg: Message) -> None:
        handle(kind.model_validate(msg.data), msg.node_id)

    runner.register_message(kind.NAME, on_message)


def host_of(worker: str) -> str:
    """The name of the machine of a worker. Locust puts it before a random part of the id."""
    return worker.rpartition("_")[0] or worker
