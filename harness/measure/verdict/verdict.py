"""What a run means, in one sentence, with the side that limited it, the evidence, and advice."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable

from harness.measure.counts.snapshot import Snapshot
from harness.measure.figures import agreed, counted, milliseconds, number, percent
from harness.measure.record.findings import SearchPart
from harness.measure.verdict.advice import (
    Advice,
    on_account,
    on_endpoint,
    on_generator,
    on_keys,
    on_throttling,
    on_users,
)
from harness.measure.verdict.conditions import ConditionResult
from harness.measure.verdict.evidence import (
    Evidence,
    behind,
    generator_limit,
    latency_grew,
    missed,
    reached,
    service_failures,
    shortcoming,
    users_are_busy,
)
from harness.measure.verdict.observations import (
    SHOWN_GAP_S,
    all_wait,
    gap_words,
    named,
    sentences,
    throttled_words,
    throttling_words,
)
from harness.measure.verdict.throttling import Throttling, throttling_of
from harness.model.outcome import Scope, throttled_of
from harness.model.target import TARGET_ENTITY_BYTES, EndpointKind

THROTTLED_FROM = 0.001
"""Share of throttled attempts from which a run counts as throttled."""
FAILING_FROM = 0.01
"""Share of failed operations, throttled ones aside, from which nothing else can be said."""


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
            endpoint, load (the profile wanted no more), users (they were too few, or waited for
            themselves), or unknown.
        sentence: The finding in plain words, with its figures.
        evidence: What was seen, a sentence with figures each.
        advice: What the documents advise, where the run gives cause for it.
        throttling: When it came and how long it lasted.
    """

    result: VerdictResult
    limited_by: str
    sentence: str
    evidence: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    throttling: Throttling = dataclasses.field(default_factory=Throttling)


def indicative(entity_bytes: int) -> bool:
    """Whether entities of this stored size are another size than the targets hold for."""
    return not 0.9 <= entity_bytes / TARGET_ENTITY_BYTES <= 1.1


def judge(evidence: Evidence) -> Verdict:
    """The verdict that ``evidence`` leads to."""
    snapshot = evidence.snapshot
    throttling = throttling_of(snapshot.series, end=snapshot.end or None)
    return dataclasses.replace(
        _finding(evidence, throttling),
        evidence=sentences(evidence, throttling),
        throttling=throttling,
    )


def _finding(evidence: Evidence, throttling: Throttling) -> Verdict:
    """The verdict without what was seen. The first that matches, from the surest on."""
    snapshot = evidence.snapshot
    if (lack := shortcoming(evidence)) is not None:
        return _verdict(VerdictResult.INCONCLUSIVE, "unknown", f"Inconclusive: {lack}.")
    if snapshot.throttled_ratio >= THROTTLED_FROM:
        return _throttled(evidence, throttling)
    if (broken := _failing(snapshot)) is not None:
        return _verdict(VerdictResult.INCONCLUSIVE, "unknown", broken)
    if (why := generator_limit(evidence)) is not None:
        return _client_limited(evidence, "generator", why)
    busy, grown = users_are_busy(evidence), latency_grew(evidence)
    if missed(evidence):
        if not busy:
            return _missed_by_idle_users(evidence)
        if evidence.scheduled and grown is False:
            why = (
                f"{all_wait(evidence.users)} for answers, which took no longer than under light "
                "load, so that more users are needed"
            )
            return _client_limited(evidence, "users", why)
        return _endpoint_limited(evidence, grown)
    against = _against_targets(evidence, "load" if reached(evidence) else "unknown")
    within = against.result is VerdictResult.WITHIN_TARGET
    if within and not reached(evidence) and busy and grown:
        return _endpoint_limited(evidence, grown)
    return against


def _verdict(
    result: VerdictResult, limited_by: str, sentence: str, advice: Iterable[Advice] = ()
) -> Verdict:
    return Verdict(
        result=result, limited_by=limited_by, sentence=sentence, advice=tuple(dict.fromkeys(advice))
    )


