"""GitHub flavoured Markdown: a text from outside is shown as it is, and never acts.

Source: the GitHub Flavored Markdown Spec, sections on backslash escapes, code spans and tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.report.names import printable

_ACTING = re.compile(r"[\\`*_\[\]<>|~&$]")
_BEGINNING = re.compile(r"^([0-9]*)([-+=#]|[.)](?!\S))")
"""What begins a heading, a list or a rule, at the beginning of a line."""


def text(value: str) -> str:
    """``value`` as plain text in one line."""
    return _BEGINNING.sub(r"\1\\\2", _ACTING.sub(r"\\\g<0>", printable(value).strip()))


def code(value: str) -> str:
    """``value`` in the letters of code, for keys and the like; also in a cell of a table."""
    # A table ends a cell at a bar even in code, and takes the backslash before it away. One that
    # stands there already could not be told from it.
    shown = printable(value).replace("\\|", "\\u005c|").replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    # One blank on each side is taken away again, unless there is nothing else.
    padded = not shown.isspace() and (shown[:1] in " `" or shown[-1:] in " `")
    return f"{fence} {shown} {fence}" if padded else f"{fence}{shown}{fence}"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """The lines of a table; the first ``left`` columns are aligned left, the others right.

    Cells are Markdown already: `text`, `code`, or figures.
    """
    rules = ["---" if place < left else "---:" for place in range(len(headers))]
    return [f"| {' | '.join(cells)} |" for cells in (headers, rules, *rows)]
