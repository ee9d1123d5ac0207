"""Signals and standard streams while a process starts.

Locustfile and command line import this module first, because all other imports take seconds. It
uses the standard library, and what makes texts printable.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from harness.model.errors import printable_lines

BAD_SETUP = 2
"""Exit code of a process with bad input or set-up; nothing was sent."""
INTERRUPTED = 3
"""Exit code of a process that was ended before its run began, or by the loss of its master."""
SIGHUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""The signal of a lost terminal; None on Windows."""

_SIGNALS = tuple(filter(None, (signal.SIGINT, signal.SIGTERM, SIGHUP)))
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def begin() -> None:
    """Let signals end the process with a message, and secure its standard streams.

    The handlers hold until others are set. A second call changes nothing. What was held back before
    takes effect now.
    """
    secure_streams()
    starter = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        # There is nothing to clean up but forked workers, which would look for their master for
        # minutes. Locust has imported psutil before it forks.
        if os.getpid() == starter:
            name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
            complain(f"ended by {name} before the run began")
            psutil = sys.modules.get("psutil")
            for child in [] if psutil is None else psutil.Process().children():
                # Python drops other signals that reach a process right after its fork.
                child.kill()
        os._exit(INTERRUPTED)

    for one in _SIGNALS:
        if signal.getsignal(one) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(one, end)
    if hasattr(signal, "pthread_sigmask"):
        # `harness run` starts this process with a Ctrl-C held back.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def secure_streams() -> None:
    """Let neither a closed standard stream nor one that cannot be written change the exit code."""
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, os.O_RDWR)
        try:
            os.fstat(number)
        except OSError:
            # Otherwise the next opened file would get the descriptor of the stream, and its output.
            os.dup2(null, number)
        setattr(sys, name, os.fdopen(null, mode, encoding="utf-8"))
    atexit.unregister(_flush)
    atexit.register(_flush)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Let a Ctrl-C take effect at the end: some libraries lose it while they are imported."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def complain(sentence: str) -> None:
    """Write an error to standard error, if that is open."""
    with contextlib.suppress(OSError, ValueError):
        print(f"error: {printable_lines(sentence)}", file=sys.stderr, flush=True)


def tell(line: str) -> None:
    """Write a line to standard output, if that is open."""
    with contextlib.suppress(OSError, ValueError):
        print(printable_lines(line), flush=True)


def _flush() -> None:
    """Write what is left in the buffers of the standard streams, or discard it.

    Python would try it again when the process ends, and set an exit code of its own.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
