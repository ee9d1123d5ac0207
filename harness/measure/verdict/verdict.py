"""The verdict of a run: one sentence with figures, and the side that limited the rate."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from harness.measure.record.enforced import LIMITS, partition_limit_of
from harness.measure.record.findings import SearchPart, VerdictPart
from harness.measure.verdict.conditions import ConditionResult
from harness.measure.verdict.evidence import AS_KNOWN, Evidence, named
from harness.measure.verdict.failures import throttled_kinds
from harness.measure.verdict.observations import (
    SHOWN_GAP_S,
    all_wait,
    gap_words,
    likely_words,
    of_attempts,
    of_generator,
    of_latency,
    of_rate,
    of_waiting,
    sentences,
    throttled_words,
    throttling_words,
    waiting_words,
)
from harness.measure.verdict.request_units import Usage, throttled_by_units
from harness.model.figures import agreed, counted, milliseconds, number, percent
from harness.model.outcome import Scope, throttled_of
from harness.model.target import indicative

THROTTLED_FROM = 0.001
"""Share of throttled attempts from which a run counts as throttled."""


class VerdictResult(enum.StrEnum):
    """What a run found."""

    WITHIN_TARGET = "within_target"
    OVER_TARGET = "over_target"
    THROTTLED = "throttled"
    FAILING = "failing"
    CLIENT_LIMITED = "client_limited"
    ENDPOINT_LIMITED = "endpoint_limited"
    NO_TARGET = "no_target"
    INCONCLUSIVE = "inconclusive"


_DOUBTFUL = (VerdictResult.CLIENT_LIMITED, VerdictResult.INCONCLUSIVE)
_SEARCH_LIMITS = {
    "client-limited": (VerdictResult.CLIENT_LIMITED, "generator"),
    "users": (VerdictResult.CLIENT_LIMITED, "users"),
    "latency": (VerdictResult.ENDPOINT_LIMITED, "endpoint"),
    "not-held": (VerdictResult.ENDPOINT_LIMITED, "endpoint"),
    "failing": (VerdictResult.FAILING, "unknown"),
    "unfinished": (VerdictResult.INCONCLUSIVE, "unknown"),
}
_DECISIVE = {
    "users": (of_rate, of_latency, of_waiting),
    VerdictResult.CLIENT_LIMITED: (of_rate, of_generator),
    VerdictResult.ENDPOINT_LIMITED: (of_rate, of_latency, of_waiting),
    VerdictResult.THROTTLED: (of_rate, of_latency),
}
_TELLING = (of_rate, of_attempts, of_latency)
"""Topics of the evidence that decide a verdict, or say more than its sentence."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limiter:
    """What kept the rate from being higher, in words.

    Attributes:
        described: Its name.
        headline: Of a client-limited run, the verdict in one short sentence.
        rest: Likewise, what the measured rate is: the end of its sentence.
    """

    described: str
    headline: str = "The generator was the limit, not the endpoint."
    rest: str = "is the limit of the generator, not of the endpoint"


GENERATOR = Limiter(described="the generator")
LIMITERS = {
    "application": Limiter(
        described="the application", headline="The application was the limit, not the endpoint."
    ),
    "gateway": Limiter(
        described="the gateway", headline="The gateway was the limit, not the endpoint."
    ),
    "load": Limiter(described="the requested load"),
    "generator": GENERATOR,
    "machine": Limiter(
        described="other processes on the machine",
        # Whether answers were late by themselves cannot be told.
        rest="was reached beside them: the limit of the endpoint is unknown",
    ),
    "endpoint": Limiter(described="the endpoint"),
    "users": Limiter(
        described="the users (too few, or pausing between operations)",
        headline="There were too few users for the requested rate.",
        rest="is the limit of so many users, whatever the endpoint would serve",
    ),
    "throughput": Limiter(described="the provisioned throughput"),
    "operation": Limiter(described="the cost of single operations"),
    "size": Limiter(described="the size of a partition"),
    **{name: Limiter(described=rule.described) for name, rule in LIMITS.items()},
}
"""By `VerdictPart.limited_by`; what is not here is unknown."""


def is_doubtful(verdict: VerdictPart) -> bool:
    """Whether it leaves open if a condition holds that depends on the rate."""
    users = verdict.result == VerdictResult.ENDPOINT_LIMITED and verdict.limited_by == "unknown"
    return users or verdict.result in _DOUBTFUL


