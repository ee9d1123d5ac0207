"""What several subcommands share: the forms of options' values, pages that they write, progress.

A form is a ``type`` of argparse, and raises `argparse.ArgumentTypeError` for a value of another
form.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from harness.model.errors import SetupError, cut, echoed, printable_lines
from harness.report.export.run_folder import write_whole

ONE_OBJECT = "print one JSON object, alone on standard output; its schema: harness schema {}"
"""The help of ``--json``, for the name of a command."""
_PART = r"(\d{1,12}(?:\.\d{1,12})?)"
_DURATION = re.compile(rf"(?:{_PART}h)?(?:{_PART}m)?(?:{_PART}s?)?", re.ASCII)
_TOLD_EVERY_S = 0.5
Parsed = TypeVar("Parsed")


def whole_number(most: int) -> Callable[[str], int]:
    """The type of an option whose value is a whole number from 1 on."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:20]) <= most:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from 1 to {most}, not {echoed(text)}"
            )
        return int(text)

    return read


def variable_name(text: str) -> str:
    """The type of an option whose value is the name of a variable."""
    if not text.strip() or "=" in text:
        raise argparse.ArgumentTypeError(
            f"must be the name of a variable, such as STORE_CONNECTION, not {echoed(text)}"
        )
    return text


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


def parsed_all(option: str, texts: Iterable[str], parse: Callable[[str], Parsed]) -> list[Parsed]:
    """The values of a repeated option; a `SetupError` lists every mistake."""
    parsed, mistakes = [], []
    for text in texts:
        try:
            parsed.append(parse(text))
        except ValueError as error:
            mistakes.append(str(error))
    if mistakes:
        raise SetupError("\n  ".join([f"{option}:", *mistakes]))
    return parsed


def write_page(path: Path, page: str) -> None:
    """Write ``page`` whole or not at all; a `SetupError` says why it cannot be written."""
    with writing(path):
        write_whole(path, page)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise a `SetupError` where ``path`` cannot be written."""
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"{cut(str(path))} cannot be written ({error.strerror or error})"
        ) from error


def require_apart(page: Path | None, *read: Path) -> None:
    """Raise `SetupError` if ``--html`` names a file that the command reads."""
    for path in read:
        if page is not None and page.exists() and page.samefile(path):
            raise SetupError(f"--html would overwrite {cut(str(path))}: name another file")


def say_page(path: Path | None) -> None:
    """Print where the page is, if one was written."""
    if path is not None:
        print(printable_lines(f"\nPage: {path}"))


class Progress:
    """Shows on a terminal which share of a file has been read."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._told_s = time.monotonic()
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now_s = time.monotonic()
        if not sys.stderr.isatty():
            return
        if done >= total:
            if self._shown:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
        elif now_s > self._told_s + _TOLD_EVERY_S:
            self._told_s, self._shown = now_s, True
            line = f"\r{self._what}: {100 * done // total} %"
            print(line, end="", file=sys.stderr, flush=True)
