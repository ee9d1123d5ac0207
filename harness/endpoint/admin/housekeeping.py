"""Steps around a load, such as creating a table: with a time limit, progress lines and an end.

A person waits for these steps, also at an endpoint that sends a byte a second, asks for a wait of
years or lists tables without end.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

import gevent
from gevent.util import wrap_errors

from harness.model.errors import SetupError

SAY_AFTER_S = 2.0
SAY_EVERY_S = 5.0
_DIES_WITHIN_S = 1.0

_T = TypeVar("_T")


class HousekeepingEnded(Exception):
    """A step was stopped by `Housekeeping.end`."""


class Ambiguous(SetupError):
    """No response came, or none that refuses: the request may have been executed."""


class Housekeeping:
    """Executes one step at a time, in a greenlet of its own.

    Calls ``say`` with a line about the step after ``say_after_s`` seconds, and then every 5 s.
    """

    def __init__(self, say: Callable[[str], None], *, say_after_s: float = SAY_AFTER_S) -> None:
        self._say = say
        self._say_after_s = say_after_s
        self._step: gevent.Greenlet | None = None
        self._ended = False

    @property
    def busy(self) -> bool:
        return self._step is not None

    def do(
        self,
        doing: str,
        work: Callable[[], _T],
        *,
        within_s: float | None,
        note: Callable[[], str] | None = str,
    ) -> _T:
        """Execute a step and return its result. What ends the wait, even Ctrl-C, ends the step.

        Args:
            doing: The step, for lines and errors: "creating the table x".
            within_s: Time limit in seconds; None where the step has a limit of its own.
            note: More for each line of progress; None where the step reports its own.

        Raises:
            Ambiguous: the step exceeded its time limit.
            HousekeepingEnded: `end` was called meanwhile.
        """
        # Ctrl-C is reported as a sentence; gevent would print a traceback as well.
        hub = gevent.get_hub()
        if KeyboardInterrupt not in hub.NOT_ERROR:
            hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)
        self._ended = False
        step = self._step = gevent.spawn(wrap_errors(Exception, work))
        try:
            self._wait(step, doing, within_s, note)
        finally:
            self._step = None
            step.kill(timeout=_DIES_WITHIN_S)
        if self._ended:
            raise HousekeepingEnded
        if isinstance(step.value, Exception):
            raise step.value
        value: _T = step.value
        return value

    def end(self) -> None:
        if self._step is not None:
            self._ended = True
            self._step.kill(block=False)

    def _wait(
        self,
        step: gevent.Greenlet,
        doing: str,
        within_s: float | None,
        note: Callable[[], str] | None,
    ) -> None:
        began_s = monotonic()
        bound = "" if within_s is None else f" of at most {within_s:g} s"
        say_at_s = self._say_after_s
        while True:
            passed_s = monotonic() - began_s
            if within_s is not None and passed_s >= within_s:
                raise Ambiguous(f"{doing} took longer than {within_s:g} s and was given up")
            if note is not None and passed_s >= say_at_s:
                say_at_s += SAY_EVERY_S
                more = note()
                self._say(f"      {doing}: {passed_s:.0f} s{bound}{more and f'; {more}'}")
            look_s = say_at_s if within_s is None else min(say_at_s, within_s)
            step.join(timeout=max(0.0, look_s - passed_s))
            if step.ready():
                return
