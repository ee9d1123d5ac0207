"""The traffic before the limits in simulated time: as the gateway's model decides one by one."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from harness.gateway.demand import Demand, Place
from harness.gateway.limits import GatewayLimits, Moving, Rate, Servers
from harness.gateway.model import Model
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked, RowWrite
from harness.gateway.rules.bucket import Bucket
from harness.measure.record.whatif import SchemePart, WhatIfRecord
from harness.model.errors import SetupError
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.report.terminal.page import Page
from harness.report.web.key_pages import whatif_page
from harness.report.whatif import best_of, whatif_text
from harness.trace.operations import TracedQuery
from harness.trace.reader import Trace
from harness.trace.whatif.projection import WINDOWS_S, Peaks
from harness.trace.whatif.scheme import parse_scheme
from harness.trace.whatif.simulation import FIRST, MOST_WAIT_S, Request, Simulation
from harness.trace.whatif.whatif import what_if
from harness.workload.retry import ScheduledBackoff
from tests.support.results import done
from tests.support.traced import STARTED_S, trace_of, traced

LIMITS = GatewayLimits(
    partition=Rate(entities_per_s=100.0),
    account=Rate(entities_per_s=1000.0),
    servers=Servers(entities_per_s=1e6, count=4),
)
MOVING = GatewayLimits(
    partition=Rate(entities_per_s=100.0),
    account=Rate(entities_per_s=1000.0),
    servers=Servers(entities_per_s=150.0, count=2),
    moving=Moving(hot_after_s=4.0, cool_after_s=2.0, offline_s=1.5),
)
BUCKETS = {"keys": {"partition_key": "{partition_key}-{row_key:bucket16}"}}

Requests = list[tuple[float, str, str]]
"""Instant in seconds, PartitionKey and RowKey of upserts."""


def recorded(folder: Path, requests: Requests) -> Trace:
    upserts = (
        (at_s, Operation(kind=Kind.UPSERT_MERGE, partition_key=key, row_key=row))
        for at_s, key, row in requests
    )
    made = [done(upsert, STARTED_S + at_s, 0.004) for at_s, upsert in upserts]
    return trace_of(folder / "made.parquet", made)


def steady(rate: int, seconds: int, partitions: list[str]) -> Requests:
    """Requests at a rate, to partitions drawn at random."""
    rng = random.Random(7)
    return [
        (place / rate, rng.choice(partitions), f"r{place:06}") for place in range(rate * seconds)
    ]


def calculated(
    trace: Trace, *, rate: float = 1.0, most_factor: float = 0.0, limits: GatewayLimits = LIMITS
) -> WhatIfRecord:
    schemes = [parse_scheme("buckets", BUCKETS, "buckets.toml")]
    return what_if(
        trace,
        schemes,
        limits,
        name="made",
        limits_name="test",
        rate=rate,
        most_factor=most_factor,
        version="1",
    )


@functools.cache
def of_hot_partition() -> WhatIfRecord:
    """Of 300 requests/s for one partition, for five seconds, 60% are throttled."""
    with tempfile.TemporaryDirectory() as folder:
        return calculated(recorded(Path(folder), steady(300, 5, ["hot"])))


def one_by_one(requests: Requests, rate: float, limits: GatewayLimits) -> dict[str, float]:
    """The shares of requests that each rule refuses, each decided about at its own instant."""
    model = Model(limits, 0.0, stored=False)
    refused: Counter[str] = Counter()
    for at_s, key, row_key in requests:
        asked = Asked(Kind.UPSERT_MERGE, "", "", key, 1, rows=(RowWrite(key, row_key),))
        decision = model.decide(asked, at_s / rate)
        if not decision.rule:
            model.answered(asked, Answered(status=204), at_s / rate)
        else:
            refused[decision.rule] += 1
    return {rule: count / len(requests) for rule, count in refused.items()}


@pytest.mark.parametrize(
    ("requests", "rate", "limits"),
    [
        (steady(300, 20, ["hot"]), 1.0, LIMITS),
        (steady(300, 20, ["hot", "hot", "hot", "a", "b"]), 1.0, LIMITS),
        (steady(400, 20, [f"p{place}" for place in range(40)]), 4.0, LIMITS),
        (steady(60, 20, ["warm", "cool"]), 1.0, LIMITS),
        (steady(280, 20, [f"p{place:02}" for place in range(20)]), 1.0, MOVING),
        (steady(280, 20, ["hot", *(f"p{place:02}" for place in range(8))] * 2), 2.0, MOVING),
    ],
    ids=["one hot partition", "a hot one among others", "account", "nothing", "servers", "moves"],
)
def test_the_share_of_throttled_requests_is_that_of_the_model(
    requests: Requests, rate: float, limits: GatewayLimits, tmp_path: Path
) -> None:
    """Steps and whole seconds change the share of each rule by less than a percentage point."""
    found = calculated(recorded(tmp_path, requests), rate=rate, limits=limits).schemes[0]
    expected = one_by_one(requests, rate, limits)
    shares = {rule: count / len(requests) for rule, count in found.once.by_rule.items()}
    assert shares == pytest.approx(expected, abs=0.01)
    assert found.once.attempts == len(requests)


def test_retries_are_attempts_of_their_own() -> None:
    """Back-off adds attempts; what is throttled three times more has failed."""
    found = of_hot_partition().schemes[0]
    retried = found.retried
    assert retried.attempts == found.once.attempts + retried.throttled - retried.failed
    assert 0 < retried.failed < found.once.failed


def test_a_scheme_that_spreads_the_hot_partition_is_the_best(tmp_path: Path) -> None:
    """The outputs name it, with its load and that of the recorded keys."""
    found = calculated(recorded(tmp_path, steady(300, 5, ["hot"])), most_factor=10_000.0)
    recorded_keys, buckets = found.schemes
    assert best_of(found) is buckets
    assert recorded_keys.once.ratio > 0.5
    assert buckets.once.throttled == 0
    assert buckets.partitions == 16
    assert recorded_keys.first_limit is not None
    assert buckets.first_limit is not None
    assert recorded_keys.first_limit.factor == pytest.approx(1 / 3, rel=0.15)
    assert recorded_keys.first_limit.rule == "partition"
    assert buckets.first_limit.factor > 2
    text = whatif_text(found, Page(width=110))
    assert "Best: buckets, for no price in this traffic: its" in text
    assert "hot / r000000" in text
    assert WhatIfRecord.model_validate_json(found.model_dump_json()) == found
    assert (buckets.rank, recorded_keys.rank) == (1, 2)
    page = whatif_page(found)
    assert page.index(">buckets<") < page.index(">as recorded<")
    assert "as recorded: entities/s by key range and time" in page


def test_what_would_break_an_application_is_never_the_best(tmp_path: Path) -> None:
    """It stands apart, with its reason; if that is all others, the outputs say so."""
    trace = recorded(tmp_path, steady(300, 5, ["hot", "other"]))
    one = parse_scheme("one", {"keys": {"partition_key": "{row_key:bucket16}", "row_key": "r"}}, "")
    found = what_if(trace, [one], LIMITS, name="made", limits_name="test")
    assert [part.rank for part in found.schemes] == [1, 0]
    for said in (whatif_text(found, Page(width=300)), whatif_page(found)):
        assert (
            "one: 1,484 entities would be lost, because they have the keys of another one" in said
        )
        assert "None of the other keys keeps the application whole." in said


def test_equals_and_lower_bounds_are_said(tmp_path: Path) -> None:
    """Equal keys share a rank; a figure that is a lower bound has its sign wherever it stands."""
    trace = recorded(tmp_path, steady(10, 5, ["p"]))
    kept = parse_scheme("kept", {"keys": {"partition_key": "x{partition_key}"}}, "")
    found = what_if(trace, [kept], LIMITS, name="made", limits_name="test")
    assert "kept is equal to it in this traffic." in whatif_text(found, Page(width=200))
    recorded_keys, other = found.schemes
    price = dataclasses.replace(other.price, scanned=500, billable=70, scanned_is_lower_bound=True)
    bounded = other.model_copy(update={"price": price, "rank": 1})
    slower = recorded_keys.model_copy(update={"rank": 2})
    text = whatif_text(found.model_copy(update={"schemes": (slower, bounded)}), Page(width=300))
    assert (
        "kept, for ≥ 70 billable requests in place of 50 and ≥ 500 entities scanned in place of 0: "
        "its hottest partition has ≥ 10.0 entities/s"
    ) in text
    assert "1  kept              ≥ 0%      ≥ 70    ≥ 500" in text
    assert "entities scanned by queries 0 ≥ 500" in " ".join(text.split())


def test_an_even_load_needs_no_other_keys(tmp_path: Path) -> None:
    """If nothing is throttled, the recorded keys are the best of equals."""
    requests = steady(100, 5, [f"p{place}" for place in range(50)])
    found = calculated(recorded(tmp_path, requests))
    part: SchemePart = found.schemes[0]
    assert (part.total, part.partitions, part.once.throttled) == (500, 50, 0)
    assert part.heat is not None
    assert sum(sum(row.entities) for row in part.heat.ranges) == 500


def test_a_scan_of_a_table_is_no_partition(tmp_path: Path) -> None:
    """It counts for the account only."""
    requests = [(0.1, "p", "r"), *((0.2 + place / 100, WHOLE_TABLE, "") for place in range(50))]
    part = calculated(recorded(tmp_path, requests)).schemes[0]
    assert (part.total, part.partitions) == (51, 1)
    assert [hot.partition for hot in part.hot] == ["p"]
    assert part.partition_peaks[0].partition == "p"
    assert part.partition_peaks[0].per_s == 1
    assert part.account_peaks[0].per_s == 51


def test_traffic_that_meets_no_limit_says_so(tmp_path: Path) -> None:
    """Nobody has to guess whether a factor was looked for."""
    requests = [(1000.0 * place, "p", f"r{place}") for place in range(20)]
    assert "none up to x 10,000" in whatif_text(
        calculated(recorded(tmp_path, requests), most_factor=10_000.0), Page(width=110)
    )


def test_the_first_limit_is_that_of_a_sustained_load(tmp_path: Path) -> None:
    """Two seconds at 10/s meet the limit of 100/s at ten times the traffic, whatever multiple the
    other figures are of, here half of it: a moment would pass as a burst at any."""
    trace = recorded(tmp_path, steady(10, 2, ["p"]))
    first = calculated(trace, rate=0.5, most_factor=10_000.0).schemes[0].first_limit
    assert first is not None
    assert (first.rule, first.partition) == ("partition", "p")
    assert first.factor == pytest.approx(10, rel=0.1)
    assert first.per_s == pytest.approx(100, rel=0.15)


def test_a_query_of_the_newest_rows_reads_others_where_these_are_missing(tmp_path: Path) -> None:
    """Each takes ten from the bucket of its partition, also where most writes are refused."""
    query = traced(Kind.QUERY, "p", None, entities=10, returned=10, detail=TracedQuery(top=10))
    rows = [
        one._replace(at_ms=1000 + 97 * place)
        for place in range(100)
        for one in (traced(Kind.INSERT, "p", f"r{place:04}"), query)
    ]
    bucket, refused = Bucket(10.0, 1.0, 1.0), 0
    for row in rows:
        refused += not bucket.admit(1, row.entities, row.at_ms / 1000)
    limits = GatewayLimits(partition=Rate(entities_per_s=10.0))
    found = calculated(trace_of(tmp_path / "newest.parquet", rows), limits=limits)
    assert found.schemes[0].once.throttled == refused > len(rows) / 2


def test_a_trace_without_traffic_is_refused(tmp_path: Path) -> None:
    """So is a scheme for a table that the trace does not have."""
    with pytest.raises(SetupError, match="has no readable operation"):
        calculated(recorded(tmp_path, []))
    other = tmp_path / "other"
    other.mkdir()
    content = {"table": "orders", **BUCKETS}
    scheme = parse_scheme("orders", content, "orders.toml")
    with pytest.raises(SetupError, match="leave out `table`"):
        what_if(
            recorded(other, steady(10, 1, ["p"])), [scheme], LIMITS, name="m", limits_name="test"
        )


@given(
    st.dictionaries(
        st.integers(0, 150),
        st.dictionaries(st.sampled_from("abcd"), st.integers(1, 50), min_size=1),
        min_size=1,
        max_size=30,
    )
)
def test_peaks_are_the_highest_sums_of_any_window(seconds: dict[int, dict[str, int]]) -> None:
    """Windows that slide over the seconds find what a look at all of them finds."""
    peaks = Peaks()
    for second in sorted(seconds):
        peaks.add(second, seconds[second])
    for place, width_s in enumerate(WINDOWS_S):
        sums: Counter[str] = Counter()
        account = 0
        for end in seconds:
            window: Counter[str] = Counter()
            for second in range(end - width_s + 1, end + 1):
                window.update(seconds.get(second, {}))
            sums |= window
            account = max(account, window.total())
        # A trace that is shorter than the window has the mean over all of it.
        width = min(width_s, max(seconds) - min(seconds) + 1)
        busiest = max(sums.values()) / width
        assert peaks.partition[place].per_s == pytest.approx(busiest)
        assert peaks.account[place].per_s == pytest.approx(account / width)


Drawn = list[tuple[float, str | None, int]]
"""Instant in seconds, PartitionKey, and what a request takes."""


def retried(requests: Drawn, waits: tuple[float, ...], limits: GatewayLimits) -> Counter[str]:
    """Refusals by rule, attempts and failures, as the model decides in order of time."""
    model = Model(limits, 0.0, stored=False)
    found: Counter[str] = Counter()
    # At one instant, retries come before first attempts.
    heap = [
        (at_s, 1, number, key, 0, amount) for number, (at_s, key, amount) in enumerate(requests)
    ]
    heapq.heapify(heap)
    while heap:
        at_s, _, _, key, attempt, amount = heapq.heappop(heap)
        found["attempts"] += 1
        if rule := model.admit("t", key, amount, at_s):
            found[rule] += 1
            if attempt == len(waits):
                found["failed"] += 1
                continue
            wait_s = waits[attempt]
            if model.units is not None:
                wait_s = max(wait_s, min(MOST_WAIT_S, model.units.retry_after_s(key, at_s)))
            number = len(requests) + found["attempts"]
            heapq.heappush(heap, (at_s + wait_s, 0, number, key, attempt + 1, amount))
    return found


def simulated(requests: Drawn, waits: tuple[float, ...], limits: GatewayLimits) -> Counter[str]:
    """The same in simulated time, second by second."""
    simulation = Simulation(limits, ScheduledBackoff(delays_s=waits), 1)
    largest = max(amount for _, _, amount in requests)
    for second in range(1 + int(max(at_s for at_s, _, _ in requests))):
        of_second: list[Request] = [
            (at_s, FIRST, ("t", key), 1, amount, 0, None)
            for at_s, key, amount in requests
            if int(at_s) == second
        ]
        sums: Counter[Place] = Counter()
        for _, _, place, _, amount, _, _ in of_second:
            sums[place] += amount
        demand = Demand(sums, largest, scans=largest > 1)
        if sums and simulation.serve(second, demand, len(of_second)):
            simulation.simulate(second, of_second)
    simulation.finish()
    found = simulation.throttling
    return Counter(found.by_rule) + Counter(attempts=found.attempts, failed=found.failed)


@given(
    st.integers(0, 2**32),
    st.sampled_from([(), (0.5,), (0.25, 0.75, 1.5), (0.125, 2.0)]),
    st.sampled_from([8.0, 16.0]),
    st.sampled_from([1.0, 2.0]),
)
def test_retries_are_decided_about_as_by_the_model(
    seed: int, waits: tuple[float, ...], entities_per_s: float, servers: float
) -> None:
    """Whether or not its server could serve all that a partition is asked for."""
    limits = GatewayLimits(
        partition=Rate(entities_per_s=entities_per_s),
        account=Rate(entities_per_s=1e6),
        servers=Servers(entities_per_s=servers * entities_per_s, count=1),
    )
    rng = random.Random(seed)
    instants = sorted(rng.choices(range(64 * 4), k=512))
    drawn: Drawn = [(at / 64, "ab"[number % 2], 1) for number, at in enumerate(instants)]
    assert simulated(drawn, waits, limits) == retried(drawn, waits, limits)


# Half of the drawn buckets cannot hold the others: such examples say nothing.
@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(st.integers(0, 2**32), st.integers(12, 24), st.integers(8, 30), st.integers(0, 24))
def test_a_bucket_never_refuses_what_it_holds_behind_others(
    seed: int, per_s: int, capacity: int, used: int
) -> None:
    """Whatever the others pass, also of requests that take more than they ask for."""
    rng = random.Random(seed)
    server = Bucket(float(per_s), capacity / per_s, 0.0)
    limited = [Bucket(8.0, 1.0, 0.0), Bucket(8.0, 0.5, 0.0)]
    server.take(used, 0.0)
    for bucket in limited:
        bucket.take(rng.randrange(12), 0.0)
    largest, others, waiting = rng.choice((1, 4)), rng.randrange(3), rng.randrange(64)
    assume(server.holds(others, 0.0, limited, largest if largest > 1 else 0))
    instants = [0.0, *sorted(rng.choices(range(waiting, 128), k=others)), *range(waiting, 128)]
    for at in sorted(instants):
        if others and at >= waiting:
            assert server.admit(1, 1, at / 64)
            others -= 1
        for bucket in rng.choices(limited, k=8):
            taken = rng.randint(1, largest)
            if bucket.admit(1, taken, at / 64):
                assert server.admit(1, taken, at / 64)
                assert server.holds(0, at / 64)
