"""The lines that a run prints while it is in progress, in the order in which they appear."""

from __future__ import annotations

import dataclasses

from harness.measure.counts.generator import BUSY_PERCENT
from harness.measure.counts.snapshot import Held, Snapshot
from harness.measure.record.findings import AuditPart
from harness.model.errors import printable
from harness.model.figures import counted, duration, milliseconds, number, of_core, percent
from harness.model.services import USUAL
from harness.model.services.service import ENTITIES, CountedUnit, Service
from harness.profile.load.search import Step, StepOutcome
from harness.report.names import partition_name, shortened
from harness.report.sentences import step_result
from harness.report.terminal.page import Glyphs, bar

_STEPS = (
    "Create a test {store}",
    "Load it with {units} of the targeted {key}",
    "Simulate peak load",
    "Examine the throughput",
)
_BAR_WIDTH = 20
_KEY_WIDTH = 12
PROGRESS_WIDTH = 79
_SILENT_S = 5.0


def step(number_of: int, detail: str = "", service: Service = USUAL) -> str:
    """The heading of a step of the documented stress-test procedure, 1 to 4."""
    key = service.store if service.store_each else "PartitionKey"
    does = _STEPS[number_of - 1].format(store=service.store, units=service.unit.many, key=key)
    line = f"[{number_of}/{len(_STEPS)}] {does}"
    return f"{line}: {detail}" if detail else line


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The state of a run: figures of the last few seconds, unless said otherwise.

    Attributes:
        step: Number of the step of a search; None outside a search.
        replayed: The share of a trace that is due; None without one.
        sign: That of an achieved rate that is a lower bound.
        wanted_per_s: Entities/s that the load requested, or its limit; None without a limit.
        service_p99_s: None before the first operation ended.
        response_p99_s: None in a closed loop.
        waiting: Operations that are due and not sent; None in a closed loop.
        dropped: Operations dropped unsent since the load began.
        cpu_percent: CPU of the busiest worker in its last second, in percent of one core.
    """

    elapsed_s: float
    step: int | None
    achieved_per_s: float
    wanted_per_s: float | None
    hottest: Held | None
    throttled_ratio: float
    service_p99_s: float | None
    response_p99_s: float | None
    waiting: int | None
    dropped: int
    in_flight: int
    users: int
    workers: int
    cpu_percent: float
    ru_per_s: float | None = None
    replayed: float | None = None
    sign: str = ""
    unit: str = ENTITIES.rate


def live_line(live: Live, *, ascii_only: bool = False) -> str:
    """The state of a run in one line of about 110 characters, in ASCII if ``ascii_only``.

    The CPU is shown only where it limits the generator.
    """
    at_step = "" if live.step is None else f"step {live.step}: "
    wanted = "" if live.wanted_per_s is None else f" of {number(live.wanted_per_s)}"
    achieved = f"{printable(live.sign, ascii_only)}{number(live.achieved_per_s)}"
    parts = [
        f"{duration(live.elapsed_s):>5}",
        f"{at_step}{achieved}{wanted} {live.unit}{_units(live.ru_per_s)}",
    ]
    if live.replayed is not None:
        parts.insert(1, f"{percent(live.replayed)} of the trace")
    if live.hottest is not None:
        parts.append(_held(live.hottest, _KEY_WIDTH, ascii_only=ascii_only))
    parts.append(f"throttled {percent(live.throttled_ratio)}")
    if live.service_p99_s is not None:
        response = live.response_p99_s
        more = "" if response is None else f", response {milliseconds(response * 1000)}"
        parts.append(f"p99 {milliseconds(live.service_p99_s * 1000)}{more} ms")
    if live.waiting is None:
        parts.append(f"{live.in_flight:,} in flight of {counted(live.users, 'user')}")
    else:
        dropped = f", {live.dropped:,} dropped" if live.dropped else ""
        parts.append(f"{live.waiting:,} waiting{dropped}")
    cpu = f", CPU {of_core(live.cpu_percent)}" if live.cpu_percent >= BUSY_PERCENT else ""
    parts.append(f"{counted(live.workers, 'worker')}{cpu}")
    return " | ".join(parts)


def _held(of: Held, width: int, *, ascii_only: bool = False) -> str:
    """The rate of a partition, as a share of the limit in force or else of the target."""
    name = shortened(partition_name(of.key, ascii_only), width, ascii_only)
    sign = printable(of.sign, ascii_only)
    if of.limit_per_s is not None:
        share = percent(of.per_s / of.limit_per_s, sign)
        return f"{name} {share} of its limit of {number(of.limit_per_s)}"
    if of.target_per_s is not None:
        return f"{name} {percent(of.per_s / of.target_per_s, sign)} of target"
    return f"{name} {sign}{number(of.per_s)}/s"


def _units(ru_per_s: float | None) -> str:
    return "" if ru_per_s is None else f", {number(ru_per_s)} RU/s"


def watch_line(
    snapshot: Snapshot,
    *,
    elapsed_s: float,
    held: Held | None,
    p99_ms: float | None,
    in_flight: int,
    senders: str,
    unit: CountedUnit = ENTITIES,
) -> str:
    """The state of a watched application in one line, with figures as those of `Live`.

    ``in_flight`` are operations that failed and may be sent again; ``senders`` says how many
    clients there are.
    """
    units = None if snapshot.request_units is None else snapshot.request_units.per_s.mean
    parts = [
        f"{duration(elapsed_s):>5}",
        f"{snapshot.sign()}{number(snapshot.entities_per_s.mean)} {unit.rate}{_units(units)}",
    ]
    if held is not None and held.per_s:
        parts.append(_held(held, 2 * _KEY_WIDTH))
    parts.append(f"throttled {percent(snapshot.throttled_ratio)} of all attempts")
    if p99_ms is not None:
        parts.append(f"p99 {milliseconds(p99_ms)} ms")
    if in_flight:
        parts.append(f"{in_flight:,} may be retried")
    parts.append(senders)
    return " | ".join(parts)


def progress_line(
    done: int, total: int, elapsed_s: float, silent_s: float = 0.0, glyphs: Glyphs | None = None
) -> str:
    """The progress of loading: the share, the rate and the time left.

    With ``glyphs`` a bar comes first, and the line is always ``PROGRESS_WIDTH`` wide. ``silent_s``
    is the time since the last answer of the endpoint.
    """
    share = done / total if total else 1.0
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    left = ""
    if done >= total:
        left = f"done in {duration(elapsed_s)}"
    elif silent_s >= _SILENT_S:
        left = f"no answer for {duration(silent_s)}"
    elif rate > 0:
        left = f"{duration((total - done) / rate)} left"
    line = f"{int(share * 100):3d}%  {done:,} of {total:,}  {rate:,.0f}/s  {left}"
    if glyphs is None:
        return f"      {line.strip()}"
    return f"      {bar(share, _BAR_WIDTH, glyphs)} {line}".ljust(PROGRESS_WIDTH)[:PROGRESS_WIDTH]


def step_begins(place: int, step: Step, unit: CountedUnit = ENTITIES) -> str:
    purpose = ", to confirm the rate" if step.confirming else ""
    if step.measuring:
        purpose = " or more, until the limit is known"
    return (
        f"step {place}: {number(step.rate_per_s)} {unit.rate}, {step.settle_s:g} s to settle, then "
        f"measured for {step.hold_s:.0f} s{purpose}"
    )


def step_taken(place: int, outcome: StepOutcome, unit: CountedUnit = ENTITIES) -> str:
    result, passed = step_result(outcome)
    p99 = "n/a" if outcome.p99_ms is None else f"{milliseconds(outcome.p99_ms)} ms"
    return (
        f"step {place}: {'' if passed else 'failed, '}{result}: "
        f"{number(outcome.achieved_per_s)} of {number(outcome.rate_per_s)} {unit.rate}, "
        f"{percent(outcome.throttled_ratio)} throttled, p99 {p99}, "
        f"{counted(outcome.billable_transactions, 'billable transaction')}"
    )


def audit_begins(rows: int, written: int, *, exact: bool) -> str:
    """The number of rows that an audit checks, of all that the load wrote."""
    if rows == written and exact:
        return f"Audit: checking {counted(rows, 'row')} that the load wrote"
    of = f"the {written:,}" if exact else f"about {written:,}"
    return f"Audit: checking {counted(rows, 'row')}, a sample of {of} that the load wrote"


def audit_goes_on(rows: int, total: int, lost: int) -> str:
    return f"Audit: {rows:,} of {counted(total, 'row')} checked, {counted(lost, 'lost write')}"


def audit_ends(part: AuditPart, seconds: float) -> str:
    line = f"Audit: {counted(part.rows, 'row')} checked in {duration(seconds)}"
    if part.rows:
        line += f", {counted(part.lost, 'lost write')}"
    return line + (f"; cut short: {part.cut_short}" if part.cut_short else "")
