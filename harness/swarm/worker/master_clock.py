"""The master's clock, read by a worker on another machine.

Counts of all workers are merged second by second, and the schedule begins at one moment for all. So
a worker takes its time from the master: it asks a few times, and the answer that came fastest tells
best how far the clocks are apart (Cristian's algorithm, as in NTP).
"""

from __future__ import annotations

import dataclasses

import gevent.queue
from locust.runners import Runner

from harness.endpoint.http.exchange import Clock, monotonic_utc
from harness.model.errors import SetupError
from harness.swarm.messages import ClockAnswer, ClockQuestion, on, send

MAX_DIFFERENCE_S = 5.0
"""A worker whose clock is further off is refused: it would fail elsewhere, as with a SAS."""
_QUESTIONS = 5
_ANSWERED_WITHIN_S = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """How far the clock of a worker is ahead of the master's, in seconds, and how exactly."""

    ahead_s: float
    within_s: float

    @classmethod
    def of(cls, asked_s: float, answered_s: float, received_s: float) -> Difference:
        """What one answer tells; only ``answered_s`` is a time of the master."""
        return cls((asked_s + received_s) / 2 - answered_s, (received_s - asked_s) / 2)

    @property
    def known_s(self) -> float:
        """The difference, or 0 where the way of the messages can explain it."""
        return 0.0 if abs(self.ahead_s) <= self.within_s else self.ahead_s

    @property
    def problem(self) -> str | None:
        """Why the worker cannot take part; None if it can."""
        if abs(self.known_s) <= MAX_DIFFERENCE_S:
            return None
        direction = "ahead of" if self.ahead_s > 0 else "behind"
        return (
            f"its clock is {abs(self.ahead_s):,.0f} s {direction} the master's; synchronize the "
            "clocks of both machines (NTP)"
        )


class MasterClock:
    """Reads the clock of the master that ``runner`` is connected to."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._own = monotonic_utc()
        self._answers: gevent.queue.Queue[Difference] = gevent.queue.Queue()
        on(runner, ClockAnswer, self._on_answer)

    def read(self, run_id: str) -> tuple[Clock, Difference]:
        """Return the master's clock for a run, and how far this machine's is ahead of it.

        Waits for the master for as long as that takes.

        Raises:
            SetupError: the clocks are too far apart.
        """
        self._own = own = monotonic_utc()
        self._answers = gevent.queue.Queue()
        found: list[Difference] = []
        while len(found) < _QUESTIONS:
            send(self._runner, ClockQuestion(run_id=run_id, asked_s=own()))
            try:
                found.append(self._answers.get(timeout=_ANSWERED_WITHIN_S))
            except gevent.queue.Empty:
                continue
        best = min(found, key=lambda difference: difference.within_s)
        if best.problem is not None:
            raise SetupError(best.problem)
        known_s = best.known_s
        return (lambda: own() - known_s) if known_s else own, best

    def _on_answer(self, answer: ClockAnswer, _: str) -> None:
        self._answers.put(Difference.of(answer.asked_s, answer.answered_s, self._own()))
