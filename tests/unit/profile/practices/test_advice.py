"""What a report advises: the practices that a run violated, and that bear on its limit."""

from __future__ import annotations

import dataclasses

import pytest

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.enforced import EnforcedPart
from harness.measure.record.record import RunRecord
from harness.measure.verdict.evidence import Evidence
from harness.model.operation import Kind
from harness.model.outcome import Fault, Scope
from harness.model.services.cosmos import COSMOS
from harness.model.services.service import Service
from harness.model.services.storage import AZURITE, GATEWAY
from harness.profile.checks.recorded import measured_charges, seen_in
from harness.profile.practices.checklist import findings_of, with_advice
from harness.profile.practices.practice import Severity
from tests.support.behaviour import attempt, measured, result, write
from tests.support.evidence import (
    START,
    answered_after,
    evidence,
    generator,
    late,
    recorded,
    snapshot_of,
    torn,
)
from tests.support.records import course, kept

THROTTLED = snapshot_of({"p0": 1000}, throttled_per_s=1)
HOT = snapshot_of({"p0": 2500}, throttled_per_s=1)
BY_ACCOUNT = snapshot_of({"p0": 1000}, throttled_per_s=1, scope=Scope.ACCOUNT)
SLOW = snapshot_of({"p0": 1000})
MANY = {f"p{n:02d}": 1900 for n in range(11)}
BUSY = generator(cpu_percents=(99.0,), cpu_percent_mean=99.0)

FINER, UNEVEN, HASH = "hot-partition", "account-spread", "append-only"
ACCOUNTS, BATCH, RAMP, OUTLAST = "account-target", "transactions", "ramp", "partition-moves"
BACK_OFF, PROCESSES, SESSION = "back-off", "generator-size", "session"
CONNECTIONS, USERS, NEAR, REAL = "connections", "users", "location", "emulator"


def in_transactions(snapshot: Snapshot, share: float) -> Snapshot:
    """The same writes, so many of them in transactions."""
    [part] = snapshot.operations
    gathered = round(part.count * share)
    return dataclasses.replace(
        snapshot,
        operations=(
            part.model_copy(update={"count": part.count - gathered}),
            part.model_copy(
                update={"kind": "transaction", "type": Kind.TRANSACTION.value, "count": gathered}
            ),
        ),
    )


def slow_answers(seconds: float) -> Evidence:
    """20 users wait for all the time and miss the rate, at a latency that has grown."""
    service = answered_after(seconds)
    snapshot = dataclasses.replace(
        SLOW, service_ms=service.model_copy(update={"mean": 200_000 / service.count})
    )
    return evidence(in_transactions(snapshot, 0.6), wanted_per_s=2000.0, light_latency_s=0.001)


GATHERED = in_transactions(HOT, 0.6)
SERVED = snapshot_of({"p0": 200, "p1": 200}, throttled_per_s=1)
ONE_OF_TWO = snapshot_of({"p0": 200, "p1": 200}, throttled_per_s=1, throttled=("p0",))
LATE = snapshot_of({"p0": 2500}, throttled_per_s=1, answer=(504, "OperationTimedOut"))
"""A partition whose server does not answer in time, as while it is moved."""
UNNAMED = snapshot_of({"p0": 2500}, throttled_per_s=1, answer=(504, ""))
UNANSWERED = snapshot_of({"p0": 1000}, throttled_per_s=1, answer=(0, Fault.READ_TIMEOUT))


def inserting(snapshot: Snapshot) -> Snapshot:
    """The same writes as inserts."""
    [part] = snapshot.operations
    insert = part.model_copy(update={"kind": "insert", "type": Kind.INSERT.value})
    parts = tuple(
        part.model_copy(update={"entities_by_kind": {"insert": part.entities}})
        for part in snapshot.partitions
    )
    return dataclasses.replace(snapshot, operations=(insert,), partitions=parts)


def advised(record: RunRecord) -> list[str]:
    return [part.practice for part in record.verdict.advice]


GROWING = recorded(
    evidence(inserting(snapshot_of({"p0": 2500, "p1": 20}, throttled_per_s=1))),
    "mix.insert=1",
    name="compare-append-only",
)
NO_RETRIES = "retry.strategy=none"
KEYS = ("fields.key.prefix=p", "keys.partition_key={key}")
"""Keys p0, p1, ... of as many values as are set beside."""


