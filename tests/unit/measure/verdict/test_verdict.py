"""Verdicts and exit codes, a sentence a row; the generator's view; what goes into the record."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from harness.measure.counts.generator import CpuSample, GeneratorLog
from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.findings import VerdictPart
from harness.measure.record.record import (
    EndpointPart,
    RunRecord,
)
from harness.measure.record.record_builder import (
    MOST_SERIES_POINTS,
    assembled,
    broken_invariants,
)
from harness.measure.verdict.conditions import ConditionResult, parse_condition
from harness.measure.verdict.verdict import VerdictResult, exit_code, judge
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Attempt, Outcome, Scope
from harness.model.services import SERVICES
from harness.model.services.cosmos import COSMOS
from harness.model.services.service import Service
from harness.model.services.storage import STORAGE
from harness.model.target import indicative
from harness.report.headline import headline
from tests.support.evidence import START, evidence, recorded, snapshot_of
from tests.support.results import done

SLOW = snapshot_of({"p0": 1000})
HOT = snapshot_of({"p0": 2500})


@pytest.mark.parametrize(("others", "part"), [(0, "all"), (1, "most")])
def test_the_throttled_partition_is_named(others: int, part: str) -> None:
    """The sentence names the partition that was refused most, not the hottest one."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    ok = Attempt(status=204, sent_s=START, latency_s=0.01)
    busy = Attempt(status=503, sent_s=START, latency_s=0.01, scope=Scope.PARTITION)
    for second in range(10):
        answered = (
            ("hot", (ok,), 9),
            ("hot", (*[busy] * others, ok), 1),
            ("refused", (busy, ok), 5),
        )
        for key, attempts, count in answered:
            for _ in range(count):
                insert = Operation(kind=Kind.INSERT, partition_key=key, row_key="r")
                ledger.add(done(insert, START + second, attempts=attempts))
    verdict = judge(evidence(ledger.snapshot(start=START, end=START + 10)))
    assert f"{part} of them for partition 'refused'" in verdict.sentence


def test_enough_is_enough() -> None:
    """Five seconds and a hundred operations suffice to judge."""
    snapshot = snapshot_of({"p0": 20}, seconds=5)
    assert evidence(snapshot).shortcoming is None


@pytest.mark.parametrize(
    ("size", "expected"), [(921, True), (922, False), (1024, False), (1126, False), (1127, True)]
)
def test_sizes_near_1_kib_are_held_against_the_targets(size: int, expected: bool) -> None:
    """A tenth more or less is still about 1 KiB."""
    assert indicative(size) is expected


PASSED = ConditionResult(text="a", value=1.0, passed=True)
FAILED = ConditionResult(text="b", value=1.0, passed=False)
KEPT = ConditionResult(text="d", value=0.0, passed=True, depends=False)
LOST = ConditionResult(text="d", value=1.0, passed=False, depends=False)
CERTAIN = ConditionResult(text="e", value=1.0, passed=False, certain=True)
UNKNOWN = ConditionResult(text="c", value=None, passed=None)


@pytest.mark.parametrize(
    ("holds", "enough", "result", "conditions", "expected"),
    [
        # Nothing to complain about.
        (True, True, "within_target", (PASSED,), 0),
        # No conditions: a verdict alone does not fail a run.
        (True, True, "over_target", (), 0),
        (True, True, "throttled", (), 0),
        (True, True, "client_limited", (), 0),
        (True, True, "inconclusive", (), 0),
        (True, True, "no_target", (PASSED,), 0),
        (True, True, "no_target", (FAILED,), 1),
        # A condition that failed.
        (True, True, "throttled", (PASSED, FAILED), 1),
        # A condition that depends on a doubtful measurement.
        (True, True, "client_limited", (PASSED,), 3),
        (True, True, "client_limited", (FAILED,), 3),
        (True, True, "inconclusive", (PASSED,), 3),
        # A lost write is lost, whoever limited the rate.
        (True, True, "client_limited", (KEPT,), 0),
        (True, True, "client_limited", (LOST,), 1),
        (True, True, "client_limited", (LOST, PASSED), 3),
        (True, False, "within_target", (LOST,), 3),
        # A condition without a value.
        (True, True, "within_target", (UNKNOWN,), 3),
        (True, True, "within_target", (FAILED, UNKNOWN), 3),
        # Too short, too few samples, incomplete.
        (True, False, "inconclusive", (), 3),
        (True, False, "inconclusive", (FAILED,), 3),
        # What failed for certain failed, however short the run was.
        (True, False, "inconclusive", (PASSED, CERTAIN, UNKNOWN), 1),
        (True, True, "client_limited", (CERTAIN,), 1),
        (False, True, "inconclusive", (CERTAIN,), 4),
        # The harness broke its own laws: before everything else.
        (False, True, "within_target", (PASSED,), 4),
        (False, False, "inconclusive", (FAILED,), 4),
    ],
)
def test_exit_code(
    holds: bool,
    enough: bool,
    result: str,
    conditions: tuple[ConditionResult, ...],
    expected: int,
) -> None:
    """The first that matches: 4 broken laws, 3 cannot be told, 1 a condition failed, 0."""
    verdict = VerdictPart(result=VerdictResult(result), limited_by="unknown", sentence="s.")
    code = exit_code(invariants_hold=holds, enough=enough, verdict=verdict, conditions=conditions)
    assert code == expected


