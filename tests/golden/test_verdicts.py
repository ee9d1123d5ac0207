"""What a verdict says, and the observations beside it, must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the files anew: below each situation stands the verdict
with the side that limited the run, or which observations it has in place of those of a quiet run.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.enforced import EnforcedPart
from harness.measure.record.origin import ClientPart
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import judge
from harness.model.operation import WHOLE_TABLE
from harness.model.outcome import PARTITION_FULL_CODE, Fault, Outcome, Scope
from harness.model.partition import account_of
from harness.model.services.blobs import AZURITE_BLOBS
from harness.model.services.cosmos import COSMOS
from harness.model.services.storage import AZURITE, GATEWAY
from tests.support.evidence import (
    answered_after,
    evidence,
    generator,
    late,
    scanned,
    snapshot_of,
    torn,
    watched_evidence,
)
from tests.support.golden import changes, check
from tests.support.records import altered

SLOW = snapshot_of({"p0": 1000})
WAITING = snapshot_of({"p0": 1000}, operations_per_s=1000)
"""1,000 operations/s of 4 ms: four users are busy with them."""
HOT = snapshot_of({"p0": 2500})
LOW = snapshot_of({"p0": 50, "p1": 40}, throttled_per_s=1)
MANY = tuple(f"p{number:02d}" for number in range(11))
DUE = dataclasses.replace(SLOW, counts=dataclasses.replace(SLOW.counts, due=1000, dropped=4))
BUSY = generator(cpu_percent_max=99.0, cpu_percent_mean=80.0, busy_share=0.5)
THROTTLED = snapshot_of({"p0": 1000}, throttled_per_s=1)
BY_ACCOUNT = snapshot_of({"p0": 1000}, throttled_per_s=1, scope=Scope.ACCOUNT)
BOTH = snapshot_of({"p0": 1000, "p1": 10}, throttled_per_s=1, scope=Scope.ACCOUNT)
BOTH = dataclasses.replace(
    BOTH,
    attempts={**BOTH.attempts, (503, "ServerBusy", Scope.PARTITION): 8},
    partitions=(
        altered(
            BOTH.partitions[0],
            attempts={**BOTH.partitions[0].attempts, (503, "ServerBusy", Scope.PARTITION): 8},
        ),
        *BOTH.partitions[1:],
    ),
)
"""The account throttled most, and one partition was throttled without the account's doing."""
LATE = snapshot_of({"p0": 2500}, throttled_per_s=1, answer=(504, "OperationTimedOut"))
"""A partition whose server does not answer in time, as while it is moved."""
UNNAMED = snapshot_of({"p0": 2500}, throttled_per_s=1, answer=(504, ""))
UNANSWERED = snapshot_of({"p0": 1000}, throttled_per_s=1, answer=(0, Fault.READ_TIMEOUT))
ACCOUNTED = dataclasses.replace(
    SLOW, counts=dataclasses.replace(SLOW.counts, due=60_000, dropped=120)
)
FAILED = {
    Outcome.SUCCESS: 900,
    Outcome.TIMEOUT: 10,
    Outcome.CONNECTION: 40,
    Outcome.NOT_FOUND: 50,
}
TWO = generator(
    cpu_percent_max=99.0,
    cpu_percent_mean=80.0,
    cpu_percents=(80.0, 40.0),
    busy_share=0.1,
    machine_percent_max=97.0,
    machine_busy_share=0.05,
    lag_s_max=0.012,
)
FIVE = altered(TWO, cpu_percents=(80.0, 40.0, 30.0, 20.0, 10.0))


ACCOUNTS = ("east", "west")
KEYS = [f"p{number:02d}" for number in range(40)]
EAST, WEST = ([key for key in KEYS if account_of(key, 2) == account] for account in (0, 1))
"""The keys of each of two accounts."""
IDLE_LATER = snapshot_of({"shop/p0": 2500})
IDLE_LATER = dataclasses.replace(
    IDLE_LATER,
    partitions=tuple(
        altered(part, entities_per_s=altered(part.entities_per_s, mean=20.0))
        for part in IDLE_LATER.partitions
    ),
)
BY_WEST = snapshot_of(
    {EAST[0]: 1500, EAST[1]: 1500, WEST[0]: 1000},
    throttled_per_s=2,
    scope=Scope.ACCOUNT,
    accounts=ACCOUNTS,
    throttled=[WEST[0]],
)
UNOPENED = dataclasses.replace(SLOW, start=0, end=0, service_ms=None)


