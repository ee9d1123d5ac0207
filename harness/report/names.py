"""The text form of names and other texts from outside, in any output."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from harness.model.operation import WHOLE_TABLE, over_partitions


def printable(text: str, ascii_only: bool = False) -> str:
    """``text`` with what a terminal would act upon, or cannot show, as ``\\u`` escapes."""
    if not text.isprintable():
        text = "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
    return text.encode("ascii", "backslashreplace").decode() if ascii_only else text


def partition_name(key: str, ascii_only: bool = False) -> str:
    """The name of a partition in outputs: its key, but for the whole table and the empty key."""
    if over_partitions(key):
        return printable(key[: -len(WHOLE_TABLE)], ascii_only) + "(table)"
    shown = printable(key, ascii_only)
    # With several tables the key stands behind a slash, which no key contains.
    return f"{shown}(empty)" if not shown or shown.endswith("/") else shown


def shortened(text: str, width: int, ascii_only: bool = False) -> str:
    """``text`` in at most ``width`` columns of a terminal.

    The middle is cut out: keys that begin alike often end differently.
    """
    if cell_len(text) <= width:
        return text
    ellipsis = "..." if ascii_only else "…"
    room = max(0, width - len(ellipsis))
    head = set_cell_size(text, room // 2).rstrip()
    tail = set_cell_size(text[::-1], room - cell_len(head))[::-1].lstrip()
    return head + ellipsis + tail
