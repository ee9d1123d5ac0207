"""What a run means, in one sentence, with the side that limited it."""

from __future__ import annotations

import dataclasses
import enum

from harness.measure.conditions import ConditionResult
from harness.measure.generator import GeneratorView
from harness.measure.snapshot import PartitionView, Snapshot, throttled_of
from harness.model.operation import WHOLE_TABLE
from harness.model.outcome import Outcome, Scope
from harness.model.target import TARGET_ENTITY_BYTES, EndpointKind, Targets

SHORTEST_S = 5
"""A measured window below it says nothing about a rate."""
FEWEST_OPERATIONS = 100
"""Fewer operations have no 99th percentile."""
THROTTLED_FROM = 0.001
"""Share of throttled attempts from which a run counts as throttled."""
FAILING_FROM = 0.01
"""Share of failed operations, throttled ones aside, from which nothing else can be said."""
_FAILURES = frozenset(
    (
        Outcome.SERVER_ERROR,
        Outcome.TIMEOUT,
        Outcome.CONNECTION,
        Outcome.FORBIDDEN,
        Outcome.REJECTED,
        Outcome.UNDECIDED,
        Outcome.DEFECT,
    )
)
REACHED_FROM = 0.95
"""Share of the wanted rate from which it counts as held."""
_BUSY_USERS = 0.8
"""Share of users that wait for an answer on average, from which they could not send more."""
_BUSY_SHARE = 0.2
"""Share of busy seconds from which the generator had no reserve."""
_SATURATED_PERCENT = 97.0
"""Of one core on average: nothing measured by such a worker can be trusted."""
_LATE_S = 0.5
"""An operation that leaves so much later than it might was held up by the generator."""


class VerdictResult(enum.StrEnum):
    """What a run found."""

    WITHIN_TARGET = "within_target"
    OVER_TARGET = "over_target"
    THROTTLED = "throttled"
    CLIENT_LIMITED = "client_limited"
    ENDPOINT_LIMITED = "endpoint_limited"
    INCONCLUSIVE = "inconclusive"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A finding.

    Attributes:
        result: What was found.
        limited_by: What kept the rate from being higher: partition, account, generator,
            endpoint, load (the profile wanted no more), users (they waited for themselves), or
            unknown.
        sentence: The finding in plain words, with its figures.
    """

    result: VerdictResult
    limited_by: str
    sentence: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a verdict is reached from.

    Attributes:
        wanted_per_s: Entities a second that the profile's load allows; None is as many as come.
        entity_bytes: Stored size of the written entities.
        complete: False where a worker's last report did not come.
    """

    snapshot: Snapshot
    generator: GeneratorView
    kind: EndpointKind
    targets: Targets | None
    wanted_per_s: float | None
    users: int
    entity_bytes: int
    complete: bool


def indicative(entity_bytes: int) -> bool:
    """Whether entities of this stored size are another size than the targets hold for."""
    return not 0.9 <= entity_bytes / TARGET_ENTITY_BYTES <= 1.1


def measured_operations(snapshot: Snapshot) -> int:
    """Operations that were done in the measured window."""
    return 0 if snapshot.service is None else snapshot.service.count


def shortcoming(evidence: Evidence) -> str | None:
    """Why the run is too little to judge, or None where it is enough."""
    if not evidence.complete:
        return "a worker's last report is missing"
    length = evidence.snapshot.end - evidence.snapshot.start
    if length < SHORTEST_S:
        return f"the measured window of {length} s is shorter than {SHORTEST_S} s"
    operations = measured_operations(evidence.snapshot)
    if operations < FEWEST_OPERATIONS:
        return f"{operations} measured operations are fewer than {FEWEST_OPERATIONS}"
    return None


