"""Where a run says how it goes. One line of progress is rewritten where it is a terminal."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TextIO

from harness.report.live import progress_line

_PLAIN_EVERY_S = 5.0


class Terminal:
    """Says lines, and shows progress.

    Args:
        out: Where to. Progress is rewritten in place where this is a terminal, and said every few
            seconds where it is not.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._rewriting = False
        self._said_progress_s = 0.0

    @property
    def width(self) -> int:
        """Characters of a line."""
        return min(max(shutil.get_terminal_size((100, 24)).columns, 60), 140)

    @property
    def colour(self) -> bool:
        """Whether colours can be shown."""
        return self._out.isatty() and "NO_COLOR" not in os.environ

    @property
    def ascii_only(self) -> bool:
        """Whether only ASCII can be shown."""
        return (self._out.encoding or "").lower().replace("-", "") != "utf8"

    def say(self, text: str) -> None:
        """Say a line, or several."""
        if self._rewriting:
            self._rewriting = False
            self._write("\n")
        # A surrogate in a key, or a terminal of few characters, ends no run.
        encoding = self._out.encoding or "utf-8"
        self._write(text.encode(encoding, "replace").decode(encoding) + "\n")

    def complain(self, sentence: str) -> None:
        """Say on standard error what is wrong."""
        if self._rewriting:
            self.say("")
        with contextlib.suppress(OSError, ValueError):
            print(f"error: {sentence}", file=sys.stderr, flush=True)

    def progress(self, done: int, total: int, elapsed_s: float) -> None:
        """Show how far loading has come."""
        line = progress_line(done, total, elapsed_s, ascii_only=self.ascii_only)
        if self._out.isatty():
            self._rewriting = True
            self._write("\r" + line)
        elif (
            elapsed_s < self._said_progress_s
            or elapsed_s - self._said_progress_s >= (_PLAIN_EVERY_S)
            or done >= total
        ):
            self._said_progress_s = elapsed_s
            self.say(line)

    def _write(self, text: str) -> None:
        # Whoever reads may have gone, as `head` does. That ends no run.
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text)
            self._out.flush()