def _failing(snapshot: Snapshot) -> str | None:
    """The sentence of a run in which too much went wrong to say anything, or None."""
    operations = sum(snapshot.outcomes.values())
    failed = service_failures(snapshot)
    total = sum(failed.values())
    if not total or total < FAILING_FROM * operations:
        return None
    most = max(failed, key=lambda outcome: failed[outcome])
    return (
        f"Inconclusive: {total:,} of {counted(operations, 'operation')} failed "
        f"({percent(total / operations)}), most of them with {most}; see errors.jsonl. "
        "The rates and latencies of this run say nothing about the capacity of the endpoint."
    )


def _throttled(evidence: Evidence, throttling: Throttling) -> Verdict:
    snapshot = evidence.snapshot
    account = throttled_of(snapshot.attempts, Scope.ACCOUNT)
    by_account = account * 2 > snapshot.throttled
    most = evidence.most_throttled
    where = "the account"
    if not by_account and most is not None:
        where = f"{named(most)} ({number(most.entities_per_s.mean)} entities/s)"
    course = "" if throttling.first_s is None else f"; {throttling_words(throttling)}"
    gap = throttling.longest_gap
    if gap is not None and gap.length_s >= SHOWN_GAP_S:
        course += f"; {gap_words(gap)}"
    return _verdict(
        VerdictResult.THROTTLED,
        "account" if by_account else "partition",
        f"Throttled: {snapshot.throttled:,} of {counted(snapshot.counts.attempts, 'attempt')} "
        f"({percent(snapshot.throttled_ratio)}) {agreed(snapshot.throttled, 'was', 'were')} "
        f"throttled, most of them for {where}{course}"
        f"{_origin(evidence.kind)}.",
        on_throttling(evidence, throttling, by_account=by_account),
    )


def _client_limited(evidence: Evidence, limited_by: str, why: str) -> Verdict:
    advice = on_users(evidence) if limited_by == "users" else on_generator(evidence)
    return _verdict(
        VerdictResult.CLIENT_LIMITED,
        limited_by,
        f"Client-limited: {why}. {number(evidence.achieved_per_s)} entities/s is the limit of the "
        "generator, not of the endpoint.",
        advice,
    )


def _endpoint_limited(evidence: Evidence, grown: bool | None) -> Verdict:
    """Users could send no more, for they waited; ``grown`` says whether ever longer, if known."""
    achieved, wanted = evidence.achieved_per_s, evidence.wanted_per_s
    of = "" if wanted is None else f" of the wanted {number(wanted)}"
    service = evidence.snapshot.service_ms
    latency = ""
    if service is not None:
        latency = f" ({milliseconds(service.p50)} ms at the median)"
    why = "The endpoint answers too slowly for this number of users."
    if grown and evidence.growth is not None:
        why = (
            f"Latency is {evidence.growth:,.1f} times that under light load: the endpoint is at "
            "its capacity."
        )
    return _verdict(
        VerdictResult.ENDPOINT_LIMITED,
        "endpoint",
        f"Endpoint-limited: {number(achieved)}{of} entities/s were served. Nothing was throttled "
        "and the generator was not busy, but "
        f"{all_wait(evidence.users)} for answers{latency}. {why}",
        on_users(evidence) if grown is False else on_endpoint(evidence),
    )


def _missed_by_idle_users(evidence: Evidence) -> Verdict:
    """The wanted rate was missed, although users, generator and endpoint had time."""
    if not evidence.scheduled:
        return _against_targets(evidence, "users")
    if not behind(evidence):
        # All was sent: operations that change nothing, as those that lose a race, count nothing.
        return _against_targets(evidence, "load")
    return _client_limited(
        evidence,
        "generator",
        f"{evidence.unsent:,} of {counted(evidence.snapshot.counts.due, 'due operation')} "
        f"{agreed(evidence.unsent, 'was', 'were')} not sent although users were free",
    )


