"""The ledger: sums that merge in any order, a bound on keys, and laws of conservation."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.ledger import ERROR_CAP, Ledger
from harness.measure.counts.snapshot import CountedPartition, Snapshot, attempts_by_status
from harness.measure.counts.tally import PartitionTally
from harness.measure.record.measured import AccountLoadPart, OperationPart, PartitionPart
from harness.measure.record.record_builder import Unfinished, broken_invariants
from harness.measure.verdict.verdict import judge
from harness.model.operation import KeyRange, Kind, Operation
from harness.model.outcome import Attempt, Fault, Outcome, Result, Scope
from harness.model.partition import account_of
from tests.support.evidence import evidence, recorded
from tests.support.examples import examples
from tests.support.results import add_all, done
from tests.support.wire import over_the_wire

START = 1_700_000_000
END = START + 30
ACCOUNTS = ("east", "west", "north")


def attempt(status: int = 204, code: str = "", second: float = 0.0, **rest: Any) -> Attempt:
    return Attempt(status=status, sent_s=START + second, latency_s=0.01, error_code=code, **rest)


def result(
    key: str = "p0",
    *,
    second: float = 0.0,
    kind: Kind = Kind.UPSERT_MERGE,
    wanted: int | None = None,
    **more: Any,
) -> Result:
    keys = KeyRange(wanted=wanted)
    asked = Operation(kind=kind, partition_key=key, row_key="r", key_range=keys)
    return done(asked, START + second, **more)


def counted(results: list[Result], cap: int = 200, **more: Any) -> Ledger:
    """A ledger that counted these."""
    ledger = Ledger(cap=cap, **more)
    ledger.open_window(START, END)
    return add_all(ledger, results)


def seen(ledger: Ledger) -> Snapshot:
    return ledger.snapshot(start=START, end=END)


def partition(snapshot: Snapshot, key: str) -> CountedPartition:
    return next(view for view in snapshot.partitions if view.key == key)


some_attempt = st.builds(
    attempt,
    status=st.sampled_from([200, 204, 404, 429, 500, 503, 0]),
    code=st.sampled_from(["", "ServerBusy", "OperationTimedOut"]),
    second=st.floats(0, 29),
    scope=st.sampled_from(Scope),
    request_charge=st.integers(0, 5000),
)
some_result = st.builds(
    result,
    key=st.sampled_from(["a", "b", "c", "d", ""]),
    entities=st.integers(0, 100),
    second=st.floats(0, 29),
    kind=st.sampled_from(Kind),
    outcome=st.sampled_from([outcome for outcome in Outcome if outcome is not Outcome.DEFECT]),
    attempts=st.lists(some_attempt, min_size=1, max_size=4).map(tuple),
    due_s=st.none() | st.just(float(START)),
    bytes_sent=st.integers(0, 10**6),
    bytes_received=st.integers(0, 10**6),
    entities_returned=st.integers(0, 100),
    estimated=st.booleans(),
    wanted=st.none() | st.integers(0, 100),
)
# Those of which all attempts but the last were told before the operation ended.
some_result |= some_result.map(lambda one: dataclasses.replace(one, reported=len(one.attempts) - 1))


@examples(60)
@given(
    st.lists(st.tuples(some_result, st.integers(0, 1), st.integers(0, 1)), max_size=25),
    st.randoms(use_true_random=False),
)
def test_however_results_are_split_the_sums_are_the_same(
    split: list[tuple[Result, int, int]], rng: random.Random
) -> None:
    """Any spread over workers and drains, merged in any order, is one ledger that saw it all."""
    deltas = []
    for worker in range(2):
        ledger = Ledger(f"w{worker}", accounts=ACCOUNTS)
        ledger.open_window(START, END)
        for drain in range(2):
            for one, of_worker, in_drain in split:
                if (of_worker, in_drain) == (worker, drain):
                    add_all(ledger, [one])
            deltas.append(over_the_wire(ledger.drain()))
    rng.shuffle(deltas)
    master = Ledger("master", accounts=ACCOUNTS)
    for delta in deltas:
        master.merge(delta)
    whole = counted([one for one, _, _ in split], accounts=ACCOUNTS)
    assert seen(master) == seen(whole)


def test_what_queries_missed_is_counted_where_they_succeeded() -> None:
    """Entities that a query was meant to return, and those of them that it did not."""
    query, failed = Kind.QUERY, Outcome.THROTTLED
    results = [
        result(kind=query, entities=9, entities_returned=7, wanted=20),
        result(kind=query, entities=9, entities_returned=20, wanted=20),
        result(kind=query, entities=0, wanted=20, outcome=failed),
        result(kind=query, entities=9, entities_returned=3),
    ]
    [part] = seen(counted(results)).operations
    assert (part.entities_wanted, part.entities_missed) == (40, 13)
    given = evidence(seen(counted(results * 50)))
    verdict = judge(given)
    missed = "Queries by key bounds missed 650 of 2,000 entities that they asked for (32%)."
    assert missed in verdict.evidence
    assert [part.practice for part in recorded(given).verdict.advice] == ["zero-padding"]


@examples(60)
@given(st.lists(some_result, max_size=30), st.integers(1, 6))
def test_sums_agree_with_each_other(results: list[Result], cap: int) -> None:
    """Whichever way the results are grouped, the groups add up to all of them."""
    snapshot = seen(counted(results, cap, accounts=ACCOUNTS))
    counts = snapshot.counts
    rows = [*snapshot.partitions, *filter(None, [snapshot.folded])]
    attempts = sum(len(one.attempts) for one in results)
    assert counts.operations == len(results) == sum(snapshot.outcomes.values())
    assert counts.attempts == attempts == sum(snapshot.attempts.values())
    assert counts.attempts == sum(attempts_by_status(snapshot.attempts).values())
    entities = sum(one.entities for one in results)
    alone = all(one.operation.kind.untargeted for one in results)
    targeted = [one for one in results if alone or not one.operation.kind.untargeted]
    assert counts.entities == sum(one.entities for one in targeted)
    assert sum(view.entities for view in rows) == entities
    assert sum(view.entities for view in snapshot.operations) == entities
    assert sum(point.entities for point in snapshot.series) == counts.entities
    assert sum(point.attempts for point in snapshot.series) == attempts
    operations = [one for one in snapshot.operations if alone or not Kind(one.type).untargeted]
    rate = sum(view.entities_per_s.mean for view in operations)
    rates = sum(view.entities_per_s.mean for view in snapshot.operations)
    assert sum(view.entities_per_s.mean for view in rows) == pytest.approx(rates)
    assert snapshot.entities_per_s.mean == pytest.approx(rate)
    assert snapshot.reads_per_s + snapshot.writes_per_s == pytest.approx(rate)
    failed = sum(not one.outcome.succeeded for one in results)
    assert sum(point.unsuccessful for point in snapshot.series) == failed
    unchanged = sum(one.outcome.regular and not one.operation.kind.reads for one in results)
    assert sum(point.unchanged for point in snapshot.series) == unchanged
    assert sum(point.operations for point in snapshot.series) == len(results)
    throttled = sum(one.throttled for each in results for one in each.attempts)
    assert snapshot.throttled == throttled
    assert throttled == sum(point.throttled for point in snapshot.series)
    for view in snapshot.operations:
        own = [one for one in results if one.operation.kind == view.type]
        assert view.throttled == sum(each.throttled for one in own for each in one.attempts)
    charged = charges(results)
    assert hundredths(snapshot) == charged == sum(point.charges for point in snapshot.series)
    assert sum(map(hundredths, snapshot.operations)) == sum(map(hundredths, rows)) == charged
    assert broken_invariants(snapshot) == ()
    for row in snapshot.partitions:
        own = [one for one in results if one.operation.partition_key == row.key]
        assert hundredths(row) == charges(own)
        assert row.account == ACCOUNTS[account_of(row.key, len(ACCOUNTS))]


@examples(60)
@given(st.lists(some_result, max_size=30), st.integers(1, 6))
def test_the_accounts_have_what_their_partitions_have(results: list[Result], cap: int) -> None:
    """Also for partitions without a row; nothing is left over."""
    snapshot = seen(counted(results, cap, accounts=ACCOUNTS))
    assert [part.name for part in snapshot.accounts] == list(ACCOUNTS)
    for number, part in enumerate(snapshot.accounts):
        own = [one for one in results if account_of(one.operation.partition_key, 3) == number]
        seconds = END - START
        assert part.entities == sum(one.entities for one in own)
        assert round(part.entities_per_s.mean * seconds) == part.entities
        assert sum(part.attempts.values()) == sum(len(one.attempts) for one in own)
        assert part.throttled() == sum(each.throttled for one in own for each in one.attempts)
        assert hundredths(part) == charges(own)


def charges(results: list[Result]) -> int:
    """What all attempts were charged, in hundredths of a request unit."""
    return sum(one.request_charge for each in results for one in each.attempts)


def hundredths(part: Snapshot | OperationPart | PartitionPart | AccountLoadPart) -> int:
    """The total of a part; 0 where nothing was charged at all."""
    return 0 if part.request_units is None else round(part.request_units.total * 100)


@pytest.mark.parametrize("cap", [1, 5, 40])
@examples(25)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=120), st.integers(1, 4))
def test_above_the_cap_sums_stay_exact(
    cap: int, touched: list[tuple[int, int]], drains: int
) -> None:
    """However many keys there are, rows are at most the cap, and rows and rest add up."""
    worker, master = Ledger("w", cap), Ledger("master", cap)
    worker.open_window(START, END)
    for drain in range(drains):
        for number, entities in touched[drain::drains]:
            worker.add(result(f"k{number}", entities=entities, second=drain))
        master.merge(over_the_wire(worker.drain()))
    snapshot = seen(master)
    assert len(snapshot.partitions) <= cap
    rows = [*snapshot.partitions, *([] if snapshot.folded is None else [snapshot.folded])]
    assert sum(view.entities for view in rows) == sum(entities for _, entities in touched)
    assert sum(sum(view.attempts.values()) for view in rows) == len(touched)
    counters: dict[str, int] = {}
    for number, entities in touched:
        counters[f"k{number}"] = counters.get(f"k{number}", 0) + entities
    for view in snapshot.partitions:
        assert_bounds_hold(view, counters[view.key])
    assert master.drain().lost == []
    if len(counters) <= cap:
        assert snapshot.folded is None
        assert all(view.exact for view in snapshot.partitions)


def assert_bounds_hold(view: CountedPartition, counters: int) -> None:
    """An exact row is exact; another one says bounds, and the truth lies within."""
    if view.exact:
        assert view.entities == counters
        assert view.since is None
        assert view.estimate is None
    else:
        assert view.estimate is not None
        assert view.estimate.at_least <= counters <= view.estimate.at_most
        assert view.entities <= counters


def test_a_heavy_key_that_comes_late_is_found() -> None:
    """A key that turns hot after the places are taken gets one, and says since when."""
    worker, master = Ledger("w", 10), Ledger("master", 10)
    counters: dict[str, int] = {}
    for second in range(20):
        for number in range(40):
            count(worker, counters, f"cold{number:02d}", second)
        if second >= 5:
            for _ in range(50):
                count(worker, counters, "hot", second)
        master.merge(over_the_wire(worker.drain()))
    snapshot = master.snapshot(start=START, end=START + 20)
    hot = partition(snapshot, "hot")
    assert snapshot.hottest is hot
    assert not hot.exact
    assert hot.since is not None
    assert START + 5 <= hot.since <= START + 8
    assert 0.7 * counters["hot"] <= hot.entities < counters["hot"]
    for view in snapshot.partitions:
        assert_bounds_hold(view, counters[view.key])


def count(ledger: Ledger, counters: dict[str, int], key: str, second: int) -> None:
    """Count one entity of ``key``."""
    ledger.add(result(key, second=second))
    counters[key] = counters.get(key, 0) + 1


def test_the_most_throttled_key_keeps_a_place() -> None:
    """A key with nothing but refusals counts no entities, and is told apart all the same."""
    busy = attempt(503, "ServerBusy", scope=Scope.PARTITION)
    ledger = counted([], cap=10)
    for second in range(10):
        for number in range(40):
            ledger.add(result(f"cold{number:02d}", second=second, entities=5))
        for _ in range(3):
            ledger.add(result("refused", second=second, entities=0, attempts=(busy,)))
        keep = Ledger("master", 10)
        keep.merge(ledger.drain())
        if second >= 2:
            refused = partition(seen(keep), "refused")
            assert refused.throttled == 3
            assert_bounds_hold(refused, 0)


@pytest.mark.parametrize("places", [4, 10])
def test_a_key_that_lost_its_place_is_not_called_exact(places: int) -> None:
    """One worker: a key whose later operations were folded says so, with bounds."""
    worker, master = Ledger("w", 4), Ledger("master", places)
    counters: dict[str, int] = {}
    plan = [["a", "b", "c", "d"], ["e"] * 9 + ["f"] * 9, ["a"] * 30, ["a", "b", "c", "d"]]
    for second, keys in enumerate(plan):
        for key in keys:
            count(worker, counters, key, second)
        master.merge(over_the_wire(worker.drain()))
    for view in seen(master).partitions:
        assert_bounds_hold(view, counters[view.key])


def test_of_two_starts_the_later_one_holds() -> None:
    """A key that two workers told apart since different moments was complete since the later."""
    for first, second in ((None, 8.0), (5.0, 8.0), (8.0, 5.0), (8.0, None)):
        row = PartitionTally(since_s=first)
        row.merge(PartitionTally(since_s=second))
        assert row.since_s == 8.0


def test_since_is_a_moment_of_the_run() -> None:
    """A key that gets its place while nothing is going on does not date from 1970."""
    ledger = Ledger("w", 30)
    for number in range(100):
        ledger.add(result(f"k{number:03d}", entities=1 + number))
    for _ in range(5):
        ledger.drain()
    for number in range(100):
        ledger.add(result(f"k{number:03d}", second=5))
    late = [view.since for view in seen(ledger).partitions if view.since is not None]
    assert late
    assert min(late) > START


def test_a_key_is_exact_with_one_worker_below_the_cap_of_others() -> None:
    """Two workers with more keys than places each: no row claims to be exact."""
    master = Ledger("master", 3)
    for source in ("w1", "w2"):
        keys = [f"{source}-{n}" for n in range(5)] + ["shared"]
        ledger = counted([result(key) for key in keys], cap=3, source=source)
        master.merge(ledger.drain())
    assert all(not view.exact for view in seen(master).partitions)


def test_retries_hide_nothing() -> None:
    """An operation that succeeded on its third attempt shows two 503s and one success."""
    busy = attempt(503, "ServerBusy", scope=Scope.PARTITION)
    snapshot = seen(counted([result(attempts=(busy, busy, attempt()))]))
    assert snapshot.outcomes == {Outcome.SUCCESS: 1}
    assert attempts_by_status(snapshot.attempts) == {"204": 1, "503 ServerBusy partition": 2}
    assert snapshot.throttled_ratio == pytest.approx(2 / 3)


def test_latencies_belong_to_the_window_and_counts_to_the_run() -> None:
    """What is done before or after the window counts, but has no part in percentiles."""
    ledger = Ledger()
    ledger.open_window(START + 5, START + 6)
    for second in (0.0, 5.0, 7.0):
        ledger.add(result(second=second))
    snapshot = ledger.snapshot(start=START + 5, end=START + 6)
    assert snapshot.counts.operations == 3
    assert snapshot.service_ms is not None
    assert snapshot.service_ms.count == 1
    assert snapshot.entities_per_s.mean == 1


def test_without_partition_latencies_the_kinds_keep_theirs() -> None:
    """A cheap snapshot leaves out the partitions' percentiles, and the courses of latency."""
    snapshot = counted([result()]).snapshot(start=START, end=END, latencies=False)
    assert partition(snapshot, "p0").service_ms is None
    assert snapshot.service_over_time is None
    assert snapshot.heat is not None
    assert snapshot.operations[0].service_ms is not None


