"""The sentences about a run, the same in every output: plain text without layout.

Texts from outside (keys, error codes, a profile's question) are returned unchanged. Each output
makes them printable.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from harness.measure.counts.latency import SPANS
from harness.measure.record.enforced import partition_limit_of
from harness.measure.record.findings import AdvicePart, AuditPart, SearchPart, StepPart
from harness.measure.record.measured import EstimatePart, MessagesPart, PartitionPart, RatesPart
from harness.measure.record.origin import ReplayPart, WatchedPart
from harness.measure.record.record import RunRecord, share_sign
from harness.measure.verdict.verdict import LIMITERS
from harness.model.figures import counted, data_size, listed, milliseconds, number, of_core, percent
from harness.model.partition import Partition
from harness.model.physical_partitions import MAX_PARTITION_RU_PER_S
from harness.model.services import BESIDE
from harness.model.services.service import RAISED, CountedUnit
from harness.model.target import indicative
from harness.profile.load.registry import recorded_load
from harness.profile.load.search import Limit
from harness.report.answers import loading_words
from harness.report.columns import NOT_MEASURED, best_over, has_rates, lasted_seconds
from harness.report.limits import (
    account_limit,
    has_enforced,
    least,
    limited_rates,
    partition_limits,
    raised_mark,
    target_word,
    unit_of,
    whose,
)
from harness.report.names import partition_name, shortened

_MOST_CLIENTS = 3
ACCOUNT_TRANSACTIONS_PER_S = 20_000
"""Source: scalability targets for standard storage accounts, which count requests, not entities."""
NO_TARGET = "no target (request units)"
_UNCHARGED = "no answer named its charge"
OTHERS = "all others"
RELY_NOT = "Do not rely on these figures"
WHOLE_SEARCH = "All other sections cover all steps of the search."
_MOST_EXAMPLES = 5
_MOST_ESTIMATES = 3
_NOTE_WIDTH = 24

_SEARCH_LIMITS: dict[str, Limit] = {limit: limit for limit in Limit}


def application_setup(record: RunRecord, watched: WatchedPart) -> list[tuple[str, str]]:
    """The endpoint, the application, its clients and the time: names and texts."""
    requests = counted(watched.requests, "request")
    unit, about = record.endpoint.service.unit, record.endpoint.service.about
    others = f", {watched.others:,} of them not about {about}" if watched.others else ""
    written = f"at most {record.entity.wire_bytes:,} B on the wire for each written {unit.one}"
    ended = f", ended by {record.ended_by}" if record.ended_by else ""
    table = f", tables {record.endpoint.table}" if record.endpoint.table else ""
    tables = {Partition.named(part.key).table for part in record.partitions}
    rows = [
        ("endpoint", record.endpoint.described),
        ("", f"{record.endpoint.host}{table}"),
        *(("", one.beside_as) for one in BESIDE if one.beside in tables - {record.endpoint.alone}),
        ("application", f"{watched.command or 'not started here'}: {requests}{others}"),
    ]
    for place, client in enumerate(watched.known_clients[:_MOST_CLIENTS]):
        name = client.user_agent or "(no user agent)"
        rows.append(("" if place else "clients", f"{client.requests:,} {name}"))
    if more := watched.clients_beyond(_MOST_CLIENTS):
        rows.append(("", f"and {more}"))
    return [
        *rows,
        *([(unit.many, written)] if record.entity.wire_bytes else []),
        ("measured", f"{record.measured_s:,} s{ended}"),
        ("run", record.run_id),
    ]


def application_cost(record: RunRecord, watched: WatchedPart) -> list[tuple[str, str]]:
    """CPU, network and billable transactions: names and texts."""
    counts, cpu = record.counts, record.generator
    billable = counted(watched.passed, "transaction")
    if watched.over_budget:
        billable += f"; {watched.over_budget:,} requests over the budget were refused"
    each = (cpu.cpu_percent_mean, cpu.cpu_percent_max, cpu.machine_percent_max)
    used = "busiest thread {} of one core on average, peak {}; machine peak {}"
    return [
        ("application", used.format(*map(of_core, each)) if each[-1] else "CPU unknown"),
        ("gateway", f"CPU {of_core(watched.gateway_cpu_percent)} of one core on average"),
        (
            "bytes",
            f"{data_size(counts.bytes_sent)} sent, {data_size(counts.bytes_received)} received",
        ),
        ("billable", billable),
        *charged(record),
    ]


def charged(record: RunRecord) -> list[tuple[str, str]]:
    """The request units of the whole run; empty where none were charged."""
    units = record.request_units
    if units is None:
        return []
    return [("charged", f"{number(units.total)} request units, throttled attempts included")]


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
            "Incomplete: the last report of a worker is missing, or the run was cut short. Counts "
            "may be too low."
        )
    return lines


def limited_by(record: RunRecord) -> str | None:
    """What kept the rate from being higher; None where it is unknown."""
    limiter = LIMITERS.get(record.verdict.limited_by)
    return None if limiter is None else limiter.described


def advised(part: AdvicePart) -> tuple[str, str]:
    """A piece of advice in sentences, and its source."""
    text = f"{part.text[:1].upper()}{part.text[1:].rstrip('.')}. {part.why}".strip()
    return text, f'{part.document}, "{part.section}"'


def next_step(record: RunRecord) -> str | None:
    """What the most important piece of advice says to do, without its reason; None without one."""
    for part in record.verdict.advice:
        # In records of earlier versions the reason is behind a colon.
        step = part.text if part.why else part.text.partition(": ")[0]
        return f"{step.rstrip('.')}."
    return None


def setup(record: RunRecord) -> list[tuple[str, str]]:
    """The endpoint, the load, the entities and the time: names and texts."""
    if record.watched is not None:
        return application_setup(record, record.watched)
    model = recorded_load(record.profile)
    load = f"{model.users_words(record.users)} in "
    load += counted(record.workers, "process", "processes")
    # JSON has no infinity: an account whose cap is not in the record may have had none.
    cap = model.load.cap(emulated=record.endpoint.service.emulated, otherwise=math.inf)
    unit = record.endpoint.service.unit
    if (words := model.words(unit)) is not None:
        load += f", {words}"
    elif cap is not None:
        load += f", at most {number(cap)} {unit.rate} in total"
    entity = record.entity
    bound = "about" if entity.stored_bytes else "at most"
    size = f"{bound} {entity.wire_bytes:,} B on the wire" if entity.wire_bytes else "none written"
    if entity.stored_bytes:
        size = f"{entity.stored_bytes:,} B stored, {size}"
    if entity.content_bytes:
        size = f"{entity.content_bytes:,} B, with gzip {size}"
    service = record.endpoint.service
    ended = f", ended by {record.ended_by}" if record.ended_by else ""
    # The series has no point behind the last answer.
    under_load = max(record.measured_s, sum(point.width_s for point in record.series))
    return [
        ("endpoint", record.endpoint.described),
        ("", f"{record.endpoint.host}, {_stores(record)}"),
        *([("signed with", signed_with)] if (signed_with := record.endpoint.signed_with) else []),
        ("load", load),
        (unit.many, f"{size}{loading_words(record.loading)}"),
        *([("", service.layout)] if service.layout else []),
        *_replay_rows(record.replay),
        ("measured", f"{record.measured_s:,} s of {under_load:,} s under load{ended}"),
        ("run", f"{record.run_id}, session {record.session}"),
    ]


def _stores(record: RunRecord) -> str:
    """What held the data of a run: its table, or the queues whose names begin alike."""
    service, name = record.endpoint.service, record.endpoint.table
    return f"{service.store}s {name}-*" if service.store_each else f"{service.store} {name}"


def _replay_rows(replay: ReplayPart | None) -> Iterator[tuple[str, str]]:
    """What was replayed, and what of it could not be."""
    if replay is None:
        return
    words = f"{counted(replay.operations, 'operation')} of {replay.trace}"
    of = ", ".join(filter(None, (replay.source, replay.run_id and f"record {replay.run_id}")))
    words += f" ({of})" if of else ""
    yield "replayed", words + (f" under the keys of {replay.keys}" if replay.keys else "")
    for sentence in replay.sentences():
        yield "", sentence


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
    sign: str = ""

    @property
    def beside(self) -> str:
        if self.share is None:
            return self.target
        return f"{percent(self.share, self.sign)} {self.target}"


def account_rows(record: RunRecord) -> list[AccountRow]:
    """The rates of the account in entities and in requests, with their targets.

    Several accounts are added up, and their targets too.
    """
    if not has_rates(record):
        unmeasured = AccountRow(unit_of(record), NOT_MEASURED, target="no measured window")
        return [unmeasured, *_backlog_rows(record.messages)]
    part, accounts = record.account, max(1, len(record.accounts))
    together = "" if accounts == 1 else f", {accounts} accounts together"
    rates, sign = part.entities_per_s, least(record)
    ratio, share, target, requests = None, None, NO_TARGET, "requests, retries included"
    if not record.endpoint.service.documented:
        target = f"no target ({record.endpoint.service.partitions})"
    elif record.endpoint.service.targets is not None:
        target = "no published target"
    if part.target is not None:
        limit, mark = part.target, raised_mark(record, "account")
        if not record.accounts:
            limit = account_limit(record) or limit
        ratio, target = rates.mean / limit, f"of {number(limit)}{mark}{together}"
        most = accounts * ACCOUNT_TRANSACTIONS_PER_S
        share = part.transactions_per_s / most
        requests = f"of {most:,} (target in newer documents)"
    units = record.request_units
    if units is not None:
        target = ""
    return [
        *_unit_rows(record, together),
        AccountRow(
            record.endpoint.service.unit.rate, f"{sign}{number(rates.mean)}", ratio, target, sign
        ),
        *_best_rows(record, rates, sign),
        AccountRow("  GET (reads)", f"{sign}{number(part.reads_per_s)}"),
        AccountRow("  PUT (writes)", number(part.writes_per_s)),
        AccountRow("transactions/s", number(part.transactions_per_s), share, requests),
        *_backlog_rows(record.messages),
    ]


def _backlog_rows(messages: MessagesPart | None) -> list[AccountRow]:
    """What the queues of a run still hold, and how long the oldest message waited that was got."""
    if messages is None:
        return []
    put, deleted = messages.put, messages.deleted
    rows = [
        AccountRow("backlog", f"{messages.backlog:,}", target=f"{put:,} put, {deleted:,} deleted")
    ]
    if messages.got:
        age, got = f"{messages.oldest_ms / 1000:g} s", counted(messages.got, "message")
        rows.append(AccountRow("oldest got", age, target=f"the oldest of {got} when it was got"))
    return rows


def _unit_rows(record: RunRecord, together: str) -> list[AccountRow]:
    """The rates of the account in request units; empty where none were charged."""
    units = record.request_units
    if units is None:
        if not record.endpoint.service.charges or not record.counts.attempts:
            return []
        return [AccountRow("RU/s", "unknown", target=_UNCHARGED)]
    target = "endpoint.provisioned_ru_per_s is not set"
    if units.target is not None:
        target = f"of {number(units.target)} provisioned{together}"
    return [
        AccountRow("RU/s", number(units.per_s.mean), units.ratio, target),
        *_best_rows(record, units.per_s),
    ]


def _best_rows(record: RunRecord, rates: RatesPart, sign: str = "") -> Iterator[AccountRow]:
    yield AccountRow("  best 1 s", f"{sign}{number(rates.best_1s)}")
    if lasted_seconds(record):
        yield AccountRow(f"  {best_over(record)}", f"{sign}{number(rates.best_10s)}")


def latency_note(record: RunRecord) -> str:
    service = f"Service latency: {SPANS['service']}."
    if record.watched is not None:
        return f"{service} The application's schedule is unknown: no response latency."
    if record.response_ms is None:
        return f"{service} A closed loop has no response latency."
    return f"{service} Response latency: {SPANS['response']}."


def hottest(record: RunRecord) -> PartitionPart | None:
    """The partition with the highest mean rate, if any; queries over several partitions have none.

    Where request units are charged, it is their rate.
    """
    single = (part for part in record.partitions if part.partition.targeted and has_rates(record))
    return max(single, key=_load, default=None)


def hottest_share(record: RunRecord) -> float | None:
    """The hottest partition's share of the load; None where there was no load."""
    everything = record.account.entities_per_s.mean
    if record.request_units is not None:
        everything = record.request_units.per_s.mean
    part = hottest(record)
    return None if part is None or everything <= 0 else _load(part) / everything


