"""The verdict on Cosmos DB: within, over, and hot partition or too little throughput."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import AdvicePart, VerdictPart
from harness.measure.verdict.request_units import (
    Concentration,
    ThrottlingCause,
    throttled_by_units,
)
from harness.measure.verdict.verdict import judge
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Attempt, Scope
from harness.model.services.cosmos import COSMOS
from harness.model.target import Throughput
from harness.report.headline import headline, result_words
from tests.support.charged import ALL_REFUSED, SECONDS, SPREAD, THREE, UNKNOWN, charged
from tests.support.evidence import START, evidence, recorded
from tests.support.records import altered
from tests.support.results import done


def judged(snapshot: Snapshot, throughput: Throughput, **changes: Any) -> VerdictPart:
    return judge(evidence(snapshot, kind=COSMOS, throughput=throughput, **changes))


def advised(snapshot: Snapshot, throughput: Throughput) -> tuple[AdvicePart, ...]:
    known = [
        f"endpoint.{name}={value}"
        for name, value in (
            ("provisioned_ru_per_s", throughput.ru_per_s),
            ("physical_partitions", throughput.physical_partitions),
        )
        if value is not None
    ]
    given = evidence(snapshot, kind=COSMOS, throughput=throughput)
    return recorded(given, *known).verdict.advice


SPREADING, UNITS, COSTS = "hot-partition-key", "request-units", "costly-operations"


@pytest.mark.parametrize(
    ("rates", "throughput", "practices"),
    [
        ({"hot": (6000, 10)}, THREE, [SPREADING]),
        ({**SPREAD, "hot": (2900, 10)}, THREE, [SPREADING]),
        (ALL_REFUSED, THREE, [UNITS, COSTS]),
        (ALL_REFUSED, UNKNOWN, [SPREADING, UNITS, COSTS]),
        (SPREAD, THREE, []),
        ({"hot": (7000, 0)}, THREE, [SPREADING]),
        (dict.fromkeys(SPREAD, (1000, 0)), THREE, [UNITS, COSTS]),
    ],
)
def test_advice_follows_the_cause(
    rates: Mapping[str, tuple[int, float]], throughput: Throughput, practices: list[str]
) -> None:
    """A hot partition needs another key, a used-up throughput more of it or cheaper operations."""
    assert [part.practice for part in advised(charged(rates), throughput)] == practices


def test_the_advice_is_about_a_throttled_key() -> None:
    """A key that used more, in a physical partition with time to spare, is not the one."""
    rates = {"a": (2900, 6), "b": (2800, 5), "c": (3100, 0), "d": (3000, 0)}
    assert "the attempts on 'a' were throttled" in advised(charged(rates), THREE)[0].why


def test_operations_that_cost_more_than_a_second_has_are_a_cause_of_their_own() -> None:
    """Scans of 2,010 RU fill physical partitions of 600: 429 follows whatever the keys are."""
    ledger = Ledger(cap=200)
    ledger.open_window(START, START + SECONDS)
    for second in range(SECONDS):
        at_s = float(START + second)
        busy = Attempt(
            status=429, sent_s=at_s, latency_s=0.1, scope=Scope.PARTITION, error_code="TooMany"
        )
        for key in SPREAD:
            ok = Attempt(status=200, sent_s=at_s, latency_s=0.004, request_charge=100)
            attempts = (busy, ok) if second % 2 else (ok,)
            asked = Operation(kind=Kind.POINT_QUERY, partition_key=key)
            ledger.add(done(asked, at_s, 0.004, attempts=attempts))
        if not second % 2:
            scan = Operation(kind=Kind.QUERY, partition_key=WHOLE_TABLE)
            dear = Attempt(status=200, sent_s=at_s, latency_s=0.1, request_charge=201_000)
            ledger.add(done(scan, at_s, 0.1, attempts=(dear,)))
    snapshot = ledger.snapshot(start=START, end=START + SECONDS)
    small = Throughput(ru_per_s=1800, physical_partitions=3)
    verdict = judged(snapshot, small)
    assert (verdict.result, verdict.limited_by) == ("throttled", "operation")
    words = "one full_table_scan takes 2,010 RU, and a partition has 600 in a second"
    assert words in verdict.sentence
    assert [part.practice for part in advised(snapshot, small)] == [COSTS]
    # Where a second has more than one of them takes, they explain nothing.
    assert judged(snapshot, THREE).limited_by == "unknown"


@pytest.mark.parametrize(
    ("used", "throughput", "limited_by"),
    [
        (6000, THREE, "partition"),
        # A physical partition has 6,000: this key had far less when it was throttled.
        (200, THREE, "unknown"),
        # Nothing else has a part of the throughput of one physical partition.
        (200, Throughput(ru_per_s=400, physical_partitions=1), "unknown"),
        (390, Throughput(ru_per_s=400, physical_partitions=1), "throughput"),
    ],
)
def test_the_only_key_of_a_run_is_hot_where_it_used_up_a_physical_partition(
    used: int, throughput: Throughput, limited_by: str
) -> None:
    """Where it did not, no output names the limit of a partition as the cause."""
    record = recorded(evidence(charged({"hot": (used, 10)}), kind=COSMOS, throughput=throughput))
    assert (record.verdict.result, record.verdict.limited_by) == ("throttled", limited_by)
    assert ("It is a hot" in record.verdict.sentence) is (limited_by == "partition")
    assert ("its limit is" in headline(record)) is (limited_by == "partition")


@pytest.mark.parametrize(
    ("throughput", "known"),
    [
        (THREE, True),
        (Throughput(ru_per_s=8000), True),
        (Throughput(ru_per_s=15_000), False),
        (UNKNOWN, False),
    ],
)
def test_a_share_of_the_highest_possible_limit_is_a_lower_bound(
    throughput: Throughput, known: bool
) -> None:
    """The more physical partitions there are, the less each has of what is provisioned."""
    record = recorded(evidence(charged({"a": (900, 0)}), kind=COSMOS, throughput=throughput))
    assert record.verdict.result == "within_target"
    assert (result_words(record) == "within target") is known
    assert ("≥" in headline(record)) is not known


def test_folded_keys_are_one_of_many() -> None:
    """Above the cap the folded keys count together, and are no single hot key."""
    found = throttled_by_units(evidence(charged(ALL_REFUSED, cap=5), kind=COSMOS, throughput=THREE))
    assert found is not None
    assert (found.keys, found.throttled_keys) == (6, 6)
    assert found.figures.startswith("5 of the 5 keys counted singly were throttled")
    assert found.concentration is Concentration.ALL_KEYS
    assert found.cause is ThrottlingCause.THROUGHPUT


def test_a_key_that_was_hardly_used_was_not_spared() -> None:
    """Keys with few attempts can be without throttling by chance: they show nothing."""
    rates = {**ALL_REFUSED, **{f"rare{number}": (1, 0) for number in range(20)}}
    snapshot = charged(rates)
    few = tuple(
        altered(part, attempts={(204, "", Scope.NONE): 5}) if part.key.startswith("rare") else part
        for part in snapshot.partitions
    )
    for partitions, spared, concentration in (
        (snapshot.partitions, 20, Concentration.SOME_KEYS),
        (few, 0, Concentration.ALL_KEYS),
    ):
        seen = dataclasses.replace(snapshot, partitions=partitions)
        found = throttled_by_units(evidence(seen, kind=COSMOS, throughput=THREE))
        assert found is not None
        assert (found.keys, found.throttled_keys, found.spared_keys) == (40, 20, spared)
        assert found.concentration is concentration
        assert ("20 of 40 keys were throttled (20 had few attempts)" in found.figures) is (
            not spared
        )


def test_folded_keys_alone_are_judged() -> None:
    """A run whose throttled keys have no row of their own has a verdict too."""
    snapshot = dataclasses.replace(charged(ALL_REFUSED, cap=1), partitions=())
    for throughput in (THREE, UNKNOWN):
        verdict = judged(snapshot, throughput)
        assert verdict.result == "throttled"
