"""Operations told apart by their names, partitions by their tables, and what queries scanned."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.counts.tally import MOST_LABELS, PartitionTally, Tally
from harness.measure.record.measured import OperationPart
from harness.model.operation import ALL_KEYS, WHOLE_TABLE, KeyRange, Kind, Operation
from harness.model.outcome import Attempt, Outcome, Result
from tests.support.examples import examples
from tests.support.results import add_all, done
from tests.support.wire import over_the_wire

START = 1_700_000_000
END = START + 10
OK = Attempt(status=200, sent_s=START, latency_s=0.01)
LOST = Attempt(status=503, sent_s=START, latency_s=0.01, error_code="ServerBusy")


def result(
    kind: Kind = Kind.POINT_QUERY,
    name: str = "",
    *,
    key: str = "p",
    table: str = "",
    returned: int = 0,
    key_range: KeyRange = ALL_KEYS,
    **more: Any,
) -> Result:
    asked = Operation(kind=kind, partition_key=key, table=table, name=name, key_range=key_range)
    return done(asked, START, entities_returned=returned, **{"attempts": (OK,), **more})


def scan(key: str = "p", table: str = "", **rest: Any) -> Result:
    return result(Kind.QUERY, key=key, table=table, **rest)


def counted(*results: Result, source: str = "local") -> Ledger:
    ledger = Ledger(source)
    ledger.open_window(START, END)
    return add_all(ledger, results)


def seen(ledger: Ledger) -> Snapshot:
    return ledger.snapshot(start=START, end=END)


def by_label(snapshot: Snapshot) -> dict[str, OperationPart]:
    return {view.kind: view for view in snapshot.operations}


def merged(*ledgers: Ledger) -> Ledger:
    master = Ledger("master")
    for ledger in ledgers:
        master.merge(over_the_wire(ledger.drain()))
    return master


def test_operations_that_were_not_served_have_the_entities_of_those_that_were() -> None:
    """Of each name; of a name of which none was served, nothing is known."""
    busy: dict[str, Any] = {"outcome": Outcome.THROTTLED, "attempts": (LOST,)}
    ledger = counted(
        *(result(Kind.POINT_QUERY, returned=1) for _ in range(3)),
        *(result(Kind.POINT_QUERY, **busy) for _ in range(9)),
        *(scan(returned=10) for _ in range(4)),
        result(Kind.DELETE, **busy),
    )
    assert ledger.tally.entities_each == pytest.approx((12 * 1 + 4 * 10) / 16)
    assert counted(result(**busy)).tally.entities_each is None


def test_operations_of_one_kind_are_told_apart_by_name() -> None:
    """A name of its own, a documented query type, or the kind: each has a row."""
    views = by_label(
        seen(
            counted(
                result(),
                result(name="by_bib"),
                result(name="by_bib", outcome=Outcome.NOT_FOUND),
                scan(entities=30, returned=3, key_range=KeyRange(row_from="a")),
                scan(entities=70, returned=70),
                scan(WHOLE_TABLE, entities=500, returned=5),
                scan(WHOLE_TABLE, entities=20, returned=20, key_range=KeyRange(partition_from="a")),
            )
        )
    )
    assert {label: view.count for label, view in views.items()} == {
        "point_query": 1,
        "by_bib": 2,
        "row_range_scan": 1,
        "partition_scan": 1,
        "full_table_scan": 1,
        "partition_range_scan": 1,
    }
    assert views["by_bib"].type == Kind.POINT_QUERY
    assert views["by_bib"].outcomes == {Outcome.SUCCESS: 1, Outcome.NOT_FOUND: 1}
    assert (views["full_table_scan"].entities, views["full_table_scan"].entities_returned) == (
        500,
        5,
    )


def test_what_is_estimated_is_told_apart() -> None:
    """Of what queries scanned, the least that it can be is summed beside what is exact."""
    snapshot = seen(
        counted(
            scan(entities=5000, returned=50),
            scan(entities=50, returned=50, estimated=True),
            scan(entities=7, returned=7, estimated=True),
            result(),
        )
    )
    view = by_label(snapshot)["partition_scan"]
    assert (view.entities, view.entities_returned, view.entities_estimated) == (5057, 107, 57)
    counts = snapshot.counts
    assert (counts.entities, counts.entities_returned, counts.entities_estimated) == (5058, 107, 57)


def test_reads_and_writes_are_told_apart_by_kind_whatever_the_names() -> None:
    """A name says nothing about reading or writing, the kind does."""
    snapshot = seen(
        counted(
            result(Kind.INSERT, "query", entities=10),
            result(Kind.POINT_QUERY, "insert", entities=20),
            result(Kind.QUERY, "delete", entities=30),
            result(Kind.TRANSACTION, "read", entities=40),
        )
    )
    assert (snapshot.reads_per_s, snapshot.writes_per_s) == (5.0, 5.0)


def test_a_name_that_two_kinds_share_is_two_rows() -> None:
    """An application that calls a read and a write alike keeps both apart."""
    snapshot = seen(
        counted(
            result(Kind.POINT_QUERY, "checkout", entities=1),
            result(Kind.INSERT, "checkout", entities=3),
            result(Kind.INSERT, "checkout", entities=3),
            # A name like a kind takes no place of the kind itself.
            result(Kind.POINT_QUERY, "insert", entities=0),
            result(Kind.INSERT, entities=0),
        )
    )
    views = by_label(snapshot)
    assert {label: (view.type, view.entities) for label, view in views.items()} == {
        "checkout": (Kind.POINT_QUERY, 1),
        "checkout (insert)": (Kind.INSERT, 6),
        "insert": (Kind.POINT_QUERY, 0),
        "insert (insert)": (Kind.INSERT, 0),
    }
    assert (snapshot.reads_per_s, snapshot.writes_per_s) == (0.1, 0.6)


def test_no_more_names_than_the_cap() -> None:
    """Beyond the cap operations are counted under their kind, and every sum stays exact."""
    results = [result(Kind.INSERT, f"n{number}", entities=2) for number in range(1000)]
    snapshot = seen(counted(*results))
    labels = {view.kind for view in snapshot.operations}
    assert len(labels) == MOST_LABELS + 1
    assert by_label(snapshot)["insert"].entities == 2 * (1000 - MOST_LABELS)
    assert sum(view.entities for view in snapshot.operations) == 2000
    (partition,) = snapshot.partitions
    assert set(partition.entities_by_kind) == labels
    assert partition.entities == 2000


def test_names_stay_bounded_over_many_reports() -> None:
    """A master that hears new names every second keeps no more of them than the cap."""
    worker, master = Ledger("w0"), Ledger("master")
    for second in range(40):
        for number in range(50):
            worker.add(result(Kind.INSERT, f"name-{second}-{number}"))
        master.merge(over_the_wire(worker.drain()))
    snapshot = seen(master)
    assert len(snapshot.operations) <= MOST_LABELS + len(Kind)
    assert sum(view.count for view in snapshot.operations) == 2000
    (partition,) = snapshot.partitions
    assert len(partition.entities_by_kind) <= MOST_LABELS + 1
    assert partition.entities == 2000


def test_the_same_key_in_several_tables_is_several_partitions() -> None:
    """A PartitionKey is a partition of its table; the first table's has no ending before it."""
    snapshot = seen(
        counted(
            result(key="p", entities=1),
            result(key="p", table="Index", entities=2),
            result(key="p", table="Orders", entities=3),
            result(key="", table="Index", entities=4),
        )
    )
    assert {view.key: view.entities for view in snapshot.partitions} == {
        "p": 1,
        "Index/p": 2,
        "Orders/p": 3,
        "Index/": 4,
    }


