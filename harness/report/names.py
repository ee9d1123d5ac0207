"""The text form of names and other texts from outside, in any output."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from harness.model.operation import WHOLE_TABLE, over_partitions


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
