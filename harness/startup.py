"""Signals and standard streams while a process starts.

Locustfile and command line import this module first, because all other imports take seconds. It
uses the standard library, and what makes texts printable.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TextIO

from harness import __version__
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
            if isinstance(sys.stdout, _Aside):
                sys.stdout.fail(INTERRUPTED)
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


def failure_json(error: str, exit_code: int) -> str:
    """The object of a command that could not do its work, as `Failure` describes it."""
    known = {"schema_version": 1, "harness_version": __version__}
    content = known | {"error": printable_lines(error), "exit_code": exit_code}
    return json.dumps(content, indent=1) + "\n"


class _Aside:
    """Standard error in place of standard output, which is left to one object."""

    def __init__(self) -> None:
        self._shown, self._kept = sys.stderr, sys.stdout
        self._process = os.getpid()
        self._told = False
        self._error = "no result; standard error has more"

    def write(self, text: str) -> int:
        _, found, said = text.partition("error: ")
        if found:
            self._error = said.strip()
        return self._shown.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shown, name)

    def tell(self, text: str) -> None:
        self._told = True
        print(text, end="", file=self._kept, flush=True)

    def fail(self, exit_code: int) -> None:
        """Write that there is no object; forked workers write none."""
        if not self._told and exit_code and os.getpid() == self._process:
            with contextlib.suppress(OSError, ValueError):
                self.tell(failure_json(self._error, exit_code))


def with_one_object(main: Callable[[], object]) -> int:
    """Call ``main``, which may exit, and leave standard output to `tell_program`."""
    aside = _Aside()
    stream: Any = aside
    sys.stdout = sys.stderr = stream
    code: object = 1
    try:
        code = main() or 0
    except SystemExit as ended:
        code = ended.code or 0
        raise
    finally:
        aside.fail(code if isinstance(code, int) else 1)
    return code if isinstance(code, int) else 0


def tell_program(text: str) -> None:
    """Write to standard output, also where nothing else is written to it."""
    stream: TextIO | _Aside = sys.stdout
    if isinstance(stream, _Aside):
        stream.tell(text)
    else:
        print(text, end="", file=stream, flush=True)


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
