"""What every output says about a run, in the same words: plain text without layout.

Texts from outside (keys, error codes, a profile's question) are returned unchanged. Each output
makes them printable.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from harness.measure.figures import (
    agreed,
    counted,
    data_size,
    milliseconds,
    number,
    percent,
)
from harness.measure.record.findings import (
    AdvicePart,
    AuditPart,
    ConditionPart,
    GapPart,
    SearchPart,
)
from harness.measure.record.record import PartitionPart, RunRecord
from harness.measure.verdict.conditions import parse_condition
from harness.measure.verdict.observations import SHOWN_GAP_S, gap_words
from harness.measure.verdict.quantities import Unit
from harness.measure.verdict.throttling import Gap
from harness.measure.verdict.verdict import indicative
from harness.model.operation import over_partitions
from harness.model.target import EndpointKind
from harness.report.columns import best_over, scanning
from harness.report.names import partition_name, shortened
from harness.workload.load.search import Limit

ACCOUNT_TRANSACTIONS_PER_S = 20_000
"""Source: scalability targets for standard storage accounts, which count requests, not entities."""
NO_TARGET = "no target (request units)"
OTHERS = "all others"
RELY_NOT = "Do not rely on these figures"
WHOLE_SEARCH = "All other sections cover the whole search, including its failed steps."
MOST_EXAMPLES = 5
_MOST_ESTIMATES = 3
_MOST_GAPS = 5
_NOTE_WIDTH = 24

_LIMITS = {
    "load": "the requested load",
    "generator": "the generator",
    "endpoint": "the endpoint",
    "users": "the users (too few, or pausing between operations)",
    "partition": "the partition",
    "account": "the account",
}

_STEP_FAILURES: dict[str, str] = {
    Limit.CLIENT: "generator",
    Limit.USERS: "few users",
    Limit.THROTTLED: "throttled",
    Limit.NOT_HELD: "not held",
    Limit.LATENCY: "too slow",
}
_SEARCH_LIMITS: dict[str, str] = {
    Limit.CLIENT: "the generator was the limit",
    Limit.USERS: "more users may reach a higher rate",
    Limit.THROTTLED: "higher rates are throttled",
    Limit.NOT_HELD: "higher rates are not reached",
    Limit.LATENCY: "higher rates exceed the latency limit",
    Limit.MAXIMUM: "the maximum of the search was reached",
    Limit.UNFINISHED: "the search did not end",
}

_VALUES: dict[str, Callable[[float], str]] = {
    Unit.SHARE: percent,
    Unit.RATE: number,
    Unit.LATENCY: lambda value: f"{milliseconds(value)} ms",
    Unit.COUNT: lambda value: f"{value:,.0f}",
}


def alarms(record: RunRecord) -> list[str]:
    """Why the figures are wrong, a sentence each; empty where they are right."""
    lines = []
    if record.invariants:
        lines.append("The harness's own counts contradict each other, so this run is not valid:")
        lines += [f"  {sentence}" for sentence in record.invariants]
    if (defects := record.outcomes.get("defect", 0)) > 0:
        lines.append(
            f"{counted(defects, 'operation')} failed because of a defect in the harness or in its "
            "user class."
        )
    if not record.complete:
        lines.append(
            "Incomplete: the last report of a worker is missing, or the run was cut short. All "
            "counts are too low."
        )
    return lines


def result_words(record: RunRecord) -> str:
    """The verdict's result: ``within target``, ``client limited``."""
    return record.verdict.result.replace("_", " ")


def limited_by(record: RunRecord) -> str | None:
    """What kept the rate from being higher; None where it is unknown."""
    return _LIMITS.get(record.verdict.limited_by)


def advised(part: AdvicePart) -> tuple[str, str]:
    """A piece of advice as a sentence, and its source."""
    return f"{part.text[:1].upper()}{part.text[1:]}.", f'{part.document}, "{part.section}"'


def measured(part: ConditionPart) -> str:
    """The measured value of a condition, with its unit and the condition's note."""
    if part.value is None:
        return part.note or "not measured"
    # Another version of the harness may have written a unit that this one does not know.
    value = _VALUES.get(part.unit or _unit_of(part.text), number)(part.value)
    return f"measured {value} ({part.note})" if part.note else f"measured {value}"


