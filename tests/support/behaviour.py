"""Results of an application, made by hand, and records with their behaviour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.measure.counts.behaviour import Behaviour
from harness.measure.counts.ledger import Ledger
from harness.measure.record.behaviour import BehaviourPart
from harness.measure.record.record import RunRecord
from harness.measure.record.record_builder import measured_fields
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Fault, Outcome, Result, Scope
from tests.support.evidence import evidence
from tests.support.records import kept

START_S = 1_700_000_000.0


def attempt(at_s: float, status: int = 204, *, code: str = "", took_s: float = 0.01) -> Attempt:
    """A request that left ``at_s`` after the start."""
    return Attempt(
        status=status,
        sent_s=START_S + at_s,
        latency_s=took_s,
        error_code=code,
        scope=Scope.PARTITION if status == 503 else Scope.NONE,
        fault=None if status else Fault.RESET,
    )


def result(operation: Operation, *attempts: Attempt, at_s: float = 0.0, **more: Any) -> Result:
    """The result of ``attempts``, or of one that succeeded."""
    made = attempts or (attempt(at_s),)
    last = made[-1]
    fine = 200 <= last.status < 300
    more.setdefault("outcome", Outcome.SUCCESS if fine else Outcome.THROTTLED)
    return Result(
        operation=operation,
        sent_s=made[0].sent_s,
        done_s=last.sent_s + last.latency_s,
        attempts=made,
        **more,
    )


def write(kind: Kind, partition_key: str, row_key: str = "r", **more: Any) -> Operation:
    return Operation(kind=kind, partition_key=partition_key, row_key=row_key, **more)


def insert(partition_key: str, row_key: str = "r", **more: Any) -> Operation:
    return write(Kind.INSERT, partition_key, row_key, **more)


def query(partition_key: str = "p", **more: Any) -> Operation:
    return Operation(kind=Kind.QUERY, partition_key=partition_key, **more)


def counted(results: Iterable[Result], client: str = "") -> BehaviourPart:
    """What a collector counts of ``results``."""
    behaviour = Behaviour()
    for one in results:
        behaviour.add(one, client)
    return behaviour.part()


def measured(results: Sequence[Result]) -> RunRecord:
    """The record of an application with these results, whose sums are theirs."""
    ledger = Ledger()
    start = int(START_S)
    end = start + 1 + int(max(one.done_s for one in results) - START_S)
    ledger.open_window(start, end)
    for one in results:
        ledger.add(one)
    snapshot = ledger.snapshot(start=start, end=end)
    counts = {
        name: getattr(snapshot.counts, name) for name in ("operations", "attempts", "entities")
    }
    fields = measured_fields(evidence(snapshot))
    return watched(results, **fields, counts=kept().counts.model_copy(update=counts))


def watched(results: Iterable[Result], **changes: Any) -> RunRecord:
    """The kept record as if it were of an application with these results."""
    part = counted(results, "an-sdk/1.0")
    return kept().model_copy(update={"profile": {}, "behaviour": part, **changes})
