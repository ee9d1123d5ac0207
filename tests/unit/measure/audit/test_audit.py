"""The audit calls a write lost only where nothing else explains what is stored."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.audit.audit import (
    ANYBODY,
    MOST_EXAMPLES,
    NOBODY,
    AuditTally,
    Others,
    WriteVerdict,
    audit_part,
    look_ups,
    lost_writes,
    places_in,
    verdicts,
)
from harness.measure.audit.journal import (
    MARK_PROPERTY,
    MOST_WRITES_A_ROW,
    PLACES,
    Journal,
    Noted,
    hashed,
    same,
)
from harness.measure.record.findings import AuditPart
from harness.model.entity import Int64
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Attempt, Fault, Outcome, Result
from harness.report.terminal.live import audit_begins, audit_ends, audit_goes_on
from tests.support.examples import examples
from tests.support.results import done
from tests.support.simulated_service import Service, World, key_of

WORLDS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 3),
    clients=st.integers(1, 4),
    operations=st.integers(2, 12),
)
SERVICES: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict, ambiguous=st.sampled_from((0.0, 0.1, 0.4)), busy=st.sampled_from((0.0, 0.2))
)


def write(kind: Kind, row_key: str = "r", table: str = "", **properties: Any) -> Operation:
    return Operation(
        kind=kind,
        partition_key="p",
        row_key=row_key,
        table=table,
        properties=None if kind is Kind.DELETE else properties,
    )


class OneWorker:
    """A worker whose writes are sent and answered when a test says so."""

    def __init__(self, worker: int = 1) -> None:
        self.journal = Journal(worker, seed="run", most_rows=1000)
        self.stored: dict[str, dict[str, Any]] = {}

    def note(
        self,
        operation: Operation,
        sent_s: float,
        done_s: float,
        outcome: Outcome = Outcome.SUCCESS,
        *,
        ambiguous: bool = False,
    ) -> Noted:
        noted = self.journal.sent(operation, sent_s)
        lost = Attempt(status=0, fault=Fault.RESET, sent_s=sent_s, latency_s=0.0)
        last = Attempt(status=204, sent_s=sent_s, latency_s=done_s - sent_s)
        result = Result(
            operation=noted.operation,
            outcome=outcome,
            sent_s=sent_s,
            done_s=done_s,
            attempts=(lost, last) if ambiguous else (last,),
        )
        self.journal.done(noted, result)
        return noted

    def verdicts(
        self, stored: dict[str, Any] | None, others: Others = NOBODY, row_key: str = "r"
    ) -> list[str]:
        (row,) = [row for row in self.journal.rows(PLACES) if row.key[2] == row_key]
        found = verdicts(row, stored, mine=self.journal.mine, others=others)
        return [f"{write.kind} {verdict}" for write, verdict in found]


@pytest.fixture
def worker() -> OneWorker:
    """Worker number 1."""
    return OneWorker()


@given(world=WORLDS, service=SERVICES)
@examples(300)
def test_a_faithful_service_loses_nothing(world: dict[str, Any], service: dict[str, Any]) -> None:
    """Whatever overlaps, is refused, ambiguous, late, or cut off: nothing is called lost, and what
    is said of unacknowledged writes is true."""
    run = World(service=Service(**service), **world)
    for number, noted, verdict in run.found():
        assert verdict is not WriteVerdict.LOST, (number, noted.kind)
        if verdict is WriteVerdict.APPLIED:
            assert number in run.service.done
        if verdict is WriteVerdict.NOT_APPLIED:
            assert number not in run.service.done
        if verdict is WriteVerdict.KEPT and noted.kind is not Kind.DELETE:
            assert number in run.service.done


@given(world=WORLDS, service=SERVICES)
@examples(300)
def test_only_what_was_lost_is_called_lost(world: dict[str, Any], service: dict[str, Any]) -> None:
    """Where a service drops some of what it acknowledges, no other write is blamed for it."""
    run = World(service=Service(lossy=0.1, **service), **world)
    lost = {number for number, _, verdict in run.found() if verdict is WriteVerdict.LOST}
    assert lost <= run.service.dropped - run.service.done


@given(seed=st.integers(0, 2**32), workers=st.integers(1, 3))
@examples(100)
def test_every_lost_insert_and_delete_is_found(seed: int, workers: int) -> None:
    """Of rows that one worker inserts, and may delete later: exactly those that were dropped."""
    run = World(seed=seed, service=Service(), workers=workers, clients=0, operations=0)
    lost = 0
    for worker, journal in enumerate(run.journals):
        for number in range(20):
            row_key = f"{worker}/{number}"
            inserted = deleted = False
            for kind in (Kind.INSERT, Kind.DELETE)[: run.rng.randint(1, 2)]:
                noted = journal.sent(write(kind, row_key, Count=number), run.now_s)
                dropped = run.rng.random() < 0.2
                outcome = Outcome.SUCCESS
                if not dropped and run.service.do(noted.operation) != 204:
                    outcome = Outcome.NOT_FOUND
                run.now_s += 1.0
                journal.done(noted, done(noted.operation, run.now_s, 0.5, outcome=outcome))
                run.now_s += 1.0
                if outcome is Outcome.SUCCESS:
                    inserted |= kind is Kind.INSERT
                    deleted |= kind is Kind.DELETE
            there = key_of(noted.operation) in run.service.rows
            lost += there if deleted else inserted and not there
    assert run.tally().lost == lost


def test_an_insert_that_is_not_there_is_lost(worker: OneWorker) -> None:
    """It was acknowledged, and there is no such row; where there is, it is kept."""
    sent = worker.note(write(Kind.INSERT, A=1), 1.0, 2.0)
    assert worker.verdicts(None) == ["insert lost"]
    assert worker.verdicts(dict(sent.operation.properties or {})) == ["insert kept"]


def test_a_delete_of_a_row_that_is_there_is_lost(worker: OneWorker) -> None:
    """What was deleted is there with the mark of the insert before, or as it was loaded."""
    sent = worker.note(write(Kind.INSERT, A=1), 1.0, 2.0)
    worker.note(write(Kind.DELETE), 3.0, 4.0)
    assert worker.verdicts(dict(sent.operation.properties or {})) == ["delete lost"]
    assert worker.verdicts({"A": 0}) == ["delete lost"]
    assert worker.verdicts(None) == ["delete kept"]


def test_a_delete_that_found_nothing_excuses_nothing(worker: OneWorker) -> None:
    """404 says that nothing was deleted: the row was gone before, although it was acknowledged."""
    worker.note(write(Kind.INSERT, A=1), 1.0, 2.0)
    worker.note(write(Kind.DELETE), 3.0, 4.0, Outcome.NOT_FOUND)
    assert worker.verdicts(None) == ["insert lost"]


def test_a_delete_that_may_have_been_done_excuses(worker: OneWorker) -> None:
    """Nobody knows whether it was; so nobody can say that the insert is lost."""
    worker.note(write(Kind.INSERT, A=1), 1.0, 2.0)
    worker.note(write(Kind.DELETE), 3.0, 4.0, Outcome.CONNECTION, ambiguous=True)
    assert worker.verdicts(None) == ["insert covered", "delete applied"]


def test_a_loaded_row_that_still_is_as_it_was_loaded(worker: OneWorker) -> None:
    """Nothing that the load wrote to it is there: the last upsert is lost."""
    for at_s in (1.0, 3.0, 5.0):
        worker.note(write(Kind.UPSERT_MERGE, A=at_s), at_s, at_s + 1.0)
    assert worker.verdicts({"A": 0.0}) == ["upsert_merge lost"]


def test_what_was_overwritten_is_not_claimed(worker: OneWorker) -> None:
    """A lost write that a later one covers leaves no trace: it is counted, and no more."""
    worker.note(write(Kind.UPSERT_REPLACE, A=1), 1.0, 2.0)
    last = worker.note(write(Kind.UPSERT_REPLACE, A=2), 3.0, 4.0)
    tally = AuditTally()
    (row,) = worker.journal.rows(PLACES)
    tally.add(row, dict(last.operation.properties or {}), mine=worker.journal.mine)
    assert tally.counts == {"covered": 1, "kept": 1}


def test_overlapping_writes_explain_each_other(worker: OneWorker) -> None:
    """Either may have been the last; one that began after the other's answer may not."""
    first = worker.note(write(Kind.UPSERT_REPLACE, A=1), 1.0, 5.0)
    worker.note(write(Kind.UPSERT_REPLACE, A=2), 2.0, 4.0)
    worker.note(write(Kind.UPSERT_REPLACE, A=3), 4.5, 6.0)
    stored = dict(first.operation.properties or {})
    assert worker.verdicts(stored) == ["upsert_replace kept", "upsert_replace covered"]
    worker.note(write(Kind.UPSERT_REPLACE, A=4), 7.0, 8.0)
    assert worker.verdicts(stored) == ["upsert_replace lost"]


