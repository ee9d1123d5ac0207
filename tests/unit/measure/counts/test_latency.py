"""Histograms: percentiles within their digits, exact merging, buckets."""

from __future__ import annotations

import gc
import math
import random

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.latency import BUCKETS_S, CountedLatency, Latencies, LatencyHistogram
from tests.support.examples import examples
from tests.support.wire import over_the_wire

latencies = st.lists(st.floats(1e-6, 120.0), min_size=1, max_size=80)


def histogram(values: list[float], digits: int = 3) -> LatencyHistogram:
    made = LatencyHistogram(digits)
    for value in values:
        made.record([value])
    return made


def view(values: list[float], digits: int = 3) -> CountedLatency:
    seen = histogram(values, digits).view()
    assert seen is not None
    return seen


@examples(60)
@given(latencies, st.sampled_from([2, 3]))
def test_percentiles_are_those_of_the_sorted_list(values: list[float], digits: int) -> None:
    """Each percentile is the smallest value that enough latencies do not exceed, within digits."""
    ordered = sorted(values)
    seen = view(values, digits)
    for percentile, found in ((50, seen.p50 / 1000), (90, seen.p90 / 1000), (99, seen.p99 / 1000)):
        exact = ordered[math.ceil(len(ordered) * percentile / 100) - 1]
        assert found == pytest.approx(exact, rel=10.0**-digits, abs=1.1e-6)
    assert seen.max / 1000 == pytest.approx(ordered[-1], rel=10.0**-digits, abs=1.1e-6)
    assert seen.count == len(values)
    assert seen.total_s == pytest.approx(sum(values), abs=1.1e-6 * len(values))


@examples(40)
@given(st.lists(latencies, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_merging_is_recording_all(parts: list[list[float]], rng: random.Random) -> None:
    """In any order, over the wire or not, merged histograms are the histogram of everything."""
    shuffled = list(parts)
    rng.shuffle(shuffled)
    merged, decoded = LatencyHistogram(3), LatencyHistogram(3)
    for part in shuffled:
        merged.merge(histogram(part))
        decoded.merge(LatencyHistogram.decode(histogram(part).encode()))
    every = view([value for part in parts for value in part])
    assert merged.view() == every
    assert decoded.view() == every


@examples(40)
@given(latencies)
def test_buckets_are_cumulative_within_digits(values: list[float]) -> None:
    """A bucket holds what is at most its bound; values next to it may fall on either side."""
    seen = view(values)
    assert list(seen.buckets) == sorted(seen.buckets)
    assert seen.buckets[-1] <= seen.count
    for bound, count in zip(BUCKETS_S, seen.buckets, strict=True):
        assert sum(v <= bound * 0.998 for v in values) <= count
        assert count <= sum(v <= bound * 1.002 for v in values)


@pytest.mark.parametrize("bound", BUCKETS_S)
def test_a_bound_is_in_its_bucket(bound: float) -> None:
    """A latency of exactly a bound counts as at most that bound."""
    at = view([bound]).buckets
    assert at == tuple(int(b >= bound) for b in BUCKETS_S)


def test_extremes_are_clamped() -> None:
    """What is shorter than a microsecond or longer than two minutes counts as these."""
    seen = view([-1.0, 0.0, 500.0])
    assert seen.count == 3
    assert seen.total_s == pytest.approx(120.000002)
    assert seen.max / 1000 == pytest.approx(120.0, rel=1e-3)


def test_nothing_recorded_has_no_percentiles() -> None:
    """No latency is not a latency of 0."""
    assert LatencyHistogram(3).view() is None


def test_response_exists_only_where_something_was_due() -> None:
    """In a closed loop there is no response latency, also after merging and over the wire."""
    closed, scheduled = Latencies(2), Latencies(2)
    closed.record([0.1], [])
    scheduled.record([0.1], [0.3])
    assert closed.response is None
    merged = over_the_wire(closed)
    merged.merge(scheduled)
    assert merged.service is not None
    assert merged.response is not None
    assert (merged.service.count, merged.response.count) == (2, 1)


def test_a_histogram_is_free_without_a_collection() -> None:
    """Made, read, sent and merged histograms leave no cycle behind."""

    def alive() -> int:
        return sum(type(one) is HdrHistogram for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = alive()
        made = histogram([0.001, 0.002])
        made.merge(LatencyHistogram.decode(made.encode()))
        assert made.since(made).count == 0
        assert alive() == before + 1
        del made
        assert alive() == before
    finally:
        gc.enable()