@pytest.mark.parametrize(
    ("given", "practices"),
    [
        # Nothing is advised where nothing is wrong, or nothing is known.
        (recorded(evidence(SLOW)), []),
        (recorded(evidence(SLOW, all_reported=False)), []),
        (recorded(evidence(SLOW, wanted_per_s=2000.0)), []),
        # A partition above its target throttles: finer keys; single writes can be gathered.
        (recorded(evidence(HOT)), [FINER, BATCH]),
        # Where some writes are in transactions, the others are the application's choice.
        (recorded(evidence(GATHERED)), [FINER]),
        # Below its target, and soon: the load rose too fast; later on it did not.
        (recorded(evidence(in_transactions(THROTTLED, 0.6))), [FINER, RAMP]),
        (recorded(evidence(late(in_transactions(THROTTLED, 0.6), 30))), [FINER, RAMP]),
        (recorded(evidence(late(in_transactions(THROTTLED, 0.6), 31))), [FINER]),
        # No back-off, or the same for everybody: exponential back-off.
        (recorded(evidence(GATHERED), NO_RETRIES), [FINER, BACK_OFF]),
        (recorded(evidence(GATHERED), "retry.strategy=fixed"), [FINER, BACK_OFF]),
        (recorded(evidence(GATHERED), "retry.strategy=schedule"), [FINER]),
        # 504 needs back-off as 503 does; a time-out of the client has no known cause.
        (recorded(evidence(in_transactions(LATE, 0.6))), [FINER, OUTLAST]),
        (recorded(evidence(UNANSWERED)), []),
        # Nothing succeeds for seconds: retries have to outlast it.
        (recorded(evidence(torn(GATHERED, 2))), [FINER, OUTLAST]),
        (recorded(evidence(torn(GATHERED, 1))), [FINER]),
        # Keys that grow: a hash before them, for finer ones would grow as well.
        (GROWING, [HASH, BATCH]),
        # A row takes what its partition takes: neither finer keys nor transactions split it.
        (recorded(evidence(HOT), "keys.rows_per_partition=1", "mix.transaction=0"), ["hot-row"]),
        # A server throttles partitions that are far below their targets.
        (recorded(evidence(SERVED), "fields.key.values=2", *KEYS), ["hot-range", BATCH, RAMP]),
        # An emulator has no servers.
        (recorded(evidence(SERVED, kind=AZURITE), "fields.key.values=2", *KEYS), [BATCH]),
        # It does not throttle one and spare another.
        (recorded(evidence(ONE_OF_TWO), "fields.key.values=2", *KEYS), [FINER, BATCH, RAMP]),
        # The account throttles: another account, fewer requests.
        (recorded(evidence(BY_ACCOUNT)), [ACCOUNTS, BATCH, RAMP]),
        # Cosmos DB is advised by its own document, and has no such partitions to move.
        (recorded(evidence(torn(HOT, 3), kind=COSMOS), NO_RETRIES), [BACK_OFF]),
        # Over target without throttling.
        (recorded(evidence(snapshot_of({"p0": 2500}))), [FINER, BATCH]),
        (
            recorded(
                evidence(in_transactions(snapshot_of(MANY), 0.6)), "fields.key.values=11", *KEYS
            ),
            [ACCOUNTS],
        ),
        # The generator: more processes, and a leaner session where there is one.
        (recorded(evidence(SLOW, generator=BUSY)), [PROCESSES]),
        (recorded(evidence(SLOW, generator=BUSY), session="sdk"), [PROCESSES, SESSION]),
        # One that was stopped had CPU time enough.
        (recorded(evidence(SLOW, generator=generator(lag_s_max=3.0)), session="sdk"), [PROCESSES]),
        (
            recorded(evidence(SLOW, wanted_per_s=2000.0, connections=10, connections_in_use=10)),
            [CONNECTIONS],
        ),
        # Too few users for answers that take as long as ever.
        (recorded(dataclasses.replace(slow_answers(0.2), light_latency_s=0.2)), [USERS]),
        (
            recorded(dataclasses.replace(slow_answers(0.2), light_latency_s=0.2, scheduled=True)),
            [USERS],
        ),
        # One that is far away may need them too.
        (
            recorded(
                dataclasses.replace(slow_answers(0.04), light_latency_s=None),
                service_over_time=course(START, [[0], [9]], 30.0),
            ),
            [USERS, NEAR],
        ),
        # An endpoint that is far away, one that is slow, and an emulator.
        (recorded(slow_answers(0.026), service_over_time=course(START, [[0], [9]], 20.0)), []),
        (recorded(slow_answers(0.04), service_over_time=course(START, [[0], [9]], 30.0)), [NEAR]),
        (recorded(dataclasses.replace(slow_answers(0.026), kind=AZURITE)), [REAL]),
        (
            recorded(
                dataclasses.replace(slow_answers(0.024), snapshot=SLOW, users=0),
                service_over_time=None,
            ),
            [BATCH],
        ),
    ],
)
def test_advice_has_a_cause(given: RunRecord, practices: list[str]) -> None:
    """Each situation is answered with what fits it, and with nothing else."""
    assert advised(given) == practices
    assert all(part.text and part.why and part.document for part in given.verdict.advice)


