"""What went wrong before the load began, as a sentence for the person who started it."""

from __future__ import annotations


class SetupError(Exception):
    """Bad input or a bad set-up; its text is the whole sentence a user reads.

    It leads to exit code 2. The text never holds a secret.
    """


_MOST_SHOWN = 100


def cut(text: str) -> str:
    """``text`` as a message repeats it: at most 100 characters, the middle left out."""
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[: _MOST_SHOWN // 2]}...{text[3 - _MOST_SHOWN // 2 :]}"


def echoed(value: object) -> str:
    """What somebody wrote as a message repeats it: quoted, in one line, and `cut`."""
    return cut(repr(value))