def _against_targets(evidence: Evidence, limited_by: str) -> Verdict:
    snapshot = evidence.snapshot
    targets = evidence.targets
    account = evidence.achieved_per_s
    if targets is None:
        return _verdict(
            VerdictResult.INCONCLUSIVE,
            limited_by,
            f"No entities/s target applies to {evidence.kind.described}, which counts "
            f"request units; it served {number(account)} entities/s without throttling.",
        )
    hottest = snapshot.hottest
    partition = 0.0 if hottest is None else hottest.entities_per_s.mean
    name = "no partition" if hottest is None else named(hottest)
    figures = (
        f"{name} served {number(partition)} entities/s "
        f"({percent(partition / targets.partition)} of the target of {targets.partition:,.0f}), "
        f"the account {number(account)} ({percent(account / targets.account)} of "
        f"{targets.account:,.0f})"
    )
    notes = _notes(evidence)
    advice: list[Advice] = []
    if partition > targets.partition:
        advice += on_keys(evidence)
    if account > targets.account:
        advice += on_account(evidence)
    if advice:
        return _verdict(
            VerdictResult.OVER_TARGET,
            limited_by,
            f"Over target: {figures}; {throttled_words(snapshot)}, but "
            f"{_danger(evidence, partition > targets.partition)}{notes}.",
            advice,
        )
    return _verdict(
        VerdictResult.WITHIN_TARGET,
        limited_by,
        f"Within target: {figures}; {throttled_words(snapshot)}{notes}.",
    )


def _danger(evidence: Evidence, partition: bool) -> str:
    """What a rate over the target means in production: of a partition, or of the account alone."""
    where = "the server might run too hot" if partition else "the account might throttle"
    cause = ""
    if evidence.queries_are_most:
        cause = "; queries may scan too many entities"
    elif partition:
        cause = "; the partition keys may be too coarse"
    return f"{where} in production{cause}"


def _notes(evidence: Evidence) -> str:
    notes = ""
    counts = evidence.snapshot.counts
    if counts.entities_estimated:
        share = percent(counts.entities_estimated / counts.entities)
        notes += f" (at least: {share} of the entities are a lower bound of what queries scanned)"
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
    """The exit code of a run that was sent: 4, 3, 1 or 0, the first that matches.

    A condition that failed for certain leaves nothing to doubt: 1, however short the run was.
    """
    if not invariants_hold:
        return 4
    if any(condition.certain and condition.passed is False for condition in conditions):
        return 1
    if not enough or any(condition.passed is None for condition in conditions):
        return 3
    doubtful = verdict.result in (VerdictResult.CLIENT_LIMITED, VerdictResult.INCONCLUSIVE)
    if doubtful and any(condition.depends for condition in conditions):
        return 3
    if any(condition.passed is False for condition in conditions):
        return 1
    return 0


_LIMITS = {
    "client-limited": (VerdictResult.CLIENT_LIMITED, "generator"),
    "users": (VerdictResult.CLIENT_LIMITED, "users"),
    "latency": (VerdictResult.ENDPOINT_LIMITED, "endpoint"),
    "not-held": (VerdictResult.ENDPOINT_LIMITED, "endpoint"),
    "unfinished": (VerdictResult.INCONCLUSIVE, "unknown"),
}


def judge_search(verdict: Verdict, search: SearchPart, evidence: Evidence) -> Verdict:
    """The verdict, told by the search.

    Args:
        verdict: Of the run as a whole; what was seen is kept.
        search: What was found.
        evidence: Of the whole search.
    """
    snapshot, targets = evidence.snapshot, evidence.targets
    advice: tuple[Advice, ...] = ()
    if search.limited_by == "throttled":
        attempts = snapshot.attempts
        account = throttled_of(attempts, Scope.ACCOUNT) > throttled_of(attempts, Scope.PARTITION)
        result, limited_by = VerdictResult.THROTTLED, "account" if account else "partition"
        advice = tuple(on_throttling(evidence, verdict.throttling, by_account=account))
    elif search.limited_by == "maximum":
        over = targets is not None and (search.rate_per_s or 0.0) > targets.partition
        one = len(snapshot.partitions) == 1
        result = VerdictResult.OVER_TARGET if over and one else VerdictResult.WITHIN_TARGET
        limited_by = "load"
        if result is VerdictResult.OVER_TARGET:
            advice = tuple(on_keys(evidence))
    else:
        result, limited_by = _LIMITS[search.limited_by]
        helps = {"generator": on_generator, "endpoint": on_endpoint}.get(limited_by)
        advice = () if helps is None else tuple(helps(evidence))
    return dataclasses.replace(
        verdict, result=result, limited_by=limited_by, sentence=search.sentence, advice=advice
    )
