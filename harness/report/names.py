"""How figures and names are written, so that every output writes them alike."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from harness.measure.figures import agreed as agreed
from harness.measure.figures import counted as counted
from harness.measure.figures import milliseconds as milliseconds
from harness.measure.figures import number as number
from harness.measure.figures import percent as percent
from harness.model.operation import WHOLE_TABLE, over_partitions

FOLDED = "(other)"


def data_size(count: int) -> str:
    """Bytes: ``512 B``, ``3.4 KiB``, ``12.0 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{count} B" if unit == "B" else f"{value:,.1f} {unit}"


def duration(seconds: float) -> str:
    """A length of time: ``0:42``, ``12:05``, ``1:02:07``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: ``A``, ``A and B``, ``A, B and C``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def printable(text: str, ascii_only: bool = False) -> str:
    """``text`` with what a terminal would act upon, or cannot show, as ``\\u`` escapes."""
    shown = (
        text
        if text.isprintable()
        else "".join(
            character if character.isprintable() else f"\\u{ord(character):04x}"
            for character in text
        )
    )
    return shown.encode("ascii", "backslashreplace").decode() if ascii_only else shown


def partition_name(key: str, ascii_only: bool = False) -> str:
    """How outputs name a partition: its key, but for the whole table and the empty key."""
    if over_partitions(key):
        return printable(key[: -len(WHOLE_TABLE)], ascii_only) + "(table)"
    shown = printable(key, ascii_only)
    # In a table of several the key stands behind a slash, which no key contains.
    return f"{shown}(empty)" if not shown or shown.endswith("/") else shown


def shortened(text: str, width: int, ellipsis: str) -> str:
    """``text`` in at most ``width`` columns of a terminal.

    It is cut in the middle: keys that begin alike often end differently.
    """
    if cell_len(text) <= width:
        return text
    room = max(0, width - len(ellipsis))
    head = set_cell_size(text, room // 2).rstrip()
    tail = set_cell_size(text[::-1], room - cell_len(head))[::-1].lstrip()
    return head + ellipsis + tail
