"""The verdict of a run in one short sentence: the first words of a page."""

from __future__ import annotations

from harness.measure.record.enforced import LIMITS
from harness.measure.record.findings import SearchPart
from harness.measure.record.measured import AT_LEAST, OperationPart, PartitionPart
from harness.measure.record.record import RunRecord
from harness.measure.verdict.evidence import (
    AS_KNOWN,
    FEWEST_OPERATIONS,
    REACHED_FROM,
    SHORTEST_S,
    is_near,
)
from harness.measure.verdict.verdict import GENERATOR, LIMITERS, VerdictResult
from harness.model.figures import counted, number, of_core, percent, request_units
from harness.model.outcome import Scope
from harness.profile.load.search import Limit, limit_words
from harness.report.events import stall_sentence
from harness.report.limits import (
    account_limit,
    account_rate,
    busiest,
    judged_rate,
    judged_sign,
    limit_word,
    limited_rates,
    partition_limit,
    target_of,
    target_word,
    unit_of,
)
from harness.report.load_columns import throttled_attempts, throttled_for
from harness.report.names import partition_name, shortened

_NAME_WIDTH = 32
_DOMINANT = 0.8
"""From this share of all throttled attempts on, one partition is the finding."""
WARMING_UP = "Too little was measured so far for a verdict."


def is_warming_up(record: RunRecord) -> bool:
    """Whether a run in progress has measured too little for a verdict."""
    few = record.measured_s < SHORTEST_S or record.counts.operations < FEWEST_OPERATIONS
    return record.verdict.result == VerdictResult.INCONCLUSIVE and few


def result_words(record: RunRecord) -> str:
    """The verdict's result: ``within target``, ``client limited``."""
    words = record.verdict.result.replace("_", " ")
    return f"{words}{AS_KNOWN * record.verdict.bounded}"


def headline(record: RunRecord) -> str:
    """The verdict without its figures, and the failures that it may not leave out."""
    failures, result = record.verdict.failures, record.verdict.result
    if result == VerdictResult.FAILING and record.search is None:
        return failures
    if not failures or (result == VerdictResult.INCONCLUSIVE and record.search is None):
        # Of an inconclusive run the sentence itself, which has them.
        return _finding(record)
    return f"{_finding(record)} {failures}"


def _finding(record: RunRecord) -> str:
    if record.search is not None:
        # Its steps are in this unit, whatever the service charges.
        rate = record.endpoint.service.unit.rate
        if (limit := record.search.limit) is not None:
            return f"The limit is {limit_words(limit, rate)}."
        return _searched(record.search, rate)
    verdict = record.verdict
    if verdict.result == VerdictResult.THROTTLED:
        return _throttled(record)
    if verdict.result == VerdictResult.CLIENT_LIMITED:
        if verdict.limited_by == "machine":
            return _full_machine(record)
        return LIMITERS.get(verdict.limited_by, GENERATOR).headline
    if verdict.result == VerdictResult.ENDPOINT_LIMITED:
        calm = ", without throttling" if not record.throttled_ratio else ""
        if verdict.limited_by == "unknown":
            return f"The endpoint or the number of users was the limit{calm}."
        asked, found = record.offered_per_s, "latency grew with the load"
        if asked is not None:
            less = record.account.entities_per_s.mean < REACHED_FROM * asked
            found = f"it served {'less' if less else 'later'} than was asked"
        return f"The endpoint was the limit: {found}{calm}."
    if verdict.result == VerdictResult.WITHIN_TARGET:
        return _within(record)
    if verdict.result == VerdictResult.OVER_TARGET:
        return _over(record)
    if verdict.result == VerdictResult.NO_TARGET:
        stored = record.endpoint.service.partitions
        return f"{_calm(record)}. The documents name no target for {stored}."
    return verdict.why or verdict.sentence


def verdict_lines(record: RunRecord) -> list[str]:
    """The verdict: its headline, the longest stall, and its sentence with all figures and footnote.

    The sentence stands alone where it says the headline in the same words. Of failures, whose cause
    is in the headline, it is the rest.
    """
    short, verdict, stall = headline(record), record.verdict, stall_sentence(record)
    if short.lower() in verdict.whole.lower():
        return [verdict.whole]
    said = verdict.why if verdict.result == VerdictResult.FAILING else ""
    whole = " ".join(filter(None, (said or verdict.sentence, verdict.footnote)))
    return [short, *([] if stall is None else [stall]), whole]


def _searched(search: SearchPart, unit: str) -> str:
    if search.rate_per_s is None:
        if search.limited_by == Limit.UNFINISHED:
            return "The search ended before it found a rate."
        return "No rate was found that can be sustained."
    rate = f"{'At least ' * search.at_least}{number(search.rate_per_s)} {unit}"
    if not search.confirmed:
        return f"{rate} may be sustained: no longer step confirmed it."
    return f"{rate} can be sustained."


