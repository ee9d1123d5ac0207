"""Parts of the report about rates: the partitions and the account beside their targets."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record import PartitionPart, RunRecord
from harness.report.advice import Beside, beside
from harness.report.page import Cell, Page, grid, room_for_names, table_of
from harness.report.reading import (
    NO_TARGET,
    OTHERS,
    best_over,
    partition_notes,
    throttled_by_status,
)
from harness.report.words import milliseconds, number, partition_name, percent, shortened
from harness.workload.prediction import Prediction

MOST_PARTITIONS = 10
_BAR_WIDTH = 10
_NAME_WIDTH = 20
_SHARE_WIDTH = 40
ACCOUNT_TRANSACTIONS_PER_S = 20_000
"""Source: scalability targets for standard storage accounts, which count requests, not entities."""
_NAMES = "partition"
_LAYOUTS = ((_BAR_WIDTH, 2), (_BAR_WIDTH // 2, 2), (_BAR_WIDTH // 2, 1), (0, 1))
"""Columns of a bar and blanks between columns: from roomy to narrow."""


def partitions(record: RunRecord, page: Page) -> RenderableType:
    """The hottest partitions beside the target of one, the others together."""
    parts = record.partitions
    names = [_name(part, page) for part in parts[:MOST_PARTITIONS]]
    if len(parts) > MOST_PARTITIONS:
        names.append(_more(parts))
    if record.partitions_folded is not None:
        names.append(OTHERS)
    longest = max(map(cell_len, names), default=0)
    for bar_width, gap in _LAYOUTS:
        build = functools.partial(_table, record, page, bar_width, gap)
        room = room_for_names(page, build, _NAMES, longest)
        if room >= max(len(_NAMES), min(_NAME_WIDTH, longest)):
            break
    notes = [
        Text(line, style="dim")
        for line in partition_notes(record, page.glyphs.ellipsis, page.ascii_only)
    ]
    title = "partitions" if len(parts) == 1 else "partitions, hottest first"
    return page.section(title, build(max(room, len(_NAMES))), *notes)


def predicted_shares(record: RunRecord) -> tuple[Beside, ...]:
    """The shares that were predicted from mix and keys alone, beside those that were measured."""
    part = record.prediction
    return () if part is None else beside(Prediction(**part.model_dump()), record)


def predicted(record: RunRecord, page: Page) -> list[RenderableType]:
    """Where the load was expected to fall beside where it fell; nothing where nothing was."""
    rows: list[tuple[Cell, ...]] = [
        (
            shortened(page.show(share.what), _SHARE_WIDTH, page.glyphs.ellipsis),
            f"{percent(share.predicted)} predicted",
            "not known" if share.measured is None else f"{percent(share.measured)} measured",
        )
        for share in predicted_shares(record)
    ]
    if not rows:
        return []
    return [page.section("predicted and measured share of the load", grid(rows, right=(1, 2)))]


def account(record: RunRecord, page: Page) -> RenderableType:
    """The account beside its target, reads and writes apart, in entities and in requests."""
    part = record.account
    rates = part.entities_per_s
    beside: Cell = NO_TARGET
    requests: Cell = "requests, retries included"
    if part.target is not None and part.ratio is not None:
        beside = page.ratio(part.ratio, _BAR_WIDTH).append(f" of {number(part.target)}")
        share = part.transactions_per_s / ACCOUNT_TRANSACTIONS_PER_S
        requests = page.ratio(share, _BAR_WIDTH)
        requests.append(f" of {ACCOUNT_TRANSACTIONS_PER_S:,}")
        requests.append(" (the unit of newer documents)", style="dim")
    rows: list[tuple[Cell, ...]] = [
        ("entities/s", Text(number(rates.mean), style="bold"), beside),
        ("  best 1 s", number(rates.best_1s), ""),
        (f"  {best_over(record)}", number(rates.best_10s), ""),
        ("  GET (reads)", number(part.reads_per_s), ""),
        ("  PUT (writes)", number(part.writes_per_s), ""),
        ("transactions/s", number(part.transactions_per_s), requests),
    ]
    return page.section("account", grid(rows, right=(1,)))


def _table(record: RunRecord, page: Page, bar_width: int, gap: int, name_width: int) -> Table:
    """The table with names of at most ``name_width`` columns and bars of ``bar_width``."""
    target = next((part.target for part in record.partitions if part.target is not None), None)
    headers = [
        _NAMES, "entities/s", "best\n1 s", best_over(record).replace(" ", "\n", 1),
        "target" if target is None else f"of {number(target)}",
        "503", "500", "429", "p50\nms", "p99\nms",
    ]  # fmt: skip
    rows = []
    for part in record.partitions[:MOST_PARTITIONS]:
        of: Cell = Text("none", style="dim")
        if part.ratio is not None:
            of = page.ratio(part.ratio, bar_width) if bar_width else percent(part.ratio)
        name = shortened(_name(part, page), name_width, page.glyphs.ellipsis)
        rows.append(_row(Text(name, style="bold"), part, of))
    if more := record.partitions[MOST_PARTITIONS:]:
        together = sum(part.entities_per_s.mean for part in more)
        name = shortened(_more(record.partitions), name_width, page.glyphs.ellipsis)
        rows.append(
            [Text(name, style="dim"), number(together), "", "", "", *_throttled(more), "", ""]
        )
    if record.partitions_folded is not None:
        name = shortened(OTHERS, name_width, page.glyphs.ellipsis)
        rows.append(_row(Text(name, style="dim"), record.partitions_folded, ""))
    return table_of(headers, rows, gap)


def _row(name: Cell, part: PartitionPart, of_target: Cell) -> list[Cell]:
    rates, service = part.entities_per_s, part.service_ms
    return [
        name,
        number(rates.mean),
        number(rates.best_1s),
        number(rates.best_10s),
        of_target,
        *_throttled((part,)),
        "n/a" if service is None else milliseconds(service.p50),
        "n/a" if service is None else milliseconds(service.p99),
    ]


def _more(parts: Sequence[PartitionPart]) -> str:
    return f"and {len(parts) - MOST_PARTITIONS:,} more"


def _name(part: PartitionPart, page: Page) -> str:
    return partition_name(part.key, page.ascii_only) + ("" if part.exact else " ~")


def _throttled(parts: Sequence[PartitionPart]) -> list[Cell]:
    counts = throttled_by_status(part.attempts_by_status for part in parts)
    return [Text(f"{count:,}", style="red" if count else "dim") for count in counts.values()]
