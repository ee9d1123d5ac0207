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
_NOT_WAITED_FOR = "it was not waited for"


@dataclasses.dataclass(slots=True)
class _Worker:
    """A worker that looks up: when it was heard last, and what it has found."""

    heard_s: float
    content: Mapping[str, Any] | None = None
    tally: Tally = dataclasses.field(default_factory=Tally)
    cut_short: str = ""
    done: bool = False

    def hear(self, content: Mapping[str, Any] | None, now_s: float) -> None:
        """Take what it said last; without anything new for long it is gone."""
        if content is not None and content is not self.content:
            self.heard_s, self.content = now_s, content
            self.tally = Tally.from_message(content["tally"])
            self.cut_short = content["cut_short"]
            self.done = content["done"]
        elif now_s - self.heard_s > _SILENT_S and not self.done:
            self.done, self.cut_short = True, "a worker is gone"


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
        self._hurried = False

    def hurry(self) -> None:
        """Be content with what was looked up until now."""
        self._hurried = True

    def hold(self, hurry: gevent.event.Event) -> None:
        """Audit the run where its profile wants it. Blocks until that is done, or cut short.

        Args:
            hurry: Set when nothing is to be waited for any more.
        """
        run, audit = self._run, self._run.plan.profile.audit
        if not audit.enabled or not run.epoch_s:
            return
        reports = run.reports.items()
        written = {worker: part.written for worker, part in reports if part.written is not None}
        strangers = bool(run.took_part - written.keys())
        plans = look_ups(written, most_rows=audit.most_rows, strangers=strangers)
        total = sum(plan.rows for plan in plans.values())
        all_rows = sum(part.estimate for part in written.values())
        exact = all(part.below == PLACES for part in written.values())
        began_s = self._clock()
        self._terminal.say(audit_begins(total, all_rows, exact=exact))
        cut_short = _NOT_WAITED_FOR
        if not hurry.is_set():
            left = self._ask({worker: plan for worker, plan in plans.items() if plan.rows})
            cut_short = self._wait(hurry, total, began_s) or left
        run.audit = audit_part(
            (worker.tally for worker in self._workers.values()),
            written=all_rows,
            exact=exact,
            given_up=sum(part.given_up for part in written.values()),
            cut_short=cut_short if total else "",
        )
        self._terminal.say(audit_ends(run.audit, self._clock() - began_s))

    def _ask(self, plans: Mapping[str, LookUp]) -> str:
        """Let every worker that is there look up what it wrote; what cannot be, or nothing."""
        there = [worker for worker in live_workers(self._environment) if worker in plans]
        now_s = self._clock()
        for rank, worker in enumerate(there):
            self._workers[worker] = _Worker(heard_s=now_s)
            message = {
                "run_id": self._run.plan.run_id,
                "rank": rank,
                "count": len(there),
                "plan": plans[worker].to_message(),
            }
            self._environment.runner.send_message(LOOK_UP_MESSAGE, message, worker)
        return "" if len(there) == len(plans) else "a worker that had written rows had left"

    def _wait(self, hurry: gevent.event.Event, total: int, began_s: float) -> str:
        """Wait until all was looked up; why it was not, or nothing."""
        within_s = self._within_s(total)
        say_at_s = began_s + _SAY_EVERY_S
        while not self._all_done():
            now_s = self._clock()
            if hurry.is_set() or self._hurried:
                self._hear_last_words()
                return _NOT_WAITED_FOR
            if now_s - began_s > within_s:
                self._hear_last_words()
                return f"it took longer than {within_s:,.0f} s"
            if now_s >= say_at_s:
                say_at_s += _SAY_EVERY_S
                tallies = [worker.tally for worker in self._workers.values()]
                rows = sum(tally.rows for tally in tallies)
                lost = sum(tally.lost for tally in tallies)
                self._terminal.say(audit_goes_on(rows, total, lost))
            gevent.sleep(_LOOK_EVERY_S)
        reasons = (worker.cut_short for worker in self._workers.values())
        return next(filter(None, reasons), "")

    def _all_done(self) -> bool:
        now_s = self._clock()
        for name, worker in self._workers.items():
            worker.hear(self._run.found.get(name), now_s)
        return all(worker.done for worker in self._workers.values())

    def _hear_last_words(self) -> None:
        """Stop those that still look up; what they say then, their cost too, is heard."""
        message = {"run_id": self._run.plan.run_id}
        for worker in self._workers:
            self._environment.runner.send_message(LOOK_UP_NO_MORE_MESSAGE, message, worker)
        deadline_s = self._clock() + _LAST_WORDS_S
        while not self._all_done() and self._clock() < deadline_s:
            gevent.sleep(_LOOK_EVERY_S)

    def _within_s(self, rows: int) -> float:
        cap = loading_pacer_of(self._run.plan.profile, self._run.endpoint.kind).entities_per_s
        slowest_per_s = _SLOWEST_PER_S if cap is None else min(_SLOWEST_PER_S, cap / 2)
        return _AT_LEAST_S + rows / slowest_per_s
