"""The key figures at the top of a page."""

from __future__ import annotations

import dataclasses

from harness.measure.figures import agreed, milliseconds, number, percent
from harness.measure.record.record import LatencyPart, RatesPart, RunRecord
from harness.model.outcome import FAILURES
from harness.report.columns import NOT_MEASURED, best_over, throttled_by_status
from harness.report.names import partition_name
from harness.report.sentences import NO_TARGET, hottest
from harness.report.web.tables import Cell, named


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """A key figure.

    Attributes:
        name: Its heading.
        value: Its text, without the unit.
        unit: Its unit.
        share: A share that is drawn as a bar; None for no bar.
        notes: Lines below the figure.
        tone: As in `Cell`.
    """

    name: str
    value: Cell
    unit: str = ""
    share: float | None = None
    notes: tuple[str, ...] = ()
    tone: str = ""


def key_figures(record: RunRecord) -> list[KeyFigure]:
    """Account, hottest partition, throttling, failures, latencies, and the share of the offer."""
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


def _against(
    name: str, of: Cell, rates: RatesPart, ratio: float | None, target: float | None, longer: str
) -> KeyFigure:
    mean, best_1s, best_10s = map(number, (rates.mean, rates.best_1s, rates.best_10s))
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
        why = "not measured in a closed loop" if name == "response" else "not measured"
        return KeyFigure(
            name=f"p99 {name}", value=Cell(text=NOT_MEASURED), notes=(why,), tone="faint"
        )
    notes = (f"p50 {milliseconds(part.p50)} ms, max {milliseconds(part.max)} ms",)
    return KeyFigure(
        name=f"p99 {name}", value=Cell(text=milliseconds(part.p99)), unit="ms", notes=notes
    )


def _offered(record: RunRecord) -> float | None:
    """Entities/s offered in the measured window; None in a closed loop."""
    start, end = record.window_start, record.window_start + record.measured_s
    known = [
        (point.offered, point.width_s)
        for point in record.series
        if point.offered is not None and start <= point.t < end
    ]
    seconds = sum(width for _, width in known)
    return sum(rate * width for rate, width in known) / seconds if seconds else None