def _unit_of(text: str) -> str:
    """The unit of a condition of a record that is older than the field ``unit``."""
    try:
        return parse_condition(text).unit
    except ValueError:
        return ""


def setup(record: RunRecord) -> list[tuple[str, str]]:
    """The endpoint, the load, the entities and the time: names and texts."""
    load = f"{users_words(record.profile, record.users)} in "
    load += counted(record.workers, "process", "processes")
    cap = _cap(record)
    if (words := scheduled_words(record.profile)) is not None:
        load += f", {words}"
    elif cap is not None:
        load += f", at most {number(cap)} entities/s in total"
    entity, loading = record.entity, record.loading
    size = f"{entity.stored_bytes:,} B stored, about {entity.wire_bytes:,} B on the wire"
    if loading.entities:
        size += f"; {loading.entities:,} loaded in {number(loading.seconds)} s"
    ended = f", ended by {record.ended_by}" if record.ended_by else ""
    under_load = sum(point.width_s for point in record.series)
    return [
        ("endpoint", record.endpoint.described),
        ("", f"{record.endpoint.host}, table {record.endpoint.table}"),
        ("load", load),
        ("entities", size),
        ("measured", f"{record.measured_s:,} s of {under_load:,} s under load{ended}"),
        ("run", f"{record.run_id}, session {record.session}"),
    ]


def _cap(record: RunRecord) -> float | None:
    """The entities/s that a closed loop may reach; None where it has no limit."""
    load = record.profile.get("load", {})
    caps = [load.get("max_entities_per_s")]
    if record.endpoint.kind in [kind for kind in EndpointKind if kind.emulated]:
        caps.append(load.get("emulator_max_entities_per_s"))
    return min((cap for cap in caps if cap is not None and cap < math.inf), default=None)


def users_words(profile: Mapping[str, Any], users: int) -> str:
    """The number of users; of a profile with stages of users, the fewest and the most.

    Args:
        profile: As records hold it.
        users: The number of users of a profile without such stages.
    """
    stages = profile.get("stage") or ()
    counts = [stage.get("to_users") for stage in stages]
    if not counts or None in counts:
        return counted(users, "user")
    counts.append(profile.get("load", {}).get("users", users))
    return f"{min(counts):,} to {counted(max(counts), 'user')} ({counted(len(stages), 'stage')})"


def scheduled_words(profile: Mapping[str, Any]) -> str | None:
    """The schedule of an open load; None in a closed loop.

    Args:
        profile: As records hold it.
    """
    load = profile.get("load", {})
    if (search := profile.get("search")) is not None:
        first, last = number(search["start_per_s"]), number(search["max_per_s"])
        return f"in steps from {first} to {last} entities/s"
    if stages := profile.get("stage"):
        for unit in ("entities", "operations"):
            rates = [stage.get(f"to_{unit}_per_s") for stage in stages]
            if None not in rates:
                named = counted(len(stages), "stage")
                return f"{named} of up to {number(max(rates))} {unit}/s on a schedule"
    for unit in ("entities", "operations"):
        if (rate := load.get(f"{unit}_per_s")) is not None:
            arrivals = load.get("arrivals", "constant")
            return f"{number(rate)} {unit}/s on a schedule ({arrivals} arrivals)"
    return None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """A rate of the whole account.

    Attributes:
        name: What it counts.
        rate: Per second, as text.
        share: Of the target; None where the rate has no target.
        target: The target or why there is none, as text.
    """

    name: str
    rate: str
    share: float | None = None
    target: str = ""


def account_rows(record: RunRecord) -> list[AccountRow]:
    """The account beside its target, reads and writes apart, in entities and in requests."""
    part = record.account
    rates = part.entities_per_s
    share, beside, requests = None, NO_TARGET, "requests, retries included"
    if part.target is not None and part.ratio is not None:
        beside = f"of {number(part.target)}"
        share = part.transactions_per_s / ACCOUNT_TRANSACTIONS_PER_S
        requests = f"of {ACCOUNT_TRANSACTIONS_PER_S:,} (target in newer documents)"
    ratio = None if part.target is None else part.ratio
    return [
        AccountRow(name="entities/s", rate=number(rates.mean), share=ratio, target=beside),
        AccountRow(name="  best 1 s", rate=number(rates.best_1s)),
        AccountRow(name=f"  {best_over(record)}", rate=number(rates.best_10s)),
        AccountRow(name="  GET (reads)", rate=number(part.reads_per_s)),
        AccountRow(name="  PUT (writes)", rate=number(part.writes_per_s)),
        AccountRow(
            name="transactions/s",
            rate=number(part.transactions_per_s),
            share=share,
            target=requests,
        ),
    ]