def estimated(part: EstimatePart, unit: CountedUnit) -> str:
    words = unit.counted(part.at_most)
    return words if part.at_least == part.at_most else f"{part.at_least:,} to {words}"


def _load(part: PartitionPart) -> float:
    return limited_rates(part).mean


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
        sign = share_sign(record, hottest(record))
        notes.append(f"The hottest partition takes {percent(share, sign)} of the load.")
    if any(part.partition.whole_table for part in record.partitions):
        notes.append(
            "(table): queries over several partitions; the share of each partition is unknown."
        )
    for part in [part for part in record.partitions if not part.exact][:_MOST_ESTIMATES]:
        if part.estimate is not None:
            name = shortened(partition_name(part.key, ascii_only), _NOTE_WIDTH, ascii_only)
            notes.append(
                f"~ {name} was counted separately for only part of the run. The whole run has "
                f"{estimated(part.estimate, record.endpoint.service.unit)} of this partition."
            )
    limits = partition_limits(record)
    if len(set(limits.values())) > 1:
        each = listed([f"{number(limit)} for {whose(one)}" for one, limit in limits.items()])
        notes.append(f"The {'limits' if has_enforced(record) else 'targets'} are {each}.")
    if record.endpoint.service.charges:
        notes.append(_unit_note(record))
    elif indicative(record.entity.stored_bytes):
        many = record.endpoint.service.unit.many
        notes.append(
            f"Indicative only: targets hold for 1 KiB {many}, and {many} of this run have "
            f"{counted(record.entity.stored_bytes, 'byte')}."
        )
    if record.enforced is not None and not record.enforced.limits:
        notes.append("The gateway counted the requests, and limited none.")
    elif record.endpoint.service.models_targets:
        notes.append(_gateway_note(record))
    return notes