def refused(throttled: int) -> Snapshot:
    """1,000 entities/s with so many throttled attempts of 10,000."""
    answers = {
        (503, "ServerBusy", Scope.PARTITION): throttled,
        (204, "", Scope.NONE): 10_000 - throttled,
    }
    part = altered(SLOW.partitions[0], attempts=answers)
    counts = dataclasses.replace(SLOW.counts, attempts=10_000)
    return dataclasses.replace(SLOW, attempts=answers, partitions=(part,), counts=counts)


def answered(status: int, code: str, count: int, throttled: int = 0) -> Evidence:
    """So many of the 10,000 attempts of a run had this answer, and others were throttled."""
    found = {
        (204, "", Scope.NONE): 10_000 - count - throttled,
        (status, code, Scope.NONE): count,
        (503, "ServerBusy", Scope.PARTITION): throttled,
    }
    counts = dataclasses.replace(SLOW.counts, attempts=10_000)
    return evidence(dataclasses.replace(SLOW, attempts=found, counts=counts))


def full(count: int, **sizes: int) -> Evidence:
    """Of 10,000 attempts ``count`` were refused by full partitions, so many by each."""
    found = answered(403, PARTITION_FULL_CODE, count)
    parts = tuple(
        altered(SLOW.partitions[0], key=key, attempts={(403, PARTITION_FULL_CODE, Scope.NONE): by})
        for key, by in sizes.items()
    )
    snapshot = dataclasses.replace(found.snapshot, partitions=parts)
    return dataclasses.replace(found, snapshot=snapshot)


def ended(**outcomes: int) -> Evidence:
    """So many operations had these outcomes."""
    found = {Outcome(name): count for name, count in outcomes.items()}
    return evidence(dataclasses.replace(SLOW, outcomes=found))


def hardly_answered(failed: int) -> Evidence:
    """So many operations that were never answered, beside a single one that was."""
    few = snapshot_of({"p0": 2}, operations_per_s=2)
    attempts = {(0, "read_timeout", Scope.NONE): 2 * failed}
    outcomes = {Outcome.SUCCESS: 1, Outcome.TIMEOUT: failed}
    return evidence(dataclasses.replace(few, attempts=attempts, outcomes=outcomes))


def waiting(operations: float, **more: Any) -> Evidence:
    """1,000 entities/s with so many operations waiting for their answer on average."""
    assert SLOW.service_ms is not None
    mean = operations * 10_000 / SLOW.service_ms.count
    service = altered(SLOW.service_ms, mean=mean)
    return evidence(dataclasses.replace(SLOW, service_ms=service), **more)


def using(wanted_per_s: float | None = None, **figures: Any) -> Evidence:
    """A generator with these figures."""
    return evidence(SLOW, wanted_per_s=wanted_per_s, generator=generator(**figures))


def enforced(**refusals: int) -> Evidence:
    """A stand-in with the published limits, and what each of them refused."""
    part = EnforcedPart(
        partition_per_s=2000, account_per_s=20_000, server_per_s=4000, refusals=refusals
    )
    return evidence(LOW, enforced=part)


def torn_often() -> Snapshot:
    """Throttled for 20 s, and without any success for 2 s of every 4."""
    long = snapshot_of({"p0": 1000}, seconds=20, throttled_per_s=1)
    points = tuple(
        dataclasses.replace(point, entities=0, unsuccessful=point.operations)
        if point.second % 4 < 2
        else point
        for point in long.series
    )
    return dataclasses.replace(long, series=points)


