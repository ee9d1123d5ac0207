"""The verdict of a run: one sentence with figures, the side that limited the rate, and advice."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from harness.measure.record.findings import AdvicePart, ConditionPart, SearchPart, VerdictPart
from harness.measure.verdict.advice import (
    on_account,
    on_cosmos_keys,
    on_endpoint,
    on_gateway,
    on_keys,
    on_missed,
    on_throttling,
    on_throughput,
    on_users,
)
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.observations import (
    SHOWN_GAP_S,
    all_wait,
    gap_words,
    named,
    sentences,
    throttled_words,
    throttling_words,
)
from harness.measure.verdict.request_units import ThrottlingCause, throttled_of_cosmos, usage_of
from harness.measure.verdict.sizing import on_generator
from harness.model.figures import agreed, counted, milliseconds, number, percent
from harness.model.outcome import Scope, throttled_of
from harness.model.target import TARGET_ENTITY_BYTES, EndpointKind

THROTTLED_FROM = 0.001
"""Share of throttled attempts from which a run counts as throttled."""
FAILING_FROM = 0.01
"""Share of failed operations, without throttled ones, from which no other verdict is possible."""


class VerdictResult(enum.StrEnum):
    """What a run found."""

    WITHIN_TARGET = "within_target"
    OVER_TARGET = "over_target"
    THROTTLED = "throttled"
    CLIENT_LIMITED = "client_limited"
    ENDPOINT_LIMITED = "endpoint_limited"
    NO_TARGET = "no_target"
    INCONCLUSIVE = "inconclusive"


_SEARCH_LIMITS = {
    "client-limited": (VerdictResult.CLIENT_LIMITED, "generator"),
    "users": (VerdictResult.CLIENT_LIMITED, "users"),
    "latency": (VerdictResult.ENDPOINT_LIMITED, "endpoint"),
    "not-held": (VerdictResult.ENDPOINT_LIMITED, "endpoint"),
    "unfinished": (VerdictResult.INCONCLUSIVE, "unknown"),
}


_COSMOS_LIMITS = {
    ThrottlingCause.HOT_PARTITION: "partition",
    ThrottlingCause.THROUGHPUT: "throughput",
    ThrottlingCause.COSTLY_OPERATION: "operation",
    ThrottlingCause.UNKNOWN: "unknown",
}


def indicative(entity_bytes: int) -> bool:
    """Whether targets are only indicative, because entities do not have their size of 1 KiB.

    A size of 0 is unknown.
    """
    return entity_bytes > 0 and not 0.9 <= entity_bytes / TARGET_ENTITY_BYTES <= 1.1


def judge(evidence: Evidence, search: SearchPart | None = None) -> VerdictPart:
    """The verdict on a run; if it was a search, its result decides."""
    verdict = _finding(evidence) if search is None else _searched(search, evidence)
    advice = (*verdict.advice, *on_missed(evidence))
    told = {
        "sentence": evidence.kind.worded(verdict.sentence),
        "evidence": tuple(map(evidence.kind.worded, sentences(evidence))),
        "advice": advice,
    }
    return verdict.model_copy(update=told)


def _searched(search: SearchPart, evidence: Evidence) -> VerdictPart:
    # Steps above the limit are throttled or slow on purpose, so that the run as a whole says
    # nothing.
    snapshot, targets = evidence.snapshot, evidence.targets
    advice: Iterable[AdvicePart] = ()
    if search.limited_by == "throttled":
        attempts = snapshot.attempts
        account = throttled_of(attempts, Scope.ACCOUNT) > throttled_of(attempts, Scope.PARTITION)
        result, limited_by = VerdictResult.THROTTLED, "account" if account else "partition"
        advice = on_throttling(evidence, by_account=account)
    elif search.limited_by == "maximum":
        result, limited_by = VerdictResult.WITHIN_TARGET, "load"
        over = targets is not None and (search.rate_per_s or 0.0) > targets.partition
        if over and len(snapshot.partitions) == 1:
            result, advice = VerdictResult.OVER_TARGET, on_keys(evidence)
    else:
        result, limited_by = _SEARCH_LIMITS[search.limited_by]
        if limited_by == "generator":
            advice = on_generator(evidence)
        elif limited_by == "endpoint":
            advice = on_endpoint(evidence)
    return _verdict(result, limited_by, search.sentence, advice)


def _finding(evidence: Evidence) -> VerdictPart:
    """The verdict without its evidence: the first one that applies, the most certain ones first."""
    if (lack := evidence.shortcoming) is not None:
        return _verdict(VerdictResult.INCONCLUSIVE, "unknown", f"Inconclusive: {lack}.")
    if evidence.snapshot.throttled_ratio >= THROTTLED_FROM:
        return _throttled(evidence)
    if (broken := _failing(evidence)) is not None:
        return _verdict(VerdictResult.INCONCLUSIVE, "unknown", broken)
    if evidence.watched is not None:
        return _finding_of_application(evidence)
    if (why := evidence.generator_limit) is not None:
        return _client_limited(evidence, "generator", why)
    busy, grown = evidence.users_are_busy, evidence.latency_grew
    if evidence.missed:
        if not busy:
            return _missed_by_idle_users(evidence)
        if evidence.scheduled and grown is False:
            why = (
                f"{all_wait(evidence.users)} for answers, which took no longer than under light "
                "load, so that more users are needed"
            )
            return _client_limited(evidence, "users", why)
        return _endpoint_limited(evidence)
    against = _against_targets(evidence, "load" if evidence.reached else "unknown")
    within = against.result in (VerdictResult.WITHIN_TARGET, VerdictResult.NO_TARGET)
    if within and not evidence.reached and busy and grown:
        return _endpoint_limited(evidence)
    return against


def _finding_of_application(evidence: Evidence) -> VerdictPart:
    """The verdict on a watched application, whose highest possible rate is unknown."""
    against = _against_targets(evidence, "load")
    if against.result == VerdictResult.OVER_TARGET:
        return against
    limit, limited_by = evidence.gateway_limit, "gateway"
    if limit is None:
        limit, limited_by = evidence.generator_limit, "application"
    if limit is None:
        return against
    return _verdict(
        VerdictResult.CLIENT_LIMITED,
        limited_by,
        f"Client-limited: {limit}. {number(evidence.rate(evidence.snapshot.entities_per_s))} "
        "entities/s in the best 10 s is not the limit of the endpoint.",
        on_gateway(evidence) if limited_by == "gateway" else (),
    )


def _verdict(
    result: VerdictResult, limited_by: str, sentence: str, advice: Iterable[AdvicePart] = ()
) -> VerdictPart:
    return VerdictPart(
        result=result, limited_by=limited_by, sentence=sentence, advice=tuple(dict.fromkeys(advice))
    )


def _failing(evidence: Evidence) -> str | None:
    """The sentence of a run with too many failures for any other verdict, or None."""
    operations = sum(evidence.snapshot.outcomes.values())
    failed = evidence.service_failures
    total = sum(failed.values())
    if not total or total < FAILING_FROM * operations:
        return None
    most = max(failed, key=lambda outcome: failed[outcome])
    return (
        f"Inconclusive: {total:,} of {counted(operations, 'operation')} failed "
        f"({percent(total / operations)}), most of them with {most}; see errors.jsonl. "
        "The rates and latencies of this run say nothing about the capacity of the endpoint."
    )


def _throttled(evidence: Evidence) -> VerdictPart:
    snapshot, throttling = evidence.snapshot, evidence.throttling
    by_account = throttled_of(snapshot.attempts, Scope.ACCOUNT) * 2 > snapshot.throttled
    most = evidence.most_throttled
    where, account = "most of them for the account", evidence.most_throttled_account
    cosmos = throttled_of_cosmos(evidence) if evidence.kind.cosmos else None
    if not by_account and most is not None:
        of = f" of account {most.account}" if most.account else ""
        rate = f"{number(most.entities_per_s.mean)} entities/s"
        if most.request_units is not None:
            rate = f"{number(most.request_units.per_s.mean)} RU/s"
        part = "all" if most.throttled == snapshot.throttled else "most"
        where = f"{part} of them for {named(most)}{of} ({rate})"
        if most.throttled * 2 < snapshot.throttled:
            share = percent(most.throttled / snapshot.throttled)
            where = f"{share} of them for {named(most)}{of} ({rate}), the most of any partition"
    elif account is not None:
        rate = f"{number(account.entities_per_s.mean)} entities/s"
        where = f"most of them for account {account.name} ({rate})"
    course = "" if throttling.first_s is None else f"; {throttling_words(throttling)}"
    gap = throttling.longest_gap
    if gap is not None and gap.length_s >= SHOWN_GAP_S:
        course += f"; {gap_words(gap)}"
    answer = "" if cosmos is None else f". {cosmos.described}"
    limited_by = "account" if by_account else "partition"
    return _verdict(
        VerdictResult.THROTTLED,
        limited_by if cosmos is None else _COSMOS_LIMITS[cosmos.cause],
        f"Throttled: {snapshot.throttled:,} of {counted(snapshot.counts.attempts, 'attempt')} "
        f"({percent(snapshot.throttled_ratio)}) {agreed(snapshot.throttled, 'was', 'were')} "
        f"throttled, {where}{course}"
        f"{answer}{origin_words(evidence.kind)}.",
        on_throttling(evidence, by_account=by_account),
    )


def _client_limited(evidence: Evidence, limited_by: str, why: str) -> VerdictPart:
    return _verdict(
        VerdictResult.CLIENT_LIMITED,
        limited_by,
        f"Client-limited: {why}. {number(evidence.achieved_per_s)} entities/s is the limit of the "
        "generator, not of the endpoint.",
        on_users(evidence) if limited_by == "users" else on_generator(evidence),
    )


def _endpoint_limited(evidence: Evidence) -> VerdictPart:
    """The verdict if users could not send more because they were waiting for answers."""
    wanted, service = evidence.wanted_per_s, evidence.snapshot.service_ms
    of = "" if wanted is None else f" of the wanted {number(wanted)}"
    latency = "" if service is None else f" ({milliseconds(service.p50)} ms at the median)"
    why = "The endpoint answers too slowly for this number of users."
    if evidence.latency_grew and evidence.growth is not None:
        why = (
            f"Latency is {number(evidence.growth)} times that under light load: the endpoint is at "
            "its capacity."
        )
    return _verdict(
        VerdictResult.ENDPOINT_LIMITED,
        "endpoint",
        f"Endpoint-limited: {number(evidence.achieved_per_s)}{of} entities/s were served. Nothing "
        "was throttled and the generator was not busy, but "
        f"{all_wait(evidence.users)} for answers{latency}. {why}",
        on_users(evidence) if evidence.latency_grew is False else on_endpoint(evidence),
    )


def _missed_by_idle_users(evidence: Evidence) -> VerdictPart:
    """The wanted rate was missed although users, generator and endpoint had time."""
    if not evidence.scheduled:
        return _against_targets(evidence, "users")
    if not evidence.behind:
        # All were sent, but operations that change nothing have no entity count.
        return _against_targets(evidence, "load")
    return _client_limited(
        evidence,
        "generator",
        f"{evidence.unsent:,} of {counted(evidence.snapshot.counts.due, 'due operation')} "
        f"{agreed(evidence.unsent, 'was', 'were')} not sent although users were free",
    )


def _against_targets(evidence: Evidence, limited_by: str) -> VerdictPart:
    snapshot, targets = evidence.snapshot, evidence.targets
    busiest, account = snapshot.busiest_account, evidence.rate(snapshot.account_rates)
    if targets is None:
        if snapshot.request_units is not None:
            return _against_throughput(evidence, limited_by)
        everything = evidence.rate(snapshot.entities_per_s)
        if evidence.kind is EndpointKind.AZURITE_BLOBS:
            return _verdict(
                VerdictResult.NO_TARGET,
                limited_by,
                "No target: the documents name none for blobs. The run made "
                f"{number(everything)} entities/s; "
                f"{throttled_words(snapshot)}{origin_words(evidence.kind)}.",
            )
        why = ", which counts request units, and no answer named its charge"
        return _verdict(
            VerdictResult.INCONCLUSIVE,
            limited_by,
            f"No entities/s target applies to {evidence.kind.described}"
            f"{why if evidence.kind.cosmos else ''}; the endpoint served "
            f"{number(everything)} entities/s without throttling.",
        )
    hottest = evidence.busiest
    partition = 0.0 if hottest is None else evidence.rate(hottest.entities_per_s)
    name = "no partition" if hottest is None else named(hottest)
    which = "the account"
    if busiest is not None:
        which = f"account {busiest.name}, the busiest of {len(snapshot.accounts)},"
    figures = (
        f"{name} served {number(partition)} entities/s "
        f"({percent(partition / targets.partition)} of the target of {number(targets.partition)}), "
        f"{which} {number(account)} ({percent(account / targets.account)} of "
        f"{number(targets.account)}); {throttled_words(snapshot)}"
    )
    advice: list[AdvicePart] = []
    if partition > targets.partition:
        advice += on_keys(evidence)
    if account > targets.account:
        advice += on_account(evidence)
    result, lead, danger = VerdictResult.WITHIN_TARGET, "Within target", ""
    if advice:
        result, lead = VerdictResult.OVER_TARGET, "Over target"
        danger = f", but {_danger(evidence, partition > targets.partition)}"
    return _verdict(result, limited_by, f"{lead}: {figures}{danger}{_notes(evidence)}.", advice)


def _against_throughput(evidence: Evidence, limited_by: str) -> VerdictPart:
    """The verdict on a run against Cosmos DB, in request units."""
    most = evidence.costliest
    usage = usage_of(evidence, "no partition" if most is None else named(most))
    over = usage.partition_over or usage.account_over
    advice = on_throughput(evidence) if over and not usage.partition_over else ()
    return _verdict(
        VerdictResult.OVER_TARGET if over else VerdictResult.WITHIN_TARGET,
        limited_by,
        f"{'Over' if over else 'Within'} target: {usage.described}; "
        f"{throttled_words(evidence.snapshot)}"
        f"{', but requests might be throttled in production' if over else ''}"
        f"{', each in its best 10 s' if evidence.watched else ''}{origin_words(evidence.kind)}.",
        on_cosmos_keys(evidence, most) if usage.partition_over else advice,
    )


def _danger(evidence: Evidence, partition: bool) -> str:
    """What a rate over the target means in production: of a partition, or of the account alone."""
    account = evidence.snapshot.busiest_account
    named_account = "the account" if account is None else f"account {account.name}"
    where = "the server might run too hot" if partition else f"{named_account} might throttle"
    cause = ""
    if evidence.queries_are_most:
        cause = "; queries may scan too many entities"
    elif partition:
        cause = "; the partition keys may be too coarse"
    return f"{where} in production{cause}"


def _notes(evidence: Evidence) -> str:
    notes = "" if evidence.watched is None else ", each in its best 10 s"
    counts = evidence.snapshot.counts
    if counts.entities_estimated:
        share = percent(counts.entities_estimated / counts.entities)
        notes += f" (at least: {share} of the entities are a lower bound of what queries scanned)"
    if indicative(evidence.entity_bytes):
        size = f"{evidence.entity_bytes:,} B"
        notes += f" (indicative: targets hold for 1 KiB entities, these have {size})"
    return notes + origin_words(evidence.kind)


def origin_words(kind: EndpointKind) -> str:
    """What answered if it was not the service, behind the figures of a verdict."""
    if kind in (EndpointKind.AZURITE, EndpointKind.AZURITE_BLOBS):
        return " (this was the Azurite emulator, not Azure)"
    if kind is EndpointKind.COSMOS_EMULATOR:
        return " (this was a stand-in for Cosmos DB, not Azure)"
    return f" (this was {kind.described})" if kind.emulated else ""


def exit_code(
    *,
    invariants_hold: bool,
    enough: bool,
    verdict: VerdictPart,
    conditions: Sequence[ConditionPart],
) -> int:
    """The exit code of a run: the first of 4, 3, 1 and 0 that applies.

    A condition that certainly failed gives 1, however short the run was.
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
    return 1 if any(condition.passed is False for condition in conditions) else 0
