"""What is said of the keys of a table, and the evidence for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from harness.gateway.limits import GatewayLimits
from harness.measure.record.advice import KeyAnswer
from harness.measure.record.measured import ABOUT
from harness.measure.record.whatif import peak_over
from harness.measure.verdict.failures import MIXED_FROM
from harness.measure.verdict.ranking import (
    THROTTLED_NOISE,
    is_even,
    marked,
    met_at,
    met_if_it_lasts,
    needs_more,
    price_of,
    refused,
    savings_of,
    whose_limit,
)
from harness.model.errors import echoed
from harness.model.figures import agreed, counted, duration, listed, multiple, number, percent
from harness.model.partition import MADE_UP, Partition
from harness.trace.advise.candidates import BETWEEN, Candidate
from harness.trace.advise.judging import ANY_RATE, ENOUGH, PLENTY, Trial, helps
from harness.trace.advise.traffic import MOST_TABLES, QueriedPart, TableTraffic
from harness.trace.reader import Trace

_SHORT_S = 120.0
_FEW, _VERY_FEW = 1_000, 100
_ROW_SHARE = 0.1
"""From this share of the load on, one row is what no key can spread."""
_DENSE = 10
"""Entities that queries read for each one returned: above it the filter decides, not the key."""
_UNKNOWN = 0.01
"""From this share of operations with unknown keys on, a trace does not show all of the load."""
_ALIASES = "No key made of aliases helps; what the real keys are made of is not known."
_NOTABLE = 0.05
"""Share of all entities from which on queries are worth a word."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyEvidence:
    """What is known of a table.

    Attributes:
        best: The recommended keys; None if none helps, or none were tried.
        each_row: The busiest traffic with a partition for every row, and whether that would be much
            better; None if no keys were tried.
        tried: Keys that were screened; ``simulated`` are those of them that were calculated.
        splitting: What keys that split transactions would bring; None if that would not help.
        rows_said: It was said how many rows the table had.
        longer: Keys of a longer time, under which most queries over a range of PartitionKeys would
            read one partition.
    """

    traffic: TableTraffic
    today: Trial
    best: Trial | None = None
    each_row: Trial | None = None
    each_row_helps: bool = True
    splitting: Trial | None = None
    rows_said: bool = False
    longer: Candidate | None = None
    tried: int = 0
    simulated: int = 0
    aliased: bool = False


def conclusion(evidence: KeyEvidence) -> dict[str, Any]:
    """KeyAnswer, headline, reason and what stays bad, as fields of a `TableAdvicePart`."""
    today, best = evidence.today, evidence.best
    # Of fine keys the headline says it.
    first = "" if today.far else _first_limit(today)
    answer, headline, reason = KeyAnswer.FINE, "", [f"{_load('Today', today)}{first}."]
    if today.far:
        price = today.part.price
        less = price.scanned_is_lower_bound or price.unknown > _UNKNOWN * price.operations
        less |= evidence.traffic.operations < _VERY_FEW
        known = ", as far as the trace shows" if less else ""
        headline = f"Your keys are fine at this rate{known}{_first_limit(today)}."
        failed = evidence.traffic.failed / max(1, evidence.traffic.operations)
        if failed >= MIXED_FROM:
            answer = KeyAnswer.UNKNOWN
            headline = (
                f"No limit is near, but {percent(failed)} of the operations failed when recorded: "
                "whether your keys are fine cannot be told."
            )
    elif best is not None:
        answer = KeyAnswer.CHANGE
        headline = f"PartitionKey {best.candidate.partition_key}: {_gain(best, today)}."
        under = f"{_load(f'Under {best.part.name}', best)}{_first_limit(best)}."
        reason += [under, _price(best), *_knowing(best)]
    elif not evidence.traffic.keys:
        answer, headline = (
            KeyAnswer.UNKNOWN,
            "The trace lacks the keys that others could be made of.",
        )
    else:
        headline, why = _no_key(evidence)
        answer = KeyAnswer.UNKNOWN if headline == _ALIASES else KeyAnswer.NO_KEY
        reason += why
    if any(one.part.price.scanned_is_lower_bound for one in (today, best) if one is not None):
        remedy = "" if evidence.rows_said else " --rows says how many a table had."
        reason.append(
            "Figures with ≥ are lower bounds: queries may scan rows that the trace does not "
            f"show.{remedy}"
        )
    return {
        "answer": answer,
        "headline": headline,
        "reason": tuple(reason),
        "stays_bad": tuple(_stays_bad(evidence)),
    }