@pytest.mark.parametrize(("limited_by", "expected"), [("endpoint", 1), ("unknown", 3)])
def test_a_limit_of_the_endpoint_or_of_the_users_decides_no_condition(
    limited_by: str, expected: int
) -> None:
    """As one of the users alone: whether more of them would send more is unknown."""
    verdict = VerdictPart(
        result=VerdictResult.ENDPOINT_LIMITED, limited_by=limited_by, sentence="s."
    )
    code = exit_code(invariants_hold=True, enough=True, verdict=verdict, conditions=(FAILED,))
    assert code == expected


def sample(second: int, cpu: float, machine: float = 50.0, lag_s: float = 0.0) -> CpuSample:
    return CpuSample(second=START + second, cpu_percent=cpu, machine_percent=machine, lag_s=lag_s)


def test_the_busiest_worker_speaks_for_the_generator() -> None:
    """One worker at its limit is not averaged away by idle ones; other seconds do not count."""
    log = GeneratorLog()
    log.add("w1", sample(0, 100.0, machine=100.0, lag_s=9.0))
    for second in range(1, 5):
        log.add("w1", sample(second, 91.0 if second < 3 else 80.0))
        log.add("w2", sample(second, 10.0, machine=96.0, lag_s=0.1 * second))
    view = log.view(START + 1, START + 5)
    assert set(log.latest()) == {"w1", "w2"}
    assert view.cpu_percent_max == 91.0
    assert view.cpu_percent_mean == pytest.approx(85.5)
    assert view.cpu_percents == pytest.approx((85.5, 10.0))
    assert view.busy_share == pytest.approx(0.5)
    assert view.machine_percent_max == 96.0
    assert view.machine_busy_share == 1.0
    assert view.lag_s_max == pytest.approx(0.4)
    assert log.latest()["w2"].second == START + 4


def test_no_samples_no_load() -> None:
    """A generator without samples in the window is not called busy."""
    log = GeneratorLog()
    log.add("w1", sample(0, 100.0))
    view = log.view(START + 1, START + 5)
    assert (view.cpu_percent_max, view.busy_share) == (0.0, 0.0)


FACTS: dict[str, Any] = {
    "run_id": "run1",
    "profile": {"name": "single-partition"},
    "endpoint": EndpointPart(kind="storage", described="Azure", host="h", table="t"),
    "session": "sdk",
    "span_s": (START, START + 60),
    "ended_by": "run time",
    "workers": 1,
}


def record_of(snapshot: Snapshot, kind: Service = STORAGE) -> RunRecord:
    given = evidence(snapshot, kind=kind)
    condition = parse_condition("throttled_ratio < 1%").evaluate(snapshot)
    return assembled(
        given,
        judge(given),
        [condition],
        billable_transactions=7,
        invariants=broken_invariants(snapshot),
        **FACTS,
    )