def judge(evidence: Evidence) -> Verdict:
    """The verdict that ``evidence`` leads to."""
    snapshot = evidence.snapshot
    if (lack := shortcoming(evidence)) is not None:
        return Verdict(
            result=VerdictResult.INCONCLUSIVE,
            limited_by="unknown",
            sentence=f"Inconclusive: {lack}.",
        )
    if snapshot.throttled_ratio >= THROTTLED_FROM:
        return _throttled(evidence)
    if (broken := _failing(snapshot)) is not None:
        return Verdict(result=VerdictResult.INCONCLUSIVE, limited_by="unknown", sentence=broken)
    achieved = snapshot.entities_per_s.mean
    wanted = evidence.wanted_per_s
    reached = wanted is not None and achieved >= REACHED_FROM * wanted
    if (limit := _generator_limit(evidence, reached)) is not None:
        why, advice = limit
        return Verdict(
            result=VerdictResult.CLIENT_LIMITED,
            limited_by="generator",
            sentence=f"Client-limited: {why}, so {achieved:,.0f} entities/s is what the generator "
            f"made, not what the endpoint can serve; {advice}.",
        )
    if wanted is not None and not reached and not _users_are_busy(evidence):
        return _against_targets(evidence, "users")
    if wanted is not None and not reached:
        return Verdict(
            result=VerdictResult.ENDPOINT_LIMITED,
            limited_by="endpoint",
            sentence=f"Endpoint-limited: {achieved:,.0f} of the wanted {wanted:,.0f} entities/s "
            f"came through, nothing was throttled and the generator had time: all of "
            f"{evidence.users} users wait for answers{_latency_words(snapshot)}. The endpoint "
            "answers too slowly for so few users.",
        )
    return _against_targets(evidence, "load" if reached else "unknown")


def _failing(snapshot: Snapshot) -> str | None:
    """The sentence of a run in which too much went wrong to say anything, or None."""
    operations = sum(snapshot.outcomes.values())
    failed = {
        outcome: count for outcome, count in snapshot.outcomes.items() if outcome in _FAILURES
    }
    total = sum(failed.values())
    if not total or total < FAILING_FROM * operations:
        return None
    most = max(failed, key=lambda outcome: failed[outcome])
    return (
        f"Inconclusive: {total:,} of {operations:,} operations failed ({total / operations:.0%}), "
        f"most with {most}; errors.jsonl names them. Rates and latencies of such a run say "
        "nothing about the endpoint's capacity."
    )


def _throttled(evidence: Evidence) -> Verdict:
    snapshot = evidence.snapshot
    account = throttled_of(snapshot.attempts, Scope.ACCOUNT)
    by_account = account * 2 > snapshot.throttled
    scope = "account" if by_account else "partition"
    most = max(snapshot.partitions, key=lambda view: view.throttled, default=None)
    where = "the account"
    if not by_account and most is not None:
        name = "queries over the whole table" if most.key == WHOLE_TABLE else _named(most)
        where = f"{name} ({most.entities_per_s.mean:,.0f} entities/s)"
    advice = (
        "spread the load over more accounts or lower it"
        if by_account
        else "use finer partition keys, transactions, or a slower ramp"
    )
    return Verdict(
        result=VerdictResult.THROTTLED,
        limited_by=scope,
        sentence=f"Throttled: {snapshot.throttled:,} of {snapshot.counts.attempts:,} attempts "
        f"({snapshot.throttled_ratio:.1%}) were refused, most for {where}; "
        f"{advice}{_origin(evidence.kind)}.",
    )


def _users_are_busy(evidence: Evidence) -> bool:
    """Whether most users waited for answers, by Little's law, and not for themselves."""
    snapshot = evidence.snapshot
    length = snapshot.end - snapshot.start
    if snapshot.service is None or length <= 0:
        return False
    return snapshot.service.total_s / length >= _BUSY_USERS * evidence.users


