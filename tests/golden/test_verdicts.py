"""What a verdict says, and the observations beside it, must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the files anew: below each situation stands the verdict
with the side that limited the run, or which observations it has in place of those of a quiet run.
"""

from __future__ import annotations

import dataclasses

from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import judge
from harness.model.outcome import Fault, Outcome, Scope
from harness.model.services.blobs import AZURITE_BLOBS
from harness.model.services.cosmos import COSMOS
from harness.model.services.storage import GATEWAY
from tests.support.evidence import answered_after, evidence, generator, late, snapshot_of, torn
from tests.support.golden import changes, check

SLOW = snapshot_of({"p0": 1000})
WAITING = snapshot_of({"p0": 1000}, operations_per_s=1000)
"""1,000 operations/s of 4 ms: four users are busy with them."""
HOT = snapshot_of({"p0": 2500})
DUE = dataclasses.replace(SLOW, counts=dataclasses.replace(SLOW.counts, due=1000, dropped=4))
BUSY = generator(cpu_percent_max=99.0, cpu_percent_mean=80.0, busy_share=0.5)
THROTTLED = snapshot_of({"p0": 1000}, throttled_per_s=1)
BY_ACCOUNT = snapshot_of({"p0": 1000}, throttled_per_s=1, scope=Scope.ACCOUNT)
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
FIVE = TWO.model_copy(update={"cpu_percents": (80.0, 40.0, 30.0, 20.0, 10.0)})

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
    "In a closed loop slow answers are the endpoint's, however constant": evidence(
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
    "Too short": evidence(snapshot_of({"p0": 1000}, seconds=4)),
    "Too few operations": evidence(snapshot_of({"p0": 9}, operations_per_s=9)),
    "Too few operations, some of them throttled": evidence(
        snapshot_of({"p0": 9}, operations_per_s=9, throttled_per_s=1)
    ),
    "The last report of a worker is missing": evidence(SLOW, all_reported=False),
    "Cut short": evidence(SLOW, cut_short_by="the loss of every worker"),
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
    "operations that were dropped or waiting": evidence(ACCOUNTED, scheduled=True, waiting=40),
    "connections": evidence(SLOW, connections=500, connections_in_use=20),
    "two workers": evidence(SLOW, generator=TWO),
    "five workers": evidence(SLOW, generator=FIVE),
    "a generator of which nothing is known": evidence(SLOW, generator=generator()),
}


def test_verdicts() -> None:
    """Each situation leads to one finding, the side that limited it, and a sentence."""
    lines: list[str] = []
    for name, given in VERDICTS.items():
        verdict = judge(given)
        assert verdict.sentence.endswith(".")
        assert verdict.why.lower() in verdict.sentence.lower()
        assert all(line.endswith(".") for line in verdict.evidence)
        found = f"{verdict.result}, limited by: {verdict.limited_by}"
        lines += [f"# {name}", found, verdict.sentence, ""]
    check("verdicts.txt", "\n".join(lines))


def test_observations() -> None:
    """Each figure that a verdict can rest on has its sentence."""
    shown = {name: "\n".join(judge(given).evidence) for name, given in OBSERVED.items()}
    quiet = "\n".join(judge(evidence(SLOW)).evidence)
    check("observations.txt", f"{quiet}\n\n{changes(quiet, shown)}")