def test_partitions_come_hottest_first() -> None:
    """The order of the rows is that of their rates, then of their keys."""
    late = result("late", entities=1000, second=100)
    ledger = counted([late, result("b"), result("a"), result("c", entities=5)])
    assert [view.key for view in seen(ledger).partitions] == ["c", "a", "b", "late"]


def test_errors_are_kept_for_support_up_to_a_cap() -> None:
    """Failed attempts keep their ids; beyond the cap they are counted, over all workers."""
    busy = attempt(503, "ServerBusy", request_id="req-1", client_request_id="run1-7")
    master = Ledger("master")
    for source in ("w1", "w2"):
        ledger = Ledger(source)
        for _ in range(ERROR_CAP):
            ledger.add(result(attempts=(busy,), outcome=Outcome.THROTTLED))
        ledger.add(result(attempts=(busy, attempt())))
        master.merge(over_the_wire(ledger.drain()))
    kept, dropped = master.errors()
    assert (len(kept), dropped) == (ERROR_CAP, ERROR_CAP + 2)
    assert kept[0]["request_id"] == "req-1"
    assert kept[0]["client_request_id"] == "run1-7"
    assert kept[0]["worker"] == "w1"
    assert (kept[0]["operation"], kept[0]["table"]) == ("upsert_merge", "")
    assert kept[0]["partition_key"] == "p0"


