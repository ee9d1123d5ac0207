"""The sentences about a run, the same in every output: plain text without layout.

Texts from outside (keys, error codes, a profile's question) are returned unchanged. Each output
makes them printable.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from harness.model.figures import counted, data_size, milliseconds, number, percent
from harness.measure.record.enforced import EnforcedPart, MovePart
from harness.measure.record.findings import (
    AdvicePart,
    AuditPart,
    ConditionPart,
    GapPart,
    PredictionPart,
    SearchPart,
)
from harness.measure.record.record import PartitionPart, RunRecord
from harness.measure.verdict.conditions import parse_condition
from harness.measure.verdict.observations import SHOWN_GAP_S, gap_words
from harness.measure.verdict.quantities import Unit
from harness.measure.verdict.verdict import indicative
from harness.model.operation import over_partitions
from harness.model.target import EndpointKind
from harness.profile.checks.prediction import KeyRanges
from harness.report.application import application_cost, application_setup
from harness.report.columns import best_over
from harness.report.names import partition_name, shortened
from harness.workload.load.search import Limit

ACCOUNT_TRANSACTIONS_PER_S = 20_000
"""Source: scalability targets for standard storage accounts, which count requests, not entities."""
NO_TARGET = "no target (request units)"
OTHERS = "all others"
RELY_NOT = "Do not rely on these figures"
WHOLE_SEARCH = "All other sections cover the whole search, including its failed steps."
_MOST_EXAMPLES = 5
_MOST_ESTIMATES = 3
_MOST_GAPS = 5
_MOST_MOVES = 5
_NOTE_WIDTH = 24

_LIMITED_BY = {
    "application": "the application",
    "gateway": "the gateway",
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
    """Why the figures are wrong, a sentence each."""
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
    return _LIMITED_BY.get(record.verdict.limited_by)


def advised(part: AdvicePart) -> tuple[str, str]:
    """A piece of advice as a sentence, and its source."""
    return f"{part.text[:1].upper()}{part.text[1:]}.", f'{part.document}, "{part.section}"'


def measured(part: ConditionPart) -> str:
    """The measured value of a condition, with its unit and the condition's note."""
    if part.value is None:
        return part.note or "not measured"
    # A record of a later version of the harness may have a unit that is unknown here.
    value = _VALUES.get(part.unit or _unit_of(part.text), number)(part.value)
    return f"measured {value} ({part.note})" if part.note else f"measured {value}"


def _unit_of(text: str) -> str:
    """The unit of a condition of a record that is older than the field ``unit``."""
    try:
        return parse_condition(text).form.unit
    except ValueError:
        return ""


def setup(record: RunRecord) -> list[tuple[str, str]]:
    """The endpoint, the load, the entities and the time: names and texts."""
    if record.watched is not None:
        return application_setup(record, record.watched)
    load = f"{users_words(record.profile, record.users)} in "
    load += counted(record.workers, "process", "processes")
    if (words := scheduled_words(record.profile)) is not None:
        load += f", {words}"
    elif (cap := _cap(record)) is not None:
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
        *([("signed with", signed_with)] if (signed_with := record.endpoint.signed_with) else []),
        ("load", load),
        ("entities", size),
        ("measured", f"{record.measured_s:,} s of {under_load:,} s under load{ended}"),
        ("run", f"{record.run_id}, session {record.session}"),
    ]


def is_emulated(record: RunRecord) -> bool:
    """Whether an emulator answered; False for an endpoint of a later version of the harness."""
    return record.endpoint.kind in [kind for kind in EndpointKind if kind.emulated]


def _cap(record: RunRecord) -> float | None:
    """The entities/s that a closed loop may reach; None where it has no limit."""
    load = record.profile.get("load", {})
    caps = [load.get("max_entities_per_s")]
    if is_emulated(record):
        caps.append(load.get("emulator_max_entities_per_s"))
    return min((cap for cap in caps if cap is not None and cap < math.inf), default=None)


def users_words(profile: Mapping[str, Any], users: int) -> str:
    """The number of users, or with stages of users in ``profile`` the fewest and the most."""
    stages = profile.get("stage") or ()
    counts = [stage.get("to_users") for stage in stages]
    if not counts or None in counts:
        return counted(users, "user")
    counts.append(profile.get("load", {}).get("users", users))
    return f"{min(counts):,} to {counted(max(counts), 'user')} ({counted(len(stages), 'stage')})"


def scheduled_words(profile: Mapping[str, Any]) -> str | None:
    """The schedule of an open load; None in a closed loop."""
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


@dataclasses.dataclass(frozen=True, slots=True)
class AccountRow:
    """A rate of the whole account per second.

    ``share`` is the share of the target, None without a target; ``target`` is the target, or why
    there is none, as text.
    """

    name: str
    rate: str
    share: float | None = None
    target: str = ""

    @property
    def beside(self) -> str:
        return self.target if self.share is None else f"{percent(self.share)} {self.target}"


