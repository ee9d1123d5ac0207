"""Request units: what each operation costs, and what they are held against."""

from __future__ import annotations

import dataclasses

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.record_builder import measured_fields
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Attempt, Result
from harness.model.target import Throughput
from tests.support.evidence import evidence
from tests.support.results import done

START = 1_700_000_000


def result_of(key: str, kind: Kind, second: int, charges: tuple[int, ...]) -> Result:
    """An operation whose attempts were throttled until the last one, each with its charge."""
    at_s = float(START + second)
    attempts = tuple(
        Attempt(status=204 if last else 429, sent_s=at_s, latency_s=0.0, request_charge=charge)
        for last, charge in zip([False] * (len(charges) - 1) + [True], charges, strict=True)
    )
    asked = Operation(kind=kind, partition_key=key)
    return done(asked, at_s, 0.0, attempts=attempts)


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
    fields = measured_fields(evidence(snapshot, targets=None))
    assert all("request_units" not in point.model_dump() for point in fields["series"])
    assert "request_units" not in fields["partitions"][0].model_dump_json()


def test_a_throttled_attempt_is_charged_where_it_was_throttled() -> None:
    """The charge of an attempt that is told before its operation ends is counted at once."""
    ledger = Ledger()
    refused = Attempt(status=429, sent_s=START, latency_s=0.0, request_charge=38)
    ledger.add_attempt(Operation(kind=Kind.INSERT, partition_key="p"), refused)
    snapshot = ledger.snapshot(start=START, end=START + 1)
    (partition,), (operation,) = snapshot.partitions, snapshot.operations
    assert partition.request_units == operation.request_units
    assert snapshot.request_units is not None
    assert snapshot.request_units.total == 0.38
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
    fields = measured_fields(evidence(snapshot, targets=None, throughput=throughput))
    parts = {part.key: part.request_units for part in fields["partitions"]}
    assert (parts["p"].per_s.mean, parts["p"].target, parts["p"].ratio) == (7500.0, 6000.0, 1.25)
    assert (parts[WHOLE_TABLE].target, parts[WHOLE_TABLE].ratio) == (None, None)
    whole = fields["request_units"]
    assert (whole.total, whole.target, whole.ratio) == (18_000.0, 18_000.0, 0.5)
    assert [point.request_units for point in fields["series"]] == [6000.0, 12000.0]
    # Queries over several partitions are not the costliest partition.
    assert [point.costliest_request_units for point in fields["series"]] == [6000.0, 9000.0]
    unknown = measured_fields(evidence(snapshot, targets=None))["request_units"]
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


def test_stored_data_needs_physical_partitions_too() -> None:
    """50 GB each: the larger number counts, and the share of each becomes smaller."""
    known = Throughput(ru_per_s=18_000, physical_partitions=3, stored_bytes=150 * 10**9)
    assert (known.storing_partitions, known.fewest_partitions) == (3, 3)
    more = dataclasses.replace(known, stored_bytes=150 * 10**9 + 1)
    assert (more.fewest_partitions, more.partition_ru_per_s) == (4, 4500)
    assert Throughput(stored_bytes=10**12).fewest_partitions == 20
