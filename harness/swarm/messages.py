"""The messages between master and workers: their names, their fields and their encoding.

Locust carries the messages. Between processes a message travels as a dictionary of plain values;
in a local run, where master and worker share a process, the receiver gets the sent object itself.
Every message but `Hello` belongs to one run, which `RunMessage.run_id` names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar, cast

from locust.env import Environment
from locust.rpc import Message
from locust.runners import LocalRunner, Runner

from harness.measure.audit.audit import AuditTally, LookUp
from harness.measure.audit.journal import Written
from harness.measure.counts.generator import CpuSample
from harness.measure.counts.ledger import Delta

MAX_CLOCK_DIFFERENCE_S = 5.0
"""Accepted difference between the clocks of a worker and the master, message delay included."""

Fields = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunMessage:
    """Base of all messages about one run. `NAME` is the message type that Locust sees."""

    NAME: ClassVar[str]

    run_id: str

    def encode(self) -> dict[str, Any]:
        """The fields in types that Locust can serialize."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Restore the message from the result of `encode`."""
        return cls(**fields)


# From the master to a worker.


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share(RunMessage):
    """The part of the load that one worker sends. Sent again whenever it changes.

    Attributes:
        rank: Number of the worker, from 0 to ``count`` - 1.
        count: Number of workers that send load.
        budget: Most billable transactions of this worker; None is unlimited.
        epoch_s: When the schedule begins, UTC seconds.
        from_s: Second of the schedule from which rank and count apply, the same for all workers.
        hold: Second of the schedule and total rate of all workers from then on; None keeps the
            rate of the profile.
        window: Start and end of the measured window, UTC seconds; None while it is not open.
        sent_s: When the master sent the message, UTC seconds.
    """

    NAME = "aztables-share"

    rank: int
    count: int
    budget: int | None
    epoch_s: float
    from_s: float
    hold: tuple[float, float] | None
    window: tuple[float, float] | None
    sent_s: float

    def clock_problem(self, now_s: float) -> str | None:
        """Return why a worker with this clock cannot take part, or None if it can.

        The master merges the workers' counts second by second, and workers start and stop by
        their clocks.

        Args:
            now_s: When the message arrived by the clock of the worker, UTC seconds.
        """
        ahead_s = now_s - self.sent_s
        if abs(ahead_s) <= MAX_CLOCK_DIFFERENCE_S:
            return None
        direction = "ahead of" if ahead_s > 0 else "behind"
        return (
            f"its clock is {abs(ahead_s):,.0f} s {direction} the master's, and counts are merged "
            "second by second; synchronize the clocks of both machines (NTP)"
        )

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Restore the message from the result of `encode`."""
        pairs = {
            name: None if fields[name] is None else tuple(fields[name])
            for name in ("hold", "window")
        }
        return cls(**{**fields, **pairs})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunStop(RunMessage):
    """The run ends.

    Attributes:
        at_s: No operation that is due at this UTC second or later is sent.
        grace_s: How long operations in flight may take.
    """

    NAME = "aztables-stop"

    at_s: float
    grace_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest(RunMessage):
    """The worker reads back rows that it wrote.

    Attributes:
        rank: Number of the worker among those that read.
        count: Number of workers that read.
        plan: The rows to read.
    """

    NAME = "aztables-audit-request"

    rank: int
    count: int
    plan: LookUp

    def encode(self) -> dict[str, Any]:
        """The fields in types that Locust can serialize."""
        return {**RunMessage.encode(self), "plan": self.plan.to_message()}

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Restore the message from the result of `encode`."""
        return cls(**{**fields, "plan": LookUp.from_message(fields["plan"])})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditStop(RunMessage):
    """The worker stops reading back and reports the result so far."""

    NAME = "aztables-audit-stop"


# From a worker to the master.


@dataclasses.dataclass(frozen=True, slots=True)
class Hello:
    """The worker is ready to take messages; it may have missed earlier ones."""

    NAME: ClassVar[str] = "aztables-hello"

    def encode(self) -> dict[str, Any]:
        """The message has no fields."""
        return {}

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Restore the message."""
        return cls()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRefusal(RunMessage):
    """The worker cannot take part; ``reason`` is a sentence."""

    NAME = "aztables-refusal"

    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFailure(RunMessage):
    """The workload raised an exception; ``reason`` is a sentence."""

    NAME = "aztables-workload-failure"

    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AccountThrottled(RunMessage):
    """The service throttled an attempt for the whole account. Sent once."""

    NAME = "aztables-account-throttled"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
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
        billable_transactions: Requests so far.
        exhausted: True when the budget of billable transactions is used up.
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
    billable_transactions: int = 0
    exhausted: bool = False
    written: Written | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport(RunMessage):
    """What a worker counted since its last report. Sent every second.

    Attributes:
        delta: The new counts.
        samples: The new samples of CPU use.
        state: The state of the worker.
    """

    NAME = "aztables-report"

    delta: Delta
    samples: tuple[CpuSample, ...]
    state: WorkerState

    def encode(self) -> dict[str, Any]:
        """The fields in types that Locust can serialize."""
        written = self.state.written
        state = {
            field.name: getattr(self.state, field.name) for field in dataclasses.fields(self.state)
        }
        return {
            "run_id": self.run_id,
            "delta": self.delta.encode(),
            "samples": [dataclasses.asdict(sample) for sample in self.samples],
            "state": {**state, "written": None if written is None else written.to_message()},
        }

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Restore the message from the result of `encode`."""
        state = fields["state"]
        written = state["written"]
        return cls(
            run_id=fields["run_id"],
            delta=Delta.decode(fields["delta"]),
            samples=tuple(CpuSample(**sample) for sample in fields["samples"]),
            state=WorkerState(
                **{
                    **state,
                    "written": None if written is None else Written.from_message(written),
                }
            ),
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult(RunMessage):
    """What the worker found so far while it reads back rows. Sent every second.

    Attributes:
        tally: Counts of what was found.
        done: True in the last message.
        cut_short: Why rows are left unread; empty if none are.
        billable_transactions: Requests of the worker in the whole run.
    """

    NAME = "aztables-audit-result"

    tally: AuditTally
    done: bool
    cut_short: str
    billable_transactions: int

    def encode(self) -> dict[str, Any]:
        """The fields in types that Locust can serialize."""
        return {**RunMessage.encode(self), "tally": self.tally.to_message()}

    @classmethod
    def decode(cls, fields: Fields) -> Self:
        """Restore the message from the result of `encode`."""
        return cls(**{**fields, "tally": AuditTally.from_message(fields["tally"])})


_M = TypeVar("_M", bound=RunMessage | Hello)


def send(runner: Runner, message: RunMessage | Hello, worker: str | None = None) -> None:
    """Send a message to the master or, from the master, to ``worker``.

    Args:
        runner: Locust's runner of this process.
        message: The message.
        worker: Id of the receiving worker.
    """
    local = isinstance(runner, LocalRunner)
    runner.send_message(message.NAME, message if local else message.encode(), worker)


def on(runner: Runner, kind: type[_M], handle: Callable[[_M, str], None]) -> None:
    """Call ``handle`` with every message of one kind and the id of its sender.

    Args:
        runner: Locust's runner of this process.
        kind: Class of the messages.
        handle: Takes the message and the id of the worker.
    """

    def on_message(environment: Environment, msg: Message) -> None:
        local = isinstance(msg.data, kind)
        handle(msg.data if local else cast(_M, kind.decode(msg.data)), msg.node_id)

    runner.register_message(kind.NAME, on_message)