def far_from_limits(traffic: TableTraffic, limits: GatewayLimits, rate: float) -> str:
    """What is said of a table that is not near a limit whatever its keys are; else empty."""
    served = limits.partition.entities_per_s
    asked = traffic.peak_per_s * rate
    if limits.units is not None or asked * ENOUGH > served:
        return ""
    return (
        f"Never near a limit: all its partitions together ask for {number(asked)} entities/s in "
        f"the busiest 10 s, {percent(asked / served)} of what one partition serves."
    )


def reservations(trace: Trace, tables: Sequence[TableTraffic], seconds: float) -> list[str]:
    """What has to be known of a trace."""
    said = []
    if seconds < _SHORT_S:
        said.append(
            f"The trace covers {duration(seconds)} only: rates of other times of the day, and "
            "queries that run rarely, are not in it."
        )
    if trace.operations < _FEW:
        said.append(f"It has {counted(trace.operations, 'operation')} only: shares are rough.")
    said += of_failed(sum(table.failed for table in tables), trace.operations)
    if unknown := sum(table.unknown for table in tables):
        share = percent(unknown / max(1, trace.operations))
        said.append(
            f"It lacks a key of {counted(unknown, 'operation')} ({share}), which are left out."
        )
    if len(tables) > MOST_TABLES:
        said.append(f"It has more tables: the {MOST_TABLES} busiest are looked at.")
    if trace.head.keys:
        said.append(
            "Keys are aliases: what they are made of cannot be told, and new keys are to be made "
            "of the real ones."
        )
    return said


def of_failed(failed: int, operations: int) -> list[str]:
    """What has to be known of operations that failed when they were recorded."""
    if not failed:
        return []
    return [
        f"{counted(failed, 'operation')} ({percent(failed / operations)}) got an error or no "
        "answer when recorded. They count as if served; what such a query would have read is not "
        "known. If they were throttled where this calculation throttles nothing, a limit was met "
        "that is lower than its own."
    ]


def trade(trial: Trial, best: Trial) -> str:
    """What an alternative has for what, held against the recommendation."""
    gains: list[str] = []
    losses: list[str] = []
    if trial.throttled != best.throttled and _share(trial) != _share(best):
        side = gains if trial.throttled < best.throttled else losses
        side.append(f"{_share(trial)} throttled instead of {_share(best)}")
    mine, other = _limits_met("until", trial, best)
    if trial.until != best.until and mine != other:
        side = gains if trial.until > best.until else losses
        side.append(f"the first limit is met {mine} instead of {other}")
    gains += savings_of(trial.part, best.part)
    losses += price_of(trial.part, best.part)
    if trial.candidate.distance != best.candidate.distance:
        nearer = trial.candidate.distance < best.candidate.distance
        (gains if nearer else losses).append(
            "closer to today's keys" if nearer else "farther from today's keys"
        )
    return ", but ".join(filter(None, (listed(gains), listed(losses)))) or "as good"


def _load(when: str, trial: Trial) -> str:
    found, part = trial.found, trial.part
    peak = peak_over(10, part.partition_peaks)
    served = marked(part, percent(peak.per_s / found.partition_per_s))
    hottest = Partition.named(peak.partition).key if peak.partition else ""
    hottest = "" if MADE_UP in hottest else hottest
    # Of others the trace may show less, or more.
    sign = ABOUT * part.price.scanned_is_lower_bound
    share = f", and takes {percent(part.hot[0].at_least, sign)} of the load" if part.hot else ""
    if part.price.scanned_is_lower_bound and not trial.throttled:
        throttled = "nothing that the trace shows is throttled"
    elif part.once.throttled:
        throttled = f"{_share(trial)} of the requests are throttled"
    else:
        throttled = "nothing is throttled"
    throttled += ", because a burst passes" * bool(met_if_it_lasts(found, part))
    if trial.throttled:
        throttled += f", {refused(part)}"
    named = f", {echoed(hottest)}," if hottest else ""
    over = "on average" if found.seconds < peak.width_s * found.rate else "in the busiest 10 s"
    rate = marked(part, number(peak.per_s))
    return (
        f"{when} the hottest partition{named} has {rate} {found.unit}/s {over}, "
        f"{served} of what one serves{share}; {throttled}"
    )


def _first_limit(trial: Trial) -> str:
    if trial.throttled:
        return ""
    first, rate, price = trial.part.first_limit, trial.found.rate, trial.part.price
    if first is None:
        known = " that the trace shows" if price.scanned_is_lower_bound else ""
        return f"; no limit{known} is met up to x {multiple(PLENTY * rate)}"
    met = _met(first.factor / rate, rate, price.scanned_is_lower_bound)
    return f"; the first limit is met {met}, that of {whose_limit(first.rule)}"


