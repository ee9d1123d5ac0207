"""Bars and charts made of characters, in full or in plain ASCII."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from rich import box


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Glyphs:
    """The characters that outputs are drawn with.

    Attributes:
        eighths: From an eighth to a whole cell of a bar.
        empty: A cell of a bar that is not reached.
        levels: From the lowest to the highest column of a chart.
        inside: Below a chart, time that was measured.
        outside: Below a chart, time that was not.
        line: A rule.
        ellipsis: Where a text was cut.
        yes: A condition that holds.
        no: One that does not.
        box: Frame of a panel.
    """

    eighths: str
    empty: str
    levels: str
    inside: str
    outside: str
    line: str
    ellipsis: str
    yes: str
    no: str
    box: box.Box


FULL = Glyphs(
    eighths="▏▎▍▌▋▊▉█",
    empty="░",
    levels="▁▂▃▄▅▆▇█",
    inside="━",
    outside="╌",
    line="─",
    ellipsis="…",
    yes="✓",
    no="✗",
    box=box.ROUNDED,
)
PLAIN = Glyphs(
    eighths="#",
    empty=".",
    levels=".:#",
    inside="=",
    outside="-",
    line="-",
    ellipsis="...",
    yes="+",
    no="!",
    box=box.ASCII2,
)


def bar(share: float, width: int, glyphs: Glyphs) -> str:
    """A bar of ``width`` cells, filled for ``share`` of them; above 1 it is full."""
    steps = len(glyphs.eighths)
    filled = min(width * steps, round(share * width * steps))
    if share > 0:
        filled = max(1, filled)
    whole, rest = divmod(filled, steps)
    drawn = glyphs.eighths[-1] * whole + (glyphs.eighths[rest - 1] if rest else "")
    return drawn + glyphs.empty * (width - len(drawn))


def chart(values: Sequence[float], height: int, glyphs: Glyphs) -> list[str]:
    """Columns of ``height`` lines, the highest value reaching the top; the top line comes first."""
    steps = len(glyphs.levels)
    top = max(values, default=0.0) or 1.0
    # What is there at all is seen: any value above 0 has the lowest level.
    levels = [0 if value <= 0 else max(1, round(value / top * height * steps)) for value in values]
    lines = []
    for line in range(height - 1, -1, -1):
        parts = (min(max(level - line * steps, 0), steps) for level in levels)
        lines.append("".join(" " if part == 0 else glyphs.levels[part - 1] for part in parts))
    return lines


def columns(count: int, width: int) -> list[range]:
    """Which of ``count`` points each column of a chart of at most ``width`` columns shows.

    More points than columns are grouped; fewer are widened, up to three columns a point.
    """
    if count == 0 or width <= 0:
        return []
    if count > width:
        edges = [column * count // width for column in range(width + 1)]
        return [range(first, last) for first, last in itertools.pairwise(edges)]
    wide = min(3, width // count)
    return [range(point, point + 1) for point in range(count) for _ in range(wide)]
