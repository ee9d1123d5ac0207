"""Predicted shares of the load, held against theory, and beside measured ones."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.record.findings import PredictionPart
from harness.measure.record.measured import PartitionPart, RatesPart, RequestUnitsPart
from harness.measure.record.record import RunRecord
from harness.model.partition import Partition
from harness.profile.checks.observed import observe
from harness.profile.checks.prediction import RANGES, KeyRanges, thinned
from harness.profile.profile_loader import parse
from harness.report.predicted import predicted_shares
from tests.support.keys import sized_settings
from tests.support.records import altered, kept

DEFAULT = {"point_query": 50, "upsert_merge": 40, "transaction": 10}


def predicted(
    *, rows: int = 100, mix: dict[str, float] | None = None, **parts: Any
) -> PredictionPart:
    """What is predicted of partitions p0, p1, ..., or of other fields and keys."""
    content = {"question": "Why?", "mix": mix or DEFAULT, **parts}
    content["keys"] = {"rows_per_partition": rows, **content.get("keys", {})}
    return observe(parse(content, source="a test")).prediction


def spread(partitions: int, **field: Any) -> dict[str, Any]:
    """Fields and keys of so many partitions; ``field`` says how they are drawn."""
    key = {"values": partitions, "prefix": "p", **field}
    return {"fields": {"key": key}, "keys": {"partition_key": "{key}"}}


def test_a_look_at_a_profile_pauses_now_and_then() -> None:
    """Whoever takes it has other things to do too, and large transactions take long to make."""
    pauses: list[None] = []
    mix = {"mix": {"transaction": 1}, "transaction": {"operations": 100}}
    profile = parse({"question": "Why?", **mix}, source="a test")
    found = observe(profile, pause=lambda: pauses.append(None))
    assert len(pauses) > found.entities / 1000 > 10


@pytest.mark.parametrize("partitions", [2, 20, 200])
def test_a_uniform_load_is_spread_evenly(partitions: int) -> None:
    """Of N partitions each takes an N-th, and a range of 20 a twentieth."""
    found = predicted(**spread(partitions))
    assert found.hottest_share == pytest.approx(1 / partitions)
    ranges = min(partitions, RANGES)
    assert len(found.ranges) == found.range_count == ranges
    assert found.hottest_range_share == pytest.approx(1 / ranges)


def test_the_largest_of_many_is_not_taken_for_hot() -> None:
    """Of 2,000 partitions some are drawn often by chance; a sample does not believe it."""
    parts = spread(2000)
    parts["keys"]["row_key"] = "{row:guid}"
    found = predicted(**parts, rows=1, mix={"point_query": 1}, query={"by_key_bounds": True})
    assert found.sampled
    assert found.hottest_share < 2.5 / 2000


@pytest.mark.parametrize("theta", [0.5, 0.99, 2.0])
def test_a_zipfian_load_has_its_known_share(theta: float) -> None:
    """The first of N takes 1 by the sum of k to the minus theta, the first range its sum."""
    weights = [1 / number**theta for number in range(1, 101)]
    found = predicted(**spread(100, distribution="zipfian", theta=theta))
    assert found.hottest == "p00"
    assert found.hottest_share == pytest.approx(1 / sum(weights))
    assert found.hottest_range == 0
    assert found.hottest_range_share == pytest.approx(sum(weights[:5]) / sum(weights))


def test_hot_values_take_their_share() -> None:
    """With 80 % of the operations on 4 of 40 partitions each of these has 20 %, two ranges 80 %."""
    found = predicted(**spread(40, distribution="hot", hot_share=0.8, hot_values=4))
    assert found.hottest_share == pytest.approx(0.2)
    assert found.hottest_range in (0, 1)
    assert found.hottest_range_share == pytest.approx(0.4)


def test_one_partition_takes_it_all() -> None:
    """With a single key everything is for one partition, and one range."""
    found = predicted()
    assert (found.hottest, found.hottest_share, found.hottest_range_share) == ("p0", 1.0, 1.0)
    assert found.ranges == (("p0", "p0"),)
    assert found.account_rate_at(2000.0) == 2000.0


@pytest.mark.parametrize(("name", "place"), [("compare-append-only", -1), ("prepend-only", 0)])
def test_growing_keys_meet_one_range(name: str, place: int) -> None:
    """All inserts go to the last range of the table, or to the first, and to many partitions."""
    found = predicted(**sized_settings(name, 100), rows=1, mix={"insert": 1})
    assert found.hottest_range == range(len(found.ranges))[place]
    assert found.hottest_range_share == 1.0
    assert found.hottest_share < 0.01


def test_a_date_meets_one_partition() -> None:
    """All inserts are of the current day."""
    found = predicted(**sized_settings("log-by-date", 100, 20), mix={"insert": 1})
    assert (found.hottest, found.hottest_share) == ("2025-12-31", 1.0)


@pytest.mark.parametrize("name", ["compare-unique", "hash-prefix", "natural-key"])
def test_scattered_keys_meet_all_ranges(name: str) -> None:
    """Inserts under scattered keys go to every range alike, as far as loaded keys are even."""
    found = predicted(**sized_settings(name, 2000), rows=1, mix={"insert": 1})
    assert found.hottest_range_share < 0.1


def test_queries_over_partitions_belong_to_none() -> None:
    """What a full scan scans is nobody's share, but part of the whole."""
    found = predicted(**spread(10), rows=10, mix={"full_table_scan": 1, "point_query": 100})
    assert found.over_partitions_share == pytest.approx(0.5)
    assert found.hottest_share == pytest.approx(0.05)


