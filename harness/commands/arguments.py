"""The forms of the values of options: whole numbers and durations.

Each is a ``type`` of argparse, and raises `argparse.ArgumentTypeError` for a value of another form.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from harness.model.errors import echoed

_PART = r"(\d{1,12}(?:\.\d{1,12})?)"
_DURATION = re.compile(rf"(?:{_PART}h)?(?:{_PART}m)?(?:{_PART}s?)?", re.ASCII)


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """The type of an option whose value is a whole number in these bounds."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not least <= int(text[:20]) <= most:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {least} to {most}, not {echoed(text)}"
            )
        return int(text)

    return read


def duration(text: str) -> float:
    """Seconds of a duration such as 90, 90s, 5m or 1h30m; an integer if they are whole."""
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        raise argparse.ArgumentTypeError(
            f"{echoed(text)} is not a duration; write 90, 90s, 5m or 1h30m"
        )
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    total = hours * 3600 + minutes * 60 + seconds
    return int(total) if total.is_integer() else total