FULL: dict[str, Any] = {"wanted_per_s": 2000.0, "users": 20}
HELD = 1000.0
BOUNDS: dict[str, Evidence] = {
    "9 of 10,000 attempts were throttled": evidence(refused(9)),
    "10 of 10,000": evidence(refused(10)),
    "9 of 10,000 operations timed out": ended(success=9991, timeout=9),
    "10 of 10,000 timed out": ended(success=9990, timeout=10),
    "95.06% of the wanted rate was held": evidence(SLOW, wanted_per_s=1052.0),
    "94.97% of it": evidence(SLOW, wanted_per_s=1053.0),
    "15.9 of 20 users waited": waiting(15.9, **FULL),
    "16 of 20 users": waiting(16.0, **FULL),
    "a core was busy in 19% of the seconds": using(busy_share=0.19),
    "a core in 20%": using(busy_share=0.2),
    "the machine was busy in 19% of the seconds": using(machine_busy_share=0.19),
    "the machine in 20%": using(machine_busy_share=0.2),
    "operations left 0.49 s late": using(lag_s_max=0.49),
    "0.5 s late": using(lag_s_max=0.5),
    "a core was used by 96.9%, and the rate was held": using(HELD, cpu_percent_mean=96.9),
    "by 97%, and the rate was held": using(HELD, cpu_percent_mean=97.0),
    "18 of 19 connections were in use": evidence(
        SLOW, **FULL, connections=19, connections_in_use=18
    ),
    "19 of 19": evidence(SLOW, **FULL, connections=19, connections_in_use=19),
    "20 of 20, as many as users": evidence(SLOW, **FULL, connections=20, connections_in_use=20),
    "19 of 19, and the rate was held": evidence(
        SLOW, wanted_per_s=HELD, connections=19, connections_in_use=19
    ),
    "latency has not quite doubled": waiting(16.0, light_latency_s=0.4001),
    "latency has doubled": waiting(16.0, light_latency_s=0.4),
    "latency has grown, and 15.9 of 20 users waited": waiting(15.9, light_latency_s=0.01),
    "9 of 1,000 due operations were not sent": evidence(DUE, **FULL, scheduled=True, waiting=5),
    "10 of 1,000": evidence(DUE, **FULL, scheduled=True, waiting=6),
    "the target itself was served": evidence(snapshot_of({"p0": 2000})),
    "an entity more": evidence(snapshot_of({"p0": 2001})),
}
"""A figure at its threshold and the one just before it."""

