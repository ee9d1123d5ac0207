"""Parts of the report about operations and the attempts they took."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from harness.measure.record import LatencyPart, OperationPart, RunRecord
from harness.report.drawing import bar
from harness.report.page import Cell, Page, grid, table_of
from harness.report.words import counted, milliseconds, number, percent

_BAR_WIDTH = 20
_PLAIN_OUTCOME = "success"


def operations(record: RunRecord, page: Page) -> RenderableType:
    """Each kind of operation: how many, how fast, and how they ended otherwise than well."""
    open_model = record.response_ms is not None
    rows: list[list[Cell]] = []
    for part in record.operations:
        rates = part.entities_per_s
        counts = [page.show(part.kind), f"{part.count:,}", number(rates.mean)]
        rows += _rows(counts, part.service_ms, part.response_ms if open_model else None)
    if len(record.operations) > 1:
        total = number(record.account.entities_per_s.mean)
        counts = ["all", f"{record.counts.operations:,}", total]
        rows += [
            [Text(str(cell), style="bold") for cell in row]
            for row in _rows(counts, record.service_ms, record.response_ms)
        ]
    headers = ["operation", "count", "entities/s", "latency in ms", "p50", "p90", "p99", "max"]
    notes: list[RenderableType] = []
    if not open_model:
        notes.append(
            Text(
                "service is from sent to done, retries included; response: n/a (closed loop)", "dim"
            )
        )
    if others := _other_outcomes(record.operations):
        notes.append(
            grid(
                [
                    (Text(page.show(outcome), style="yellow"), f"{count:,}", page.show(kinds))
                    for outcome, count, kinds in others
                ],
                right=(1,),
            )
        )
    return page.section("operations", table_of(headers, rows), *notes)


def attempts(record: RunRecord, page: Page) -> RenderableType:
    """HTTP requests against operations, by what answered, and how many were throttled."""
    counts = record.counts
    each = counts.attempts / counts.operations if counts.operations else 0.0
    partition, account = record.throttled["partition"], record.throttled["account"]
    throttled = partition + account
    lines = [
        Text(
            f"{counted(counts.attempts, 'attempt')} for "
            f"{counted(counts.operations, 'operation')}, {each:.3f} each"
        ),
        Text(
            f"throttled: {throttled:,} ({percent(record.throttled_ratio)}), for the partition "
            f"{partition:,}, for the account {account:,}",
            style="red" if throttled else "",
        ),
    ]
    most = max(record.attempts_by_status.values(), default=1)
    rows = [
        (
            page.show(name),
            f"{count:,}",
            percent(count / counts.attempts if counts.attempts else 0.0),
            Text(bar(count / most, _BAR_WIDTH, page.glyphs), style=_colour(name)),
        )
        for name, count in sorted(record.attempts_by_status.items(), key=lambda item: -item[1])
    ]
    return page.section("attempts", *lines, grid(rows, right=(1, 2)))


def _rows(
    counts: Sequence[str], service: LatencyPart | None, response: LatencyPart | None
) -> list[list[Cell]]:
    rows: list[list[Cell]] = [[*counts, "service", *_latency(service)]]
    if response is not None:
        rows.append(["", "", "", "response", *_latency(response)])
    return rows


def _latency(part: LatencyPart | None) -> list[str]:
    if part is None:
        return ["n/a"] * 4
    return [milliseconds(value) for value in (part.p50, part.p90, part.p99, part.max)]


def _other_outcomes(parts: Sequence[OperationPart]) -> list[tuple[str, int, str]]:
    """Outcomes but plain success: how often, and of which kinds; the most frequent first."""
    kinds: dict[str, list[tuple[str, int]]] = {}
    for part in parts:
        for outcome, count in part.outcomes.items():
            if outcome != _PLAIN_OUTCOME and count:
                kinds.setdefault(outcome, []).append((part.kind, count))
    found = [
        (
            outcome,
            sum(count for _, count in of),
            ", ".join(f"{kind} {count:,}" for kind, count in of),
        )
        for outcome, of in kinds.items()
    ]
    return sorted(found, key=lambda row: (-row[1], row[0]))


def _colour(name: str) -> str:
    return {"2": "cyan", "5": "red"}.get(name[:1], "yellow")