def test_a_record_holds_rates_beside_their_targets() -> None:
    """Partition and account have their rates, targets and shares; latencies are milliseconds."""
    record = record_of(snapshot_of({"p0": 1000, "p1": 500}, throttled_per_s=1))
    [hot, cold] = record.partitions
    assert (hot.key, hot.target, hot.ratio) == ("p0", 2000.0, 0.5)
    assert (cold.key, cold.ratio) == ("p1", 0.25)
    assert record.account.entities_per_s.mean == 1500.0
    assert (record.account.target, record.account.ratio) == (20000.0, 0.075)
    assert record.account.transactions_per_s == 42.0
    assert record.account.writes_per_s == 1500.0
    assert record.account.reads_per_s == 0.0
    assert hot.attempts_by_status == {"204": 200, "503 ServerBusy partition": 10}
    assert hot.service_ms is not None
    assert hot.service_ms.p50 == pytest.approx(4.0, rel=0.02)
    assert hot.response_ms is None
    assert record.throttled == {"partition": 20, "account": 0}
    assert record.conditions[0].passed is False
    assert RunRecord.from_json(record.to_json()) == record


def test_a_record_of_cosmos_has_no_targets() -> None:
    """Neither 2,000 nor 20,000 is in the record of a run against Cosmos DB."""
    record = record_of(SLOW, COSMOS)
    assert (record.account.target, record.account.ratio) == (None, None)
    assert {(part.target, part.ratio) for part in record.partitions} == {(None, None)}


def test_queries_over_the_whole_table_have_no_partition_target() -> None:
    """What scans every partition is not held against the target of one."""
    record = record_of(snapshot_of({WHOLE_TABLE: 5000, "p0": 1000}))
    targets = {part.key: part.target for part in record.partitions}
    assert targets == {WHOLE_TABLE: None, "p0": 2000.0}


def test_the_series_is_bounded_and_keeps_its_mean() -> None:
    """A run of any length has at most so many points, each the mean of its seconds."""
    seconds = 3 * MOST_SERIES_POINTS - 1
    record = record_of(snapshot_of({"p0": 7}, seconds=seconds, operations_per_s=1))
    assert len(record.series) <= MOST_SERIES_POINTS
    assert sum(point.width_s for point in record.series) == seconds
    assert {point.entities for point in record.series} == {7.0}
    assert record.series[1].t == record.series[0].t + record.series[0].width_s


def test_a_run_without_a_window_has_a_record() -> None:
    """A run that ended before it was measured divides by nothing."""
    snapshot = snapshot_of({"p0": 100}, seconds=1)
    empty = Ledger().snapshot(start=START + 5, end=START)
    for one in (snapshot, empty):
        record = record_of(one)
        assert record.verdict.result == "inconclusive"
        assert record.measured_s >= 0


@pytest.mark.parametrize(("failed", "result"), [(19, "inconclusive"), (20, "failing")])
def test_few_operations_hide_no_endpoint_that_fails(failed: int, result: str) -> None:
    """Operations that time out are few, and their failures certain all the same."""
    few = snapshot_of({"p0": 8}, operations_per_s=8, seconds=6)
    given = dataclasses.replace(
        few,
        attempts={(0, "read_timeout", Scope.NONE): failed},
        outcomes={Outcome.TIMEOUT: failed},
        counts=dataclasses.replace(few.counts, attempts=failed),
    )
    record = recorded(evidence(given))
    assert record.verdict.result == result
    assert (
        headline(record).count("of the attempts failed")
        + headline(record).count("attempts failed (100%)")
        == 1
    )


LOW = snapshot_of({"p0": 50, "p1": 40}, throttled_per_s=1)


def test_a_defect_breaks_an_invariant() -> None:
    """An operation that ended in an exception of the harness makes the run invalid."""
    defective = dataclasses.replace(SLOW, outcomes={Outcome.DEFECT: 2})
    broken = broken_invariants(defective)
    assert "2 operations ended in a defect" in broken[-1]


@pytest.mark.parametrize("service", SERVICES, ids=str)
@pytest.mark.parametrize("snapshot", [LOW, HOT, SLOW], ids=["low", "hot", "slow"])
def test_a_verdict_counts_in_the_unit_of_its_service(service: Service, snapshot: Snapshot) -> None:
    """A sentence that counts lines never says entities, and one about entities never lines."""
    found = judge(evidence(snapshot, kind=service, entity_bytes=5000))
    said = " ".join((found.sentence, found.footnote, *found.evidence)).lower()
    assert service.unit.rate in said
    for other in {one.unit for one in SERVICES} - {service.unit}:
        assert re.search(rf"\b({other.one}|{other.many})\b", said) is None


