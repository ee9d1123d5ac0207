"""What a reader looks at first: the key figures. And the account and the operations as tables."""

from __future__ import annotations

import dataclasses

from harness.measure.quantities import FAILURES
from harness.measure.record import LatencyPart, RatesPart, RunRecord
from harness.report.cells import NOT_MEASURED, latency_cells, rates_cells
from harness.report.rates import ACCOUNT_TRANSACTIONS_PER_S
from harness.report.reading import (
    NO_TARGET,
    best_over,
    hottest,
    other_outcomes,
    throttled_by_status,
)
from harness.report.web.cell import Cell, cells, named
from harness.report.web.rendering import render
from harness.report.words import agreed, milliseconds, number, partition_name, percent

_LATENCY = ("p50", "p90", "p99", "max")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """A figure that a reader wants at one glance.

    Attributes:
        name: What it is.
        value: Written, without its unit.
        unit: Behind the value.
        share: Of a target, drawn as a bar; None where there is none.
        notes: Below it.
        tone: As of `Cell`.
    """

    name: str
    value: Cell
    unit: str = ""
    share: float | None = None
    notes: tuple[str, ...] = ()
    tone: str = ""


def key_figures(record: RunRecord) -> list[KeyFigure]:
    """The account, the hottest partition, throttling, failures, latencies, and what was offered."""
    account = record.account
    longer = best_over(record)
    shown = [
        _against(
            "account", Cell(text=""), account.entities_per_s, account.ratio, account.target, longer
        )
    ]
    if (hot := hottest(record)) is not None:
        name = named(partition_name(hot.key), 24)
        rates = hot.entities_per_s
        shown.append(_against("hottest partition", name, rates, hot.ratio, hot.target, longer))
    by_status = throttled_by_status((record.attempts_by_status,))
    shown.append(
        KeyFigure(
            name="throttled",
            value=Cell(text=percent(record.throttled_ratio)),
            unit="of attempts",
            notes=(", ".join(f"{status}: {count:,}" for status, count in by_status.items()),),
            tone="bad" if record.throttled_ratio else "",
        )
    )
    ended = sum(record.outcomes.values())
    failed = sum(count for name, count in record.outcomes.items() if name in FAILURES)
    shown.append(
        KeyFigure(
            name="failed",
            value=Cell(text=f"{failed:,}"),
            unit=agreed(failed, "operation", "operations"),
            notes=(f"{percent(failed / ended if ended else 0.0)} of {ended:,}",),
            tone="bad" if failed else "",
        )
    )
    shown += [_latency("service", record.service_ms), _latency("response", record.response_ms)]
    if (offered := _offered(record)) is not None:
        achieved = account.entities_per_s.mean
        held = achieved / offered if offered else 1.0
        shown.append(
            KeyFigure(
                name="achieved of offered",
                value=Cell(text=percent(held)),
                notes=(f"{number(achieved)} of {number(offered)} entities/s",),
                share=held,
            )
        )
    return shown


def account(record: RunRecord) -> str:
    """The account beside its target, in entities and in requests."""
    part = record.account
    beside, requests, notes = NO_TARGET, "retries included", list[str]()
    if part.target is not None and part.ratio is not None:
        beside = f"{percent(part.ratio)} of {number(part.target)}"
        share = percent(part.transactions_per_s / ACCOUNT_TRANSACTIONS_PER_S)
        requests = f"{share} of {ACCOUNT_TRANSACTIONS_PER_S:,}"
        notes.append("Newer documents give the account's target in transactions/s.")
    mean, best_1s, best_10s = rates_cells(part.entities_per_s)
    rows = [
        ("entities/s", mean, beside),
        ("best 1 s", best_1s, ""),
        (best_over(record), best_10s, ""),
        ("GET (reads)", number(part.reads_per_s), ""),
        ("PUT (writes)", number(part.writes_per_s), ""),
        ("transactions/s", number(part.transactions_per_s), requests),
    ]
    shown = [[Cell(text=name, tone="faint"), *cells(others)] for name, *others in rows]
    headers = ["", "a second", "of the target"]
    return render("table.html", headers=headers, rows=shown, left=1, notes=notes)


def operations(record: RunRecord) -> str:
    """Each operation: how many, how fast, and how they ended otherwise than well."""
    opened = record.response_ms is not None
    rows = [
        [
            named(part.kind),
            *cells([f"{part.count:,}", number(part.entities_per_s.mean)]),
            *_latencies(part.service_ms, part.response_ms, opened),
            Cell(text=", ".join(f"{name} {count:,}" for name, count in other_outcomes(part))),
        ]
        for part in record.operations
    ]
    if len(rows) > 1:
        total = [f"{record.counts.operations:,}", number(record.account.entities_per_s.mean)]
        latencies = _latencies(record.service_ms, record.response_ms, opened)
        rows.append([Cell(text="all"), *cells(total), *latencies, Cell(text="")])
    groups = [("", 3), ("service ms", 4)]
    if opened:
        groups.append(("response ms", 4))
    note = "Service latency is from sent to done, retries included; response latency from due."
    if not opened:
        note += " In a closed loop nothing is due: n/a."
    return render(
        "table.html",
        groups=[*groups, ("", 1)],
        headers=[
            "operation",
            "count",
            "entities/s",
            *_LATENCY * (2 if opened else 1),
            "ended otherwise",
        ],
        rows=rows,
        left=1,
        notes=[note],
    )


def _against(
    name: str, of: Cell, rates: RatesPart, ratio: float | None, target: float | None, longer: str
) -> KeyFigure:
    mean, best_1s, best_10s = rates_cells(rates)
    beside = NO_TARGET
    if ratio is not None and target is not None:
        beside = f"{percent(ratio)} of {number(target)}"
    value = dataclasses.replace(of, text=mean)
    label = f"{name} {of.text}".strip()
    return KeyFigure(
        name=label,
        value=value,
        unit="entities/s",
        share=ratio,
        notes=(beside, f"best 1 s {best_1s}, {longer} {best_10s}"),
        tone="warn" if ratio is not None and ratio > 1 else "",
    )


def _latency(name: str, part: LatencyPart | None) -> KeyFigure:
    if part is None:
        why = "closed loop: nothing is due" if name == "response" else "nothing was measured"
        return KeyFigure(
            name=f"p99 {name}", value=Cell(text=NOT_MEASURED), notes=(why,), tone="faint"
        )
    notes = (f"p50 {milliseconds(part.p50)} ms, max {milliseconds(part.max)} ms",)
    return KeyFigure(
        name=f"p99 {name}", value=Cell(text=milliseconds(part.p99)), unit="ms", notes=notes
    )


def _latencies(
    service: LatencyPart | None, response: LatencyPart | None, opened: bool
) -> list[Cell]:
    shown = (service, response) if opened else (service,)
    return cells(text for part in shown for text in latency_cells(part, *_LATENCY))


def _offered(record: RunRecord) -> float | None:
    """Entities a second that were offered in the measured window; None where nothing was."""
    start, end = record.window_start, record.window_start + record.measured_s
    known = [
        (point.offered, point.width_s)
        for point in record.series
        if point.offered is not None and start <= point.t < end
    ]
    seconds = sum(width for _, width in known)
    return sum(rate * width for rate, width in known) / seconds if seconds else None
