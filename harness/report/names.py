"""The text form of names and other texts from outside, in any output."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from harness.model.errors import printable
from harness.model.partition import Partition


def partition_name(key: str, ascii_only: bool = False) -> str:
    """The name of a partition in outputs: its key, but for the whole table and the empty key."""
    partition = Partition.named(key)
    own = "(table)" if partition.whole_table else printable(partition.key, ascii_only) or "(empty)"
    return partition._replace(table=printable(partition.table, ascii_only), key=own).name


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