def in_turn(*keys: str, each_s: int, per_s: int) -> Snapshot:
    """Each of these partitions has all of the load for some seconds, one after the other."""
    ledger = Ledger()
    seconds = each_s * len(keys)
    ledger.open_window(START, START + seconds)
    for second in range(seconds):
        at_s = float(START + second)
        ok = Attempt(status=204, sent_s=at_s, latency_s=0.004)
        write = Operation(kind=Kind.UPSERT_MERGE, partition_key=keys[second // each_s])
        for _ in range(20):
            ledger.add(done(write, at_s, 0.004, attempts=(ok,), entities=per_s // 20))
    return ledger.snapshot(start=START, end=START + seconds)


def test_a_rate_over_the_target_for_ten_seconds_is_over_it() -> None:
    """The mean of a whole run hides a partition of a minute, and a stage of several."""
    minutes = in_turn("t1", "t2", "t3", each_s=10, per_s=2500)
    found = recorded(evidence(minutes))
    assert found.verdict.result == VerdictResult.OVER_TARGET
    assert "in the best 10 s of each, partition 't1' served 2,500" in found.verdict.sentence
    assert headline(found) == "Partition 't1' is over its target of 2,000 entities/s."
    assert "(125% of the target of 2,000)" in found.verdict.sentence
    assert found.verdict.by_best
    calm = judge(evidence(in_turn("t1", "t2", "t3", each_s=10, per_s=1900)))
    assert calm.result == VerdictResult.WITHIN_TARGET
    assert "served 633 entities/s" in calm.sentence


@pytest.mark.parametrize(("steady", "rate"), [(True, "633"), (False, "1,900")])
def test_a_load_that_changes_is_judged_by_its_best_10_s(steady: bool, rate: str) -> None:
    """Stages, a search and recorded instants have a course, as an application has."""
    given = evidence(in_turn("t1", "t2", "t3", each_s=10, per_s=1900), steady=steady)
    said = judge(given)
    assert f"served {rate} entities/s" in said.sentence
    [busiest] = [one for one in said.evidence if "was the busiest" in one]
    assert f"{rate} entities/s" in busiest
    assert ("in the best 10 s" in busiest) is not steady


def failing(*keys: str, of: int = 10) -> Snapshot:
    """All requests to these partitions of several are answered 500."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    for second in range(10):
        at_s = float(START + second)
        for number in range(of):
            key = f"p{number}"
            status = 500 if key in keys else 204
            answered = Attempt(status=status, sent_s=at_s, latency_s=0.01)
            insert = Operation(kind=Kind.INSERT, partition_key=key, row_key="r")
            outcome = Outcome.SERVER_ERROR if key in keys else Outcome.SUCCESS
            more = {"attempts": (answered,), "entities": int(status == 204), "outcome": outcome}
            ledger.add(done(insert, at_s, 0.01, **more))
    return ledger.snapshot(start=START, end=START + 10)


def test_a_partition_that_fails_alone_is_named() -> None:
    """The other partitions are answered by the same endpoint, which does not fail."""
    alone, several = (judge(evidence(failing(*keys))) for keys in (("p4",), ("p4", "p5")))
    assert "Only requests to partition 'p4' fail." in alone.sentence
    assert alone.failures.startswith("Only requests to partition 'p4' fail: ")
    assert "The endpoint, or the way to it, fails" not in alone.sentence
    assert "The endpoint, or the way to it, fails." in several.sentence


def test_operations_that_are_all_throttled_need_not_be_many() -> None:
    """Retries make them few; a longer run would be throttled as much."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    busy = Attempt(status=503, sent_s=START, latency_s=0.01, scope=Scope.PARTITION)
    for second in range(10):
        for _ in range(4):
            insert = Operation(kind=Kind.INSERT, partition_key="p0", row_key="r")
            ledger.add(
                done(insert, START + second, attempts=(busy,) * 4, outcome=Outcome.THROTTLED)
            )
    verdict = judge(evidence(ledger.snapshot(start=START, end=START + 10)))
    assert verdict.result == VerdictResult.THROTTLED
    assert "160 of 160 attempts (100%) were throttled" in verdict.sentence