def judge(evidence: Evidence, search: SearchPart | None = None) -> VerdictPart:
    """The verdict on a run; if it was a search, its result decides."""
    verdict = _finding(evidence) if search is None else _searched(search, evidence)
    failures = evidence.failures
    also, failed = "", f"{failures.brief}." if failures.said else ""
    if failed and failures.described not in verdict.sentence:
        also = f" {failures.described[:1].upper()}{failures.described[1:]}."
    if failed and verdict.result == VerdictResult.FAILING:
        failed = f"{failures.cause}: {failed}"
    decisive = _DECISIVE.get(verdict.limited_by, _DECISIVE.get(verdict.result, _TELLING))
    also += evidence.untargeted.refused
    told = {
        "sentence": f"{verdict.sentence}{also}",
        "why": verdict.why and f"{verdict.why}{also}",
        "by_best": evidence.by_best,
        "footnote": _footnote(evidence, verdict),
        "failures": failed,
        "evidence": (*sentences(evidence, decisive), *evidence.untargeted.told),
    }
    return verdict.model_copy(update=told)


def _searched(search: SearchPart, evidence: Evidence) -> VerdictPart:
    # Steps above the limit are throttled or slow on purpose: the run as a whole says nothing.
    also = ""
    if search.limited_by == "throttled":
        result, limited_by = VerdictResult.THROTTLED, evidence.throttled_by
    elif search.limited_by == "maximum":
        result, limited_by = VerdictResult.WITHIN_TARGET, "load"
        if over := _over_at(evidence, search.rate_per_s or 0.0):
            result, also = VerdictResult.OVER_TARGET, f" At this rate {over}."
        if evidence.failures.failing:
            result = VerdictResult.FAILING
    else:
        result, limited_by = _SEARCH_LIMITS[search.limited_by]
    return _verdict(result, limited_by, f"{search.sentence}{also}")


def _over_at(evidence: Evidence, per_s: float) -> str:
    """What would be over its target at a rate, as a clause; empty if nothing would."""
    targets, busiest, snapshot = evidence.targets, evidence.busiest, evidence.snapshot
    if targets is None or busiest is None:
        return ""
    own = busiest.partition.held_to(targets)
    if per_s * busiest.entities > own.partition * snapshot.counts.entities:
        return f"{named(busiest)} is over its {own.named('partition')}"
    over = per_s > targets.account * max(1, len(snapshot.accounts))
    return f"the account is over its {targets.named('account')}" if over else ""


def _finding(evidence: Evidence) -> VerdictPart:
    """The verdict without its evidence: the first one that applies, the most certain ones first."""
    throttled = evidence.snapshot.throttled_ratio >= THROTTLED_FROM
    if (lack := evidence.shortcoming) is not None:
        also = f"; {throttled_words(evidence.snapshot)}" if throttled else ""
        return _reasoned(VerdictResult.INCONCLUSIVE, "unknown", f"{lack}{also}.")
    if evidence.untargeted.alone:
        return _against_targets(evidence, "unknown")
    if _fails_most(evidence, throttled=throttled):
        return _failing(evidence)
    if throttled:
        return _throttled(evidence)
    if evidence.watched is not None:
        return _finding_of_application(evidence)
    busy, grown = evidence.users_are_busy, evidence.latency_grew
    # A busy machine keeps nobody in back-off.
    backing_off = evidence.missed and evidence.backing_off * 2 > evidence.users
    if not backing_off and (limit := evidence.client_limit) is not None:
        return _client_limited(evidence, limit.by, limit.why)
    if evidence.missed:
        if backing_off or (not busy and evidence.users_are_held):
            return _client_limited(evidence, "users", f"on average {waiting_words(evidence)}")
        if not busy and not evidence.behind:
            # Of a schedule all were sent, but operations that change nothing have no entity count.
            return _against_targets(evidence, "load" if evidence.scheduled else "users")
        if not busy and not evidence.behind_s:
            of = counted(evidence.snapshot.counts.due, "due operation")
            why = f"{evidence.unsent:,} of {of} did not leave in time"
            return _client_limited(evidence, "generator", why)
        if busy and grown is False:
            why = f"{all_wait(evidence)}, which took less than twice as long as under light load"
            return _client_limited(evidence, "users", f"{why}, so that more users are needed")
        return _endpoint_limited(evidence)
    against = _against_targets(evidence, "load" if evidence.reached else "unknown")
    within = against.result in (VerdictResult.WITHIN_TARGET, VerdictResult.NO_TARGET)
    if within and (evidence.overrun or (not evidence.reached and busy and grown)):
        return _endpoint_limited(evidence)
    return against