def _met(factor: float, rate: float, bounded: bool = False) -> str:
    """At which multiple of the recorded traffic a limit is met, which is one of the asked."""
    if factor >= PLENTY:
        return f"beyond x {multiple(PLENTY * rate)}"
    return met_at(factor * rate if factor > ANY_RATE else 0.0, bounded=bounded)


def _share(trial: Trial) -> str:
    """The throttled share; what is below the noise of a calculation is not told exactly."""
    part = trial.part
    if trial.throttled or part.price.scanned_is_lower_bound:
        return marked(part, percent(trial.throttled))
    return f"less than {percent(THROTTLED_NOISE)}" if part.once.throttled else "nothing"


def _gain(best: Trial, today: Trial) -> str:
    if today.throttled:
        gain = f"{_share(best)} throttled instead of {_share(today)}"
        if limit := met_if_it_lasts(best.found, best.part):
            gain += f", but only because a burst passes: {limit}"
        return gain

    of_keys, (mine, other) = "", _limits_met("until", best, today)
    if mine == other:
        # The account is the first limit of both.
        of_keys, (mine, other) = " of a partition", _limits_met("factor", best, today)
    gain = f"the first limit{of_keys} is met {mine} instead of {other}"
    asked = f", both below the x {multiple(best.found.rate)} asked for"
    return gain + asked * (best.until < 1)


def _limits_met(of: str, *trials: Trial) -> list[str]:
    """At which multiples limits are met: any, or those of a partition."""
    return [
        _met(getattr(one, of), one.found.rate, one.part.price.scanned_is_lower_bound)
        for one in trials
    ]


def _price(trial: Trial) -> str:
    price = listed(price_of(trial.part, trial.found.schemes[0]))
    return f"Its price: {price}." if price else "It has no price in this traffic."


def _knowing(trial: Trial) -> list[str]:
    """What keys made of properties ask of an application, and what is not known of them."""
    names, price = listed(trial.candidate.properties), trial.part.price
    if not names:
        return []
    said = [f"The application has to know {names} of an entity that it reads by its keys."]
    if price.unvalued:
        said.append(
            f"{counted(price.unvalued, 'operation')} ({percent(price.unvalued / price.operations)})"
            f" on rows of unknown {names} {agreed(price.unvalued, 'stays', 'stay')} as recorded."
        )
    return said


def _no_key(evidence: KeyEvidence) -> tuple[str, list[str]]:
    """Why no key helps."""
    today, rows, traffic = evidence.today, evidence.each_row, evidence.traffic
    over = sum(query.scanned for query in traffic.queries if query.whole)
    if 2 * over > traffic.entities:
        share = percent(over / traffic.entities)
        return (
            f"Queries over several partitions read {share} of all entities: they are the load.",
            ["A PartitionKey spreads what names it. These queries name none, or a range of them."],
        )
    most = _read_by_queries(traffic)
    spread = today if rows is None else rows
    why = needs_more(spread.found, spread.part) if spread.throttled else ""
    besides = [f"Besides, {why}."] if why else []
    if evidence.splitting is not None and not evidence.aliased:
        return (
            "None of the tried keys helps and keeps the rows of each transaction in one partition.",
            besides,
        )
    # Of one hot physical partition the provisioned throughput is not the limit.
    if why and is_even(spread.found, spread.part):
        fewer = f"or ask for fewer rows: {most}." if most else "or send fewer requests."
        whose, more = "the account is", "Use several accounts"
        if spread.found.physical is not None:
            whose, more = "the provisioned throughput is", "Provision more"
        return f"No key helps: {whose} what limits this traffic.", [
            f"Requests would be throttled even with a partition for every row: {why}. {more}, "
            f"{fewer}"
        ]
    if rows is not None and not evidence.each_row_helps and (hot := _hot_rows(rows, traffic)):
        share, names = hot
        return f"No key helps: {share}.", [
            f"Even with a partition for every row, {names} would be as hot: a row is in one "
            "partition. Spread it over several rows, or keep it in a cache.",
            *besides,
        ]
    if evidence.aliased:
        return _ALIASES, besides
    if most and not evidence.each_row_helps:
        return (
            f"{most[:1].upper()}{most[1:]}: they are the load.",
            ["No other key makes them read less: ask for fewer rows, or cache results.", *besides],
        )
    tried = counted(evidence.tried, "other key was", "other keys were")
    some = evidence.simulated < evidence.tried
    of_these = f", of which the best {evidence.simulated} were calculated" if some else ""
    others = (
        f"{tried} tried{of_these}. Each {'of these ' if some else ''}breaks something, makes the "
        "queries read the whole table, or is no better than today's by more than noise."
    )
    return "No key made of the parts of today's keys helps.", [others, *besides]


