"""What a watch judges: tables and queues, whatever the application asks of blobs beside them."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.snapshot import Held
from harness.measure.record.record import RunRecord
from harness.measure.verdict.conditions import parse_condition
from harness.model.services.service import Targets
from harness.model.services.storage import GATEWAY, STORAGE
from harness.model.target import UNKNOWN_THROUGHPUT
from harness.report.columns import Output, columns_of
from harness.report.export.markdown import markdown
from harness.report.limits import busiest, limits_of
from harness.report.load_columns import PARTITION_COLUMNS
from harness.report.passing import passing_of
from harness.report.sentences import account_rows, partition_notes
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from harness.report.web.document import update
from harness.watch.observer import Observer
from harness.watch.watched_run import WatchedRun, WatchPlan
from tests.support.examples import examples
from tests.unit.watch.test_metering import report_of
from tests.unit.watch.test_observer import START_S, blob, end, put_message, upsert

LENGTH_S = 20
PLAN = WatchPlan(run_id="r", name="n", command="", kind=GATEWAY, described="", host="h")


def test_a_queue_is_held_to_the_target_of_queues() -> None:
    """A raised target of tables changes nothing for queues, and the nearest partition is judged."""
    raised = STORAGE.held_to(Targets(partition=20.0, account=40000.0))
    observer, now_s = Observer("gateway-1"), [START_S]
    observer.books.open_window(0.0)
    run = WatchedRun(dataclasses.replace(PLAN, kind=raised), lambda: now_s[0], None)
    for second in range(LENGTH_S):
        for number in range(30):
            end(observer, upsert(f"{number}"), "204", at_s=second + number / 31)
            for _ in range(2):
                end(observer, put_message("jobs"), "201", at_s=second + number / 31)
    now_s[0] += LENGTH_S
    run.take_report("gateway-1", report_of(observer, final=True))
    record = run.record(now_s[0], over=True)
    assert {part.key: part.target for part in record.partitions} == {
        "orders/p": 20.0,
        "(queues)/jobs": 2000.0,
    }
    assert record.verdict.result == "over_target"
    assert "partition 'orders/p' served 30.0 entities/s (150% of the raised target of 20.0)" in (
        record.verdict.sentence
    )
    assert [busiest(record)] == [part for part in record.partitions if part.key == "orders/p"]
    names = [column.name for column in columns_of(record, PARTITION_COLUMNS, Output.REPORT)]
    assert "of its target" in names
    assert "The targets are 2,000 for queues and 20.0 for partitions." in partition_notes(record)
    assert [(one.value, one.of, one.word) for one in limits_of(record, partition=True)] == [
        (2000.0, "each of the queues", "target"),
        (20.0, "each of the partitions", "raised target"),
        (40000.0, "account", "raised target"),
    ]
    snapshot = run.shown(
        run.ledger.snapshot(start=int(START_S), end=int(now_s[0]), latencies=False)
    )
    assert snapshot.held(raised.targets, UNKNOWN_THROUGHPUT, None) == Held("orders/p", 30.0, 20.0)


def watched(
    rows: int, blobs: int, *, busy_rows: int = 0, busy_blobs: int = 0, plan: WatchPlan = PLAN
) -> RunRecord:
    """The record of an application with so many requests a second, of which some are throttled."""
    observer, now_s = Observer("gateway-1"), [START_S]
    observer.books.open_window(0.0)
    run = WatchedRun(plan, lambda: now_s[0], None)
    chance = random.Random(1)
    for second in range(LENGTH_S):
        for number in range(rows):
            status = "503" if number < busy_rows else "204"
            code, at_s = "ServerBusy" if status == "503" else "", second + number / (rows + 1)
            end(observer, upsert(f"{number}", key=f"k{number % 3}"), status, at_s=at_s, code=code)
        for number in range(blobs):
            status = "503" if number < busy_blobs else "201"
            code, at_s = "ServerBusy" if status == "503" else "", second + number / (blobs + 1)
            end(observer, blob(f"{chance.randrange(300)}"), status, at_s=at_s, code=code)
    now_s[0] += LENGTH_S
    run.take_report("gateway-1", report_of(observer, final=True))
    return run.record(now_s[0], over=True)


def shown(record: RunRecord) -> str:
    """What terminal, Markdown and page say of a record."""
    return summary(record, Page(width=100)) + markdown(record) + str(update(record, live=True))


@examples(8)
@given(st.integers(1, 30), st.integers(0, 30), st.sampled_from([0, 3]))
def test_blobs_change_nothing_of_the_verdict_on_tables(blobs: int, busy: int, rows: int) -> None:
    """Result and sentence are those of the same application without blobs; a sentence is added.

    More blobs than are counted one by one make no difference.
    """
    alone = watched(10, 0, busy_rows=rows)
    beside = watched(10, blobs, busy_rows=rows, busy_blobs=min(busy, blobs))
    assert beside.verdict.result == alone.verdict.result
    assert beside.verdict.limited_by == alone.verdict.limited_by
    assert beside.verdict.sentence.startswith(alone.verdict.sentence)
    refused = f"{LENGTH_S * min(busy, blobs)} of {LENGTH_S * blobs} attempts on blobs"
    assert (refused in beside.verdict.sentence) is (busy > 0)
    assert beside.account == alone.account.model_copy(
        update={"transactions_per_s": beside.account.transactions_per_s}
    )
    assert beside.counts.entities == alone.counts.entities
    assert beside.counts.attempts == LENGTH_S * (10 + blobs)
    assert beside.service_ms == alone.service_ms
    assert beside.entity == alone.entity
    assert not beside.invariants
    rates = {part.key: part.entities_per_s for part in beside.partitions}
    assert all(rates[part.key] == part.entities_per_s for part in alone.partitions)
    told = [one for one in beside.verdict.evidence if one not in alone.verdict.evidence]
    assert any("about blobs" in one for one in told)


@pytest.mark.parametrize("busy", [0, 4])
def test_blobs_alone_have_no_target(busy: int) -> None:
    """The verdict says so, and what was throttled; nothing is said of rows, nor of an account."""
    record = watched(0, 20, busy_blobs=busy)
    assert record.verdict.result == "no_target"
    assert record.verdict.sentence.startswith("No target: the documents name none for blobs.")
    said = "80 attempts were throttled (20%). No limit of blobs is known."
    assert record.verdict.sentence.endswith(said) is (busy > 0)
    assert record.counts.entities == 20 * (20 - busy)
    assert all(part.target is None for part in record.partitions)
    assert record.service_ms is not None
    row, *_ = account_rows(record)
    assert (row.name, row.rate, row.beside) == (
        "requests/s",
        f"{20.0 - busy}",
        "no target (blobs)",
    )
    said = shown(record)
    assert "entities/s" not in said
    assert "20,000" not in said


def test_queues_alone_are_judged_in_messages() -> None:
    """No document names a target of the account in messages/s, and none is shown."""
    observer, now_s = Observer("gateway-1"), [START_S]
    observer.books.open_window(0.0)
    run = WatchedRun(PLAN, lambda: now_s[0], None)
    for second in range(LENGTH_S):
        for number_of in range(20):
            end(observer, put_message("jobs"), "201", at_s=second + number_of / 21)
            end(observer, blob("b"), "201", at_s=second + number_of / 21)
    now_s[0] += LENGTH_S
    run.take_report("gateway-1", report_of(observer, final=True))
    record = run.record(now_s[0], over=True)
    assert record.endpoint.alone == "(queues)"
    assert record.verdict.sentence.startswith(
        "Within target: in the best 10 s of each, partition '(queues)/jobs' served 20.0 messages/s "
        "(1.0% of the target of 2,000), the account 20.0; nothing was throttled."
    )
    assert account_rows(record)[0].beside == "no published target"
    assert record.account.target is None
    assert "20,000" not in shown(record)


def test_conditions_on_blobs_alone_are_decided_by_what_was_asked_of_blobs() -> None:
    """Too few requests decide nothing, as on tables; no evidence is about entities."""
    conditions = (parse_condition("throttled_ratio < 1%"), parse_condition("p99(service) < 1s"))
    plan = dataclasses.replace(PLAN, conditions=conditions)
    record = watched(0, 20, plan=plan)
    assert (record.exit_code, str(passing_of(record))) == (0, "PASS: both conditions hold")
    said = " ".join(record.verdict.evidence)
    assert "None of 400 attempts was throttled" in said
    assert "entities/s" not in said
    assert "Nothing was sent" not in said
    few = watched(0, 2, plan=plan)
    assert (few.exit_code, few.verdict.result) == (3, "inconclusive")
    assert str(passing_of(few)).startswith("NOT DECIDED: ")