def _generator_limit(evidence: Evidence, reached: bool) -> tuple[str, str] | None:
    """Why the generator was the limit, and what helps; None where it was not."""
    generator = evidence.generator
    more_workers = "use more worker processes or a smaller load"
    if generator.cpu_percent_mean >= _SATURATED_PERCENT:
        mean = generator.cpu_percent_mean
        return f"a worker used {mean:.0f} % of its core throughout", more_workers
    if reached:
        return None
    if generator.busy_share >= _BUSY_SHARE:
        share = generator.busy_share
        return f"a worker used over 90 % of its core in {share:.0%} of the seconds", more_workers
    if generator.machine_busy_share >= _BUSY_SHARE:
        shares = ", which runs the emulator too," if evidence.kind is EndpointKind.AZURITE else ""
        return (
            f"its machine{shares} had no time left in {generator.machine_busy_share:.0%} of the "
            "seconds",
            "lower the load, stop what else runs there, or use more machines",
        )
    if generator.lag_s_max >= _LATE_S:
        return f"operations left up to {generator.lag_s_max:.1f} s late", more_workers
    return None


def _against_targets(evidence: Evidence, limited_by: str) -> Verdict:
    snapshot = evidence.snapshot
    targets = evidence.targets
    account = snapshot.entities_per_s.mean
    if targets is None:
        return Verdict(
            result=VerdictResult.INCONCLUSIVE,
            limited_by=limited_by,
            sentence=f"No entities/s target holds for {evidence.kind.described}, which counts "
            f"request units; it served {account:,.0f} entities/s without throttling.",
        )
    hottest = snapshot.hottest
    partition = 0.0 if hottest is None else hottest.entities_per_s.mean
    name = "no partition" if hottest is None else _named(hottest)
    figures = (
        f"{name} took {partition:,.0f} entities/s, {partition / targets.partition:.0%} of the "
        f"target of {targets.partition:,.0f}, the account {account:,.0f}, "
        f"{account / targets.account:.0%} of {targets.account:,.0f}"
    )
    over = partition > targets.partition or account > targets.account
    notes = _notes(evidence)
    if over:
        return Verdict(
            result=VerdictResult.OVER_TARGET,
            limited_by=limited_by,
            sentence=f"Over target: {figures}, without throttling; the server might run too hot "
            f"in production, the partition keys may be too coarse{notes}.",
        )
    return Verdict(
        result=VerdictResult.WITHIN_TARGET,
        limited_by=limited_by,
        sentence=f"Within target: {figures}; {_throttled_words(snapshot)}{notes}.",
    )


def _named(view: PartitionView) -> str:
    return f"partition {view.key!r}"


def _throttled_words(snapshot: Snapshot) -> str:
    if snapshot.throttled == 0:
        return "nothing was throttled"
    return f"{snapshot.throttled:,} attempts were throttled ({snapshot.throttled_ratio:.2%})"


def _latency_words(snapshot: Snapshot) -> str:
    service = snapshot.service
    return "" if service is None else f" of {service.p50_s * 1000:,.1f} ms at the median"


def _notes(evidence: Evidence) -> str:
    notes = ""
    if indicative(evidence.entity_bytes):
        size = f"{evidence.entity_bytes:,} B"
        notes += f" (indicative: targets hold for 1 KiB entities, these have {size})"
    return notes + _origin(evidence.kind)


def _origin(kind: EndpointKind) -> str:
    """Where the figures come from, if they are not the service's."""
    if kind is EndpointKind.AZURITE:
        return " (this was the Azurite emulator, not Azure)"
    return f" (this was {kind.described})" if kind is EndpointKind.GATEWAY else ""


def exit_code(
    *,
    invariants_hold: bool,
    enough: bool,
    verdict: Verdict,
    conditions: tuple[ConditionResult, ...],
) -> int:
    """The exit code of a run that was sent: 4, 3, 1 or 0, the first that matches."""
    if not invariants_hold:
        return 4
    unknown = any(condition.passed is None for condition in conditions)
    if not enough or unknown:
        return 3
    doubtful = (VerdictResult.CLIENT_LIMITED, VerdictResult.INCONCLUSIVE)
    if conditions and verdict.result in doubtful:
        return 3
    if any(condition.passed is False for condition in conditions):
        return 1
    return 0
