"""Tables of HTML: their cells, and the tables of partitions, account and operations."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from harness.measure.figures import counted, percent
from harness.measure.record.record import PartitionPart, RunRecord
from harness.report.columns import (
    MEAN_RATE,
    OPERATION_COLUMNS,
    PARTITION_COLUMNS,
    THROTTLED,
    THROTTLED_RATIO,
    Column,
    Output,
    all_operations,
    columns_of,
    throttled_by_status,
)
from harness.report.names import partition_name, printable, shortened
from harness.report.sentences import OTHERS, account_rows, latency_note, partition_notes
from harness.report.web.rendering import render

NAME_WIDTH = 48
MOST_LIVE = 50
"""Rows of a table that is sent every other second. Keys may be long; a report has all of them."""
_MOST_THROTTLED = 10
_MUCH = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The content of a cell.

    Attributes:
        text: The text; the template escapes it.
        title: Shown where the pointer rests; empty for nothing.
        mark: Behind the text.
        share: Drawn as a bar; None for no bar.
        tone: ``good``, ``bad``, ``warn``, ``faint``, ``name`` or empty.
    """

    text: str
    title: str = ""
    mark: str = ""
    share: float | None = None
    tone: str = ""


def cells(texts: Iterable[str]) -> list[Cell]:
    """Plain cells."""
    return [Cell(text=printable(text)) for text in texts]


def short(text: str, width: int) -> str:
    """The beginning and the end of ``text``, about ``width`` letters."""
    if len(text) > _MUCH * width:
        # Measuring letters takes long, and all but the ends are left out anyway.
        text = text[: _MUCH * width // 2] + text[-_MUCH * width // 2 :]
    return shortened(text, width)


def named(text: str, width: int = NAME_WIDTH) -> Cell:
    """A name from outside, shortened; its title is the whole name."""
    whole = printable(text)
    shown = short(whole, width)
    return Cell(text=shown, title="" if shown == whole else whole, tone="name")


def figure_cell(column: Column[Any], row: Any) -> Cell:
    """The figure of a column: a share has a bar, a bad figure a colour."""
    value, text = column.get(row), printable(column.text(row))
    if column.share:
        if value is None:
            return Cell(text=text, tone="faint")
        return Cell(text=text, share=value, tone="warn" if value > 1 else "")
    return Cell(text=text, tone=_tone(column, text))


def _tone(column: Column[Any], text: str) -> str:
    if not column.bad:
        return ""
    return "faint" if text == "0" else "bad"


def table_html(
    names: Sequence[str],
    columns: Sequence[Column[Any]],
    rows: Sequence[Sequence[Cell]],
    notes: Sequence[str] = (),
) -> str:
    """A table with ``names`` before the columns and the groups of columns above their headings.

    Empty without rows.
    """
    if not rows:
        return ""
    content: dict[str, Any] = {
        "headers": [*names, *(column.name for column in columns)],
        "rows": rows,
        "left": len(names),
        "notes": notes,
    }
    if any(column.group for column in columns):
        groups = itertools.groupby(column.group for column in columns)
        content["groups"] = [
            ("", len(names)),
            *((name, len(list(found))) for name, found in groups),
        ]
    return render("table.html", **content)


def partition_cell(part: PartitionPart) -> Cell:
    """The name of a partition; ``~`` marks one that was not counted separately all the time."""
    name = named(partition_name(part.key))
    if part.exact:
        return name
    hints = [name.title] if name.title else []
    if part.since is not None:
        moment = dt.datetime.fromtimestamp(part.since, tz=dt.UTC)
        hints.append(f"counted separately since {moment:%H:%M:%S} UTC")
    if (bounds := part.estimate) is not None:
        most = counted(bounds.at_most, "entity", "entities")
        hints.append(f"{bounds.at_least:,} to {most} in the whole run")
    return dataclasses.replace(name, mark="~", title="; ".join(hints))


def partitions(record: RunRecord, *, live: bool) -> str:
    """Every partition that is counted separately, the most accessed first, then all others."""
    columns = columns_of(record, PARTITION_COLUMNS, Output.HTML)
    parts = record.partitions[:MOST_LIVE] if live else record.partitions
    rows = [
        [partition_cell(part), *(figure_cell(column, part) for column in columns)] for part in parts
    ]
    if more := record.partitions[len(parts) :]:
        name = Cell(text=f"and {len(more):,} more", tone="faint")
        totals = ((column, column.total(more)) for column in columns)
        rows.append([name, *(Cell(text=text, tone=_tone(column, text)) for column, text in totals)])
    if (folded := record.partitions_folded) is not None:
        name = Cell(text=OTHERS, tone="faint", title="partitions that are not counted separately")
        rows.append([name, *(figure_cell(column, folded) for column in columns)])
    return table_html(["partition"], columns, rows, partition_notes(record))


def most_throttled(record: RunRecord) -> str:
    """The partitions with the most throttled attempts; empty for a single partition."""
    if len(record.partitions) < 2:
        return ""
    refused = [
        (sum(throttled_by_status(part.attempts_by_status).values()), part)
        for part in record.partitions
    ]
    worst = sorted((one for one in refused if one[0]), key=lambda one: -one[0])[:_MOST_THROTTLED]
    columns = (*THROTTLED, THROTTLED_RATIO, MEAN_RATE)
    rows = [
        [partition_cell(part), *(figure_cell(column, part) for column in columns)]
        for _, part in worst
    ]
    return table_html(["partition"], columns, rows)


def account(record: RunRecord) -> str:
    """The account beside its targets, in entities and in requests."""
    rows = [
        [
            Cell(text=row.name.strip(), tone="faint"),
            Cell(text=row.rate),
            Cell(text=row.target if row.share is None else f"{percent(row.share)} {row.target}"),
        ]
        for row in account_rows(record)
    ]
    return render("table.html", headers=["", "per second", "of the target"], rows=rows, left=1)


def operations(record: RunRecord) -> str:
    """Each operation: count, rate, latencies, and outcomes other than success."""
    columns = columns_of(record, OPERATION_COLUMNS, Output.HTML)
    rows = [
        [named(part.kind), *(figure_cell(column, part) for column in columns)]
        for part in record.operations
    ]
    if len(rows) > 1:
        total = all_operations(record)
        rows.append([Cell(text="all"), *(figure_cell(column, total) for column in columns)])
    return table_html(["operation"], columns, rows, [latency_note(record)])
