"""The master's part of the audit: it asks every worker to look up what it wrote, and adds up."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import gevent
import gevent.event
from locust.env import Environment

from harness.endpoint.clock import Clock
from harness.measure.audit import Tally, audit_part
from harness.measure.journal import PLACES
from harness.measure.look_up import LookUp, look_ups
from harness.profile.pace import loading_pacer_of
from harness.report.audit import audit_begins, audit_ends, audit_goes_on
from harness.swarm.looking_up import LOOK_UP_MESSAGE, LOOK_UP_NO_MORE_MESSAGE
from harness.swarm.run import Run
from harness.swarm.sharing import live_workers
from harness.swarm.terminal import Terminal

_SAY_EVERY_S = 5.0
_LOOK_EVERY_S = 0.05
_AT_LEAST_S = 60.0
_SLOWEST_PER_S = 100.0
"""An audit that takes longer than at so many rows a second, and a minute, is cut short."""
_SILENT_S = 15.0
"""A worker that says nothing for so long is gone: it says something every second."""
_LAST_WORDS_S = 2.0


@dataclasses.dataclass(slots=True)
class _Worker:
    """What a worker that looks up said last, and when."""

    heard_s: float
    tally: Tally = dataclasses.field(default_factory=Tally)
    cut_short: str = ""
    done: bool = False


class Auditing:
    """The audit of one run.

    Args:
        environment: Locust's.
        run: The run.
        terminal: Where progress is said.
        clock: UTC seconds.
    """

    def __init__(
        self, environment: Environment, run: Run, terminal: Terminal, clock: Clock
    ) -> None:
        self._environment = environment
        self._run = run
        self._terminal = terminal
        self._clock = clock
        self._workers: dict[str, _Worker] = {}
        self._hurried = gevent.event.Event()

    def hurry(self) -> None:
        """Be content with what was looked up until now."""
        self._hurried.set()

    def take(self, worker: str, content: Mapping[str, Any]) -> None:
        """Keep what a worker found so far."""
        found = self._workers.get(worker)
        if found is None:
            return
        found.heard_s = self._clock()
        found.tally = Tally.from_message(content["tally"])
        found.cut_short = content["cut_short"]
        found.done = content["done"]
        self._run.reports[worker].billable_transactions = content["billable_transactions"]

    def hold(self, hurry: gevent.event.Event) -> None:
        """Audit the run where its profile wants it. Blocks until that is done, or cut short.

        Args:
            hurry: Set when nothing is to be waited for any more.
        """
        run, audit = self._run, self._run.plan.profile.audit
        if not audit.enabled or not run.epoch_s:
            return
        written = {
            worker: report.written
            for worker, report in run.reports.items()
            if report.written is not None
        }
        took_part = {*run.reports, *run.asked}
        plans = look_ups(
            written, most_rows=audit.most_rows, strangers=bool(took_part - written.keys())
        )
        total = sum(plan.rows for plan in plans.values())
        all_rows = sum(part.estimate for part in written.values())
        exact = all(part.below == PLACES for part in written.values())
        began_s = self._clock()
        self._terminal.say(audit_begins(total, all_rows, exact=exact))
        self._ask(plans)
        cut_short = self._wait(hurry, total, began_s)
        if not cut_short and any(plan.rows for w, plan in plans.items() if w not in self._workers):
            cut_short = "a worker that had written rows had left"
        run.audit = audit_part(
            (worker.tally for worker in self._workers.values()),
            written=all_rows,
            exact=exact,
            given_up=sum(part.given_up for part in written.values()),
            cut_short=cut_short,
        )
        self._terminal.say(audit_ends(run.audit, self._clock() - began_s))

    def _ask(self, plans: Mapping[str, LookUp]) -> None:
        """Let every worker that is there look up what it wrote."""
        send = self._environment.runner.send_message
        there = [worker for worker in live_workers(self._environment) if worker in plans]
        asked = [worker for worker in there if plans[worker].rows]
        now_s = self._clock()
        self._workers = {worker: _Worker(heard_s=now_s) for worker in asked}
        for rank, worker in enumerate(asked):
            message = {
                "run_id": self._run.plan.run_id,
                "rank": rank,
                "count": len(asked),
                "plan": plans[worker].to_message(),
            }
            send(LOOK_UP_MESSAGE, message, worker)

    def _wait(self, hurry: gevent.event.Event, total: int, began_s: float) -> str:
        """Wait until all was looked up; why it was not, or nothing."""
        within_s = self._within_s(total)
        said_s = began_s
        cut_short = ""
        while not cut_short and not all(found.done for found in self._workers.values()):
            gevent.sleep(_LOOK_EVERY_S)
            now_s = self._clock()
            if hurry.is_set() or self._hurried.is_set():
                cut_short = "it was not waited for"
            elif now_s - began_s > within_s:
                cut_short = f"it took longer than {within_s:,.0f} s"
            elif any(self._silent(found, now_s) for found in self._workers.values()):
                cut_short = "a worker is gone"
            elif now_s - said_s >= _SAY_EVERY_S:
                said_s = now_s
                tallies = [found.tally for found in self._workers.values()]
                rows, lost = (sum(getattr(t, name) for t in tallies) for name in ("rows", "lost"))
                self._terminal.say(audit_goes_on(rows, total, lost))
        if cut_short:
            self._hear_last_words()
        reasons = (found.cut_short for found in self._workers.values())
        return cut_short or next(filter(None, reasons), "")

    def _hear_last_words(self) -> None:
        """Stop those that still look up; what they say then, their cost too, is heard."""
        message = {"run_id": self._run.plan.run_id}
        for worker in self._workers:
            self._environment.runner.send_message(LOOK_UP_NO_MORE_MESSAGE, message, worker)
        deadline_s = self._clock() + _LAST_WORDS_S
        while self._clock() < deadline_s and not all(w.done for w in self._workers.values()):
            gevent.sleep(_LOOK_EVERY_S)

    def _within_s(self, rows: int) -> float:
        cap = loading_pacer_of(self._run.plan.profile, self._run.endpoint.kind).entities_per_s
        slowest_per_s = _SLOWEST_PER_S if cap is None else min(_SLOWEST_PER_S, cap / 2)
        return _AT_LEAST_S + rows / slowest_per_s

    @staticmethod
    def _silent(found: _Worker, now_s: float) -> bool:
        return not found.done and now_s - found.heard_s > _SILENT_S