VERDICTS: dict[str, Evidence] = {
    "Below both targets and no cap: within target, nobody knows what limited it": evidence(SLOW),
    "The wanted rate was held: the load was the limit": evidence(SLOW, wanted_per_s=1000.0),
    "A partition whose server does not answer in time is throttled, as while it is moved": evidence(
        snapshot_of({"p0": 1000}, throttled_per_s=1, answer=(504, ""))
    ),
    "Time-outs of the client are failures, of which nobody knows the cause": evidence(
        dataclasses.replace(SLOW, outcomes={Outcome.SUCCESS: 150, Outcome.TIMEOUT: 50})
    ),
    "One partition above 2,000 without throttling: over target": evidence(HOT),
    "Every partition below 2,000 but the account above 20,000: over target": evidence(
        snapshot_of({f"p{n:02d}": 1900 for n in range(11)})
    ),
    "Refusals of the partition: throttled, the partition named with its rate": evidence(
        snapshot_of({"p0": 1000, "p1": 20}, throttled_per_s=1)
    ),
    "Refusals of account scope, and others of one partition": evidence(BOTH),
    "Refusals of account scope: the account is the limit, however slow the partitions": evidence(
        snapshot_of({"p0": 1000}, throttled_per_s=1, scope=Scope.ACCOUNT)
    ),
    "Fewer refusals than one in a thousand do not make a run throttled": evidence(
        snapshot_of({"p0": 1500}, operations_per_s=1500, throttled_per_s=1)
    ),
    "A worker without time left: client-limited, never within target": evidence(
        SLOW, generator=BUSY
    ),
    "A worker without time left, and the wanted rate missed": evidence(
        SLOW, generator=BUSY, wanted_per_s=2000.0
    ),
    "Busy seconds do not matter where the wanted rate was held all the same": evidence(
        SLOW, generator=BUSY, wanted_per_s=1000.0
    ),
    "A core burnt throughout makes even a held rate doubtful": evidence(
        SLOW, generator=generator(cpu_percent_mean=99.0), wanted_per_s=1000.0
    ),
    "Nor were there connections on a machine that others used up": evidence(
        SLOW,
        generator=generator(machine_busy_share=0.3),
        **FULL,
        connections=9,
        connections_in_use=9,
    ),
    "Somebody else took the machine's time": evidence(
        SLOW, generator=generator(machine_busy_share=0.3)
    ),
    "Operations left late although the CPU looks idle": evidence(
        SLOW, generator=generator(lag_s_max=0.8)
    ),
    "Throttling explains a run before the generator does": evidence(
        snapshot_of({"p0": 1000}, throttled_per_s=1), generator=BUSY
    ),
    "Nothing throttled, generator idle, rate missed: the endpoint": evidence(
        WAITING, wanted_per_s=2000.0, users=4
    ),
    "The same, but most users have nothing to wait for: it is their own pauses": evidence(
        WAITING, wanted_per_s=2000.0, users=20
    ),
    "A schedule that fell behind while all users waited: the endpoint": evidence(
        WAITING, wanted_per_s=2000.0, users=4, scheduled=True, waiting=5000
    ),
    "The same, and answers take ever longer: the endpoint is at its capacity": evidence(
        WAITING, wanted_per_s=2000.0, users=4, scheduled=True, light_latency_s=0.001
    ),
    "The same, but answers take as long as ever: there are too few users": evidence(
        WAITING, wanted_per_s=2000.0, users=4, scheduled=True, light_latency_s=0.004
    ),
    "A closed loop whose answers take as long as ever: there are too few users": evidence(
        WAITING, wanted_per_s=2000.0, users=4, light_latency_s=0.004
    ),
    "A schedule fell behind although users were free: nobody but the generator": evidence(
        DUE, wanted_per_s=2000.0, scheduled=True, waiting=96
    ),
    "All was sent, but not all of it counts: the load itself": evidence(
        SLOW, wanted_per_s=2000.0, scheduled=True
    ),
    "The schedule fell behind, and the generator's core was busy: client-limited first": evidence(
        WAITING, wanted_per_s=2000.0, users=4, scheduled=True, generator=BUSY, waiting=9
    ),
    "No rate was wanted, all users wait, and answers take ever longer: the endpoint": evidence(
        WAITING, users=4, light_latency_s=0.001
    ),
    "The same above the target: what matters is the target": evidence(
        snapshot_of({"p0": 2500}, operations_per_s=1000), users=4, light_latency_s=0.001
    ),
    "Users waited for connections rather than for the endpoint": evidence(
        SLOW, wanted_per_s=2000.0, connections=10, connections_in_use=10
    ),
    "Cosmos DB has no target in entities a second": evidence(HOT, kind=COSMOS),
    "The documents name no target for blobs, which is no failure": evidence(
        HOT, kind=AZURITE_BLOBS
    ),
    "Blobs that are throttled: no limit is known that could have been near": evidence(
        THROTTLED, kind=AZURITE_BLOBS, targets=None
    ),
    "Throttled before the measured window alone": evidence(
        dataclasses.replace(
            THROTTLED, series=THROTTLED.series[:3], start=THROTTLED.start + 3, end=THROTTLED.end + 3
        )
    ),
    "Too short": evidence(snapshot_of({"p0": 1000}, seconds=4)),
    "Too few operations": evidence(snapshot_of({"p0": 9}, operations_per_s=9)),
    "Too few operations, some of them throttled": evidence(
        snapshot_of({"p0": 9}, operations_per_s=9, throttled_per_s=1)
    ),
    "The last report of a worker is missing": evidence(SLOW, all_reported=False),
    "Cut short": evidence(SLOW, cut_short_by="the loss of every worker"),
    "Half of its target is near a limit": evidence(snapshot_of({"p0": 1000}, throttled_per_s=1)),
    "Less is not": evidence(snapshot_of({"p0": 999}, throttled_per_s=1)),
    "Throttled far below the target": evidence(LOW),
    "The same at a gateway elsewhere, which may have any limits": evidence(LOW, kind=GATEWAY),
    "The same at Azurite, which throttles nothing": evidence(LOW, kind=AZURITE),
    "A stand-in counts what its limits refused: most by a server": enforced(
        server=30, partition=2, moving=50
    ),
    "All by a server": enforced(server=2),
    "Most by a partition": enforced(partition=2, moving=50),
    "All by the account": enforced(account=2),
    "None by a limit: of its faults nobody knows": enforced(),
    "9 of 10,000 attempts failed, and retries hid it": answered(500, "InternalError", 9),
    "10 of 10,000": answered(500, "InternalError", 10),
    "A hundredth was reset": answered(0, "connection_reset", 100),
    "An endpoint that refuses what it is asked works": answered(403, "AuthorizationFailure", 5000),
    "A partition that is full is the limit": full(5000, p0=5000),
    "Several are, one of them first": full(5000, p0=1000, p1=4000),
    "More attempts were throttled than failed": answered(500, "InternalError", 200, 300),
    "More attempts failed than were throttled": answered(500, "InternalError", 300, 200),
    "Conflicts are regular answers": answered(409, "EntityAlreadyExists", 4000),
    "500 OperationTimedOut is throttling": answered(500, "OperationTimedOut", 4000),
    "Time-outs of a busy generator are its own": dataclasses.replace(
        answered(0, "read_timeout", 200), generator=BUSY
    ),
    "Operations that fail leave nothing else to say": dataclasses.replace(
        ended(success=900, connection=90, timeout=10), wanted_per_s=1000.0
    ),
    "Missing entities, conflicts and lost races are no failures": ended(
        success=500, not_found=300, conflict=200
    ),
    "Nine operations that were not answered are too few": hardly_answered(9),
    "Ten are enough": hardly_answered(10),
    "An emulator": evidence(SLOW, kind=AZURITE),
    "Entities of 4 KiB": evidence(SLOW, entity_bytes=4096),
    "Queries make a partition hot": evidence(scanned()),
    "Queries make the account busy": evidence(scanned(MANY, queries_per_s=15)),
    "Counts are estimated": evidence(scanned(entities=50, estimated=True)),
    "Most counts are those of queries over several partitions, and a lower bound": evidence(
        scanned((WHOLE_TABLE,), entities=50, writes_per_s=300, estimated=True)
    ),
    "A watched application that asks for no more": watched_evidence(),
    "Whose thread had no CPU": watched_evidence(
        generator=generator(busy_share=0.5, cpu_percents=(95.0,))
    ),
    "Whose neighbours used the machine up": watched_evidence(
        generator=generator(machine_busy_share=0.5, cpu_percents=(12.0,))
    ),
    "Behind a busy gateway": watched_evidence(part={"gateway_busy_share": 0.5}),
    "Over the target, whatever the CPU says": watched_evidence(
        snapshot_of({"shop/p0": 2500}), generator=generator(busy_share=0.5)
    ),
    "Throttled, which its SDK hid": watched_evidence(
        snapshot_of({"shop/p0": 1000}, throttled_per_s=1)
    ),
    "Idle for most of the time, and over the target in its best 10 s": watched_evidence(IDLE_LATER),
    "That sent nothing": watched_evidence(part={"requests": 0, "cause": "Use --tls"}),
    "That asked for no entity": watched_evidence(
        part={"requests": 2, "others": 2, "cause": "Use --tls"}
    ),
    "A partition that was away for 3 s": evidence(torn(late(THROTTLED, 4), 3)),
    "The window never opened": evidence(UNOPENED, wanted_per_s=1000.0, light_latency_s=0.1),
    "One throttled attempt of one user": evidence(refused(1), users=1),
    "The same, and the only user waited": evidence(
        dataclasses.replace(refused(1), service_ms=waiting(20.0).snapshot.service_ms),
        wanted_per_s=2000.0,
        users=1,
    ),
    "Together over the target of one account, each of two within its own": evidence(
        snapshot_of(dict.fromkeys(KEYS[:20], 1500), accounts=ACCOUNTS)
    ),
    "One of two accounts over its target, together within both": evidence(
        snapshot_of(dict.fromkeys(EAST[:11], 1900) | {WEST[0]: 1100}, accounts=ACCOUNTS)
    ),
    "The limit of one account throttled, which is not the busiest one": evidence(BY_WEST),
    "A partition of one of two accounts was throttled": evidence(
        snapshot_of({WEST[0]: 1000}, throttled_per_s=2, accounts=ACCOUNTS)
    ),
}
OBSERVED: dict[str, Evidence] = {
    "a wanted rate": evidence(SLOW, wanted_per_s=2000.0),
    "an emulator behind the gateway": evidence(SLOW, kind=GATEWAY),
    "throttled": evidence(THROTTLED),
    "throttled by the account": evidence(BY_ACCOUNT),
    "answers that came too late": evidence(LATE),
    "answers 504 without a code": evidence(UNNAMED),
    "no answers": evidence(UNANSWERED),
    "throttled from second 3 on": evidence(late(THROTTLED, 3)),
    "a gap of 3 s": evidence(torn(THROTTLED, 3)),
    "a gap to the end": evidence(torn(THROTTLED, 5)),
    "operations that failed for good": evidence(dataclasses.replace(SLOW, outcomes=FAILED)),
    "a response latency": evidence(dataclasses.replace(SLOW, response_ms=answered_after(0.8))),
    "a latency under light load": evidence(SLOW, light_latency_s=0.001),
    "1,000 operations/s": evidence(WAITING),
    "1,000 operations/s, for which all users wait": evidence(WAITING, users=4),
    "operations that were dropped or waiting": evidence(ACCOUNTED, scheduled=True, waiting=40),
    "connections": evidence(SLOW, connections=500, connections_in_use=20),
    "two workers": evidence(SLOW, generator=TWO),
    "five workers": evidence(SLOW, generator=FIVE),
    "a generator of which nothing is known": evidence(SLOW, generator=generator()),
    "queries": evidence(scanned()),
    "queries beside writes, with estimated counts": evidence(
        scanned(entities=125, writes_per_s=2500, estimated=True)
    ),
    "queries over several partitions": evidence(scanned((WHOLE_TABLE,))),
    "one user, connection and waiting operation": evidence(
        snapshot_of({"p0": 1000}, operations_per_s=10),
        users=1,
        connections=1,
        connections_in_use=1,
        scheduled=True,
        waiting=1,
    ),
    "one throttled attempt": evidence(refused(1)),
    "five gaps": evidence(torn_often()),
    "no window": evidence(UNOPENED, wanted_per_s=1000.0, light_latency_s=0.1),
    "nothing sent": evidence(dataclasses.replace(UNOPENED, attempts={})),
    "throttled by one of two accounts": evidence(BY_WEST),
    "two accounts, one of them without load": evidence(
        snapshot_of({EAST[0]: 1000}, accounts=ACCOUNTS)
    ),
    "an application that asked for no more": watched_evidence(),
    "an application whose SDK would have asked earlier": watched_evidence(
        snapshot_of({"shop/p0": 1000}, throttled_per_s=1)
    ),
    "an application that may have waited for answers": watched_evidence(
        snapshot_of({"shop/p0": 1000}, operations_per_s=200)
    ),
    "an application with retries, two clients, and requests without an id": watched_evidence(
        part={
            "succeeded_after": {2: 3, 4: 1},
            "unjoined": 2,
            "clients": [ClientPart(user_agent=name, requests=1) for name in ("a", "b")],
        }
    ),
}