def _read_by_queries(traffic: TableTraffic) -> str:
    """What queries read, as a clause, if that is most of the load; else empty."""
    read = sum(query.scanned for query in traffic.queries)
    if 2 * read <= traffic.entities:
        return ""
    each = read / sum(query.count for query in traffic.queries)
    return f"queries read {percent(read / traffic.entities)} of all entities, {each:,.0f} each"


def _hot_rows(rows: Trial, traffic: TableTraffic) -> tuple[str, str] | None:
    """How many rows take more than a partition serves, or much of the load; and their keys.

    Of those that take most; None if none does.
    """
    every = peak_over(10, rows.part.account_peaks).per_s
    least = min(_ROW_SHARE, rows.found.partition_per_s / every) if every else 1.0
    hot = [one for one in rows.part.hot if one.at_least >= least]
    more = "at least " if len(hot) == len(rows.part.hot) > 1 else ""
    count = "one row takes" if len(hot) == 1 else f"{more}{len(hot)} rows take"
    keys = [repr(Partition.named(one.partition).key.replace(BETWEEN, " / ", 1)) for one in hot]
    sign = ABOUT * rows.part.price.scanned_is_lower_bound
    share = percent(sum(one.at_least for one in hot), sign)
    # Of a long trace, others than these seconds were not calculated.
    when = "" if rows.part.price.operations == traffic.operations else " in the busiest seconds"
    return (f"{count} {share} of the load{when}", listed(keys)) if hot else None


def _unrecorded(query: QueriedPart, traffic: TableTraffic) -> str:
    known = {"PartitionKey", "RowKey", *(one.name for one in traffic.properties)}
    missing = [name for name in query.compared if name not in known]
    if not missing:
        return ""
    return f" Or record with --trace-properties {','.join(missing)}: then they are tried as keys."


def _stays_bad(evidence: KeyEvidence) -> list[str]:
    """What other keys do not change, or would change only for a price that is too high."""
    traffic, best, rows = evidence.traffic, evidence.best, evidence.each_row
    said = []
    if best is not None and best.throttled:
        still = f"{_share(best)} of the requests are still throttled, {refused(best.part)}"
        most = _read_by_queries(traffic)
        said.append(f"{still}{most and f': {most}'}.")
    near = rows if best is not None and rows is not None and rows.factor < 2 * ENOUGH else None
    if near is not None and (hot := _hot_rows(near, traffic)):
        share, names = hot
        said.append(f"No key spreads a row, and {share}: {names}.")
    splitting = evidence.splitting
    if splitting is not None and (best is None or (best.throttled and helps(splitting, best))):
        split = splitting.part.price.split
        said.append(
            f"{counted(traffic.transactions, 'transaction')} "
            f"({percent(traffic.transactions / traffic.operations)} of the operations) "
            f"{agreed(traffic.transactions, 'ties', 'tie')} rows together. Buckets by row would "
            f"help ({_share(splitting)} throttled), but "
            f"{percent(split / traffic.transactions)} of the transactions would be refused: write "
            "those rows one by one, or give rows of a transaction the same bucket."
        )
    over = [query for query in traffic.queries if query.whole]
    longer, scanned = evidence.longer, sum(query.scanned for query in over)
    if longer is not None and best is None and scanned >= _NOTABLE * traffic.entities:
        count = sum(query.count for query in over)
        said.append(
            f"{counted(count, 'query', 'queries')} over several partitions "
            f"{agreed(count, 'reads', 'read')} {scanned / count:,.0f} entities each. Under "
            f"PartitionKey {longer.partition_key} a query over a range reads one partition."
        )
    for query in traffic.queries:
        much = query.scanned >= max(_NOTABLE * traffic.entities, _DENSE * query.returned)
        if not (much and query.compared):
            continue
        if best is not None and not set(query.compared).isdisjoint(best.candidate.properties):
            continue
        where = "the whole table" if query.whole else "a partition"
        remedy = "Store the entities a second time, under keys that begin with what is compared."
        if "PartitionKey" in query.compared or (not query.whole and "RowKey" in query.compared):
            remedy = "Send a query for each range of keys: `or`, `not` and `ne` narrow none."
        said.append(
            f"{counted(query.count, 'query', 'queries')} over {where} "
            f"{agreed(query.count, 'compares', 'compare')} {listed(query.compared)}: "
            f"{query.scanned:,} entities are read, and {query.returned:,} returned. "
            f"{remedy}{_unrecorded(query, traffic)}"
        )
    return said