def account_rows(record: RunRecord) -> list[AccountRow]:
    """The rates of the account in entities and in requests, with their targets.

    Several accounts are added up, and their targets too.
    """
    part, accounts = record.account, max(1, len(record.accounts))
    together = "" if accounts == 1 else f", {accounts} accounts together"
    rates = part.entities_per_s
    ratio, share, target, requests = None, None, NO_TARGET, "requests, retries included"
    if part.target is not None:
        ratio, target = part.ratio, f"of {number(part.target)}{together}"
        most = accounts * ACCOUNT_TRANSACTIONS_PER_S
        share = part.transactions_per_s / most
        requests = f"of {most:,} (target in newer documents)"
    return [
        AccountRow("entities/s", number(rates.mean), ratio, target),
        AccountRow("  best 1 s", number(rates.best_1s)),
        AccountRow(f"  {best_over(record)}", number(rates.best_10s)),
        AccountRow("  GET (reads)", number(part.reads_per_s)),
        AccountRow("  PUT (writes)", number(part.writes_per_s)),
        AccountRow("transactions/s", number(part.transactions_per_s), share, requests),
    ]


def latency_note(record: RunRecord) -> str:
    service = "Service latency: from the first attempt to the complete answer, retries included."
    if record.watched is not None:
        return f"{service} The application's schedule is unknown: no response latency."
    if record.response_ms is None:
        return f"{service} A closed loop has no response latency."
    return f"{service} Response latency: from the due time to the complete answer."


def hottest(record: RunRecord) -> PartitionPart | None:
    """The partition with the highest mean rate; queries over several partitions are left out."""
    single = (part for part in record.partitions if not over_partitions(part.key))
    return max(single, key=lambda part: part.entities_per_s.mean, default=None)


def hottest_share(record: RunRecord) -> float | None:
    """The hottest partition's share of the load; None where there was no load."""
    everything = record.account.entities_per_s.mean
    part = hottest(record)
    return None if part is None or everything <= 0 else part.entities_per_s.mean / everything