def _fails_most(evidence: Evidence, *, throttled: bool) -> bool:
    """Whether failures are the finding, and neither throttling nor a generator without time."""
    failures = evidence.failures
    if not failures.failing or failures.decisive:
        return failures.failing
    if throttled:
        return failures.failed_attempts > evidence.snapshot.throttled
    # A generator without time does not see an answer in time.
    return not failures.only_time_outs or evidence.client_limit is None


def _finding_of_application(evidence: Evidence) -> VerdictPart:
    """The verdict on a watched application, whose highest possible rate is unknown."""
    against = _against_targets(evidence, "unknown" if evidence.waits_for_answers else "load")
    if against.result == VerdictResult.OVER_TARGET or (limit := evidence.client_limit) is None:
        return against
    rate = evidence.judged_words(evidence.snapshot.entities_per_s)
    return _reasoned(
        VerdictResult.CLIENT_LIMITED,
        limit.by,
        f"{limit.why}.",
        f" {rate.capitalize()} is not the limit of the endpoint.",
    )


def _verdict(result: VerdictResult, by: str, said: str, bounded: bool = False) -> VerdictPart:
    return VerdictPart(result=result, limited_by=by, sentence=said, bounded=bounded)


def _reasoned(result: VerdictResult, limited_by: str, why: str, more: str = "") -> VerdictPart:
    """A verdict whose sentence is its name, the reason, and ``more``."""
    return VerdictPart(
        result=result,
        limited_by=limited_by,
        sentence=f"{result.replace('_', '-').capitalize()}: {why}{more}",
        why=f"{why[:1].upper()}{why[1:]}",
    )


def _failing(evidence: Evidence) -> VerdictPart:
    """The verdict on a run in which too much failed for one about targets."""
    failures, snapshot = evidence.failures, evidence.snapshot
    throttled = f", and {throttled_words(snapshot)}" if snapshot.throttled else ""
    nothing = " The rates and latencies of this run say nothing about its capacity."
    rates = nothing * failures.decisive
    found = f"{failures.described}{throttled}; see errors.jsonl."
    return VerdictPart(
        result=VerdictResult.FAILING,
        limited_by="size" if failures.full else "unknown",
        sentence=f"Failing: {found} {failures.cause}.{rates}",
        why=f"{found}{rates}",
    )


def _throttled(evidence: Evidence) -> VerdictPart:
    snapshot, throttling = evidence.snapshot, evidence.throttling
    units = throttled_by_units(evidence) if evidence.kind.charges else None
    of_account = throttled_of(snapshot.attempts, Scope.ACCOUNT)
    by = evidence.throttled_by if units is None else units.cause.value
    course = "" if throttling.first_s is None else f"; {throttling_words(evidence)}"
    if units is None and evidence.enforced is None:
        course = f"{_others(evidence, of_account, by)}{course}"
    gap = throttling.longest_gap
    if gap is not None and gap.length_s >= SHOWN_GAP_S:
        course += f"; {gap_words(gap)}"
    answer = "" if units is None else f". {units.described}"
    if units is None and by not in ("partition", "account"):
        answer = f". Only {kinds} failed for good" if (kinds := throttled_kinds(snapshot)) else ""
        if by == "unknown":
            others = " of the others" if of_account else ""
            answer = f". No limit is known to be the cause{others}{likely_words(evidence)}{answer}"
    return _verdict(
        VerdictResult.THROTTLED,
        "generator" if by == "partition" and evidence.throttled_beside_generator else by,
        f"Throttled: {snapshot.throttled:,} of {counted(snapshot.counts.attempts, 'attempt')} "
        f"({percent(snapshot.throttled_ratio)}) {agreed(snapshot.throttled, 'was', 'were')} "
        f"throttled, {_where(evidence, by).lstrip()}{course}{answer}.",
    )


