"""How an application uses tables, counted from its results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from harness.measure.counts.behaviour import MOST_QUERIES, MOST_TABLES, Behaviour
from harness.measure.counts.key_sample import SIZE
from harness.measure.record.behaviour import BehaviourPart, QueriesPart
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation, transaction
from harness.model.outcome import Result, outcome_of
from tests.support.behaviour import attempt, counted, insert, query, result, write

Change = dict[str, Any]
CODEC = TypeAdapter(Behaviour)


def sent(drained: Behaviour) -> Behaviour:
    """What another process gets."""
    return CODEC.validate_python(CODEC.dump_python(drained))


def test_single_writes_of_one_second_to_one_partition_could_be_a_transaction() -> None:
    """250 rows of one partition in one second are three requests; another partition is alone."""
    rows = [result(insert("p", f"r{n}"), at_s=n / 1000) for n in range(250)]
    writes = counted([*rows, result(insert("q"), at_s=0.5)]).writes
    assert (writes.singles, writes.together, writes.saved) == (251, 250, 247)


@pytest.mark.parametrize(
    "second",
    [
        result(insert("q", "b")),
        result(insert("p", "b", table="Other")),
        result(insert("p", "b"), at_s=1.5),
        result(insert("p", "a")),
    ],
    ids=["partition", "table", "second", "same row"],
)
def test_other_writes_could_not(second: Result) -> None:
    """A transaction has one partition of one table, and names each row once."""
    assert counted([result(insert("p", "a")), second]).writes.together == 0


def test_clients_cannot_share_a_transaction() -> None:
    """Writes of two clients stay two requests."""
    behaviour = Behaviour()
    for client in ("one", "two", "two"):
        behaviour.add(result(insert("p", client)), client)
    assert behaviour.part().writes.together == 0


@pytest.mark.parametrize("status", [404, 409, 412, 503])
def test_refused_writes_could_not_be_a_transaction(status: int) -> None:
    """They would have undone the others, and are no load of their row."""
    refused = dataclasses.replace(
        result(insert("p"), attempt(0.0, status)), outcome=outcome_of(status, "ServerBusy")
    )
    part = counted([refused, result(insert("p", "other"), at_s=0.1)])
    assert (part.writes.singles, part.writes.together) == (2, 0)
    assert part.tables[0].hottest_row == 1


def test_transactions_are_counted_with_their_rows() -> None:
    """A batch of inserts is one transaction; one that also deletes touches rows."""
    rows = tuple(insert("p", f"r{n}") for n in range(10))
    mixed = (*rows[:2], write(Kind.DELETE, "p", "old"), write(Kind.UPSERT_MERGE, "p", "m"))
    part = counted([result(transaction(rows)), result(transaction(mixed))])
    (table,) = part.tables
    assert (part.writes.transactions, part.writes.batched) == (2, 14)
    assert (table.inserted, table.upserted, table.batches, table.touched) == (12, 1, 1, 1)


@pytest.mark.parametrize(
    ("second", "plain", "conditional"),
    [
        (result(write(Kind.UPSERT_MERGE, "p"), at_s=0.1), 1, 0),
        (result(insert("p"), at_s=0.1), 1, 0),
        (result(write(Kind.UPDATE_MERGE, "p", etag="W/1"), at_s=0.1), 0, 1),
        (result(write(Kind.DELETE, "p"), at_s=0.1), 0, 0),
        (result(insert("p"), at_s=1.2), 0, 0),
        (result(insert("p", "other"), at_s=0.1), 0, 0),
        (result(insert("p", table="Other"), at_s=0.1), 0, 0),
    ],
)
def test_reads_before_a_write(second: Result, plain: int, conditional: int) -> None:
    """A read of the same row in the second before counts, with an ETag separately."""
    read = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
    writes = counted([result(read), second]).writes
    assert (writes.read_first, writes.read_first_conditional) == (plain, conditional)


def test_updates_with_any_etag_are_counted() -> None:
    """Updates and deletes without an ETag are unconditional; inserts are no updates."""
    kinds = (Kind.UPDATE_MERGE, Kind.DELETE, Kind.INSERT)
    part = counted(result(write(kind, "p", f"r{n}")) for n, kind in enumerate(kinds))
    assert (part.writes.updates, part.writes.unconditional) == (2, 2)


def test_waits_inside_one_operation() -> None:
    """Waits run from an answer to the next attempt; a wait a fifth longer has grown."""
    attempts = [
        attempt(0.0, 503, code="ServerBusy"),
        attempt(0.05, 500),
        attempt(0.56, 503, code="ServerBusy"),
        attempt(1.07),
    ]
    waits = counted([result(insert("p"), *attempts)]).waits
    assert (waits.count, waits.after_throttling) == (3, 2)
    assert (waits.at_once, waits.at_once_after_throttling) == (1, 1)
    assert (waits.followed, waits.longer) == (2, 1)
    assert waits.median_s == pytest.approx(0.5, rel=0.02)


def test_requests_of_others_for_the_same_row_are_no_retries() -> None:
    """Many users of one client write a row that is throttled; each request has its own id."""
    busy = [result(insert("p"), attempt(t, 503, code="ServerBusy")) for t in (0.0, 0.03, 1.0)]
    waits = counted([*busy, result(insert("p"), at_s=4.0)]).waits
    assert (waits.count, waits.at_once, waits.in_vain) == (0, 0, 0)


def test_the_busiest_row_is_counted_at_least() -> None:
    """Among more rows than are remembered, in the order of two collectors, one has a third."""
    rows = [row for n in range(900) for row in (f"r{n}", f"s{n}", "total")]
    halves = [Behaviour(), Behaviour()]
    for place, row in enumerate(rows):
        halves[place % 2].add(result(write(Kind.UPSERT_MERGE, "p", row)))
    for one, other in (halves, halves[::-1]):
        merged = Behaviour()
        for half in (one, other):
            merged.merge(sent(half))
        [table] = merged.part().tables
        assert 900 - len(rows) / 64 <= table.hottest_row <= 900


@pytest.mark.parametrize(("status", "in_vain"), [(400, 1), (403, 1), (501, 1), (404, 0), (409, 0)])
def test_requests_that_cannot_succeed(status: int, in_vain: int) -> None:
    """A request that was malformed or forbidden is the same when it is sent again."""
    waits = counted([result(insert("p"), attempt(0.0, status), attempt(0.1))]).waits
    assert (waits.count, waits.in_vain) == (0, in_vain)


def test_connection_errors_may_be_retried_at_once() -> None:
    """No throttling causes them, and the document allows it."""
    first = result(insert("p"), attempt(0.0, 0), attempt(0.01))
    assert counted([first]).waits.count == 0


def test_pages_of_a_query_are_no_retries() -> None:
    """Attempts after an answer that succeeded wait for nothing."""
    paged = result(query(), attempt(0.0, 200), attempt(0.02, 200), attempt(0.04, 200))
    assert counted([paged]).waits.count == 0


QUERIES: list[tuple[Operation, Change, Change]] = [
    (
        query(),
        {"entities": 100, "entities_returned": 5},
        {"unbounded": 1, "exact_entities": 100, "exact_returned": 5, "unselected_entities": 5},
    ),
    (
        query(key_range=KeyRange(row_from="a"), select=("Count",), top=5, filter="Count gt 1"),
        {"entities": 1, "entities_returned": 1},
        {"unbounded": 0, "single": 1, "unselected": 0, "limited": 1, "filtered": 1},
    ),
    (
        query(WHOLE_TABLE, key_range=KeyRange(partition_before="b")),
        {"entities": 7, "entities_returned": 7, "estimated": True, "bytes_received": 900},
        {"over_partitions": 1, "exact": 0, "entities": 7, "unselected_bytes": 900},
    ),
]


@pytest.mark.parametrize(("operation", "answer", "expected"), QUERIES)
def test_what_queries_ask_for(operation: Operation, answer: Change, expected: Change) -> None:
    """Each query counts with its range, filter, projection, and what it scanned."""
    (part,) = counted([result(operation, attempt(0.0, 200), **answer)]).queries
    assert part.count == 1
    assert part.name == operation.label
    assert {name: getattr(part, name) for name in expected} == expected


def test_full_pages_are_counted() -> None:
    """A query, or a page of one, that returned as much as an answer may hold."""
    answers = ({"entities_returned": 1000}, {"entities_returned": 999})
    part = counted(result(query(), attempt(0.0, 200), **answer) for answer in answers)
    assert part.queries[0].full == 1


def test_a_transaction_whose_parts_are_unknown_touches_rows() -> None:
    """Nothing is claimed about rows that the source of the results does not name."""
    (table,) = counted([result(write(Kind.TRANSACTION, "p", ""))]).tables
    assert (table.inserted, table.writing, table.touched) == (0, 0, 1)


def test_only_answered_queries_count() -> None:
    """A query that was throttled tells nothing about what it would have scanned."""
    assert counted([result(query(), attempt(0.0, 503, code="ServerBusy"))]).queries == ()


@pytest.mark.parametrize(
    ("key_of", "growth"),
    [
        (lambda n: f"t{n:06d}", 1),
        (lambda n: f"t{999_999 - n:06d}", -1),
        (lambda n: f"t{n * 7919 % 4001:06d}", 0),
        (lambda n: f"t{(n ^ 3):06d}", 1),
        (lambda n: f"h{n // 300}", 1),
        (lambda n: "one", 0),
        (lambda n: f"tenant-{n % 2}", 0),
        (lambda n: f"tenant-{n * 7919 % 13}", 0),
    ],
    ids=["later", "earlier", "random", "jitter", "hours", "constant", "two", "tenants"],
)
def test_growth_at_an_end(key_of: Callable[[int], str], growth: int) -> None:
    """Of thousands of inserts a sample tells whether the keys run through the key order."""
    part = counted(result(insert(key_of(n), f"r{n}"), at_s=n / 100) for n in range(4000))
    assert part.tables[0].growth == growth


def test_few_inserts_tell_no_growth() -> None:
    """A handful of new rows may come in order by chance."""
    part = counted(result(insert(f"t{n}"), at_s=n) for n in range(10))
    assert part.tables[0].growth is None


def test_what_keys_look_like() -> None:
    """Dates, GUIDs, widths of numbers, length and characters of keys."""
    guid = "0f8fad5b-d9cb-469f-a165-70867728950e"
    part = counted(
        [
            *(result(insert(f"2024-05-{n:02d}", guid), at_s=n) for n in range(10, 30)),
            *(result(insert(guid, f"r{n}", table="B"), at_s=n) for n in range(5)),
            *(result(insert(f"n{n} ö", f"r{n}", table="C"), at_s=n) for n in range(8, 12)),
            *(result(insert(f"n{n}", table="D"), at_s=n) for n in range(8, 12)),
        ]
    )
    tables = {table.table: table for table in part.tables}
    assert [tables[name].dates for name in ("", "B", "C")] == [True, False, False]
    assert [tables[name].guids for name in ("", "B", "C")] == [False, True, False]
    assert [tables[name].row_guids for name in ("", "B", "C")] == [True, False, False]
    assert [tables[name].unpadded for name in ("", "C", "D")] == [False, True, True]
    assert (tables["C"].escaped, tables["C"].foreign) == (0.5, 0.5)
    assert tables[""].longest_key == 36


def test_the_number_of_partitions_is_estimated() -> None:
    """Exact while all are in the sample, and about right above."""
    few = counted(result(insert(f"p{n % 200}")) for n in range(1000))
    many = counted(result(insert(f"p{n}")) for n in range(20_000))
    assert few.tables[0].partitions == 200
    assert many.tables[0].partitions == pytest.approx(20_000, rel=0.25)


def test_memory_is_bounded() -> None:
    """Any number of clients, tables, query names and keys keeps what is shown within limits."""
    behaviour = Behaviour()
    for n in range(3000):
        behaviour.add(result(insert(f"p{n}", table=f"T{n}"), at_s=n / 1e5), f"client-{n}")
        behaviour.add(result(query(name=f"q{n}"), attempt(0.0, 200)), "one")
        read = Operation(kind=Kind.POINT_QUERY, partition_key=f"p{n}", row_key="r")
        behaviour.add(result(read, attempt(n / 1e5, 503, code="ServerBusy")), "one")
    part = behaviour.part()
    assert part.results == 9000
    assert len(part.queries) == MOST_QUERIES + 1
    assert len(part.tables) == MOST_TABLES + 1
    assert sum(table.operations for table in part.tables) == 9000
    assert len(msgpack.packb(CODEC.dump_python(behaviour.drain(ended=True)))) < 3 * SIZE * 2500


def test_no_key_is_in_the_part() -> None:
    """The record holds counts only: keys may be personal data."""
    text = counted(
        result(operation, attempt(0.0, status, code="ServerBusy" if status == 503 else ""))
        for operation in (
            insert("secret-1", "secret-2"),
            query("secret-3", filter="Name eq 'secret-4'"),
            write(Kind.UPDATE_MERGE, "secret-5", "secret-6", etag="secret-7"),
        )
        for status in (204, 503)
    ).model_dump_json()
    assert "secret" not in text


def test_a_part_can_be_read_again() -> None:
    """The JSON of a part is the part."""
    part = counted(result(insert(f"p{n}")) for n in range(30))
    assert BehaviourPart.model_validate_json(part.model_dump_json()) == part
    assert QueriesPart.model_validate({"name": "q", "later": 1}).count == 0


KEYS = st.sampled_from([f"k{n}" for n in range(40)] + ["ü\udc80", ""])
OPERATIONS = st.one_of(
    st.builds(write, st.sampled_from([Kind.INSERT, Kind.UPSERT_MERGE, Kind.UPDATE_MERGE]), KEYS),
    st.builds(query, KEYS, name=st.sampled_from(["", "mine"])),
    st.builds(Operation, kind=st.just(Kind.POINT_QUERY), partition_key=KEYS, row_key=st.just("r")),
)
RESULTS = st.lists(
    st.builds(
        lambda operation, at_s, status: result(operation, attempt(at_s, status, code="ServerBusy")),
        OPERATIONS,
        st.floats(0, 5),
        st.sampled_from([204, 503]),
    ),
    max_size=60,
)


def shown(drained: Sequence[Behaviour]) -> BehaviourPart:
    whole = Behaviour()
    for one in drained:
        whole.merge(sent(one))
    return whole.part()


@given(st.lists(RESULTS, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_merging_in_any_order_is_the_same(workers: list[list[Result]], rng: Any) -> None:
    """Counts and samples of several workers do not depend on the order in which they arrive."""
    drained = []
    for place, results in enumerate(workers):
        behaviour = Behaviour()
        for one in results:
            behaviour.add(one, f"worker-{place}")
        drained.append(behaviour.drain(ended=True))
    mixed = rng.sample(drained, len(drained))
    assert shown(mixed) == shown(drained)


@given(RESULTS, st.integers(1, 20))
def test_draining_often_loses_nothing(results: list[Result], every: int) -> None:
    """What is drained in parts and merged is what one collector counts at once."""
    behaviour, drained = Behaviour(), []
    for place, one in enumerate(results):
        behaviour.add(one, "me")
        if place % every == 0:
            drained.append(behaviour.drain())
    drained.append(behaviour.drain(ended=True))
    assert shown(drained) == counted(results, "me")


def test_samples_of_many_keys_merge_in_any_order() -> None:
    """Which keys are kept depends on the keys alone, also far above the size of a sample."""
    drained = []
    for worker in range(3):
        behaviour = Behaviour()
        for n in range(1500):
            behaviour.add(result(insert(f"t{3 * n + worker:05d}", f"r{n}"), at_s=n / 100))
        drained.append(behaviour.drain(ended=True))
    part = shown(drained)
    assert part == shown(drained[::-1])
    assert part.tables[0].growth == 1
    assert part.tables[0].partitions == pytest.approx(4500, rel=0.25)
