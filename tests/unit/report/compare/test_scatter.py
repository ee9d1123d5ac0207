"""How far a figure of one run could be off: by simulated series, whose true figures are known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from harness.measure.record.measured import SeriesPart
from harness.measure.record.record import RunRecord
from harness.measure.scatter import margin, student
from harness.report.compare.comparison import Comparison, compare
from harness.report.compare.measures import of_key, of_quantile, of_ratio
from tests.support.records import altered, course, kept, subjects, with_heat

RECORD = kept()
PAIRS = 20


def bursts(rng: random.Random, seconds: int, alike: float) -> list[float]:
    """Rates around 1, of which each is ``alike`` the one before."""
    state, rates = rng.gauss(0, 1), []
    for _ in range(seconds):
        rates.append(max(0.0, 1 + 0.25 * state))
        state = alike * state + math.sqrt(1 - alike**2) * rng.gauss(0, 1)
    return rates


def simulated(rng: random.Random, *, rate: float = 1.0, slower: float = 1.0) -> RunRecord:
    """The record of a throttled run of 40 s whose seconds depend on each other."""
    rates = [200 * rate * one for one in bursts(rng, 40, 0.4)]
    throttled = [20 * one for one in bursts(rng, 40, 0.4)]
    rows = [[0] * 40 for _ in range(40)]
    for second, busy in enumerate(bursts(rng, 40, 0.4)):
        for _ in range(100):
            latency_ms = slower * 5 * busy * rng.lognormvariate(0, 0.5)
            rows[min(39, max(0, math.ceil(10 * math.log10(latency_ms or 1))))][second] += 1
    mean = sum(rates) / 40
    part = course(RECORD.window_start, rows)
    exact = sorted(
        bound for row, bound in zip(rows, part.bounds_ms, strict=True) for _ in range(sum(row))
    )
    assert RECORD.service_ms is not None
    return altered(
        RECORD,
        series=tuple(
            point(second, entities=one, attempts=one + more, operations=one, throttled=more)
            for second, (one, more) in enumerate(zip(rates, throttled, strict=True))
        ),
        service_over_time=part,
        service_ms={"p50": exact[len(exact) // 2], "p99": exact[len(exact) * 99 // 100]},
        account={"entities_per_s": {"mean": mean}},
        counts={"attempts": round(sum(rates) + sum(throttled)), "entities": round(sum(rates))},
        throttled={"partition": round(sum(throttled)), "account": 0},
    )


def point(second: int, **rates: float) -> SeriesPart:
    first = RECORD.series[0]
    return altered(first, t=RECORD.window_start + second, width_s=1, **rates)


def compared(one: RunRecord, other: RunRecord) -> Comparison:
    return compare(subjects(one, other), [])


def differing(of: Callable[[random.Random], tuple[RunRecord, RunRecord]], measure: str) -> int:
    """In how many of the pairs the measure differs; any measure if it is empty."""
    rng = random.Random(7)
    found = 0
    for _ in range(PAIRS):
        differences = compared(*of(rng)).differences
        found += any(not measure or one.measure.name == measure for one in differences)
    return found


def test_equal_runs_hardly_ever_differ() -> None:
    """At most one of 20 pairs differs in anything, however far their seconds scatter."""
    assert differing(lambda rng: (simulated(rng), simulated(rng)), "") <= PAIRS // 20


@pytest.mark.parametrize(
    ("measure", "faster", "slower"),
    [("entities_per_s", 1.8, 1.0), ("p50(service)", 1.0, 2.0), ("p99(service)", 1.0, 3.0)],
)
def test_runs_that_differ_truly_are_told_apart(measure: str, faster: float, slower: float) -> None:
    """Nine of ten pairs with a difference that is several times the scatter are found."""
    found = differing(
        lambda rng: (simulated(rng), simulated(rng, rate=faster, slower=slower)), measure
    )
    assert found >= 0.9 * PAIRS


def test_a_tenth_more_of_a_steady_rate_is_a_difference() -> None:
    """A paced load hardly scatters, so that little is much."""
    steady = [
        altered(
            RECORD,
            series=tuple(point(second, entities=rate + second % 3) for second in range(12)),
            account={"entities_per_s": {"mean": rate + 1}},
        )
        for rate in (150.0, 165.0)
    ]
    names = [one.measure.name for one in compared(*steady).differences]
    assert names == ["entities_per_s"]


def test_what_scatters_is_not_called_equal() -> None:
    """Rates of bursts that differ by less than they scatter are no proof of no difference."""
    bursts = [
        altered(
            RECORD,
            series=tuple(point(n, entities=4 * rate * (n % 4 == 0)) for n in range(24)),
            account={"entities_per_s": {"mean": rate}},
        )
        for rate in (500.0, 900.0)
    ]
    assert "Within the scatter, not told apart: entities/s." in compared(*bursts).findings


@pytest.mark.parametrize(("freedom", "quantile"), [(4, 7.17), (5, 5.89), (11, 4.02), (39, 3.31)])
def test_the_quantiles_of_student(freedom: int, quantile: float) -> None:
    """Those of the tables for 99.8 %, nearly."""
    assert student(freedom) == pytest.approx(quantile, rel=0.04)


def test_seconds_that_are_alike_widen_the_interval() -> None:
    """The same rates in blocks say less than in any order: the batches of a block show it."""
    mixed = [(float(second % 2), 1.0) for second in range(64)]
    blocks = [(float(second // 8 % 2), 1.0) for second in range(64)]
    apart, alike = margin(mixed), margin(blocks)
    assert apart is not None
    assert alike is not None
    assert alike > 2 * apart
    assert margin([(5.0, 1.0)] * 12) == 0
    assert margin(mixed[:5]) is None
    assert margin([(0.0, 0.0)] * 12) is None


def test_only_the_measured_window_counts() -> None:
    """Seconds before it, when users start, are no scatter; nor those without the figure."""
    late = altered(RECORD, window_start=RECORD.window_start + 30, measured_s=10)
    inside = of_ratio(lambda one: (float(one.t >= late.window_start), 1.0))
    assert inside(late) == (1, 1)
    assert of_ratio(lambda one: None)(RECORD) is None


def test_the_interval_of_a_quantile_holds_the_true_one() -> None:
    """In nearly all of many runs, for median and p99; in none without a course."""
    rng = random.Random(11)
    for share, true in ((0.5, 5.0), (0.99, 5 * math.exp(0.5 * 2.326))):
        held = 0
        for _ in range(40):
            rows = [[0] * 40 for _ in range(40)]
            for second in range(40):
                for _ in range(100):
                    row = math.ceil(10 * math.log10(5 * rng.lognormvariate(0, 0.5)))
                    rows[min(39, max(0, row))][second] += 1
            part = course(RECORD.window_start, rows)
            record = altered(RECORD, service_over_time=part)
            found = of_quantile("service_over_time", share)(record)
            assert found is not None
            exact = sorted(
                bound
                for row, bound in zip(rows, part.bounds_ms, strict=True)
                for _ in range(sum(row))
            )[round(share * 4000) - 1]
            held += found[0] * exact / 1.3 <= true <= found[1] * exact
        assert held >= 39
    assert of_quantile("service_over_time", 0.5)(RECORD) is None


def test_the_share_of_a_partition_scatters_by_its_map_of_keys() -> None:
    """Of a key with a row of its own; without one nothing is known."""
    record = with_heat(RECORD, ["p0", "p1"], lambda row, column: 90 + 20 * ((row + column) % 2))
    share, rate = of_key(record, "p0", share=True), of_key(record, "p0", share=False)
    assert share is not None
    assert rate is not None
    assert 0.9 < share[0] < 1 < share[1] < 1.1
    assert rate == pytest.approx(share, abs=0.01)
    assert of_key(record, "p2", share=True) is None
    assert of_key(RECORD, "p0", share=True) is None