def _unit_note(record: RunRecord) -> str:
    """What partitions of Cosmos DB are held against."""
    targets = (part.request_units.target for part in record.partitions if part.request_units)
    target = next((target for target in targets if target is not None), None)
    if target is None:
        why = "" if record.request_units is not None else f", and {_UNCHARGED}: they are unknown"
        return f"No target in entities/s applies: Cosmos DB counts request units{why}."
    if target == MAX_PARTITION_RU_PER_S:
        return f"A partition of Cosmos DB can have {number(target)} RU/s at most."
    return f"A partition can have {number(target)} RU/s: its even share of what is provisioned."


def _gateway_note(record: RunRecord) -> str:
    """The limits that a gateway enforced; old records do not have them."""
    part = record.enforced
    if part is None:
        return "The gateway throttles by its own limits, which may differ from these targets."
    each, limits = part.rates, {*partition_limits(record).values()}
    if partition_limit_of(part) is not None and len(limits) == 1:
        each |= {"partition": limits.pop()}
    rates = [f"{number(rate)} per {rule}" for rule, rate in each.items()]
    unit = record.endpoint.service.unit.rate
    held = f"The gateway allows {listed(rates).replace(' ', f' {unit} ', 1)}."
    targets = record.endpoint.service.targets
    if targets is None or (published := targets.partition) == each["partition"]:
        return held
    if record.account.target is None:
        return f"{held} The published target is {number(published)} per partition."
    raised = RAISED in (target_word(record), target_word(record, "account"))
    word = f"{RAISED}s" if raised else "published targets"
    return (
        f"{held} The {word} are {number(published)} per partition and "
        f"{number(record.account.target)} per account."
    )


def step_result(step: StepPart) -> tuple[str, bool]:
    """The result of a step of a search, and whether the step did what it was taken for."""
    if step.failed is None:
        return "confirmed" if step.confirming else "passed", True
    if step.measuring and step.failed == Limit.THROTTLED:
        return "measured", True
    limit = _SEARCH_LIMITS.get(step.failed)
    return step.failed if limit is None else limit.of_step, False


def search_cost(part: SearchPart) -> str:
    """What a search cost; the verdict says what it found."""
    billed = sum(step.billable_transactions for step in part.steps)
    return f"{counted(len(part.steps), 'step')}, {counted(billed, 'billable transaction')}."


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
        f"CPU {of_core(cpu.cpu_percent_mean)} of one core on average, peak "
        f"{of_core(cpu.cpu_percent_max)}; "
        f"machine peak {of_core(cpu.machine_percent_max)}; "
        f"scheduling lag up to {milliseconds(cpu.lag_s_max * 1000)} ms"
        if cpu.machine_percent_max
        else "CPU unknown"
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
        rows.append(("capacity", made.described(record.endpoint.service.unit) + full))
    return [*rows, ("bytes", size), ("billable", billable), *charged(record), ("due", due)]