def test_a_refusal_without_an_error_code_is_kept_too() -> None:
    """A proxy before the service names no code; its refusal is a failed attempt all the same."""
    ledger = Ledger()
    ledger.add(result(attempts=(attempt(502), attempt())))
    (error,), dropped = ledger.errors()
    assert (error["status"], error["error_code"], dropped) == (502, "", 0)


@pytest.mark.parametrize(
    ("due", "sent", "done", "dropped", "waiting", "in_flight", "broken"),
    [
        (3, 3, 3, 0, 0, 0, 0),
        (9, 4, 3, 2, 3, 1, 0),
        (4, 3, 3, 0, 0, 0, 1),
        (3, 3, 2, 0, 0, 0, 1),
        (5, 4, 2, 0, 0, 1, 2),
    ],
)
def test_conservation(
    due: int, sent: int, done: int, dropped: int, waiting: int, in_flight: int, broken: int
) -> None:
    """due = sent + waiting + dropped and sent = outcomes + in flight; each breach is a sentence."""
    ledger = Ledger()
    for _ in range(due):
        ledger.note_due()
    for _ in range(sent):
        ledger.note_sent()
    for _ in range(dropped):
        ledger.note_dropped(START + 1.0)
    for _ in range(done):
        ledger.add(result())
    sentences = broken_invariants(seen(ledger), Unfinished(waiting, in_flight))
    assert len(sentences) == broken