def _where(evidence: Evidence, by: str) -> str:
    """Where most attempts were throttled."""
    snapshot, most = evidence.snapshot, evidence.most_throttled
    account, enforced, unit = evidence.most_throttled_account, evidence.enforced, evidence.unit
    if enforced is not None and by in LIMITS and (rule := LIMITS[by]).covers:
        part = _part(enforced.refusals[by], sum(enforced.refusals.values()))
        rate = f"{number(enforced.rates[by])} {unit.rate}"
        return f"{part} by the limit of {rule.whose}: {rate} for {rule.covers}"
    if by == "account" or most is None:
        count, of_all = throttled_of(snapshot.attempts, Scope.ACCOUNT), snapshot.throttled
        where, rates = "the account", snapshot.account_rates
        if account is not None:
            count, where = account.throttled(Scope.ACCOUNT), f"account {account.name}"
            rates = account.entities_per_s
        elif enforced is not None and enforced.refused_by is not None:
            count, of_all = enforced.refusals[by], sum(enforced.refusals.values())
        targets = evidence.targets if enforced is None else None
        of = ""
        if targets is not None and targets.of_account is not None:
            share = evidence.share_words(evidence.rate(rates), targets.account)
            of = f", {share} of its {targets.named('account')}"
        return f"{_part(count, of_all)} for {where} ({evidence.judged_words(rates)}{of})"
    of = f" of account {most.account}" if most.account else ""
    rate, limit = evidence.judged_words(most.entities_per_s, most), evidence.limit_of(most)
    if most.request_units is not None:
        rate = f"{number(most.request_units.per_s.mean)} RU/s"
    elif by == "unknown" and limit is not None and not most.partition.whole_table:
        own = most.partition.held_to(evidence.targets)
        own = own if partition_limit_of(enforced) is None else None
        held = f"limit of {number(limit)}" if own is None else own.named("partition")
        share = evidence.share_words(evidence.rate(most.entities_per_s), limit, most)
        rate += f", {share} of its {held}"
    least = ", the most of any partition" if most.throttled * 2 < snapshot.throttled else ""
    return f"{_part(most.throttled, snapshot.throttled)} for {named(most)}{of} ({rate}){least}"


def _others(evidence: Evidence, of_account: int, by: str) -> str:
    """The attempts that were not throttled by the limit that throttled most."""
    if by != "account":
        return f", {of_account:,} by the account's limit" if of_account else ""
    refused = [
        (throttled_of(part.attempts, Scope.PARTITION), part)
        for part in evidence.snapshot.single_partitions
    ]
    count = throttled_of(evidence.snapshot.attempts, Scope.PARTITION)
    most, hottest = max(refused, key=lambda one: one[0], default=(0, None))
    if not count or hottest is None or most * 2 < count:
        return f", and {count:,} for another reason" if count else ""
    where = f"{_part(most, count)} for {named(hottest)}".lstrip()
    return f", and {count:,} for another reason ({where})"


def _part(count: int, throttled: int) -> str:
    if throttled == 1:
        return ""
    share = "most" if count * 2 >= throttled else percent(count / throttled)
    return f"{'all' if count >= throttled else share} of them"


def _client_limited(evidence: Evidence, limited_by: str, why: str) -> VerdictPart:
    rate = evidence.rate_words(evidence.achieved_per_s).capitalize()
    return _reasoned(
        VerdictResult.CLIENT_LIMITED, limited_by, f"{why}.", f" {rate} {LIMITERS[limited_by].rest}."
    )


def _endpoint_limited(evidence: Evidence) -> VerdictPart:
    """The verdict if users could not send more because they were waiting for answers."""
    wanted, service = evidence.wanted_per_s, evidence.snapshot.service_ms
    of = "" if wanted is None else f" of the wanted {number(wanted)}"
    latency = "" if service is None else f" ({milliseconds(service.p50)} ms at the median)"
    limited_by, why = "unknown", "Whether more users would send more is unknown."
    if evidence.growth is not None:
        limited_by, why = (
            "endpoint",
            f"Latency is {number(evidence.growth)} times that under light load: the endpoint is at "
            "its capacity.",
        )
    return _reasoned(
        VerdictResult.ENDPOINT_LIMITED,
        limited_by,
        f"{evidence.at_least()}{number(evidence.achieved_per_s)}{of} {evidence.unit.rate} were "
        f"served; {throttled_words(evidence.snapshot)} and the generator was not busy, but "
        f"{all_wait(evidence)}{latency}. {why}",
    )


