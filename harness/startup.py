"""Signals and standard streams while a process starts.

Locustfile and command line import this module first, because all other imports take seconds. It
uses the standard library only.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from types import FrameType
from typing import TextIO

BAD_SETUP = 2
"""Exit code of a process with bad input or set-up; nothing was sent."""
INTERRUPTED = 3
"""Exit code of a process that was ended before its run began."""
SIGHUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""The signal of a lost terminal; None on Windows."""

_SIGNALS = tuple(filter(None, (signal.SIGINT, signal.SIGTERM, SIGHUP)))
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def begin() -> None:
    """Let signals end the process with a message, and no standard stream change its exit code.

    The handlers hold until others are set. A second call changes nothing.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        _open(number, name, mode)
    atexit.unregister(_flush)
    atexit.register(_flush)
    starter = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        # There is nothing to clean up but forked workers, which would look for their master for
        # minutes. Locust has imported psutil before it forks.
        if os.getpid() == starter:
            name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
            complain(f"ended by {name} before the run began")
            psutil = sys.modules.get("psutil")
            for child in [] if psutil is None else psutil.Process().children():
                child.terminate()
        os._exit(INTERRUPTED)

    for one in _SIGNALS:
        if signal.getsignal(one) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(one, end)


def complain(sentence: str) -> None:
    """Write an error to standard error, if that is open."""
    with contextlib.suppress(OSError, ValueError):
        print(f"error: {sentence}", file=sys.stderr, flush=True)


def discard(stream: TextIO) -> None:
    """Let all output of a stream that cannot be written lead nowhere.

    What is left in its buffer would fail again when the process ends, and give it an exit code of
    Python's own.
    """
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _flush() -> None:
    """Write what is left in the buffers of the standard streams, or let it lead nowhere."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            discard(stream)


def _open(number: int, name: str, mode: str) -> None:
    """Redirect a standard stream that was closed when the process started."""
    if getattr(sys, name) is not None:
        return
    null = os.open(os.devnull, os.O_RDWR)
    try:
        os.fstat(number)
    except OSError:
        # Else the next opened file would get the number of the stream, and its output.
        os.dup2(null, number)
    setattr(sys, name, os.fdopen(null, mode, encoding="utf-8"))
