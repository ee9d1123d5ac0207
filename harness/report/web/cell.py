"""A cell of a table of HTML, and the cells that several tables have."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from harness.measure.record import PartitionPart
from harness.report.cells import throttled_cells
from harness.report.drawing import FULL
from harness.report.words import partition_name, percent, printable, shortened

NAME_WIDTH = 48
_MUCH = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What a cell shows.

    Attributes:
        text: As it is; the template escapes it.
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
    """``text`` in about ``width`` letters, its beginning and its end."""
    if len(text) > _MUCH * width:
        # Measuring letters takes long, and all but the ends are left out anyway.
        text = text[: _MUCH * width // 2] + text[-_MUCH * width // 2 :]
    return shortened(text, width, FULL.ellipsis)


def named(text: str, width: int = NAME_WIDTH) -> Cell:
    """A name from outside, shortened; the whole one is its title."""
    whole = printable(text)
    shown = short(whole, width)
    return Cell(text=shown, title="" if shown == whole else whole, tone="name")


def partition_cell(part: PartitionPart, hint: str = "") -> Cell:
    """A partition's name; ``~`` marks one not told apart throughout, of which ``hint`` tells."""
    name = named(partition_name(part.key))
    if part.exact:
        return name
    title = f"{name.title}: {hint}" if name.title else hint
    return dataclasses.replace(name, mark="~", title=title)


def share_cell(ratio: float | None) -> Cell:
    """A share of a target as a bar."""
    if ratio is None:
        return Cell(text="none", tone="faint")
    return Cell(text=percent(ratio), share=ratio, tone="warn" if ratio > 1 else "")


def refused_cells(*parts: PartitionPart) -> list[Cell]:
    """Throttled attempts: 503, 500 and 429."""
    return [
        Cell(text=text, tone="faint" if text == "0" else "bad") for text in throttled_cells(parts)
    ]
