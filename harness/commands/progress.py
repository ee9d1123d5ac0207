"""The progress of commands that read large files."""

from __future__ import annotations

import sys
import time

_TOLD_EVERY_S = 0.5


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