@pytest.mark.parametrize(
    ("outcome", "verdict"), [(Outcome.TIMEOUT, "applied"), (Outcome.SUCCESS, "kept")]
)
def test_a_lost_request_may_yet_be_done(worker: OneWorker, outcome: Outcome, verdict: str) -> None:
    """It may come after any later write, also where a retry was acknowledged."""
    late = worker.note(write(Kind.UPSERT_REPLACE, A=1), 1.0, 2.0, outcome, ambiguous=True)
    worker.note(write(Kind.UPSERT_REPLACE, A=2), 9.0, 10.0)
    stored = dict(late.operation.properties or {})
    assert worker.verdicts(stored) == [f"upsert_replace {verdict}", "upsert_replace covered"]


def test_an_unacknowledged_insert_is_applied_or_not(worker: OneWorker) -> None:
    """What is stored tells."""
    sent = worker.note(write(Kind.INSERT, A=1), 1.0, 2.0, Outcome.TIMEOUT, ambiguous=True)
    assert worker.verdicts(None) == ["insert not_applied"]
    assert worker.verdicts(dict(sent.operation.properties or {})) == ["insert applied"]
    assert worker.verdicts(None, ANYBODY) == ["insert undecided"]


def test_an_unacknowledged_delete_is_applied_or_not(worker: OneWorker) -> None:
    """Where a row was that is gone, it was; where nobody knows of a row, nobody knows."""
    worker.note(write(Kind.DELETE), 1.0, 2.0, Outcome.TIMEOUT, ambiguous=True)
    assert worker.verdicts(None) == ["delete undecided"]
    assert worker.verdicts({"A": 1}) == ["delete not_applied"]