def test_an_attempt_without_an_answer_is_named_by_its_fault() -> None:
    """Connection faults have no status; their name stands for it."""
    lost = attempt(0, "connection_reset", fault=Fault.RESET)
    snapshot = seen(counted([result(attempts=(lost, attempt()))]))
    assert attempts_by_status(snapshot.attempts) == {"204": 1, "connection_reset": 1}


def test_snapshots_do_not_change_afterwards() -> None:
    """A snapshot is of its moment: later results leave it as it was."""
    ledger = counted([result()])
    before = seen(ledger)
    copy = dataclasses.replace(before, counts=dataclasses.replace(before.counts))
    ledger.add(result())
    assert before == copy


def test_who_waits_for_which_partition_is_known_by_second() -> None:
    """Two workers' operations between attempts add up by partition and second, sent as messages."""
    master = Ledger("master", cap=2)
    for source, waits in (("one", {"hot": 3, "cold": 1}), ("two", {"hot": 4, "rare": 2})):
        worker = Ledger(source)
        worker.note_retrying(START + 1, waits)
        worker.note_retrying(START + 2, {})
        master.merge(over_the_wire(worker.drain()))
    snapshot = master.snapshot(start=START, end=END)
    assert {part.key: part.retrying for part in snapshot.partitions} == {
        "hot": {START + 1: 7},
        "cold": {START + 1: 1},
    }
    assert next((point.second, point.retrying) for point in snapshot.series) == (START + 1, 10)


def test_what_waits_is_known_for_every_second() -> None:
    """A note holds since the one before, not before the first, and never for longer than 10 s."""
    ledger = Ledger()
    for now_s, waiting in ((START + 0.2, 3), (START + 0.9, 9), (START + 3.1, 5), (END, 7)):
        ledger.note_waiting(now_s, waiting)
    master = Ledger("master")
    master.merge(ledger.drain())
    series = master.snapshot(start=START, end=END).series
    known = {point.second - START: point.waiting for point in series if point.waiting}
    assert known == {0: 3, 1: 5, 2: 5, 3: 5} | dict.fromkeys(range(20, 31), 7)