def test_scans_over_partitions_are_no_hottest_partition() -> None:
    """What scans a whole table is a row of that table, and never the hottest partition."""
    snapshot = seen(
        counted(
            scan(WHOLE_TABLE, entities=9000, returned=9),
            scan(WHOLE_TABLE, "Index", entities=8000, returned=8),
            scan(
                WHOLE_TABLE,
                "Index",
                entities=100,
                returned=1,
                key_range=KeyRange(partition_from="a"),
            ),
            result(key="p", table="Index"),
        )
    )
    assert {view.key: view.entities for view in snapshot.partitions} == {
        "/": 9000,
        "Index//": 8100,
        "Index/p": 1,
    }
    assert snapshot.hottest is not None
    assert snapshot.hottest.key == "Index/p"


names = st.sampled_from(["", "a", "b", "insert", "query", "point_query", "partition_scan"])
some_result = st.builds(
    result,
    st.sampled_from(Kind),
    names,
    key=st.sampled_from(["p", "q", "", WHOLE_TABLE]),
    table=st.sampled_from(["", "Index"]),
    entities=st.integers(0, 100),
    returned=st.integers(0, 100),
    estimated=st.booleans(),
    outcome=st.sampled_from([Outcome.SUCCESS, Outcome.NOT_FOUND, Outcome.THROTTLED]),
)