def test_a_write_in_flight_excuses_others(worker: OneWorker) -> None:
    """What was sent and never answered may have been done, or may be at any time."""
    worker.note(write(Kind.INSERT, A=1), 1.0, 2.0)
    worker.journal.sent(write(Kind.DELETE), 3.0)
    assert worker.verdicts(None) == ["insert covered", "delete applied"]


def test_a_refused_write_was_not_done(worker: OneWorker) -> None:
    """Throttled, in conflict, or never sent: it leaves no trace in the journal."""
    for outcome in (Outcome.THROTTLED, Outcome.CONFLICT, Outcome.NOT_FOUND, Outcome.FORBIDDEN):
        worker.note(write(Kind.INSERT, A=1), 1.0, 2.0, outcome)
    worker.journal.unsent(worker.journal.sent(write(Kind.INSERT, A=1), 3.0))
    assert len(worker.journal) == 0


def test_what_the_harness_does_not_understand_may_have_been_done(worker: OneWorker) -> None:
    """A defect of the harness excuses what may be its own doing."""
    worker.note(write(Kind.INSERT, A=1), 1.0, 2.0)
    worker.note(write(Kind.DELETE), 3.0, 4.0, Outcome.DEFECT)
    assert "lost" not in str(worker.verdicts(None))


def test_a_conflict_after_ambiguity_says_only_that_a_row_is_there(worker: OneWorker) -> None:
    """The row may be another's, so that no content is missed; but it must be there."""
    worker.note(write(Kind.INSERT, A=1), 1.0, 2.0, Outcome.SUCCESS_AFTER_AMBIGUITY, ambiguous=True)
    assert worker.verdicts({"A": 0}) == ["insert covered"]
    assert worker.verdicts(None) == ["insert lost"]


