"""Parts of the report about rates: the partitions and the account beside their targets."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record import PartitionPart, RunRecord
from harness.measure.verdict import indicative
from harness.model.target import EndpointKind
from harness.report.page import Cell, Page, grid, room_for_names, table_of
from harness.report.words import (
    counted,
    milliseconds,
    number,
    partition_name,
    percent,
    shortened,
)

MOST_PARTITIONS = 10
_MOST_ESTIMATES = 3
_BAR_WIDTH = 10
_ACCOUNT_TRANSACTIONS_PER_S = 20_000
"""Source: scalability targets for standard storage accounts, which count requests, not entities."""
_NO_TARGET = "no target (request units)"


def partitions(record: RunRecord, page: Page) -> RenderableType:
    """The hottest partitions beside the target of one."""
    shown = record.partitions[:MOST_PARTITIONS]
    names = [_name(part, page) for part in shown]
    if record.partitions_folded is not None:
        names.append("all others")
    target = next((part.target for part in shown if part.target is not None), None)
    # A bar a partition where there is room for it, else the percentage alone.
    for bar_width in (_BAR_WIDTH, _BAR_WIDTH // 2, 0):
        build = functools.partial(_table, record, page, names, target, bar_width)
        room = room_for_names(page, build, max(map(cell_len, names), default=1))
        if room >= min(12, max(map(cell_len, names), default=1)):
            break
    notes = [Text(line, style="dim") for line in _notes(record, page)]
    title = "partitions" if len(record.partitions) == 1 else "partitions, hottest first"
    return page.section(title, build(room), *notes)


def account(record: RunRecord, page: Page) -> RenderableType:
    """The account beside its target, reads and writes apart, in entities and in requests."""
    part = record.account
    rates = part.entities_per_s
    best = f"best 1 s {number(rates.best_1s)}, best 10 s {number(rates.best_10s)}"
    beside: Cell = _NO_TARGET
    requests: Cell = "requests, retries included"
    if part.target is not None and part.ratio is not None:
        beside = page.ratio(part.ratio, _BAR_WIDTH).append(f" of {number(part.target)}")
        share = part.transactions_per_s / _ACCOUNT_TRANSACTIONS_PER_S
        requests = page.ratio(share, _BAR_WIDTH)
        requests.append(f" of {_ACCOUNT_TRANSACTIONS_PER_S:,}, the newer documents' unit")
    rows: list[tuple[Cell, ...]] = [
        ("entities/s", Text(number(rates.mean), style="bold"), beside),
        ("", "", Text(best, style="dim")),
        ("  GET (reads)", number(part.reads_per_s), Text("entities/s", style="dim")),
        ("  PUT (writes)", number(part.writes_per_s), Text("entities/s", style="dim")),
        ("transactions/s", number(part.transactions_per_s), requests),
    ]
    return page.section("account", grid(rows, right=(1,)))


def _table(
    record: RunRecord,
    page: Page,
    names: list[str],
    target: float | None,
    bar_width: int,
    name_width: int,
) -> Table:
    """The table with names of at most ``name_width`` columns and bars of ``bar_width``."""
    of_target = "target" if target is None else f"of {number(target)}"
    headers = [
        "partition", "entities/s", "best\n1 s", "best\n10 s", of_target,
        "503", "500", "429", "p50\nms", "p99\nms",
    ]  # fmt: skip
    rows = []
    parts = list(record.partitions[:MOST_PARTITIONS])
    if record.partitions_folded is not None:
        parts.append(record.partitions_folded)
    for name, part in zip(names, parts, strict=True):
        folded = part is record.partitions_folded
        of: Cell = Text("none", style="dim")
        if part.ratio is not None:
            of = page.ratio(part.ratio, bar_width) if bar_width else percent(part.ratio)
        throttled = _throttled(part.attempts_by_status)
        service = part.service_ms
        rates = part.entities_per_s
        rows.append(
            [
                Text(
                    shortened(name, name_width, page.glyphs.ellipsis),
                    style="dim" if folded else "bold",
                ),
                number(rates.mean),
                number(rates.best_1s),
                number(rates.best_10s),
                of,
                *(
                    Text(f"{throttled[status]:,}", style="red" if throttled[status] else "dim")
                    for status in ("503", "500", "429")
                ),
                "n/a" if service is None else milliseconds(service.p50),
                "n/a" if service is None else milliseconds(service.p99),
            ]
        )
    return table_of(headers, rows)


def _name(part: PartitionPart, page: Page) -> str:
    return partition_name(part.key, page.ascii_only) + ("" if part.exact else " ~")


def _throttled(attempts: Mapping[str, int]) -> dict[str, int]:
    """Throttled attempts by status; a 500 counts only as OperationTimedOut."""
    counts = {"503": 0, "500": 0, "429": 0}
    for name, count in attempts.items():
        status, _, rest = name.partition(" ")
        if status in counts and (status != "500" or rest.startswith("OperationTimedOut")):
            counts[status] += count
    return counts


def _notes(record: RunRecord, page: Page) -> list[str]:
    notes = []
    more = record.partitions[MOST_PARTITIONS:]
    if more:
        together = sum(part.entities_per_s.mean for part in more)
        notes.append(
            f"{page.glyphs.ellipsis} and {len(more):,} more, {number(together)} entities/s together"
        )
    if record.partitions_folded is not None:
        notes.append(
            f"all others: partitions beyond the {len(record.partitions)} that are told apart, "
            "counted together"
        )
    everything = record.account.entities_per_s.mean
    if len(record.partitions) > 1 and everything > 0:
        hottest = record.partitions[0].entities_per_s.mean
        notes.append(f"The hottest partition takes {percent(hottest / everything)} of the load.")
    for part in [part for part in record.partitions if not part.exact][:_MOST_ESTIMATES]:
        if part.estimate is not None:
            name = shortened(partition_name(part.key, page.ascii_only), 24, page.glyphs.ellipsis)
            notes.append(
                f"~ {name} was not told apart throughout; in the whole run it has "
                f"{part.estimate.at_least:,} to {part.estimate.at_most:,} entities"
            )
    if record.endpoint.kind == EndpointKind.COSMOS:
        notes.append(f"target: {_NO_TARGET}")
    elif indicative(record.entity.stored_bytes):
        notes.append(
            "Indicative only: targets hold for 1 KiB entities, these have "
            f"{counted(record.entity.stored_bytes, 'byte')}."
        )
    return notes
