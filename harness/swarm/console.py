"""The terminal that a run writes to."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TextIO

from harness import startup
from harness.report.terminal.live import PROGRESS_WIDTH, progress_line

_PLAIN_EVERY_S = 5.0


class Console:
    """Writes lines and progress.

    Args:
        out: Output stream. A terminal shows progress in one line that is rewritten in place; any
            other stream gets a line every few seconds.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._rewriting = False
        self._last_progress_s = 0.0

    @property
    def width(self) -> int:
        """Characters per line."""
        return min(max(shutil.get_terminal_size((100, 24)).columns, 60), 140)

    @property
    def colour(self) -> bool:
        """Whether the stream shows colours."""
        return self._out.isatty() and "NO_COLOR" not in os.environ

    @property
    def ascii_only(self) -> bool:
        """Whether the stream takes only ASCII characters."""
        return (self._out.encoding or "").lower().replace("-", "") != "utf8"

    def say(self, text: str) -> None:
        """Write one or several lines."""
        if self._rewriting:
            self._rewriting = False
            self._write("\n")
        # A character that the stream cannot encode, such as a surrogate in a key, is replaced.
        encoding = self._out.encoding or "utf-8"
        self._write(text.encode(encoding, "replace").decode(encoding) + "\n")

    def error(self, sentence: str) -> None:
        """Write an error to standard error."""
        if self._rewriting:
            self.say("")
        startup.complain(sentence)

    def waiting(self, line: str) -> None:
        """Show what the run waits for. Called every few seconds."""
        if self._out.isatty():
            self._rewrite(line.ljust(PROGRESS_WIDTH))
        else:
            self.say(line)

    def progress(self, done: int, total: int, elapsed_s: float, silent_s: float) -> None:
        """Show the progress of loading.

        Args:
            done: Loaded entities.
            total: Entities to load.
            elapsed_s: Seconds since loading began.
            silent_s: Seconds since the last answer.
        """
        line = progress_line(done, total, elapsed_s, silent_s, ascii_only=self.ascii_only)
        if self._out.isatty():
            self._rewrite(line)
        elif (
            elapsed_s < self._last_progress_s
            or elapsed_s - self._last_progress_s >= _PLAIN_EVERY_S
            or done >= total
        ):
            self._last_progress_s = elapsed_s
            self.say(line)

    def _rewrite(self, line: str) -> None:
        self._rewriting = True
        self._write("\r" + line)

    def _write(self, text: str) -> None:
        # The reader may be gone, as with `| head`, or the disk is full. The run goes on.
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text)
            self._out.flush()