def _against_targets(evidence: Evidence, limited_by: str) -> VerdictPart:
    snapshot, targets = evidence.snapshot, evidence.targets
    busiest, account = snapshot.busiest_account, evidence.rate(snapshot.account_rates)
    if targets is None:
        if snapshot.request_units is not None:
            return _against_throughput(evidence, limited_by)
        everything = evidence.rate_words(evidence.rate(snapshot.entities_per_s))
        if not evidence.kind.documented:
            who = "run" if evidence.watched is None else "application"
            return _verdict(
                VerdictResult.NO_TARGET,
                limited_by,
                f"No target: the documents name none for {evidence.kind.partitions}. The {who} "
                f"made {everything}; {throttled_words(snapshot)}.",
            )
        why = ", which counts request units, and no answer named its charge"
        return _verdict(
            VerdictResult.INCONCLUSIVE,
            limited_by,
            f"No {evidence.unit.rate} target applies to {evidence.kind.described}"
            f"{why if evidence.kind.charges else ''}; the endpoint served "
            f"{everything}; {throttled_words(snapshot)}.",
        )
    which, over = "the account", False
    if busiest is not None:
        which = f"account {busiest.name}, the busiest of {len(snapshot.accounts)},"
    is_other = targets.word("account") != targets.word("partition")
    whole = f"the {targets.named('account')}" if is_other else number(targets.account)
    rate, hottest = f"{evidence.at_least()}{number(account)}", evidence.busiest
    if hottest is None:
        figures = f"only queries over several partitions were sent; {which} served {rate} "
        figures += f"{evidence.unit.rate}{evidence.judged_over}"
    else:
        own, partition = hottest.partition.held_to(targets), evidence.rate(hottest.entities_per_s)
        over = partition > own.partition
        figures = (
            f"{_when(evidence)}{named(hottest)} served {evidence.rate_words(partition, hottest)} "
            f"({evidence.share_words(partition, own.partition, hottest)} of the "
            f"{own.named('partition')}), {which} {rate}"
        )
    if targets.of_account is not None:
        figures += f" ({evidence.share_words(account, targets.account)} of {whole})"
    if evidence.missed and evidence.wanted_per_s and not evidence.scheduled:
        held = evidence.share_words(evidence.achieved_per_s, evidence.wanted_per_s)
        figures += f", {held} of the wanted {number(evidence.wanted_per_s)}"
    figures += f"; {throttled_words(snapshot)}"
    scans = any(part.entities for part in snapshot.partitions if part.partition.whole_table)
    if over or account > targets.account:
        figures += f", but {_danger(evidence, over)}"
        return _verdict(VerdictResult.OVER_TARGET, limited_by, f"Over target: {figures}.")
    return _within(limited_by, figures, bounded=bool(evidence.at_least() or scans))


def _against_throughput(evidence: Evidence, limited_by: str) -> VerdictPart:
    """The verdict on a run against Cosmos DB, in request units."""
    usage = Usage(evidence)
    figures = f"{_when(evidence)}{usage.described}; {throttled_words(evidence.snapshot)}"
    if usage.partition_over or usage.account_over:
        said = f"Over target: {figures}, but requests might be throttled in production."
        return _verdict(VerdictResult.OVER_TARGET, limited_by, said)
    return _within(limited_by, figures, bounded=usage.bounded)


def _within(limited_by: str, figures: str, *, bounded: bool) -> VerdictPart:
    said = f"Within target{AS_KNOWN * bounded}: {figures}."
    return _verdict(VerdictResult.WITHIN_TARGET, limited_by, said, bounded)


def _when(evidence: Evidence) -> str:
    return f"{evidence.judged_over.lstrip()} of each, " if evidence.by_best else ""


def _danger(evidence: Evidence, partition: bool) -> str:
    """What a rate over the target means in production: of a partition, or of the account alone."""
    account = evidence.snapshot.busiest_account
    named_account = "the account" if account is None else f"account {account.name}"
    where = "the server might run too hot" if partition else f"{named_account} might throttle"
    cause = ""
    if evidence.queries_are_most:
        cause = f"; queries may scan too many {evidence.unit.many}"
    elif partition:
        cause = "; the partition keys may be too coarse"
    return f"{where} in production{cause}"


def _footnote(evidence: Evidence, verdict: VerdictPart) -> str:
    """What restricts the figures of any verdict: what answered, bounds, other sizes."""
    counts, notes = evidence.snapshot.counts, [evidence.kind.origin]
    if counts.entities_estimated and evidence.targets is not None:
        share = percent(counts.entities_estimated / counts.entities)
        notes.append(f"{share} of the {evidence.unit.many} are estimated (minimum).")
    if indicative(evidence.entity_bytes) and evidence.targets is not None:
        size = f"{evidence.entity_bytes:,} B"
        many = evidence.unit.many
        notes.append(f"Indicative: targets hold for 1 KiB {many}, these have {size}.")
    if evidence.targets is not None:
        notes.append(evidence.targets.note(evidence.unit))
    if verdict.result != VerdictResult.CLIENT_LIMITED and (doubt := evidence.latency_doubt):
        busy = (limit := evidence.client_limit) is not None and limit.by == "generator"
        also = ", and hardly more could be sent" * (busy and verdict.result == "throttled")
        notes.append(f"Latencies are only upper bounds{also}: {doubt}.")
    return " ".join(filter(None, notes))


def exit_code(
    *,
    invariants_hold: bool,
    enough: bool,
    verdict: VerdictPart,
    conditions: Sequence[ConditionResult],
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
    if is_doubtful(verdict) and any(condition.depends for condition in conditions):
        return 3
    return 1 if any(condition.passed is False for condition in conditions) else 0
