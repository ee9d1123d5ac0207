"""Request units: exact sums by second, partition, operation and account, merged in any order."""

from __future__ import annotations

import collections
import dataclasses
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measure.counts.generator import GeneratorLog
from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.measured import RequestUnitsPart
from harness.measure.record.record_builder import measured_fields
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Attempt, Result
from harness.model.partition import account_of
from harness.model.target import Throughput
from tests.support.results import done
from tests.support.wire import over_the_wire

START = 1_700_000_000
SECONDS = 6
NAMES = ("a", "b")


def result_of(
    key: str, kind: Kind, second: int, charges: tuple[int, ...], reported: int = 0
) -> Result:
    """An operation whose attempts were throttled until the last one, each with its charge."""
    at_s = float(START + second)
    attempts = tuple(
        Attempt(status=204 if last else 429, sent_s=at_s, latency_s=0.0, request_charge=charge)
        for last, charge in zip([False] * (len(charges) - 1) + [True], charges, strict=True)
    )
    asked = Operation(kind=kind, partition_key=key)
    return done(asked, at_s, 0.0, attempts=attempts, reported=min(reported, len(attempts) - 1))


some_result = st.builds(
    result_of,
    st.sampled_from(["k0", "k1", "k2", "k3", WHOLE_TABLE]),
    st.sampled_from([Kind.UPSERT_MERGE, Kind.POINT_QUERY]),
    st.integers(0, SECONDS - 1),
    st.lists(st.integers(0, 5000), min_size=1, max_size=3).map(tuple),
    st.integers(0, 2),
)


def hundredths(part: RequestUnitsPart | None) -> int:
    """The total of a part; 0 where nothing was charged at all."""
    return 0 if part is None else round(part.total * 100)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(some_result, st.integers(0, 1), st.integers(0, 1)), max_size=25),
    st.randoms(use_true_random=False),
    st.integers(1, 5),
)
def test_sums_are_exact_in_any_order(
    split: list[tuple[Result, int, int]], rng: random.Random, cap: int
) -> None:
    """However results are spread over workers and drains, every sum is that of the charges."""
    deltas = []
    for worker in range(2):
        ledger = Ledger(f"w{worker}", cap, accounts=NAMES)
        for drain in range(2):
            for one, of_worker, in_drain in split:
                if (of_worker, in_drain) == (worker, drain):
                    for attempt in one.attempts[: one.reported]:
                        ledger.add_attempt(one.operation, attempt)
                    ledger.add(one)
            deltas.append(over_the_wire(ledger.drain()))
    rng.shuffle(deltas)
    master = Ledger("master", cap, accounts=NAMES)
    for delta in deltas:
        master.merge(delta)
    snapshot = master.snapshot(start=START, end=START + SECONDS)

    by: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    seconds = collections.Counter[int]()
    for one, _, _ in split:
        charge = sum(attempt.request_charge for attempt in one.attempts)
        key = one.operation.partition_key
        by["operation"][one.operation.kind] += charge
        by["account"][NAMES[account_of(key, len(NAMES))]] += charge
        by["partition"][key] += charge
        seconds[int(one.done_s)] += charge
    total = sum(seconds.values())
    assert hundredths(snapshot.request_units) == total
    assert {point.second: point.charges for point in snapshot.series if point.charges} == {
        second: charge for second, charge in seconds.items() if charge
    }
    for part in snapshot.operations:
        assert hundredths(part.request_units) == by["operation"][part.kind]
    for account in snapshot.accounts:
        assert hundredths(account.request_units) == by["account"][account.name]
    rows = [*snapshot.partitions, *filter(None, [snapshot.folded])]
    assert sum(hundredths(row.request_units) for row in rows) == total
    for row in snapshot.partitions:
        if row.exact:
            assert hundredths(row.request_units) == by["partition"][row.key]
    if total:
        assert snapshot.request_units is not None
        assert round(snapshot.request_units.per_s.best_1s * 100) == max(seconds.values())
        assert round(snapshot.request_units.per_s.mean * SECONDS * 100) == total