def latency_note(record: RunRecord) -> str:
    """What the latencies of the operations are."""
    service = "Service latency: from sent to done, retries included."
    if record.response_ms is None:
        return f"{service} A closed loop has no response latency."
    return f"{service} Response latency: from due to done."


def hottest(record: RunRecord) -> PartitionPart | None:
    """The partition with the highest mean rate; queries over several partitions are left out."""
    single = (part for part in record.partitions if not over_partitions(part.key))
    return max(single, key=lambda part: part.entities_per_s.mean, default=None)


def hottest_share(record: RunRecord) -> float | None:
    """The hottest partition's share of the load; None where there was no load."""
    everything = record.account.entities_per_s.mean
    part = hottest(record)
    return None if part is None or everything <= 0 else part.entities_per_s.mean / everything


def partition_notes(record: RunRecord, ellipsis: str, ascii_only: bool = False) -> list[str]:
    """What a reader of the table of partitions has to know, a sentence each."""
    notes = []
    if record.redacted:
        notes.append("Aliases replace the PartitionKeys: the run was told not to show them.")
    if record.partitions_folded is not None:
        notes.append(
            f"{OTHERS}: partitions beyond the {len(record.partitions)} that are counted "
            "separately, as one"
        )
    share = hottest_share(record)
    if len(record.partitions) > 1 and share is not None:
        notes.append(f"The hottest partition takes {percent(share)} of the load.")
    if any(over_partitions(part.key) for part in record.partitions):
        notes.append(
            "(table): queries over several partitions; the share of each partition is unknown."
        )
    for part in [part for part in record.partitions if not part.exact][:_MOST_ESTIMATES]:
        if part.estimate is not None:
            name = shortened(partition_name(part.key, ascii_only), _NOTE_WIDTH, ellipsis)
            notes.append(
                f"~ {name} was counted separately for only a part of the run. In the whole run it "
                f"has {part.estimate.at_least:,} to "
                f"{counted(part.estimate.at_most, 'entity', 'entities')}."
            )
    if record.endpoint.kind == EndpointKind.COSMOS:
        notes.append(f"target: {NO_TARGET}")
    elif indicative(record.entity.stored_bytes):
        notes.append(
            "Indicative only: targets hold for 1 KiB entities, and entities of this run have "
            f"{counted(record.entity.stored_bytes, 'byte')}."
        )
    if record.endpoint.kind == EndpointKind.GATEWAY:
        queries = ". It counts the entities that queries return, not those that they scan"
        notes.append(
            "The gateway throttles by its own limits, which may differ from these targets"
            f"{queries if scanning(record) else ''}."
        )
    return notes


def attempts_words(record: RunRecord) -> tuple[str, str]:
    """Attempts per operation, and how many were throttled: a sentence each."""
    counts, throttled = record.counts, record.throttled
    ended = counts.attempts - counts.attempts_in_flight
    each = ended / counts.operations if counts.operations else 0.0
    requests = (
        f"{counted(ended, 'attempt')} for {counted(counts.operations, 'operation')} "
        f"({each:.3f} per operation)"
    )
    if counts.attempts_in_flight:
        requests += (
            f"; {counts.attempts_in_flight:,} more for "
            f"{counted(counts.in_flight, 'operation')} still in flight"
        )
    return (
        requests,
        f"throttled: {sum(throttled.values()):,} ({percent(record.throttled_ratio)}), "
        f"{throttled['partition']:,} by a partition limit, {throttled['account']:,} by an account "
        "limit",
    )


def shown_gaps(record: RunRecord) -> list[GapPart]:
    """The outages long enough to be reported: a partition that is moved is gone for seconds."""
    return [gap for gap in record.throttling.gaps if gap.length_s >= SHOWN_GAP_S]


