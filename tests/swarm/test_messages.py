"""The messages between master and workers survive Locust's transport."""

from __future__ import annotations

from typing import Any

import pytest
from locust.env import Environment
from locust.rpc import Message

from harness.measure.audit.audit import AuditTally, LookUp
from harness.measure.audit.journal import PLACES, Written
from harness.measure.counts.generator import CpuSample
from harness.measure.counts.ledger import Ledger
from harness.model.process import this_process_runs_on
from harness.swarm.messages import (
    AccountThrottled,
    AuditRequest,
    AuditResult,
    AuditStop,
    ClockAnswer,
    ClockQuestion,
    Hello,
    ReportTaken,
    RunStop,
    Share,
    SwarmMessage,
    WorkerRefusal,
    WorkerReport,
    WorkerState,
    WorkloadFailure,
    on,
    send,
)

SHARE = Share(run_id="r", rank=1, count=3, epoch_s=1_789_999_990.25, from_s=7.5)
PLAN = LookUp(below=PLACES, rows=1, wrote=b"12345678", deleted=b"", strangers=False)
WRITTEN = Written(below=PLACES, places=b"12345678", deleted=b"", given_up=2)
MESSAGES: tuple[SwarmMessage, ...] = (
    SHARE,
    Share(
        run_id="r",
        rank=1,
        count=3,
        budget=(5, 0),
        epoch_s=1_789_999_990.25,
        from_s=7.5,
        hold=(12.5, 60.0),
        window=(1_790_000_000.0, 1_790_000_030.0),
    ),
    RunStop(run_id="r", at_s=1_790_000_000.5, grace_s=10.0),
    AuditRequest(run_id="r", rank=0, count=2, plan=PLAN),
    AuditStop(run_id="r"),
    Hello(),
    ClockQuestion(run_id="r", asked_s=1_789_999_990.25),
    ClockAnswer(run_id="r", asked_s=1_789_999_990.25, answered_s=1_789_999_988.5),
    ReportTaken(run_id="r", number=7),
    WorkerRefusal(run_id="r", reason="its clock is wrong"),
    WorkloadFailure(run_id="r", reason="it raised"),
    AccountThrottled(run_id="r", account=1),
    AuditResult(
        run_id="r",
        tally=AuditTally(rows=3, counts={"lost": 1}, examples=["one"]),
        done=True,
        cut_short="",
        billable_transactions=(3, 4),
    ),
)


def sent(content: Any) -> Any:
    """What arrives of it."""
    return Message.unserialize(Message("spawn", content, "master").serialize()).data


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was_sent(message: SwarmMessage) -> None:
    """Every field, also where it is None, a pair or an object of its own."""
    assert type(message).model_validate(sent(message.model_dump())) == message


@pytest.mark.parametrize("written", [None, WRITTEN])
def test_a_report_arrives_as_it_was_sent(written: Written | None) -> None:
    """With its counts, its samples, and the rows of an audit where there is one."""
    sample = CpuSample(second=1_790_000_000, cpu_percent=9.5, machine_percent=50.0, lag_s=0.01)
    ledger = Ledger("worker")
    ledger.note_due()
    report = WorkerReport(
        run_id="r",
        number=7,
        machine=this_process_runs_on(),
        delta=ledger.drain(),
        samples=(sample,),
        state=WorkerState(final=True, in_flight=2, light_s=0.5, written=written),
    )
    arrived = WorkerReport.model_validate(sent(report.model_dump()))
    assert arrived.machine == report.machine
    assert arrived.samples == report.samples
    assert arrived.state == report.state
    assert arrived.model_dump() == report.model_dump()


def test_names_are_unique() -> None:
    """Locust tells messages apart by their names alone."""
    kinds = {type(message) for message in MESSAGES} | {WorkerReport}
    assert len({kind.NAME for kind in kinds}) == len(kinds)


def test_in_a_local_run_the_object_itself_arrives() -> None:
    """Within one process nothing is encoded."""
    runner = Environment().create_local_runner()
    arrived: list[tuple[Share, str]] = []
    on(runner, Share, lambda share, worker: arrived.append((share, worker)))
    send(runner, SHARE)
    assert arrived == [(SHARE, "local")]
    assert arrived[0][0] is SHARE