def test_a_transaction_that_was_read_back_is_never_lost(worker: OneWorker) -> None:
    """What was read back may have been another's doing."""
    parts = (write(Kind.DELETE, "a"), write(Kind.UPSERT_MERGE, "b", A=1))
    worker.note(transaction(parts), 1.0, 2.0, Outcome.SUCCESS_AFTER_AMBIGUITY, ambiguous=True)
    assert worker.verdicts(None, row_key="b") == ["upsert_merge covered"]


def test_every_part_of_a_lost_transaction_is_lost(worker: OneWorker) -> None:
    """A transaction of three inserts is three writes."""
    parts = tuple(write(Kind.INSERT, row_key, A=1) for row_key in "abc")
    noted = worker.note(transaction(parts), 1.0, 2.0)
    marks = {part.properties[MARK_PROPERTY] for part in noted.operation.parts if part.properties}
    assert marks == {"1-1"}
    for row_key in "abc":
        assert worker.verdicts(None, row_key=row_key) == ["insert lost"]


def test_a_merge_leaves_older_properties(worker: OneWorker) -> None:
    """What an older merge set, and no later one, has to be there still."""
    worker.note(write(Kind.UPSERT_MERGE, Hour1="a"), 1.0, 2.0)
    worker.note(write(Kind.UPSERT_MERGE, Hour2="b"), 3.0, 4.0)
    stored = {"Hour1": "a", "Hour2": "b", MARK_PROPERTY: "1-2"}
    assert worker.verdicts(stored) == ["upsert_merge kept", "upsert_merge kept"]
    del stored["Hour1"]
    assert worker.verdicts(stored) == ["upsert_merge lost", "upsert_merge kept"]
    assert worker.verdicts(stored, Others(wrote=True))[0] == "upsert_merge covered"
    worker.note(write(Kind.UPSERT_MERGE, Hour1="c"), 5.0, 6.0)
    stored = {"Hour1": "c", "Hour2": "b", MARK_PROPERTY: "1-3"}
    assert worker.verdicts(stored) == ["upsert_merge kept", "upsert_merge kept"]


def test_a_delete_below_a_merge_leaves_nothing(worker: OneWorker) -> None:
    """A property that the delete should have taken away, and nobody set since, shows its loss."""
    worker.note(write(Kind.DELETE), 1.0, 2.0)
    worker.note(write(Kind.UPSERT_MERGE, A="a"), 3.0, 4.0)
    stored = {"A": "a", MARK_PROPERTY: "1-2"}
    assert worker.verdicts(stored) == ["delete covered", "upsert_merge kept"]
    assert worker.verdicts({**stored, "Old": "x"}) == ["delete lost", "upsert_merge kept"]


def test_a_row_with_the_mark_but_not_the_content_is_lost(worker: OneWorker) -> None:
    """The service stored something else than what it was given."""
    worker.note(write(Kind.INSERT, A="a", B=1.5), 1.0, 2.0)
    assert worker.verdicts({"A": "a", "B": 1.5, MARK_PROPERTY: "1-1"}) == ["insert kept"]
    assert worker.verdicts({"A": "b", "B": 1.5, MARK_PROPERTY: "1-1"}) == ["insert lost"]
    assert worker.verdicts({"A": "a", MARK_PROPERTY: "1-1"}) == ["insert lost"]


