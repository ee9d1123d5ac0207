"""What the web pages show: the current or last run, as a record of the moment.

A record is made at most once a second, however many browsers ask; after the run it is the run's
own, and nothing is made any more.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import time

import gevent.lock

from harness.measure.record import RunRecord
from harness.report.words import counted, duration
from harness.swarm.conductor import Conductor
from harness.swarm.run import Phase, Run

FRESH_FOR_S = 1.0
"""A record of the moment is shown so long, at least, before another one is made."""
_OF_THE_TIME = 10
"""Records are made in one part of so many of the time at most: the process may send load too."""


class State(enum.StrEnum):
    """How far the run has come that is shown."""

    NONE = "none"
    PREPARING = "preparing"
    RUNNING = "running"
    ENDED = "ended"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The current or last run at one moment.

    Attributes:
        state: How far it has come.
        sentence: The same in words.
        run_id: Which run it is; None before the first.
        record: What is known of it; None until the load begins, and where it never did.
    """

    state: State
    sentence: str
    run_id: str | None = None
    record: RunRecord | None = None

    @property
    def live(self) -> bool:
        """Whether there is more to come."""
        return self.state is not State.ENDED


NOTHING = Shown(state=State.NONE, sentence="No run yet.")


class Showing:
    """Makes what is shown.

    Args:
        conductor: Whose runs they are.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        # Making a record gives way nowhere today; two browsers make one also if it does some day.
        self._lock = gevent.lock.RLock()
        self._shown = NOTHING
        self._of: tuple[Run | None, Phase | None, RunRecord | None] = (None, None, None)
        self._fresh_until_s = 0.0

    def now(self) -> Shown:
        """The current or last run; the same object until there is something new to show."""
        with self._lock:
            conductor = self._conductor
            run = conductor.run
            of = (run, None if run is None else run.phase, conductor.record)
            began_s = time.monotonic()
            if of != self._of or (self._shown.live and began_s >= self._fresh_until_s):
                self._shown = NOTHING if run is None else self._show(run)
                self._of = of
                took_s = time.monotonic() - began_s
                self._fresh_until_s = began_s + max(FRESH_FOR_S, took_s * _OF_THE_TIME)
            return self._shown

    def _show(self, run: Run) -> Shown:
        conductor = self._conductor
        now_s = conductor.clock()
        record: RunRecord | None = None
        match run.phase:
            case Phase.PREPARED | Phase.LOADING:
                state, sentence = State.PREPARING, preparing(run)
            case Phase.DONE:
                record = conductor.record
                state, sentence = State.ENDED, ended(record, run.problem)
            case _:
                state, sentence = State.RUNNING, running(run, now_s)
                if run.epoch_s:
                    record = run.so_far(now_s)
        return Shown(state=state, sentence=sentence, run_id=run.plan.run_id, record=record)


def preparing(run: Run) -> str:
    """The sentence of a run that sends no load yet."""
    done = f"{counted(run.loaded.entities, 'entity', 'entities')} so far"
    return f"{run.plan.profile_name}: making and loading the table, {done}."


def running(run: Run, now_s: float) -> str:
    """The sentence of a run that sends load at ``now_s``, UTC, or is about to end."""
    if run.phase is Phase.ENDING:
        words = "being judged" if run.epoch_s else "cleaning up"
        return f"{run.plan.profile_name}: ending by {run.ended_by or 'a failure'}, {words}."
    under_load = f"under load for {duration(max(0.0, now_s - run.epoch_s))}"
    if run.window is None:
        measured = "users are coming, nothing is measured yet"
    else:
        start, end = run.window
        passed = min(max(now_s - start, 0.0), end - start)
        measured = f"measured {passed:.0f} of {end - start:,} s"
    return f"{run.plan.profile_name}: running, {under_load}, {measured}."


def ended(record: RunRecord | None, problem: str = "") -> str:
    """The sentence of a run that is over, with its record where it came that far.

    Args:
        record: What it found.
        problem: Why it could not begin.
    """
    if record is None:
        why = f": {problem}." if problem else "; the terminal says why."
        return f"The run ended before any load was sent{why}"
    at = dt.datetime.fromisoformat(record.ended_at)
    return f"{record.profile['name']}: ended by {record.ended_by} at {at:%H:%M:%S} UTC."
