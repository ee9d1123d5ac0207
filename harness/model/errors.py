"""Errors that a user causes, and input as messages repeat it."""

from __future__ import annotations

_MOST_SHOWN = 100


class SetupError(Exception):
    """Bad input or a bad set-up (exit code 2). Its text is the message, without secrets."""


def cut(text: str) -> str:
    """``text`` for a message: at most 100 characters, the middle left out."""
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[: _MOST_SHOWN // 2]}...{text[3 - _MOST_SHOWN // 2 :]}"


def echoed(value: object) -> str:
    """Input for a message: quoted, in one line, and `cut`."""
    return cut(repr(value))