def test_what_the_service_adds_is_no_property(worker: OneWorker) -> None:
    """Keys, time stamp and ETag are not what was written."""
    worker.note(write(Kind.DELETE), 1.0, 2.0)
    worker.note(write(Kind.UPSERT_MERGE, A="a"), 3.0, 4.0)
    added = {"PartitionKey": "p", "RowKey": "r", "Timestamp": "now", "odata.etag": "1"}
    stored = {"A": "a", MARK_PROPERTY: "1-2", **added}
    assert worker.verdicts(stored) == ["delete covered", "upsert_merge kept"]
    worker.note(write(Kind.UPSERT_REPLACE, A="a", Timestamp="mine"), 5.0, 6.0)
    assert worker.verdicts({**stored, MARK_PROPERTY: "1-3"}) == ["upsert_replace kept"]


@pytest.mark.parametrize("mark", ["2-1", "12-1", "11-1", "1-", "1-x", "", "?"])
def test_another_writers_mark_covers_everything(worker: OneWorker, mark: str) -> None:
    """Another worker wrote last; when, nobody can compare."""
    worker.note(write(Kind.UPSERT_MERGE, A=1), 1.0, 2.0)
    assert worker.verdicts({"A": 5, MARK_PROPERTY: mark}) == ["upsert_merge covered"]


def test_a_row_that_another_worker_may_have_deleted(worker: OneWorker) -> None:
    """That it is gone proves nothing then; that others only wrote it does not take it away."""
    worker.note(write(Kind.UPSERT_MERGE, A=1), 1.0, 2.0)
    assert worker.verdicts(None, Others(wrote=True)) == ["upsert_merge lost"]
    assert worker.verdicts(None, Others(wrote=True, deleted=True)) == ["upsert_merge covered"]


def test_a_refused_write_that_is_there_blames_nobody(worker: OneWorker) -> None:
    """A service that does what it refused has lost nothing of what it acknowledged before."""
    worker.note(write(Kind.UPSERT_REPLACE, A=1), 1.0, 2.0)
    refused = worker.note(write(Kind.UPSERT_REPLACE, A=2), 3.0, 4.0, Outcome.THROTTLED)
    assert worker.verdicts(dict(refused.operation.properties or {})) == ["upsert_replace covered"]


def test_rows_of_several_tables_are_told_apart(worker: OneWorker) -> None:
    """The same keys in two tables are two rows."""
    worker.note(write(Kind.INSERT, A=1), 1.0, 2.0)
    worker.note(write(Kind.INSERT, table="Index", A=1), 1.0, 2.0)
    assert {row.key for row in worker.journal.rows(PLACES)} == {("", "p", "r"), ("Index", "p", "r")}


def test_only_writes_get_a_mark_and_nothing_else_changes(worker: OneWorker) -> None:
    """A delete is sent as it is, a write with one property more."""
    deleting = write(Kind.DELETE)
    assert worker.journal.sent(deleting, 1.0).operation is deleting
    inserting = Operation(
        kind=Kind.INSERT, partition_key="p", row_key="r", name="sign_up", properties={"A": 1}
    )
    sent = worker.journal.sent(inserting, 1.0).operation
    assert sent.properties == {"A": 1, MARK_PROPERTY: "1-2"}
    assert sent == dataclasses.replace(inserting, properties=sent.properties)
    assert inserting.properties == {"A": 1}


UTC_NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (0.1 + 0.2, 0.3),
        (3.0, 3),
        (math.nan, math.nan),
        (Int64(7), 7),
        (UTC_NOON.replace(tzinfo=None), UTC_NOON),
        (UTC_NOON, UTC_NOON.astimezone(dt.timezone(dt.timedelta(hours=2)))),
        (b"\x00", b"\x00"),
        (uuid.UUID(int=5), uuid.UUID(int=5)),
    ],
)
def test_a_service_may_write_a_value_in_another_way(sent: object, read: object) -> None:
    """What a service may make of a value when it stores and shows it is no loss."""
    assert same(hashed(sent), hashed(read))


@pytest.mark.parametrize(("sent", "read"), [(0, 1), ("a", "b"), ("1", 1), (-1, 0)])
def test_another_value_is_another(sent: object, read: object) -> None:
    """These are not the same, and none is what is not there."""
    assert not same(hashed(sent), hashed(read))
    assert not same(hashed(sent), None)