def test_a_load_of_scans_alone_has_no_hottest_partition() -> None:
    """Without a partition of its own nothing is the hottest, and no rate is reached."""
    found = predicted(**spread(10), rows=10, mix={"full_table_scan": 1})
    assert (found.hottest, found.hottest_share, found.hottest_range) == ("", 0.0, None)
    assert found.account_rate_at(2000.0) == float("inf")


NAMES = st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=200, unique=True)


@given(NAMES)
def test_ranges_hold_as_many_partitions_each(names: list[str]) -> None:
    """Every loaded partition is in the range whose bounds it is between; sizes differ by one."""
    ranges = KeyRanges.over(names)
    places = [ranges.of(name) for name in names]
    for name, place in zip(names, places, strict=True):
        assert place is not None
        first, last = ranges.bounds[place]
        assert first <= name <= last
    sizes = [places.count(place) for place in range(len(ranges.bounds))]
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == min(RANGES, len(names))


@given(NAMES, NAMES)
def test_tables_have_ranges_of_their_own(first: list[str], second: list[str]) -> None:
    """The partitions of two tables never share a range; a third table has none."""
    ranges = KeyRanges.over([*first, *(f"Index/{key}" for key in second)])
    for start, end in ranges.bounds:
        assert Partition.named(start).table == Partition.named(end).table
    in_index = {ranges.of(f"Index/{key}") for key in second}
    assert in_index.isdisjoint({ranges.of(key) for key in first})
    assert ranges.of("Other/a") is None


@given(NAMES, st.text("abcd", min_size=1, max_size=6))
def test_beyond_the_ends_is_in_the_end_ranges(names: list[str], other: str) -> None:
    """A key before the first or behind the last partition is counted for the first or last."""
    ranges = KeyRanges.over(names)
    place = ranges.of(other)
    if other > max(names):
        assert place == len(ranges.bounds) - 1
    elif other < min(names):
        assert place == 0


@given(st.integers(0, 3000), st.integers(1, 100))
def test_a_choice_of_many_names_is_even(count: int, most: int) -> None:
    """At most so many are kept, the first among them, in order and equally far apart."""
    kept, number = thinned(map(str, range(count)), most)
    assert number == count
    assert len(kept) <= most
    steps = {int(later) - int(earlier) for earlier, later in itertools.pairwise(kept)}
    assert len(steps) <= 1
    assert kept[:1] == ["0"][:count]


def record(rates: dict[str, float], *, folded: bool = False) -> RunRecord:
    """A run with these rates."""
    run = kept()
    (one,) = run.partitions
    parts = [altered(one, key=key, entities_per_s={"mean": rate}) for key, rate in rates.items()]
    others: PartitionPart | None = one if folded else None
    mean = altered(run.account.entities_per_s, mean=sum(rates.values()))
    account = altered(run.account, entities_per_s=mean)
    found = {"partitions": tuple(parts), "partitions_folded": others, "account": account}
    return altered(run, **found, prediction=PREDICTION)


def units(per_s: float) -> RequestUnitsPart:
    """Request units at this mean rate."""
    return RequestUnitsPart(per_s=RatesPart(mean=per_s))


PREDICTION = PredictionPart(
    hottest="b",
    hottest_share=0.4,
    ranges=(("a", "b"), ("c", "d")),
    hottest_range=0,
    hottest_range_share=0.7,
    over_partitions_share=0.0,
)


def test_measured_shares_stand_beside_predicted_ones() -> None:
    """The same partition and the same range are looked up in the record."""
    partition, keys = predicted_shares(record({"a": 30.0, "b": 50.0, "c": 15.0, "z": 5.0}))
    assert partition.sentence == "partition b: 40% predicted, 50% measured"
    assert keys.sentence == "keys a to b: 70% predicted, 80% measured"


def test_request_units_stand_beside_predicted_request_units() -> None:
    """What the service charges is the load of a run at Cosmos DB, whatever entities count."""
    run = record({"a": 90.0, "b": 10.0})
    parts = zip(run.partitions, (20.0, 60.0), strict=True)
    charged = [one.model_copy(update={"request_units": units(of)}) for one, of in parts]
    endpoint = run.endpoint.model_copy(update={"kind": "cosmos"})
    known = {"partitions": tuple(charged), "request_units": units(80.0), "endpoint": endpoint}
    run = run.model_copy(update=known)
    partition, keys = predicted_shares(run)
    assert partition.sentence == "partition b: 40% predicted, 75% measured"
    assert keys.sentence == "keys a to b: 70% predicted, 100% measured"
    assert predicted_shares(run.model_copy(update={"request_units": None})) == ()


def test_queries_over_several_partitions_are_in_no_range() -> None:
    """Their name sorts before all keys; what they scanned may be of any, so others are bounds."""
    partition, keys = predicted_shares(record({"/": 50.0, "a": 15.0, "b": 25.0, "z": 10.0}))
    assert partition.sentence == "partition b: 40% predicted, ≥25% measured"
    assert keys.sentence == "keys a to b: 70% predicted, ≥40% measured"


def test_what_a_record_cannot_tell_is_not_claimed() -> None:
    """A partition that was folded away, and a range that may have such, have no measured share."""
    partition, keys = predicted_shares(record({"a": 30.0, "c": 15.0}, folded=True))
    assert partition.measured is None
    assert keys.measured is None
    assert keys.sentence.endswith("predicted, not known")


def test_nothing_is_beside_a_run_without_load() -> None:
    """Where nothing was measured no shares are given."""
    assert predicted_shares(record({})) == ()