def throttling(record: RunRecord) -> list[tuple[str, str]]:
    """When throttling began, how long it lasted, and outages: names and texts."""
    part = record.throttling
    rows = []
    if part.first_s is not None:
        periods = f"in 1 period of {part.longest_s} s"
        if part.stretches != 1:
            periods = f"in {part.stretches:,} periods, the longest {part.longest_s} s"
        rows += [
            ("began", f"{part.first_s} s after the load began"),
            ("lasted", f"requests were throttled for {part.seconds:,} s, {periods}"),
        ]
    gaps = shown_gaps(record)
    for place, gap in enumerate(gaps[:_MOST_GAPS]):
        rows.append(("" if place else "outage", gap_words(Gap(**gap.model_dump()))))
    if (more := len(gaps) - _MOST_GAPS) > 0:
        rows.append(("", f"and {counted(more, 'more outage')}"))
    return rows


def step_result(failed: str | None, *, confirming: bool) -> str:
    """The result of a step of a search.

    Args:
        failed: Why it failed, as records hold it; None where it passed.
        confirming: Whether the step ran for the longer time that confirms a rate.
    """
    if failed is None:
        return "confirmed" if confirming else "passed"
    return _STEP_FAILURES.get(failed, failed)


def found(part: SearchPart) -> str:
    """The result of a search, its limit, and its cost."""
    billed = sum(step.billable_transactions for step in part.steps)
    cost = f"{counted(len(part.steps), 'step')}, {counted(billed, 'billable transaction')}"
    if part.rate_per_s is None:
        return f"No sustainable rate was found; {cost}."
    least = "At least " if part.at_least else ""
    confirmed = "confirmed" if part.confirmed else "not confirmed"
    limit = _SEARCH_LIMITS.get(part.limited_by, part.limited_by)
    return f"{least}{number(part.rate_per_s)} entities/s, {confirmed}; {limit}; {cost}."


def audited(part: AuditPart) -> list[tuple[str, str]]:
    """The stored rows compared with the acknowledged writes: names and texts."""
    about = "" if part.exact else "about "
    checked = f"{part.rows:,} of {about}{counted(part.written, 'written row')}"
    if part.rows == part.written and part.exact:
        checked = f"all {counted(part.rows, 'written row')}"
    rows = [("checked", checked)]
    missed = [
        f"{counted(part.unread, 'row')} could not be read" if part.unread else "",
        f"{counted(part.given_up, 'row')} {agreed(part.given_up, 'has', 'have')} too many writes"
        if part.given_up
        else "",
        part.cut_short,
    ]
    if any(missed):
        rows.append(("not checked", "; ".join(filter(None, missed))))
    covered = ""
    if part.covered:
        covered = f"; later writes replaced {part.covered:,} of the acknowledged ones"
    lost = f"{part.lost:,} of {counted(part.acknowledged, 'acknowledged write')}"
    rows.append(("lost", f"{lost}{covered}"))
    if part.unacknowledged:
        undecided = f", {part.undecided:,} unknown" if part.undecided else ""
        rows.append(
            (
                "not acknowledged",
                f"{counted(part.unacknowledged, 'write')}: {part.applied:,} applied, "
                f"{part.not_applied:,} not applied{undecided}",
            )
        )
    return rows


def audit_examples(part: AuditPart) -> list[tuple[str, str]]:
    """The first lost writes: names and texts."""
    return [
        ("" if place else "examples", example)
        for place, example in enumerate(part.examples[:MOST_EXAMPLES])
    ]


def cost(record: RunRecord) -> list[tuple[str, str]]:
    """Generator, network and billable transactions: names and texts."""
    counts, generator = record.counts, record.generator
    unsent = [
        f"{count:,} {word}"
        for count, word in (
            (counts.waiting, "never sent"),
            (counts.dropped, "dropped"),
            (counts.in_flight, "still in flight"),
        )
        if count
    ]
    return [
        (
            "generator",
            f"CPU {generator.cpu_percent_mean:.0f}% of one core on average, peak "
            f"{generator.cpu_percent_max:.0f}%; machine peak {generator.machine_percent_max:.0f}%; "
            f"scheduling lag up to {milliseconds(generator.lag_s_max * 1000)} ms",
        ),
        (
            "bytes",
            f"{data_size(counts.bytes_sent)} sent, {data_size(counts.bytes_received)} received",
        ),
        ("billable", counted(counts.billable_transactions, "transaction")),
        (
            "due",
            f"{counted(counts.due, 'operation')}: {', '.join(unsent) or 'all sent and answered'}",
        ),
    ]