def partition_notes(record: RunRecord, ascii_only: bool = False) -> list[str]:
    """Notes on the table of partitions, a sentence each."""
    notes = []
    if record.redacted:
        notes.append("PartitionKeys are replaced by aliases (--redact-keys).")
    if record.partitions_folded is not None:
        notes.append(
            f"{OTHERS}: the sum of the partitions beyond the {len(record.partitions)} that are "
            "counted separately"
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
            name = shortened(partition_name(part.key, ascii_only), _NOTE_WIDTH, ascii_only)
            notes.append(
                f"~ {name} was counted separately for only part of the run. The whole run has "
                f"{part.estimate.at_least:,} to "
                f"{counted(part.estimate.at_most, 'entity', 'entities')} of this partition."
            )
    if record.endpoint.kind == EndpointKind.COSMOS:
        notes.append("No target in entities/s applies: Cosmos DB counts request units.")
    elif indicative(record.entity.stored_bytes):
        notes.append(
            "Indicative only: targets hold for 1 KiB entities, and entities of this run have "
            f"{counted(record.entity.stored_bytes, 'byte')}."
        )
    if record.enforced is not None and not record.enforced.limits:
        notes.append("The gateway counted the requests, and limited none.")
    elif record.endpoint.kind == EndpointKind.GATEWAY:
        notes.append(
            "The gateway throttles by its own limits, which may differ from these targets"
            f"{_enforced_words(record.enforced)}."
        )
    return notes


def _enforced_words(part: EnforcedPart | None) -> str:
    """The limits that a gateway enforced; empty where the record does not have them."""
    if part is None:
        return ""
    return (
        f": {number(part.partition_per_s)} entities/s per partition, "
        f"{number(part.account_per_s)} per account, {number(part.server_per_s)} per server"
    )


def moved_words(move: MovePart, name: str) -> str:
    return f"partition '{name}' moved, unavailable {move.offline_s:g} s"


@dataclasses.dataclass(frozen=True, slots=True)
class Predicted:
    """The predicted and the measured share of the load, of a partition or of a range of keys.

    The measured share is None where the record does not show it.
    """

    what: str
    predicted: float
    measured: float | None

    @property
    def sentence(self) -> str:
        measured = "not known" if self.measured is None else percent(self.measured)
        return f"{self.what}: {percent(self.predicted)} predicted, {measured} measured"


def predicted_shares(record: RunRecord) -> tuple[Predicted, ...]:
    """The shares predicted from mix and keys, and the measured shares of the same keys."""
    return () if record.prediction is None else beside(record.prediction, record)


def beside(prediction: PredictionPart, record: RunRecord) -> tuple[Predicted, ...]:
    """A prediction beside the measured window of a run.

    The share of a range is known only where the record counts all partitions separately.
    """
    everything = record.account.entities_per_s.mean
    if everything <= 0:
        return ()
    measured = {part.key: part.entities_per_s.mean / everything for part in record.partitions}
    shares = []
    if hot := prediction.hottest:
        name = f"partition {partition_name(hot)}"
        shares.append(Predicted(name, prediction.hottest_share, measured.get(hot)))
    place = prediction.hottest_range
    if place is not None and prediction.range_count > 1:
        ranges = KeyRanges(prediction.ranges)
        inside = sum(share for key, share in measured.items() if ranges.of(key) == place)
        known = None if record.partitions_folded is not None else inside
        name = f"keys {range_words(prediction, place)}"
        shares.append(Predicted(name, prediction.hottest_range_share, known))
    return tuple(shares)


def range_words(prediction: PredictionPart, place: int) -> str:
    """The first and the last key of a range of a prediction."""
    first, last = prediction.ranges[place]
    return first if first == last else f"{first} to {last}"


def attempts_words(record: RunRecord) -> tuple[str, str]:
    """Attempts per operation, and how many attempts were throttled: a sentence each."""
    counts, throttled = record.counts, record.throttled
    in_flight = counts.attempts_in_flight
    ended = counts.attempts - in_flight
    each = ended / counts.operations if counts.operations else 0.0
    requests = f"{counted(ended, 'attempt')} for {counted(counts.operations, 'operation')}"
    requests += f" ({each:.3f} per operation)"
    if in_flight:
        operations = counted(counts.in_flight, "operation")
        requests += f"; {in_flight:,} more for {operations} still in flight"
    return (
        requests,
        f"throttled: {sum(throttled.values()):,} ({percent(record.throttled_ratio)}), "
        f"{throttled['partition']:,} by a partition limit, {throttled['account']:,} by an account "
        "limit",
    )


def shown_gaps(record: RunRecord) -> list[GapPart]:
    """The outages that are long enough to report: moving a partition takes seconds."""
    return [gap for gap in record.throttling.gaps if gap.length_s >= SHOWN_GAP_S]


def throttling(record: RunRecord) -> list[tuple[str, str]]:
    """When throttling began, how long it lasted, moves and outages: names and texts."""
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
    moves = record.enforced.moves if record.enforced is not None else ()
    for place, move in enumerate(moves[:_MOST_MOVES]):
        # Dots, because a text has no other sign that every terminal can show.
        name = shortened(partition_name(move.key), _NOTE_WIDTH, ascii_only=True)
        text = f"{moved_words(move, name)}, from second {move.start_s:.0f} of the load"
        rows.append(("" if place else "moved", text))
    if (more := len(moves) - _MOST_MOVES) > 0:
        rows.append(("", f"and {counted(more, 'more move')}"))
    gaps = shown_gaps(record)
    for place, gap in enumerate(gaps[:_MOST_GAPS]):
        rows.append(("" if place else "outage", gap_words(gap)))
    if (more := len(gaps) - _MOST_GAPS) > 0:
        rows.append(("", f"and {counted(more, 'more outage')}"))
    return rows


def step_result(failed: str | None, *, confirming: bool) -> str:
    """The result of a step of a search; ``failed`` is the reason, None where the step passed."""
    if failed is None:
        return "confirmed" if confirming else "passed"
    return _STEP_FAILURES.get(failed, failed)


def found(part: SearchPart) -> str:
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
        f"{counted(part.given_up, 'row')} had too many writes to track" if part.given_up else "",
        part.cut_short,
    ]
    if any(missed):
        rows.append(("not checked", "; ".join(filter(None, missed))))
    lost = f"{part.lost:,} of {counted(part.acknowledged, 'acknowledged write')}"
    if part.covered:
        lost += f"; later writes replaced {part.covered:,} of the acknowledged ones"
    rows.append(("lost", lost))
    if part.unacknowledged:
        pending = (
            f"{counted(part.unacknowledged, 'write')}: {part.applied:,} applied, "
            f"{part.not_applied:,} not applied"
        )
        pending += f", {part.undecided:,} unknown" if part.undecided else ""
        rows.append(("not acknowledged", pending))
    for place, example in enumerate(part.examples[:_MOST_EXAMPLES]):
        rows.append(("" if place else "examples", example))
    return rows


def cost(record: RunRecord) -> list[tuple[str, str]]:
    """Generator, network and billable transactions: names and texts."""
    if record.watched is not None:
        return application_cost(record, record.watched)
    counts, cpu = record.counts, record.generator
    generator = (
        f"CPU {cpu.cpu_percent_mean:.0f}% of one core on average, peak {cpu.cpu_percent_max:.0f}%; "
        f"machine peak {cpu.machine_percent_max:.0f}%; "
        f"scheduling lag up to {milliseconds(cpu.lag_s_max * 1000)} ms"
    )
    size = f"{data_size(counts.bytes_sent)} sent, {data_size(counts.bytes_received)} received"
    unsent = {
        "never sent": counts.waiting,
        "dropped": counts.dropped,
        "still in flight": counts.in_flight,
    }
    shown = ", ".join(f"{count:,} {word}" for word, count in unsent.items() if count)
    due = f"{counted(counts.due, 'operation')}: {shown or 'all sent and answered'}"
    billable = counted(counts.billable_transactions, "transaction")
    rows = [("generator", generator)]
    if (made := cpu.capacity) is not None:
        full = "" if made.fullest is None else f"; {made.fullest.name}: {made.fullest.described}"
        rows.append(("capacity", f"{made.described}{full}"))
    return [*rows, ("bytes", size), ("billable", billable), ("due", due)]
