"""What a run says of itself: its price, its peak load, how it goes, what it found."""

from __future__ import annotations

import math
from pathlib import Path

from harness.measure.latency import LatencyHistogram
from harness.measure.record import RunRecord
from harness.measure.snapshot import Snapshot
from harness.model.target import targets_for
from harness.profile.build import most_transactions
from harness.profile.pace import capped_rate, scheduled, window_s
from harness.profile.planning import may_end_early
from harness.report.live import Live, live_line, step
from harness.report.search import step_begins, step_taken
from harness.report.stressed import scheduled_words, users_words
from harness.report.terminal import summary
from harness.report.words import counted
from harness.swarm.offered import offered_per_s
from harness.swarm.output import beside
from harness.swarm.rehearsal import Rehearsal
from harness.swarm.run import Run
from harness.swarm.terminal import Terminal
from harness.workload.steps import Step, TakenStep

LIVE_EVERY_S = 5.0


class Narrator:
    """Says how one run goes.

    Args:
        run: The run.
        terminal: Where it is said.
        rehearsal: The count of the gateway that it goes through, where there is one.
    """

    def __init__(self, run: Run, terminal: Terminal, rehearsal: Rehearsal | None) -> None:
        self._run = run
        self._terminal = terminal
        self._rehearsal = rehearsal
        self._earlier: Snapshot | None = None
        self._latencies: dict[str, LatencyHistogram] = {}
        self._step_number = 0
        self._next_live_s = 0.0
        self._since_s = 0.0
        self._found = ""

    def price(self) -> None:
        """What the profile offends, and where somebody pays for it what the run may cost."""
        run = self._run
        self._terminal.say(run.checked)
        if not run.plan.remote:
            return
        loading, load = most_transactions(run.plan.profile, run.endpoint.kind)
        limit = run.plan.profile.limits.billable_transactions
        if limit is not None and limit < loading + load:
            bound = f"{counted(limit, 'billable transaction')} (limits.billable_transactions)"
        elif math.isinf(load):
            bound = "any number of billable transactions: neither its rate nor its cost is limited"
        else:
            most = counted(round(loading + load), "billable transaction")
            bound = f"{most}, every retry included"
        self._terminal.say(f"Account {run.endpoint.account}: this run may make up to {bound}")
        if early_end := may_end_early(run.plan.profile):
            self._terminal.say(early_end)

    def peak(self, users: int) -> None:
        """Step 3 begins with ``users`` users."""
        run, load = self._run, self._run.plan.profile.load
        profile = run.plan.profile
        wanted = capped_rate(profile, run.endpoint.kind)
        cap = scheduled_words(profile.model_dump())
        if cap is None:
            cap = "as fast as answers come"
            if wanted is not None:
                cap = f"at most {wanted:,.0f} entities/s ({self._cap_name()})"
        length = f"{window_s(profile):,} s measured"
        if profile.search is not None:
            length = f"at most {window_s(profile):,} s"
        self._terminal.say(
            step(
                3,
                f"{users_words(profile.model_dump(), users)}, {cap}, {length} after the ramp and "
                f"{load.settle_s:g} s to settle",
            )
        )
        self._next_live_s = run.epoch_s + LIVE_EVERY_S
        if self._rehearsal is not None:
            self._rehearsal.begin(run.epoch_s)

    def live(self, now_s: float, users: int, workers: int) -> None:
        """A line now and then."""
        if now_s < self._next_live_s:
            return
        self._next_live_s += LIVE_EVERY_S
        run, now = self._run, int(now_s)
        # Reports come every second: of the last one only a part is known.
        snapshot = run.shown(
            run.ledger.snapshot(
                start=max(
                    math.ceil(run.epoch_s), math.ceil(self._since_s), now - 1 - int(LIVE_EVERY_S)
                ),
                end=now - 1,
                latencies=False,
            )
        )
        live = self._live(snapshot, now_s, users, workers)
        self._earlier = snapshot
        self._terminal.say(live_line(live, ascii_only=self._terminal.ascii_only))

    def _live(self, snapshot: Snapshot, now_s: float, users: int, workers: int) -> Live:
        """The figures of the line, from the counts of the last few seconds."""
        run, earlier, hottest = self._run, self._earlier, snapshot.hottest
        targets = targets_for(run.endpoint.kind)
        throttled, attempts = snapshot.throttled, snapshot.counts.attempts
        if earlier is not None:
            throttled -= earlier.throttled
            attempts -= earlier.counts.attempts
        open_load = scheduled(run.plan.profile)
        return Live(
            elapsed_s=now_s - run.epoch_s,
            step=self._step_number if run.step is not None else None,
            achieved_per_s=snapshot.entities_per_s.mean,
            wanted_per_s=offered_per_s(run, snapshot.start, snapshot.end),
            hottest=None if hottest is None else hottest.key,
            hottest_per_s=0.0 if hottest is None else hottest.entities_per_s.mean,
            target_per_s=None if targets is None else targets.partition,
            throttled_ratio=throttled / attempts if attempts else 0.0,
            service_p99_s=self._p99_s("service"),
            response_p99_s=self._p99_s("response") if open_load else None,
            waiting=run.waiting if open_load else None,
            dropped=snapshot.counts.dropped,
            in_flight=run.in_flight,
            users=users,
            workers=workers,
            cpu_percent=max((s.cpu_percent for s in run.generator.latest().values()), default=0.0),
        )

    def _p99_s(self, latency: str) -> float | None:
        """The 99th percentile since the line before; None where nothing was measured."""
        earlier = self._latencies.get(latency)
        now = self._latencies[latency] = self._run.ledger.overall(latency)
        view = now.since(earlier).view()
        return None if view is None else view.p99_s

    def examine(self) -> None:
        """Step 4 begins."""
        if self._rehearsal is not None:
            self._rehearsal.end()
        self._terminal.say(step(4, f"the run ended by {self._run.ended_by}"))

    def found(self, record: RunRecord, path: str) -> None:
        """Keep what the run found, to be said by `say_found`."""
        terminal = self._terminal
        text = summary(
            record, width=terminal.width, colour=terminal.colour, ascii_only=terminal.ascii_only
        )
        if self._rehearsal is not None:
            text += f"\n\n{self._rehearsal.text(record)}"
        others = ", ".join(beside(Path(path)))
        self._found = (
            f"{text}\n\nRecord: {path}\nBeside it: {others}\nExit code: {record.exit_code}"
        )

    def say_found(self) -> None:
        """Say what the run found, once."""
        if self._found:
            self._terminal.say(self._found)
            self._found = ""

    def step_begins(self, step: Step, from_s: float) -> None:
        """A step of a search, from ``from_s``, UTC, on. Live lines tell nothing of steps before."""
        run = self._run
        run.step = step
        self._step_number += 1
        self._since_s, self._next_live_s = from_s, from_s + LIVE_EVERY_S
        second = math.ceil(from_s)
        self._earlier = run.ledger.snapshot(start=second, end=second + 1, latencies=False)
        self._latencies = {name: run.ledger.overall(name) for name in ("service", "response")}
        self._terminal.say(step_begins(self._step_number, step))

    def step_taken(self, taken: TakenStep) -> None:
        """What came of it."""
        self._terminal.say(step_taken(self._step_number, taken))

    def _cap_name(self) -> str:
        """Where the cap on the rate comes from."""
        run, load = self._run, self._run.plan.profile.load
        wanted = capped_rate(run.plan.profile, run.endpoint.kind)
        if wanted == load.max_entities_per_s:
            return "load.max_entities_per_s"
        if run.endpoint.kind.emulated:
            return "load.emulator_max_entities_per_s"
        return "one partition's target; load.max_entities_per_s lifts it"
