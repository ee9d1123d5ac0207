"""How keys and names are shown in labels, so that nothing breaks a page or passes for another."""

from __future__ import annotations

import re

from harness.model.operation import FOLDED, WHOLE_TABLE, over_partitions

TABLE = "(table)"
EMPTY = "(empty)"
_RESERVED = frozenset((FOLDED, TABLE, EMPTY))
_UNSHOWABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def partition_label(key: str) -> str:
    """How ``key`` is shown: as it is, as far as it can be, behind its table's ending if it has one.

    A query over several partitions is ``(table)``, the empty key ``(empty)``. A key that is spelled
    like one of these stands behind a slash, which no real key contains. Control characters and
    half surrogate pairs, which no real key contains either, are shown as ``\\uXXXX``.
    """
    if over_partitions(key):
        return f"{showable(key[: -len(WHOLE_TABLE)])}{TABLE}"
    table, slash, own = key.rpartition("/")
    shown = f"/{own}" if own in _RESERVED else showable(own) or EMPTY
    return f"{showable(table)}{slash}{shown}"


def showable(text: str) -> str:
    """``text`` without what no page can hold."""
    return _UNSHOWABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
