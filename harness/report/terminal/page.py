"""A terminal page: its glyphs, bars and charts, and tables that fit its width."""

from __future__ import annotations

import dataclasses
import io
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TextIO, TypeVar

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.rule import Rule
from rich.segment import Segments
from rich.table import Table
from rich.text import Text

from harness.model.errors import printable, printable_lines
from harness.model.figures import percent
from harness.report.names import shortened

Cell = str | Text
Item = TypeVar("Item")


@dataclasses.dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters of bars and charts.

    Attributes:
        eighths: From an eighth to a whole cell of a bar.
        empty: A cell of a bar that is not reached.
        levels: From the lowest to the highest column of a chart.
        inside: Below a chart, time that was measured.
        outside: Below a chart, time that was not measured.
    """

    eighths: str
    empty: str
    levels: str
    inside: str
    outside: str
    line: str
    yes: str
    no: str
    box: box.Box


FULL = Glyphs("▏▎▍▌▋▊▉█", "░", "▁▂▃▄▅▆▇█", "━", "╌", "─", "✓", "✗", box.ROUNDED)
PLAIN = Glyphs("#", ".", ".:#", "=", "-", "-", "+", "!", box.ASCII2)


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
    # Any value above 0 has the lowest level at least, so that it can be seen.
    levels = [0 if value <= 0 else max(1, round(value / top * height * steps)) for value in values]
    lines = []
    for line in range(height - 1, -1, -1):
        parts = (min(max(level - line * steps, 0), steps) for level in levels)
        lines.append("".join(" " if part == 0 else glyphs.levels[part - 1] for part in parts))
    return lines


def chart_columns(count: int, width: int) -> list[range]:
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page ``width`` columns wide, with or without colours and characters beyond ASCII."""

    width: int
    colour: bool = False
    ascii_only: bool = False

    @classmethod
    def of_terminal(cls, stream: TextIO, most_width: int = 140) -> Self:
        """The width of a stream, up to ``most_width`` columns, its colours and characters."""
        return cls(
            width=min(max(shutil.get_terminal_size((100, 24)).columns, 60), most_width),
            colour=stream.isatty() and "NO_COLOR" not in os.environ,
            ascii_only=(stream.encoding or "").lower().replace("-", "") != "utf8",
        )

    @property
    def glyphs(self) -> Glyphs:
        return PLAIN if self.ascii_only else FULL

    def console(self, out: io.StringIO) -> Console:
        """A console that depends on nothing but this page."""
        return Console(
            file=out,
            width=self.width,
            height=100,
            force_terminal=self.colour,
            force_jupyter=False,
            force_interactive=False,
            color_system="standard" if self.colour else None,
            no_color=not self.colour,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def render(self, *content: RenderableType) -> str:
        """``content`` as text; no line ends in blanks."""
        out = io.StringIO()
        console = self.console(out)
        # Whatever a part of a page forgot to make printable becomes so here.
        parts = (
            part if part.control else part._replace(text=printable_lines(part.text))
            for part in console.render(Group(*content))
        )
        console.print(Segments(parts), soft_wrap=True, end="")
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def natural_width(self, content: RenderableType) -> int:
        """Columns that ``content`` takes where it has as many as it needs."""
        console = self.console(io.StringIO())
        return Measurement.get(console, console.options.update(max_width=10_000), content).maximum

    def blocks(
        self, items: Sequence[Item], table: Callable[[Sequence[Item]], Table]
    ) -> Iterator[list[Item]]:
        """As many side by side as fit, at least two; the first is in every block."""
        first, *others = items
        block = [first]
        for item in others:
            wider = [*block, item]
            if len(block) > 1 and self.natural_width(table(wider)) > self.width:
                yield block
                wider = [first, item]
            block = wider
        yield block

    def show(self, text: str) -> str:
        """A text from outside in characters of this page."""
        return printable(text, self.ascii_only)

    def short(self, text: str, width: int) -> str:
        """A text from outside in at most ``width`` columns."""
        return shortened(self.show(text), width, self.ascii_only)

    def section(self, title: str, *content: RenderableType) -> Group:
        rule = Rule(Text(title, "bold"), characters=self.glyphs.line, style="dim", align="left")
        return Group(Text(), rule, *content)

    def panel(self, content: RenderableType, title: Text, style: str, **more: Any) -> Panel:
        """A frame; ``more`` are further settings of `Panel`."""
        return Panel(content, title=title, box=self.glyphs.box, border_style=style, **more)

    def ratio(self, share: float, width: int, sign: str = "") -> Text:
        """A bar and its percentage, behind the sign of a lower bound; yellow above the target."""
        colour = "yellow" if share > 1 else "cyan"
        # Only the bar has the style: what is appended to this text has its own.
        drawn = Text().append(bar(share, width, self.glyphs), style=colour)
        figure = self.show(percent(share, sign))
        return drawn.append(f" {figure:>5}", style=colour if share > 1 else "")


def grid(rows: Sequence[Sequence[Cell]], right: Sequence[int] = ()) -> Table:
    """Rows without headers; the columns ``right`` are aligned to the right, the last one wraps."""
    table = Table.grid(padding=(0, 2, 0, 0))
    last = max((len(row) for row in rows), default=1) - 1
    for column in range(last + 1):
        table.add_column(
            justify="right" if column in right else "left",
            no_wrap=column < last,
            # A word that is longer than its line is broken, not cut.
            overflow="fold" if column == last else "ellipsis",
        )
    for row in rows:
        table.add_row(*row)
    return table


def facts(rows: Sequence[tuple[str, str]], page: Page) -> Table:
    """Names and texts from outside; the names are dimmed."""
    return grid([(Text(name, "dim"), page.show(text)) for name, text in rows])


def section_of(title: str, rows: Sequence[tuple[str, str]], page: Page) -> list[RenderableType]:
    """A section of `facts`; none without rows."""
    return [page.section(title, facts(rows, page))] if rows else []


def table_of(headers: Sequence[str], rows: Sequence[Sequence[Cell]], gap: int = 2) -> Table:
    """A table with names in the first column, figures in the others, ``gap`` blanks between."""
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
    for place, header in enumerate(headers):
        table.add_column(
            header, justify="right" if place else "left", no_wrap=True, vertical="bottom"
        )
    for row in rows:
        table.add_row(*row)
    return table


def room_for_names(page: Page, build: Callable[[int], Table], header: str, longest: int) -> int:
    """Columns that the names in a table may take, so that its figures are shown whole.

    Fewer than ``header`` has where the table does not fit at all. ``build`` makes the table with
    names of at most so many columns; the longest name has ``longest``.
    """
    least = len(header)
    return min(max(least, longest), page.width - page.natural_width(build(least)) + least)


def left_out(spare: Sequence[str], shown: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Which of the columns ``shown`` to leave out where a page is too narrow for all.

    None at first, then one of ``spare`` more each time.
    """
    there = [name for name in spare if name in shown]
    return (tuple(there[:count]) for count in range(len(there) + 1))


def said_left_out(names: Sequence[str]) -> list[Text]:
    words = f"Not shown, because the terminal is narrow: {', '.join(names)}."
    return [Text(words, "dim")] if names else []
