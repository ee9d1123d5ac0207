"""Errors that a user causes, and input as messages repeat it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST_SHOWN = 100


class SetupError(Exception):
    """Bad input or a bad set-up (exit code 2). Its text is the message, without secrets."""


def printable(text: str, ascii_only: bool = False) -> str:
    """``text`` with what a terminal would act upon, or cannot show, as ``\\u`` escapes.

    The signs of bounds are ``>=`` and ``<=`` where they cannot be shown.
    """
    if not text.isprintable():
        text = "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
    if not ascii_only:
        return text
    return text.replace("≥", ">=").replace("≤", "<=").encode("ascii", "backslashreplace").decode()


def printable_lines(text: str) -> str:
    """`printable` for a text of several lines, which stay lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def cut(text: str) -> str:
    """``text`` for a message: `printable`, at most 100 characters, the middle left out."""
    text = printable(text)
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[: _MOST_SHOWN // 2]}...{text[3 - _MOST_SHOWN // 2 :]}"


def echoed(value: object) -> str:
    """Input for a message: quoted, in one line, and `cut`."""
    return cut(repr(value))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown ``name``: the known one that is near, if there is one.

    It is ``; did you mean single-partition?``, or empty.
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
