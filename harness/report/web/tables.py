"""Tables of a page, and what makes all texts harmless and printable: templates, assets, cells."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2

from harness.model.errors import printable
from harness.report.columns import Column
from harness.report.names import shortened

_HERE = Path(__file__).parent
BARS = "A full bar is 100%."
_LEAST_BAR = 2.0
"""The length in percent that can be seen: little is not nothing."""
_NAME_WIDTH = 48
_MUCH = 4


@functools.cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # HTML from other templates is of a subclass of str.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )


def render(template: str, **content: Any) -> str:
    return _templates().get_template(template).render(content)


@functools.cache
def page_css() -> str:
    return (_HERE / "assets" / "page.css").read_text(encoding="utf-8")


@functools.cache
def page_js() -> str:
    """The script of a page: tables that can be searched, charts, the live page."""
    assets = _HERE / "assets"
    names = ("tables", "charts", "page")
    return "".join((assets / f"{name}.js").read_text("utf-8") for name in names)


ASSETS: dict[str, tuple[Callable[[], str], str]] = {
    "page.js": (page_js, "text/javascript"),
    "page.css": (page_css, "text/css"),
}
"""The files that a live page loads, and their content types."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """The content of a cell.

    Attributes:
        text: The text; the template escapes it.
        tone: ``good``, ``bad``, ``warn``, ``faint``, ``name`` or empty.
        title: Shown where the pointer rests; empty for nothing.
        mark: Behind the text.
        share: Drawn as a bar; None for no bar.
        sort: What the table is sorted by where the reader clicks its column; None for the text.
    """

    text: str
    tone: str = ""
    _: dataclasses.KW_ONLY
    title: str = ""
    mark: str = ""
    share: float | None = None
    sort: float | None = None

    @property
    def width(self) -> float:
        """The length of the bar in percent, as `BARS` says."""
        if not self.share or self.share <= 0:
            return 0.0
        return min(100.0, max(_LEAST_BAR, 100.0 * self.share))


def short(text: str, width: int) -> str:
    """The beginning and the end of ``text``, about ``width`` letters."""
    if len(text) > _MUCH * width:
        # Measuring letters takes long, and all but the ends are left out anyway.
        text = text[: _MUCH * width // 2] + text[-_MUCH * width // 2 :]
    return shortened(text, width)


def named(text: str, width: int = _NAME_WIDTH) -> Cell:
    """A name from outside, shortened; its title is the whole name."""
    whole = printable(text)
    shown = short(whole, width)
    return Cell(shown, "name", title="" if shown == whole else whole)


def figure_cell(column: Column[Any], row: Any) -> Cell:
    """The figure of a column: a share has a bar, a bad figure a colour."""
    value, text = column.get(row), column.text(row)
    sort = float(value) if isinstance(value, int | float) else None
    if not column.share:
        return Cell(text, tone_of(column, text), sort=sort)
    if value is None:
        return Cell(text, "faint", sort=-1.0)
    over = "warn" if value > 1 else ""
    return Cell(text, over if column.tone is None else column.tone(row), share=value, sort=sort)


def tone_of(column: Column[Any], text: str) -> str:
    if not column.bad:
        return ""
    return "faint" if text == "0" else "bad"


def rows_html(
    headers: Sequence[str], rows: Sequence[Sequence[Cell]], left: int, **more: Any
) -> str:
    if not rows:
        return ""
    return render("table.html", headers=headers, rows=rows, left=left, **more)


def table_html(
    names: Sequence[str],
    figures: Sequence[Column[Any]],
    rows: Iterable[tuple[Sequence[Cell], Any]],
    notes: Sequence[str] = (),
    *,
    last: Sequence[Sequence[Cell]] = (),
    searched: str = "",
) -> str:
    """A table with the groups of columns above the headings; empty without rows.

    A row is its first cells and what the ``figures`` are read from. ``last`` are further rows.
    ``searched`` says what the rows are, where readers can search and sort them, ``last`` apart.
    """
    shown = [[*first, *(figure_cell(column, row) for column in figures)] for first, row in rows]
    groups = itertools.groupby(column.group for column in figures)
    wide = [("", len(names)), *((name, len(list(of))) for name, of in groups)]
    return rows_html(
        [*names, *(column.name for column in figures)],
        [*shown, *last],
        len(names),
        notes=notes,
        searched=searched,
        counted=len(shown),
        **({"groups": wide} if any(column.group for column in figures) else {}),
    )
