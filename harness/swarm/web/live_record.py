"""The current or last run as the web pages show it.

A record of a run in progress is built at most once a second, however many browsers ask. After the
run the pages show the record of the run.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import time

import gevent.lock

from harness.measure.figures import counted, duration
from harness.measure.record.record import RunRecord
from harness.swarm.master.conductor import Conductor
from harness.swarm.master.master_run import MasterRun, Phase

FRESH_FOR_S = 1.0
"""The least time for which a record of a run in progress is shown."""
_OF_THE_TIME = 10
"""Building records takes at most one part of so many of the time: the process may send load too."""


class State(enum.StrEnum):
    """The phase of the run that is shown."""

    NONE = "none"
    PREPARING = "preparing"
    RUNNING = "running"
    ENDED = "ended"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The current or last run at one moment.

    Attributes:
        state: The phase of the run.
        sentence: The phase in words.
        run_id: The id of the run; None before the first run.
        record: The run so far; None before the load begins.
    """

    state: State
    sentence: str
    run_id: str | None = None
    record: RunRecord | None = None

    @property
    def live(self) -> bool:
        """False once the run has ended."""
        return self.state is not State.ENDED


NOTHING = Shown(state=State.NONE, sentence="No run yet.")


class Showing:
    """Builds what the pages show.

    Args:
        conductor: The conductor of the runs.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        # Two browsers share one record, even if building one should ever switch greenlets.
        self._lock = gevent.lock.RLock()
        self._shown = NOTHING
        self._of: tuple[MasterRun | None, Phase | None, RunRecord | None] = (None, None, None)
        self._fresh_until_s = 0.0

    def now(self) -> Shown:
        """The current or last run; the same object until there is something new."""
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

    def _show(self, run: MasterRun) -> Shown:
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
                    record = conductor.record_so_far(now_s)
        return Shown(state=state, sentence=sentence, run_id=run.plan.run_id, record=record)


def preparing(run: MasterRun) -> str:
    """The sentence of a run before its load."""
    loaded = f"{counted(run.loaded.entities, 'entity', 'entities')} loaded"
    return f"{run.plan.profile_name}: creating and loading the table, {loaded}."


def running(run: MasterRun, now_s: float) -> str:
    """The sentence of a run that sends load at ``now_s``, UTC, or is ending."""
    if run.phase is Phase.ENDING:
        words = "judging the results" if run.epoch_s else "cleaning up"
        return f"{run.plan.profile_name}: ending after {run.ended_by or 'a failure'}, {words}."
    under_load = f"under load for {duration(max(0.0, now_s - run.epoch_s))}"
    if run.window is None:
        measured = "users are starting, nothing is measured yet"
    else:
        start, end = run.window
        passed = min(max(now_s - start, 0.0), end - start)
        measured = f"measured {passed:.0f} of {end - start:,} s"
    return f"{run.plan.profile_name}: running, {under_load}, {measured}."


def ended(record: RunRecord | None, problem: str = "") -> str:
    """The sentence of a run that has ended.

    Args:
        record: Its record; None for a run without load.
        problem: Why the run failed; empty where it did not.
    """
    if record is None:
        why = f": {problem}." if problem else "; the terminal shows the reason."
        return f"The run ended before any load was sent{why}"
    at = dt.datetime.fromisoformat(record.ended_at)
    why = f": {problem}" if problem else ""
    return f"{record.profile['name']}: ended by {record.ended_by} at {at:%H:%M:%S} UTC{why}."