def test_a_covered_row_takes_no_more_memory_with_every_write(worker: OneWorker) -> None:
    """A row that is written a thousand times has one write that may show."""
    for number in range(1000):
        worker.note(write(Kind.UPSERT_MERGE, A=number), number, number + 0.5)
    (row,) = worker.journal.rows(PLACES)
    assert (len(row.writes), row.covered) == (1, 999)


def test_a_row_with_too_much_that_may_show_is_given_up(worker: OneWorker) -> None:
    """It is counted as given up, taken for deleted by others, and nothing is said of it."""
    for number in range(MOST_WRITES_A_ROW + 5):
        worker.note(write(Kind.UPSERT_MERGE, A=1), number, number, Outcome.TIMEOUT, ambiguous=True)
    worker.note(write(Kind.INSERT, "other", A=1), 1.0, 2.0)
    written = worker.journal.written()
    assert written.given_up == 1
    assert len(places_in(written.deleted)) == 1
    assert [row.key[2] for row in worker.journal.rows(PLACES)] == ["other"]


def test_a_row_that_was_given_up_is_not_taken_up_again(worker: OneWorker) -> None:
    """What may still be done to it is not forgotten when other writes are refused."""
    noted = [
        worker.journal.sent(write(Kind.UPSERT_MERGE, A=1), 1.0)
        for _ in range(MOST_WRITES_A_ROW + 1)
    ]
    worker.journal.unsent(noted[0])
    worker.note(write(Kind.INSERT, A=1), 1.0, 2.0)
    assert worker.journal.rows(PLACES) == []


def test_the_audit_says_how_far_it_has_come() -> None:
    """Its lines have all and sample, lost writes, and why it ended early."""
    assert audit_begins(5, 5, exact=True) == "Audit: checking 5 rows that the load wrote"
    sample = audit_begins(2000, 9000, exact=False)
    assert sample == "Audit: checking 2,000 rows, a sample of about 9,000 that the load wrote"
    assert audit_goes_on(12_000, 20_000, 1) == "Audit: 12,000 of 20,000 rows checked, 1 lost write"
    ended = audit_ends(part(rows=1, written=1, lost=2), 63.0)
    assert ended == "Audit: 1 row checked in 1:03, 2 lost writes"
    cut = audit_ends(part(written=5, cut_short="it took too long"), 3.0)
    assert cut == "Audit: 0 rows checked in 0:03; cut short: it took too long"


def journal_of(worker: int, rows: range, most_rows: int, seed: str = "run") -> Journal:
    one = OneWorker(worker)
    one.journal = Journal(worker, seed=seed, most_rows=most_rows)
    for number in rows:
        one.note(write(Kind.INSERT, str(number), A=1), 1.0, 2.0)
    return one.journal


def test_of_too_many_rows_a_sample_is_kept() -> None:
    """It is as large as it may be, and tells how many rows there are about."""
    journal = journal_of(0, range(10_000), most_rows=1000)
    assert len(journal) == len(journal.rows(PLACES)) == 1000
    assert journal.written().estimate == pytest.approx(10_000, rel=0.2)
    assert journal_of(0, range(1000), most_rows=1000).written().estimate == 1000


def test_all_workers_keep_the_same_rows() -> None:
    """Workers with the same rows look up the same sample, whatever each of them kept."""
    journals = {
        "a": journal_of(0, range(10_000), most_rows=1000),
        "b": journal_of(1, range(5_000), most_rows=1000),
        "c": journal_of(2, range(20_000, 20_010), most_rows=1000),
    }
    written = {name: journal.written() for name, journal in journals.items()}
    plans = look_ups(written, most_rows=1000, strangers=False)
    # Of a row that two workers wrote there is room for both, or for none.
    assert sum(plan.rows for plan in plans.values()) in (999, 1000)
    rows = {
        name: {row.key for row in journals[name].rows(plan.below)} for name, plan in plans.items()
    }
    assert {name: len(of) for name, of in rows.items()} == {
        name: plan.rows for name, plan in plans.items()
    }
    assert rows["b"] == {key for key in rows["a"] if int(key[2]) < 5_000}
    for row in journals["a"].rows(plans["a"].below):
        assert plans["a"].others(row.place) == Others(wrote=row.key in rows["b"])