def _throttled(record: RunRecord) -> str:
    if record.verdict.limited_by == "account":
        return _account_throttled(record)
    rule, enforced = LIMITS.get(record.verdict.limited_by), record.enforced
    if rule is not None and rule.covers and enforced is not None:
        rate = f"{number(enforced.rates[record.verdict.limited_by])} {unit_of(record)}"
        whose = f"{rule.whose[:1].upper()}{rule.whose[1:]}"
        return f"{whose} was throttled: its limit is {rate} for {rule.covers}."
    if record.verdict.limited_by == "throughput":
        used, limit = number(account_rate(record)), account_limit(record)
        of = "" if limit is None else f" of {number(limit * max(1, len(record.accounts)))}"
        return f"The provisioned throughput was used up: {used}{of} RU/s."
    if record.verdict.limited_by == "operation":
        costly = max(record.operations, key=_charged)
        each = request_units(costly.request_units_each or 0.0)
        return f"Operations cost too much: one {costly.kind} takes {each} RU."
    parts = [part for part in record.partitions if part.partition.documented]
    found = sorted(filter(throttled_attempts, parts), key=throttled_attempts, reverse=True)
    if not found:
        return "Partitions were throttled."
    used, attempts = _used(record), sum(map(throttled_attempts, found))
    throttled = [part for part in found if not part.partition.whole_table]
    unknown = record.verdict.limited_by == "unknown"
    limits = [partition_limit(record, part) for part in throttled]
    away = (
        (part, limit)
        for part, limit in zip(throttled, limits, strict=True)
        if unknown and not is_near(limited_rates(part), limit)
    )
    far, limit = next(away, (None, None))
    if far is not None:
        reached, sign = judged_rate(record, far), judged_sign(record, far)
        had = f"{_named(far)} had {sign}{number(reached)} {unit_of(record)}"
        if limit is None:
            return f"Requests were throttled, and no limit is known to be the cause: {had}."
        return (
            f"Requests were throttled far below the {limit_word(record)} of a partition: {had}, "
            f"{sign}{percent(reached / limit)} of it."
        )
    if attempts - sum(map(throttled_attempts, throttled)) >= _DOMINANT * attempts:
        return f"Queries over several partitions were throttled.{used}"
    name, share = _named(throttled[0]), throttled_attempts(throttled[0]) / attempts
    if share >= _DOMINANT:
        others = ""
        if (more := len(throttled) - 1) > 0:
            others = f" {counted(more, 'other')} had {percent(1 - share)} of the throttling."
        at = "" if unknown else _at(record, limits[0])
        return f"Partition {name} was throttled{at}.{used}{others}"
    if len(throttled) == 1:
        return f"Partition {name} and queries over several partitions were throttled.{used}"
    least = "" if record.partitions_folded is None else "At least "
    return f"{least}{len(throttled):,} partitions were throttled, {name} the most.{used}"


def _account_throttled(record: RunRecord) -> str:
    if record.accounts:
        names = [part.name for part in record.accounts if throttled_for(Scope.ACCOUNT)(part)]
        if len(names) == 1:
            return f"Account {names[0]} was throttled."
        return f"{len(names):,} of {counted(len(record.accounts), 'account')} were throttled."
    rate, limit = account_rate(record), account_limit(record)
    sign = judged_sign(record)
    reached = f"{sign}{number(rate)} {unit_of(record)}"
    if limit is not None:
        of = f"its {limit_word(record, 'account')} of {number(limit)}"
        reached += f", {percent(rate / limit, sign)} of {of}"
    return f"The account was throttled at {reached}."


def _charged(part: OperationPart) -> float:
    return 0.0 if part.request_units is None else part.request_units.total


def _used(record: RunRecord) -> str:
    """How much of what is provisioned was used while partitions were throttled."""
    units = record.request_units
    if units is None or units.ratio is None or record.verdict.limited_by != "partition":
        return ""
    return f" {percent(units.ratio)} of the provisioned RU/s were used."


def _at(record: RunRecord, limit: float | None) -> str:
    if limit is None:
        return ""
    return f": its {limit_word(record)} is {number(limit)} {unit_of(record)}"


def _calm(record: RunRecord) -> str:
    if record.throttled_ratio:
        # Of what has no target there may be many.
        others = [part for part in record.partitions if not part.partition.documented]
        only = "" if any(map(throttled_attempts, others)) else "Only "
        return f"{only}{percent(record.throttled_ratio)} of the attempts were throttled"
    rate = f"{judged_sign(record)}{number(account_rate(record))}"
    return f"Nothing was throttled at {rate} {unit_of(record)}"


def _within(record: RunRecord) -> str:
    calm = _calm(record)
    hot = busiest(record)
    if hot is None or (limit := partition_limit(record, hot)) is None:
        return f"{calm}."
    which = "the partition" if len(record.partitions) == 1 else "the hottest partition"
    sign = judged_sign(record, hot)
    if record.request_units is not None and record.verdict.bounded:
        # The limit is the highest one that there can be.
        sign = AT_LEAST
    share = percent(judged_rate(record, hot) / limit, sign)
    return f"{calm}: {which} took {share} of its {limit_word(record)}."


def _full_machine(record: RunRecord) -> str:
    """The generator was slowed down by others on its machine."""
    capacity = record.generator.capacity
    full = None if capacity is None else capacity.fullest
    share = "" if full is None else f" ({of_core(full.others_percent)} of its CPU)"
    return f"Other processes kept the machine busy{share}: the endpoint's limit is unknown."


def _over(record: RunRecord) -> str:
    hot = busiest(record)
    target = None if hot is None else target_of(hot)
    if hot is not None and target is not None and judged_rate(record, hot) > target:
        over = f"{target_word(record)} of {number(target)} {unit_of(record)}"
        return f"Partition {_named(hot)} is over its {over}."
    whose = "An" if record.accounts else "The"
    return f"{whose} account went over its {target_word(record, 'account')}."


def _named(part: PartitionPart) -> str:
    return f"'{shortened(partition_name(part.key), _NAME_WIDTH)}'"