def counted(*results: Result) -> Snapshot:
    ledger = Ledger()
    ledger.open_window(START, START + 2)
    for result in results:
        ledger.add(result)
    return ledger.snapshot(start=START, end=START + 2)


def test_a_service_that_charges_nothing_has_no_request_units() -> None:
    """Neither the snapshot nor the record of a run against Storage mentions request units."""
    snapshot = counted(result_of("p", Kind.INSERT, 0, (0,)))
    assert snapshot.request_units is None
    assert snapshot.partitions[0].request_units is None
    assert snapshot.operations[0].request_units is None
    fields = measured_fields(snapshot, GeneratorLog().view(START, START), None)
    assert all("request_units" not in point.model_dump() for point in fields["series"])
    assert "request_units" not in fields["partitions"][0].model_dump_json()


def test_a_throttled_attempt_is_charged_where_it_was_throttled() -> None:
    """The charge of an attempt that is told before its operation ends is counted at once."""
    ledger = Ledger()
    refused = Attempt(status=429, sent_s=START, latency_s=0.0, request_charge=38)
    ledger.add_attempt(Operation(kind=Kind.INSERT, partition_key="p"), refused)
    snapshot = ledger.snapshot(start=START, end=START + 1)
    (partition,), (operation,) = snapshot.partitions, snapshot.operations
    assert hundredths(partition.request_units) == hundredths(operation.request_units) == 38
    assert operation.request_units_each is None


def test_an_operation_costs_its_retries_too() -> None:
    """The mean cost of an operation covers all of its attempts."""
    snapshot = counted(
        result_of("p", Kind.INSERT, 0, (38, 38, 1000)), result_of("p", Kind.INSERT, 1, (924,))
    )
    (operation,) = snapshot.operations
    assert operation.request_units_each == 10.0


def test_a_record_holds_request_units_against_what_was_provisioned() -> None:
    """A partition has its even share of it, the account all of it, queries over several none."""
    snapshot = counted(
        result_of("p", Kind.INSERT, 0, (600_000,)),
        result_of("p", Kind.INSERT, 1, (900_000,)),
        result_of(WHOLE_TABLE, Kind.QUERY, 1, (300_000,)),
    )
    throughput = Throughput(ru_per_s=18_000, physical_partitions=3)
    generator = GeneratorLog().view(START, START)
    fields = measured_fields(snapshot, generator, None, throughput=throughput)
    parts = {part.key: part.request_units for part in fields["partitions"]}
    assert (parts["p"].per_s.mean, parts["p"].target, parts["p"].ratio) == (7500.0, 6000.0, 1.25)
    assert (parts[WHOLE_TABLE].target, parts[WHOLE_TABLE].ratio) == (None, None)
    whole = fields["request_units"]
    assert (whole.total, whole.target, whole.ratio) == (18_000.0, 18_000.0, 0.5)
    assert [point.request_units for point in fields["series"]] == [6000.0, 12000.0]
    # Queries over several partitions are not the costliest partition.
    assert [point.costliest_request_units for point in fields["series"]] == [6000.0, 9000.0]
    unknown = measured_fields(snapshot, generator, None)["request_units"]
    assert (unknown.target, unknown.ratio) == (None, None)


def test_throughput_is_divided_evenly() -> None:
    """18,000 RU/s over three physical partitions are 6,000 each; none has over 10,000."""
    assert Throughput(ru_per_s=18_000, physical_partitions=3).partition_ru_per_s == 6000
    assert Throughput(ru_per_s=18_000).partition_ru_per_s == 9000
    assert Throughput(ru_per_s=400).partition_ru_per_s == 400
    assert Throughput(ru_per_s=50_000, physical_partitions=2).partition_ru_per_s == 10_000
    assert Throughput().partition_ru_per_s == 10_000
    assert Throughput(physical_partitions=3).partition_ru_per_s == 10_000
    assert [
        dataclasses.replace(Throughput(), ru_per_s=rate).fewest_partitions
        for rate in (400.0, 10_000.0, 10_001.0, 30_000.0)
    ] == [1, 1, 2, 3]