def test_another_run_looks_up_other_rows() -> None:
    """The sample depends on the seed."""
    one, two = (journal_of(0, range(1000), most_rows=100, seed=seed) for seed in ("one", "two"))
    assert {row.key for row in one.rows(PLACES)} != {row.key for row in two.rows(PLACES)}


def test_refused_writes_take_no_memory(worker: OneWorker) -> None:
    """However many rows were tried, in a sample too, only those that may be there are kept."""
    worker.journal = Journal(1, seed="run", most_rows=10)
    for number in range(1000):
        outcome = Outcome.THROTTLED if number % 10 else Outcome.SUCCESS
        worker.note(write(Kind.INSERT, str(number), A=1), 1.0, 2.0, outcome)
    assert len(worker.journal) == 10
    assert worker.journal.written().estimate == pytest.approx(100, rel=0.9)


def test_workers_are_told_what_others_deleted() -> None:
    """One's own deletes are no reason for doubt, another's are."""
    workers = [OneWorker(number) for number in range(3)]
    for one in workers:
        one.note(write(Kind.UPSERT_MERGE, "shared", A=1), 1.0, 2.0)
        one.note(write(Kind.INSERT, f"own{one.journal.mine}", A=1), 1.0, 2.0)
    workers[0].note(write(Kind.DELETE, "shared"), 3.0, 4.0)
    written = {str(number): one.journal.written() for number, one in enumerate(workers)}
    plans = look_ups(written, most_rows=100, strangers=False)
    told = [
        {row.key[2]: plans[str(number)].others(row.place) for row in one.journal.rows(PLACES)}
        for number, one in enumerate(workers)
    ]
    assert [of["shared"] for of in told] == [
        Others(wrote=True),
        Others(wrote=True, deleted=True),
        Others(wrote=True, deleted=True),
    ]
    assert told[1]["own1-"] == NOBODY
    strangers = look_ups(written, most_rows=100, strangers=True)
    assert strangers["1"].others(0) == ANYBODY


def test_tallies_add_up_to_the_part_of_the_record(worker: OneWorker) -> None:
    """Acknowledged is kept, lost and covered; unacknowledged is the rest; examples are bounded."""
    for number in range(MOST_EXAMPLES + 5):
        worker.note(write(Kind.INSERT, f"{number}", A=1), 1.0, 2.0)
    worker.note(write(Kind.INSERT, "open", A=1), 1.0, 2.0, Outcome.TIMEOUT, ambiguous=True)
    tally = AuditTally(unread=2)
    for row in worker.journal.rows(PLACES):
        tally.add(row, None, mine=worker.journal.mine)
    part = audit_part(
        [tally, AuditTally(rows=1, counts={"kept": 4})],
        written=20,
        exact=True,
        given_up=0,
        cut_short="",
    )
    assert (part.rows, part.unread, part.written) == (17, 2, 20)
    assert (part.acknowledged, part.lost, part.kept) == (19, 15, 4)
    assert (part.unacknowledged, part.not_applied) == (1, 1)
    assert len(part.examples) == MOST_EXAMPLES
    assert part.examples[0].startswith("insert of 'p', ")
    assert part.examples[0].endswith("acknowledged: there is no such row")


def part(**changes: Any) -> AuditPart:
    counts: dict[str, Any] = dict.fromkeys(AuditPart.model_fields, 0)
    texts: dict[str, Any] = {"exact": True, "cut_short": "", "examples": ()}
    return AuditPart(**(counts | texts | changes))


def test_lost_writes_are_not_known_where_nothing_was_looked_up() -> None:
    """No audit, or one of no row: a condition on it can not be told."""
    assert lost_writes(None) is None
    assert lost_writes(part(written=5, rows=0)) is None
    assert lost_writes(part(written=5, rows=1)) == 0
    assert lost_writes(part(written=0, rows=0)) == 0
    assert lost_writes(part(written=5, rows=5, lost=2)) == 2