def test_users_are_counted_by_littles_law() -> None:
    """At half of the wanted rate, twice as many users as wait now would wait."""
    given = dataclasses.replace(slow_answers(0.2), light_latency_s=0.2, scheduled=True)
    [advice] = recorded(given).verdict.advice
    assert "from 20 to more than 40." in advice.text


@pytest.mark.parametrize("kind", [AZURITE, GATEWAY])
def test_an_emulator_does_not_balance(kind: Service) -> None:
    """A slower ramp helps a service that balances, not one that stands in for it."""
    given = evidence(snapshot_of({"p0": 1000}, throttled_per_s=1), kind=kind)
    assert RAMP not in advised(recorded(given))


def throttled_row() -> RunRecord:
    """The record of an application whose clients write one row, and are throttled meanwhile."""
    row = write(Kind.UPSERT_MERGE, "p", "total")
    served, busy = attempt(0.0), attempt(0.0, 503, code="ServerBusy")
    return measured(
        [
            result(
                row,
                dataclasses.replace(served if n % 9 else busy, sent_s=served.sent_s + n / 50),
                entities=int(n % 9 > 0),
            )
            for n in range(900)
        ]
    )


RECORDS = {
    **{name: kept(name) for name in ("run-v1.json", "run-v1-search.json", "run-v1-cosmos.json")},
    "an application with one row": throttled_row(),
    "keys that grow": GROWING,
    "a generator without time": recorded(evidence(SLOW, generator=BUSY), session="sdk"),
    "an account that throttles": recorded(evidence(BY_ACCOUNT)),
    "servers that throttle": recorded(evidence(SERVED), "fields.key.values=2", *KEYS),
}


@pytest.mark.parametrize("name", RECORDS)
def test_every_advice_is_a_violated_finding_in_the_same_words(name: str) -> None:
    """A report and `harness check --record` of the same run cannot contradict each other."""
    record = with_advice(RECORDS[name])
    read = RunRecord.from_json(record.to_json())
    violated = {
        (finding.practice.name, finding.look.change, finding.look.why)
        for finding in findings_of(seen_in(read))
        if finding.severity is Severity.OFFENDS
    }
    advice = {(part.practice, part.text, part.why) for part in read.verdict.advice}
    assert advice <= violated
    assert read.verdict.advice == record.verdict.advice
    names = {name for name, _, _ in violated}
    assert not {"hot-row", "hot-partition"} <= names


@pytest.mark.parametrize("snapshot", [SERVED, BY_ACCOUNT])
def test_what_throttled_a_partition_is_not_called_its_own_limit(snapshot: Snapshot) -> None:
    """Where a server or the account throttled, a finding about partitions does not name it."""
    found = findings_of(seen_in(with_advice(recorded(evidence(snapshot)))))
    said = [finding.look.why for finding in found if finding.practice.name == "hot-partition"]
    assert all("throttled" not in why for why in said)
    assert snapshot is SERVED or said


def test_faults_on_request_are_no_neighbouring_keys() -> None:
    """A gateway that refused nothing by a limit says so, and no key is advised."""
    limits = EnforcedPart(partition_per_s=1e9, account_per_s=1e9, server_per_s=1e9)
    found = evidence(snapshot_of({"p0": 50, "p1": 50}, throttled_per_s=1), kind=GATEWAY)
    found = dataclasses.replace(found, enforced=limits)
    record = with_advice(recorded(found, enforced=limits))
    assert "the gateway refused none by a limit" in record.verdict.sentence
    assert "of its target of 2,000" in record.verdict.sentence
    assert "hot-range" not in advised(record)


def test_what_a_record_is_held_against_was_provisioned() -> None:
    """A watch has no profile that says it, and its rates have targets all the same."""
    record = kept("run-v1-cosmos.json")
    charges = measured_charges(record, None)
    assert charges is not None
    assert record.request_units is not None
    assert charges.throughput.ru_per_s == record.request_units.target
    part = record.partitions[0].request_units
    assert part is not None
    assert charges.throughput.partition_ru_per_s == part.target


def test_one_row_is_neither_split_by_keys_nor_batched() -> None:
    """Where one row has all of the load, both outputs say so, and advise nothing else on keys."""
    record = with_advice(RECORDS["an application with one row"])
    assert advised(record)[0] == "hot-row"
    findings = {finding.practice.name: finding for finding in findings_of(seen_in(record))}
    assert findings["transactions"].severity is Severity.FINE
    assert not {"hot-partition", "constant-partition-key"} & findings.keys()
    assert "none was sent again" in findings["back-off"].look.why
