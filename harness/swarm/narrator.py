"""What a run says of itself: its price, its peak load, how it goes, what it found."""

from __future__ import annotations

import math

from harness.measure.record import RunRecord
from harness.measure.snapshot import Snapshot
from harness.model.target import targets_for
from harness.profile.build import most_transactions, wanted_rate
from harness.report.live import live_line, step
from harness.report.terminal import summary
from harness.report.words import counted
from harness.swarm.rehearsal import Rehearsal
from harness.swarm.run import Run
from harness.swarm.terminal import Terminal

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
        self._next_live_s = 0.0
        self._found = ""

    def price(self) -> None:
        """What the run may cost; before anything is sent, where somebody pays for it."""
        run = self._run
        if not run.plan.remote:
            return
        loading, load = most_transactions(run.plan.profile, run.endpoint.kind)
        limit = run.plan.profile.limits.billable_transactions
        if limit is not None and limit < loading + load:
            bound = f"{limit:,} billable transactions (limits.billable_transactions)"
        elif math.isinf(load):
            bound = "any number of billable transactions: neither its rate nor its cost is limited"
        else:
            bound = f"{loading + load:,.0f} billable transactions, every retry included"
        self._terminal.say(f"Account {run.endpoint.account}: this run may make up to {bound}")

    def peak(self, users: int) -> None:
        """Step 3 begins with ``users`` users."""
        run, load = self._run, self._run.plan.profile.load
        wanted = wanted_rate(run.plan.profile, run.endpoint.kind)
        cap = "as fast as answers come"
        if wanted is not None:
            cap = f"at most {wanted:,.0f} entities/s ({self._cap_name()})"
        self._terminal.say(
            step(
                3,
                f"{counted(users, 'user')}, {cap}, {load.run_time_s:,} s measured after the ramp "
                f"and {load.settle_s:g} s to settle",
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
        snapshot = run.ledger.snapshot(
            start=max(math.ceil(run.epoch_s), now - 1 - int(LIVE_EVERY_S)),
            end=now - 1,
            latencies=False,
        )
        line = live_line(
            snapshot,
            earlier=self._earlier,
            elapsed_s=now_s - run.epoch_s,
            users=users,
            workers=workers,
            in_flight=run.in_flight,
            cpu_percent=max((s.cpu_percent for s in run.generator.latest().values()), default=0.0),
            wanted_per_s=wanted_rate(run.plan.profile, run.endpoint.kind),
            targets=targets_for(run.endpoint.kind),
            ascii_only=self._terminal.ascii_only,
        )
        self._earlier = snapshot
        self._terminal.say(line)

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
        self._found = f"{text}\nRecord: {path}\nExit code: {record.exit_code}"

    def say_found(self) -> None:
        """Say what the run found, once."""
        if self._found:
            self._terminal.say(self._found)
            self._found = ""

    def _cap_name(self) -> str:
        """Where the cap on the rate comes from."""
        run, load = self._run, self._run.plan.profile.load
        wanted = wanted_rate(run.plan.profile, run.endpoint.kind)
        if wanted == load.max_entities_per_s:
            return "load.max_entities_per_s"
        if run.endpoint.kind.emulated:
            return "load.emulator_max_entities_per_s"
        return "one partition's target; load.max_entities_per_s lifts it"