def sums_by_kind(snapshot: Snapshot) -> dict[Kind, tuple[int, int, int, int]]:
    """Operations, entities, returned and estimated of each kind, under whatever names."""
    sums = dict.fromkeys(Kind, (0, 0, 0, 0))
    for view in snapshot.operations:
        more = (view.count, view.entities, view.entities_returned, view.entities_estimated)
        mine = sums[Kind(view.type)]
        sums[Kind(view.type)] = tuple(map(sum, zip(mine, more, strict=True)))  # type: ignore[assignment]
    return sums


@examples(60)
@given(st.lists(st.tuples(some_result, st.integers(0, 2)), max_size=30), st.randoms())
def test_sums_of_each_kind_are_exact_in_any_order(
    split: list[tuple[Result, int]], rng: random.Random
) -> None:
    """However names collide and workers report, the sums of each kind are those of the results."""
    ledgers = [
        counted(*(one for one, of in split if of == worker), source=f"w{worker}")
        for worker in range(3)
    ]
    rng.shuffle(ledgers)
    snapshot = seen(merged(*ledgers))
    sums = sums_by_kind(snapshot)
    for kind in Kind:
        of = [one for one, _ in split if one.operation.kind is kind]
        assert sums[kind] == (
            len(of),
            sum(one.entities for one in of),
            sum(one.entities_returned for one in of),
            sum(one.entities for one in of if one.estimated),
        )
    alone = all(one.operation.kind.untargeted for one, _ in split)
    targeted = [one for one, _ in split if alone or not one.operation.kind.untargeted]
    reads = sum(one.entities for one in targeted if one.operation.kind.reads)
    assert snapshot.reads_per_s == pytest.approx(reads / 10)
    by_partition: dict[str, int] = {}
    for one, _ in split:
        key = one.operation.partition
        by_partition[key] = by_partition.get(key, 0) + one.entities
    assert {view.key: view.entities for view in snapshot.partitions} == by_partition


@examples(60)
@given(st.lists(some_result, max_size=20))
def test_a_tally_comes_back_as_it_went(results: list[Result]) -> None:
    """Whatever was counted, its encoded form is read as the same counts."""
    tally, row = Tally(), PartitionTally()
    for one in results:
        label = tally.label_of(one.operation.label, one.operation.kind)
        tally.add(label, int(one.done_s), one.outcome, one.estimated, [one])
        tally.kinds[label].latencies.record([one.service_s], [one.service_s + 1.0])
        row.entities[label] = row.entities.get(label, 0) + one.entities
    again, plain = over_the_wire(tally), TypeAdapter(Tally).dump_python
    assert plain(again) == plain(tally)
    assert all(again.kinds[label].kind is kind.kind for label, kind in tally.kinds.items())
    assert over_the_wire(row).entities == row.entities
