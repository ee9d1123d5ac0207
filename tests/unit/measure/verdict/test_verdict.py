"""Verdicts and exit codes, a sentence a row; the generator's view; what goes into the record."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from harness.measure.counts.generator import CpuSample, GeneratorLog
from harness.measure.counts.ledger import Ledger
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.enforced import EnforcedPart
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
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import VerdictResult, exit_code, indicative, judge
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Attempt, Outcome, Scope
from harness.model.services import SERVICES
from harness.model.services.cosmos import COSMOS
from harness.model.services.service import Service
from harness.model.services.storage import AZURITE, GATEWAY, STORAGE
from harness.report.headline import headline
from tests.support.evidence import START, evidence, generator, recorded, snapshot_of
from tests.support.results import done

SLOW = snapshot_of({"p0": 1000})
HOT = snapshot_of({"p0": 2500})
DUE = dataclasses.replace(SLOW, counts=dataclasses.replace(SLOW.counts, due=1000, dropped=4))
BUSY = generator(cpu_percent_max=99.0, cpu_percent_mean=80.0, busy_share=0.5)


def refused(throttled: int, attempts: int) -> Snapshot:
    """1,000 entities/s with so many throttled attempts."""
    answers = {
        (503, "ServerBusy", Scope.PARTITION): throttled,
        (204, "", Scope.NONE): attempts - throttled,
    }
    return dataclasses.replace(
        SLOW,
        attempts=answers,
        partitions=(SLOW.partitions[0].model_copy(update={"attempts": answers}),),
        counts=dataclasses.replace(SLOW.counts, attempts=attempts),
    )


def waiting(operations: float) -> Snapshot:
    """1,000 entities/s with so many operations waiting for their answer on average."""
    assert SLOW.service_ms is not None
    mean = operations * 10_000 / SLOW.service_ms.count
    service = SLOW.service_ms.model_copy(update={"mean": mean})
    return dataclasses.replace(SLOW, service_ms=service)


FULL = {"wanted_per_s": 2000.0, "users": 20}


@pytest.mark.parametrize(
    ("given", "second"),
    [
        (evidence(SLOW, generator=BUSY), "The CPU use of the generator "),
        (evidence(waiting(18), **FULL), "Service latency was "),
        (evidence(refused(10, 10_000)), "Service latency was "),
        (evidence(SLOW), "None of "),
    ],
)
def test_the_evidence_begins_with_what_decided(given: Evidence, second: str) -> None:
    """The rate comes first, then what the verdict rests on."""
    first = judge(given).evidence[:2]
    assert first[0].startswith("The mean rate was ")
    assert first[1].startswith(second)


@pytest.mark.parametrize(
    ("given", "result", "limited_by"),
    [
        # Throttled from one attempt in a thousand on.
        (evidence(refused(9, 10_000)), "within_target", "unknown"),
        (evidence(refused(10, 10_000)), "throttled", "partition"),
        # The endpoint fails from one failed operation in a thousand on.
        (
            evidence(
                dataclasses.replace(SLOW, outcomes={Outcome.SUCCESS: 9991, Outcome.TIMEOUT: 9})
            ),
            "within_target",
            "unknown",
        ),
        (
            evidence(
                dataclasses.replace(SLOW, outcomes={Outcome.SUCCESS: 9990, Outcome.TIMEOUT: 10})
            ),
            "failing",
            "unknown",
        ),
        # A rate is held from 95 % on.
        (evidence(SLOW, wanted_per_s=1052.0), "within_target", "load"),
        (evidence(SLOW, wanted_per_s=1053.0), "within_target", "users"),
        # Users are busy where 80 % of them wait.
        (evidence(waiting(15.9), **FULL), "within_target", "users"),
        (evidence(waiting(16.0), **FULL), "endpoint_limited", "endpoint"),
        # A core without reserve from a fifth of the seconds on; the machine alike.
        (evidence(SLOW, generator=generator(busy_share=0.19)), "within_target", "unknown"),
        (evidence(SLOW, generator=generator(busy_share=0.2)), "client_limited", "generator"),
        (evidence(SLOW, generator=generator(machine_busy_share=0.19)), "within_target", "unknown"),
        (
            evidence(SLOW, generator=generator(machine_busy_share=0.2)),
            "client_limited",
            "generator",
        ),
        # Half a second of lag is too much.
        (evidence(SLOW, generator=generator(lag_s_max=0.49)), "within_target", "unknown"),
        (evidence(SLOW, generator=generator(lag_s_max=0.5)), "client_limited", "generator"),
        # A core that is used up on average spoils even a rate that was held.
        (
            evidence(SLOW, wanted_per_s=1000.0, generator=generator(cpu_percent_mean=96.9)),
            "within_target",
            "load",
        ),
        (
            evidence(SLOW, wanted_per_s=1000.0, generator=generator(cpu_percent_mean=97.0)),
            "client_limited",
            "generator",
        ),
        # Connections are a limit where all are in use and there are more users.
        (evidence(SLOW, **FULL, connections=19, connections_in_use=18), "within_target", "users"),
        (
            evidence(SLOW, **FULL, connections=19, connections_in_use=19),
            "client_limited",
            "generator",
        ),
        (evidence(SLOW, **FULL, connections=20, connections_in_use=20), "within_target", "users"),
        # A held rate needs no more connections.
        (
            evidence(SLOW, wanted_per_s=1000.0, connections=19, connections_in_use=19),
            "within_target",
            "load",
        ),
        # Latency has grown where it has doubled.
        (evidence(waiting(16.0), light_latency_s=0.4001), "within_target", "unknown"),
        (evidence(waiting(16.0), light_latency_s=0.4), "endpoint_limited", "endpoint"),
        (evidence(waiting(15.9), light_latency_s=0.01), "within_target", "unknown"),
        # A schedule is not kept where a hundredth of what was due was not sent.
        (evidence(DUE, **FULL, scheduled=True, waiting=5), "within_target", "load"),
        (evidence(DUE, **FULL, scheduled=True, waiting=6), "client_limited", "generator"),
        # The target itself is within; one entity more is over.
        (evidence(snapshot_of({"p0": 2000})), "within_target", "unknown"),
        (evidence(snapshot_of({"p0": 2001})), "over_target", "unknown"),
    ],
)
def test_both_sides_of_every_bound(given: Evidence, result: str, limited_by: str) -> None:
    """A figure at its threshold and the one just before it lead to different findings."""
    verdict = judge(given)
    assert (verdict.result, verdict.limited_by) == (result, limited_by), verdict


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
        (True, True, "endpoint_limited", (FAILED,), 1),
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


def test_failures_leave_nothing_else_to_say() -> None:
    """Where operations fail otherwise than by throttling, no rate is held against a target."""
    failing = dataclasses.replace(
        SLOW, outcomes={Outcome.SUCCESS: 900, Outcome.CONNECTION: 90, Outcome.TIMEOUT: 10}
    )
    verdict = judge(evidence(failing, wanted_per_s=1000.0))
    assert verdict.result == "failing"
    assert "100 of 1,000 operations failed for good (10%): connection, timeout" in verdict.sentence
    assert verdict.advice == ()


@pytest.mark.parametrize(("failed", "result"), [(9, "inconclusive"), (10, "failing")])
def test_an_endpoint_that_answers_hardly_anything_fails(failed: int, result: str) -> None:
    """What never answers leaves few operations to measure, and that is no lack of evidence."""
    snapshot = snapshot_of({"p0": 2}, operations_per_s=2)
    snapshot = dataclasses.replace(
        snapshot,
        attempts={(0, "read_timeout", Scope.NONE): 2 * failed},
        outcomes={Outcome.SUCCESS: 1, Outcome.TIMEOUT: failed},
    )
    assert judge(evidence(snapshot)).result == result


def answered(answer: tuple[int, str], count: int, attempts: int, *, throttled: int = 0) -> Evidence:
    """So many of the attempts of a run had this answer, and others were throttled."""
    status, code = answer
    found = {
        (204, "", Scope.NONE): attempts - count - throttled,
        (status, code, Scope.NONE): count,
        (503, "ServerBusy", Scope.PARTITION): throttled,
    }
    counts = dataclasses.replace(SLOW.counts, attempts=attempts)
    return evidence(dataclasses.replace(SLOW, attempts=found, counts=counts))


@pytest.mark.parametrize(
    ("given", "result", "says"),
    [
        # Named from one attempt in a thousand on, although the run is within its target.
        (answered((500, "InternalError"), 9, 10_000), "within_target", ""),
        (
            answered((500, "InternalError"), 10, 10_000),
            "within_target",
            "0.10% of the attempts failed (500 InternalError).",
        ),
        # No run is within its target from one in a hundred on.
        (
            answered((0, "connection_reset"), 100, 10_000),
            "failing",
            "The endpoint, or the way to it, fails: 1.0% of the attempts failed "
            "(connection_reset).",
        ),
        # An endpoint that refuses what it is asked works.
        (
            answered((403, "AuthorizationFailure"), 500, 1000),
            "failing",
            "The endpoint refuses requests: 50% of the attempts failed (403 AuthorizationFailure).",
        ),
        # Of throttling and failures the more frequent ones lead.
        (
            answered((500, "InternalError"), 200, 10_000, throttled=300),
            "throttled",
            "2.0% of the attempts failed (500 InternalError).",
        ),
        (
            answered((500, "InternalError"), 300, 10_000, throttled=200),
            "failing",
            "The endpoint, or the way to it, fails: 3.0% of the attempts failed "
            "(500 InternalError).",
        ),
        # Regular answers and throttled ones are no failures.
        (answered((409, "EntityAlreadyExists"), 4000, 10_000), "within_target", ""),
        (answered((500, "OperationTimedOut"), 4000, 10_000), "throttled", ""),
    ],
)
def test_failed_attempts_are_said_although_retries_hid_them(
    given: Evidence, result: str, says: str
) -> None:
    """Kind and share stand in the verdict, and decide it where they are many."""
    verdict = judge(given)
    assert (verdict.result, verdict.failures) == (result, says)
    assert ("retries hid all of these failures" in verdict.sentence) == bool(says)


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


def enforced(**refusals: int) -> EnforcedPart:
    """A stand-in with the published limits, and what each of them refused."""
    return EnforcedPart(
        partition_per_s=2000, account_per_s=20_000, server_per_s=4000, refusals=refusals
    )


@pytest.mark.parametrize(
    ("given", "limited_by", "says"),
    [
        # Half of its target is near it, less is not.
        (evidence(snapshot_of({"p0": 1000}, throttled_per_s=1)), "partition", "partition 'p0'"),
        (
            evidence(snapshot_of({"p0": 999}, throttled_per_s=1)),
            "unknown",
            "partition 'p0' (999 entities/s, 50% of its target of 2,000)",
        ),
        (
            evidence(LOW),
            "unknown",
            "likely causes are busy neighbouring key ranges on one server and a load that rose "
            "faster than the service could balance the table. Most entities were counted for "
            "upsert_merge (100%)",
        ),
        # A gateway elsewhere may have any limits.
        (
            evidence(LOW, kind=GATEWAY),
            "unknown",
            "the limits that the gateway enforces are not known",
        ),
        # Nor does Azurite throttle: something in front of it does.
        (
            evidence(LOW, kind=AZURITE),
            "unknown",
            "No limit is known to be the cause; an emulator throttles nothing, and the limits of "
            "what is in front of it are unknown",
        ),
        # A stand-in counts what its limits refused, whatever the rates are.
        (
            evidence(LOW, enforced=enforced(server=30, partition=2, moving=50)),
            "server",
            "37% of them by the limit of a server: 4,000 entities/s for all key ranges on it",
        ),
        (
            evidence(LOW, enforced=enforced(server=2)),
            "server",
            "all of them by the limit of a server: 4,000 entities/s for all key ranges on it",
        ),
        (evidence(LOW, enforced=enforced(partition=2, moving=50)), "partition", "partition 'p0'"),
        (evidence(LOW, enforced=enforced(account=2)), "account", "for the account"),
        # Of its faults nobody knows.
        (evidence(LOW, enforced=enforced()), "unknown", "of its limit of 2,000"),
    ],
)
def test_a_limit_is_named_only_where_it_was_near(
    given: Evidence, limited_by: str, says: str
) -> None:
    """Throttling of a partition far below its target is not called that partition's limit."""
    verdict = judge(given)
    assert (verdict.result, verdict.limited_by) == ("throttled", limited_by)
    assert says in verdict.sentence
    advice = recorded(given).verdict.advice
    finer = any("finer PartitionKey" in part.text for part in advice)
    assert finer == (limited_by == "partition")


def test_time_outs_of_a_busy_generator_are_its_own() -> None:
    """A generator without time does not see an answer in time."""
    given = dataclasses.replace(answered((0, "read_timeout"), 200, 10_000), generator=BUSY)
    assert judge(given).result == "client_limited"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (evidence(SLOW), ""),
        (evidence(SLOW, kind=AZURITE), "Emulator."),
        (
            evidence(SLOW, kind=GATEWAY),
            "Azurite behind a gateway that enforces limits.",
        ),
        (
            evidence(SLOW, entity_bytes=4096),
            "Indicative: targets hold for 1 KiB entities, these have 4,096 B.",
        ),
    ],
)
def test_what_restricts_the_figures_is_a_footnote(given: Evidence, says: str) -> None:
    """The sentence is about the run; what answered and for which sizes targets hold is below it."""
    assert judge(given).footnote == says


def test_what_an_application_expects_is_no_failure() -> None:
    """Missing entities, conflicts and lost races are answers like others."""
    expected = dataclasses.replace(
        SLOW, outcomes={Outcome.SUCCESS: 500, Outcome.NOT_FOUND: 300, Outcome.CONFLICT: 200}
    )
    assert judge(evidence(expected)).result == "within_target"


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