def test_verdicts() -> None:
    """Each situation leads to one finding, the side that limited it, and a sentence."""
    lines: list[str] = []
    for name, given in VERDICTS.items():
        verdict = judge(given)
        assert verdict.sentence.endswith(".")
        assert all(part in verdict.sentence.lower() for part in verdict.why.lower().split(". "))
        assert all(line.endswith(".") for line in verdict.evidence)
        found = f"{verdict.result}, limited by: {verdict.limited_by}"
        below = filter(None, (verdict.failures, verdict.footnote))
        lines += [f"# {name}", found, verdict.sentence, *(f"- {text}" for text in below), ""]
    check("verdicts.txt", "\n".join(lines))


def test_both_sides_of_every_bound() -> None:
    """A figure at its threshold and the one just before it lead to different findings."""
    found = {name: judge(given) for name, given in BOUNDS.items()}
    lines = [f"{name}: {of.result}, limited by: {of.limited_by}" for name, of in found.items()]
    check("bounds.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize(
    ("given", "second"),
    [
        (evidence(SLOW, generator=BUSY), "The CPU use of the generator "),
        (waiting(18, **FULL), "Service latency was "),
        (evidence(refused(10)), "Service latency was "),
        (evidence(SLOW), "None of "),
    ],
)
def test_the_evidence_begins_with_what_decided(given: Evidence, second: str) -> None:
    """The rate comes first, then what the verdict rests on."""
    first = judge(given).evidence[:2]
    assert first[0].startswith("The mean rate was ")
    assert first[1].startswith(second)


def test_observations() -> None:
    """Each figure that a verdict can rest on has its sentence."""
    shown = {name: "\n".join(judge(given).evidence) for name, given in OBSERVED.items()}
    quiet = "\n".join(judge(evidence(SLOW)).evidence)
    check("observations.txt", f"{quiet}\n\n{changes(quiet, shown)}")
