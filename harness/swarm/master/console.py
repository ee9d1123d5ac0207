"""What a run shows in the terminal.

`Console` writes lines, progress and errors. `ConsoleMessages` has the messages of a run, in the
order in which they appear; the summary at the end comes from `harness.report.terminal`.
"""

from __future__ import annotations

import contextlib
import math
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import gevent

from harness import startup
from harness.endpoint.endpoint import Endpoint
from harness.measure.counts.latency import LatencyHistogram
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.enforced import partition_limit_of
from harness.measure.record.record import RunRecord
from harness.model.errors import printable, printable_lines
from harness.model.figures import counted, listed
from harness.profile.build.plan import may_end_early
from harness.profile.build.workload import most_transactions
from harness.profile.load.search import Step, StepOutcome
from harness.report.export.output import CommandOutput
from harness.report.export.result import RepeatsOutput, RunOutput, run_output
from harness.report.terminal.live import (
    PROGRESS_WIDTH,
    Live,
    live_line,
    progress_line,
    step,
    step_begins,
    step_taken,
)
from harness.report.terminal.page import Page
from harness.report.terminal.summary import brief, compact, summary
from harness.swarm.master.master_run import MasterRun
from harness.swarm.master.rehearsal import Rehearsal
from harness.swarm.messages import host_of
from harness.workload.entity_factory import RUN_PROPERTY

LIVE_EVERY_S = 5.0
CTRL_C_ENDS = "Ctrl-C ends the wait"
_PLAIN_EVERY_S = 5.0
_READING_EVERY_S = 0.5


class Console:
    """Writes lines and progress to standard output.

    A terminal shows progress in one line that is rewritten in place; any other stream gets a line
    every few seconds. A ``quiet`` console shows results and errors only, one with the summary
    ``full`` every figure of the record. With ``json``, standard output has one object alone, that
    of several runs if they are ``repeated``, and everything else goes to standard error.
    """

    def __init__(
        self, *, quiet: bool = False, summary: str = "compact", repeated: bool = False
    ) -> None:
        self.quiet, self.full, self.json = quiet, summary == "full", summary == "json"
        self._out = sys.stderr if self.json else sys.stdout
        self._repeated = repeated
        self._results: list[RunOutput] = []
        self._rewriting = False
        self._last_progress_s = 0.0
        self._read_s = time.monotonic()

    @property
    def page(self) -> Page:
        return Page.of_terminal(self._out)

    @property
    def _in_place(self) -> bool:
        """Whether progress is shown, in one line of a terminal."""
        return self._out.isatty() and not self.quiet

    def say(self, text: str) -> None:
        """Show something of the course of a run."""
        if not self.quiet:
            self.tell(text)

    def tell(self, text: str) -> None:
        """Show what the user has to know, also in a quiet run."""
        self.show(printable_lines(text))

    def show(self, page: str) -> None:
        """Show a rendered page, which may have colours."""
        if self._rewriting:
            self._rewriting = False
            self._write("\n")
        # A character that the stream cannot encode, such as a surrogate in a key, is replaced.
        encoding = self._out.encoding or "utf-8"
        self._write(page.encode(encoding, "replace").decode(encoding) + "\n")

    def result(self, output: RunOutput) -> None:
        """Write the object of a run, or keep it for that of all."""
        self._results.append(output)
        if not self._repeated:
            _print_object(output)

    def results(self, folder: str, exit_code: int) -> None:
        """Write the object of repeated runs; nothing without a run."""
        if self._repeated and self._results:
            runs = tuple(self._results)
            _print_object(RepeatsOutput(folder=folder, exit_code=exit_code, runs=runs))

    def error(self, sentence: str) -> None:
        """Write an error to standard error."""
        if self._rewriting:
            self.say("")
        startup.complain(sentence)

    def waiting(self, line: str) -> None:
        """Show what the run waits for. Called every few seconds."""
        if self._in_place:
            self._rewrite(line.ljust(PROGRESS_WIDTH))
        else:
            self.say(line)

    def live(self, line: str) -> None:
        """Show the state of the load: in a terminal in one line, unless it is a ``full`` one."""
        width = self.page.width - 1
        if self._in_place and not self.full and len(line) <= width:
            self._rewrite(line.ljust(width))
        else:
            self.say(line)

    def reading(self, done: int, total: int) -> None:
        """Show how far a trace is read. Other greenlets run meanwhile: it may take long."""
        gevent.sleep(0)
        now_s = time.monotonic()
        if done >= total and self._rewriting:
            self._rewrite(" " * PROGRESS_WIDTH + "\r")
            self._rewriting = False
        elif self._in_place and now_s >= self._read_s + _READING_EVERY_S:
            self._read_s = now_s
            self._rewrite(
                f"reading the trace: {100 * done // max(1, total)} %".ljust(PROGRESS_WIDTH)
            )

    def progress(self, done: int, total: int, elapsed_s: float, silent_s: float) -> None:
        """Show the progress of loading; the arguments are those of `progress_line`."""
        if self.quiet:
            return
        terminal = self._out.isatty()
        glyphs = self.page.glyphs if terminal else None
        line = progress_line(done, total, elapsed_s, silent_s, glyphs)
        if terminal:
            self._rewrite(line)
        elif (
            elapsed_s < self._last_progress_s
            or elapsed_s - self._last_progress_s >= _PLAIN_EVERY_S
            or done >= total
        ):
            self._last_progress_s = elapsed_s
            self.say(line)

    def _rewrite(self, line: str) -> None:
        self._rewriting = True
        # A line of blanks ends with a return.
        self._write("\r" + printable(line.rstrip("\r")) + "\r" * line.endswith("\r"))

    def _write(self, text: str) -> None:
        # The reader may be gone, as with `| head`, or the disk is full. The run goes on.
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text)
            self._out.flush()


def _print_object(output: CommandOutput) -> None:
    with contextlib.suppress(OSError, ValueError):
        startup.tell_program(output.to_json())


class ConsoleMessages:
    """The messages of one run. ``rehearsal`` is None without a gateway."""

    rehearsal: Rehearsal | None = None

    def __init__(self, run: MasterRun, console: Console) -> None:
        self._run = run
        self.console = console
        self._earlier: Snapshot | None = None
        self._latencies: dict[str, LatencyHistogram] = {}
        self._search_step = 0
        self._next_live_s = 0.0
        self._since_s = 0.0
        self._summary = ""
        self._output: RunOutput | None = None

    # Before the run: the checks and the price.

    def run_starts(self, loading_requests: int) -> None:
        """Show the accounts and, for a remote one, the possible cost."""
        run = self._run
        if len(run.accounts) > 1:
            names = ", ".join(run.accounts.names)
            self.console.say(f"accounts: {names}; a hash of the PartitionKey chooses the account")
        if signed_with := run.accounts.signed_with:
            self.console.say(f"Signed with: {signed_with}")
        for login in run.accounts.logins:
            if login.ignored:
                self.console.say(f"Ignored, because of the login: {listed(login.ignored)}")
        if not run.accounts.remote:
            return
        loading, load = most_transactions(run.plan.profile, run.accounts.kind, loading_requests)
        limit = run.plan.profile.limits.billable_transactions
        if limit is not None and limit * len(run.accounts) < loading + load:
            each = " in each account" if len(run.accounts) > 1 else ""
            budget = counted(limit, "billable transaction")
            most = f"up to {budget}{each} (limits.billable_transactions)"
        elif math.isinf(load):
            most = "an unlimited number of billable transactions: neither rate nor cost is limited"
        else:
            most = f"up to {counted(round(loading + load), 'billable transaction')}, with retries"
        described = run.accounts.described
        self.console.tell(f"{described[0].upper()}{described[1:]}: this run may make {most}")
        if early_end := may_end_early(run.plan.profile):
            self.console.say(early_end)

    # Step 1: the table.

    def table_is_created(self) -> None:
        run, plan = self._run, self._run.plan
        store = plan.kind.store
        name = plan.table if store == "table" else f"the {store} {plan.table}"
        if plan.kind.store_each:
            name = f"{counted(len(plan.tables), store)} {plan.table}-*"
        where = f"{name} at {run.accounts.host}, {run.accounts.kind.described}"
        if not plan.own_table:
            where = f"not needed, {where} exists and is empty"
        elif len(plan.tables) > 1 and not plan.kind.store_each:
            where = f"{len(plan.tables)} tables, {where}"
        self.console.say(step(1, where, plan.kind))

    # Step 2: the entities.

    def table_is_loaded(self, entities: int) -> None:
        profile, plan = self._run.plan.profile, self._run.plan
        if not plan.loads:
            why = f"nothing, because {plan.own_class} makes its own {plan.kind.unit.many}"
            self.console.say(step(2, why))
            return
        what = self._run.accounts.kind.unit.counted(entities)
        if plan.kind.store_each and not entities:
            self.console.say(
                step(2, f"nothing, {plan.kind.partitions} are empty at first", plan.kind)
            )
            return
        if profile.replay is not None:
            trace = profile.replay.content.trace
            rows = f"{what} that {trace} reads before it writes them"
            if not entities:
                rows = f"nothing, because {trace} reads only what it writes"
            self.console.say(step(2, rows))
            return
        into = f"the {plan.kind.store}{'s' * (len(plan.tables) > 1)} of {profile.scenario}"
        if profile.scenario is None:
            into = counted(profile.design.count, "partition")
        size = f"{profile.entity.size_bytes:,} B"
        self.console.say(step(2, f"{what} of {size} into {into}", plan.kind))

    # Step 3: the load.

    def load_begins(self, users: int) -> None:
        run, profile = self._run, self._run.plan.profile
        load = profile.load_model
        self.console.say(step(3, load.described(users, run.accounts.kind)))
        if profile.replay is not None:
            for sentence in profile.replay.content.sentences():
                self.console.say(sentence)
            whole_s, window = load.trace_s or 0.0, load.expected_window_s
            if load.starts_with_window and window < whole_s:
                self.console.say(
                    f"The run time ends the replay after {window:,.0f} of {whole_s:,.0f} s"
                )
        self._next_live_s = run.epoch_s + LIVE_EVERY_S
        if self.rehearsal is not None:
            self.rehearsal.begin(run.epoch_s)

    def load_progress(self, now_s: float, users: int, workers: int) -> None:
        """Show a line with the figures of the last few seconds, every 5 s."""
        if now_s < self._next_live_s:
            return
        self._next_live_s += LIVE_EVERY_S
        if self.rehearsal is not None:
            self.rehearsal.follow()
            self._run.enforced = self.rehearsal.enforced()
        run, now = self._run, int(now_s)
        # Reports come every second, so the counts of the last second are incomplete.
        snapshot = run.redacted(
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
        self.console.live(live_line(live, ascii_only=self.console.page.ascii_only))

    def _live(self, snapshot: Snapshot, now_s: float, users: int, workers: int) -> Live:
        run, earlier, units = self._run, self._earlier, snapshot.request_units
        limit = partition_limit_of(run.enforced)
        throughput = run.plan.profile.endpoint.throughput
        throttled, attempts = snapshot.throttled, snapshot.counts.attempts
        if earlier is not None:
            throttled -= earlier.throttled
            attempts -= earlier.counts.attempts
        open_load = run.plan.profile.load_model.scheduled
        return Live(
            elapsed_s=now_s - run.epoch_s,
            step=self._search_step if run.step is not None else None,
            achieved_per_s=snapshot.entities_per_s.mean,
            sign=snapshot.sign(),
            unit=run.accounts.kind.unit.rate,
            wanted_per_s=run.mean_offered_per_s(snapshot.start, snapshot.end),
            hottest=snapshot.held(run.plan.kind.targets, throughput, limit),
            ru_per_s=None if units is None else units.per_s.mean,
            throttled_ratio=throttled / attempts if attempts else 0.0,
            service_p99_s=self._p99_s("service"),
            response_p99_s=self._p99_s("response") if open_load else None,
            waiting=run.total.waiting if open_load else None,
            dropped=snapshot.counts.dropped,
            in_flight=run.total.in_flight,
            users=users,
            workers=workers,
            replayed=run.replayed_share(now_s),
            cpu_percent=max((s.cpu_percent for s in run.generator.latest().values()), default=0.0),
        )

    def _p99_s(self, latency: str) -> float | None:
        """The 99th percentile since the last line; None without a measurement."""
        earlier = self._latencies.get(latency)
        now = self._latencies[latency] = self._run.ledger.overall(latency)
        view = now.since(earlier).view()
        return None if view is None else view.p99 / 1000

    def workers_changed(self, came: list[str], went: list[str]) -> None:
        """Workers joined the run under load, or left it."""
        for worker in came:
            self.console.say(f"A worker on {host_of(worker)} joined the run")
        for worker in went:
            if self._run.has_final_report(worker):
                self.console.say(f"The worker on {host_of(worker)} left the run")
            else:
                self.console.error(
                    f"the worker on {host_of(worker)} is lost: it has not been heard of for 10 s; "
                    "the others take its part of the load"
                )

    def search_step_begins(self, step: Step, from_s: float) -> None:
        """A step of the search begins at ``from_s``, UTC; later lines cover this step only."""
        run = self._run
        run.step = step
        self._search_step += 1
        self._since_s, self._next_live_s = from_s, from_s + LIVE_EVERY_S
        second = math.ceil(from_s)
        self._earlier = run.ledger.snapshot(start=second, end=second + 1, latencies=False)
        self._latencies = {name: run.ledger.overall(name) for name in ("service", "response")}
        self.console.say(step_begins(self._search_step, step, self._run.accounts.kind.unit))

    def search_step_ends(self, taken: StepOutcome) -> None:
        self.console.say(step_taken(self._search_step, taken, self._run.accounts.kind.unit))

    # Step 4: the result.

    def load_ends(self) -> None:
        if not self._run.epoch_s:
            # The gateway counted loading, which is not in the record.
            self.rehearsal = None
        if self.rehearsal is not None:
            self.rehearsal.end()
            self._run.enforced = self.rehearsal.enforced()
        self.console.say(step(4, f"the run ended by {self._run.ended_by}"))
        if self._run.epoch_s:
            for worker in self._run.silent_workers:
                self.console.error(
                    f"no last report of the worker on {host_of(worker)}: what it sent since its "
                    "last report is not counted"
                )

    def index_not_followed(self, reason: str) -> None:
        self.console.say(f"The index tables were not checked completely: {reason}")

    def left_behind(self, tables: Mapping[Endpoint, Sequence[str]], reason: str) -> None:
        """Tables or entities could not be deleted: name them, and the commands to delete them."""
        plan = self._run.plan
        if not plan.own_table:
            where = " and ".join(endpoint.host for endpoint in tables)
            at = f" at {where}" if len(self._run.accounts) > 1 else ""
            text = (
                f"Not cleaned up: {reason}. The table {plan.table}{at} may still hold entities of "
                "this run, "
                f"with the property {RUN_PROPERTY} = {plan.run_id!r}"
            )
        elif plan.embedded:
            text = (
                f"Not deleted: {reason}. Nothing is left behind: an embedded Azurite holds its "
                f"{plan.kind.store}s in memory, and ends with the run"
            )
        else:
            names = dict.fromkeys(name for left in tables.values() for name in left)
            text = (
                f"Not cleaned up: {reason}. These {plan.kind.store}s may still exist: "
                f"{' '.join(names)}. To delete them:"
            )
            for endpoint, left in tables.items():
                consent = f" --remote-ok {endpoint.confirmed_by}" if endpoint.remote else ""
                if endpoint.kind.session:
                    consent += f" --session {endpoint.kind.session}"
                text += (
                    f"\n  harness sweep -H {shlex.quote(endpoint.url)}{consent} --older-than-s 0 "
                    f"--delete {' '.join(left)}"
                )
        self.console.tell(text)

    def take_record(self, record: RunRecord, path: Path, trace: str = "") -> None:
        """Keep the summary of the run for `result`, with what there is to say of a trace."""
        if self.console.json:
            self._output = run_output(record, str(path))
            return
        if self.console.quiet:
            lines = [brief(record, self.console.page), f"Record: {path}", trace]
            lines = [*filter(None, lines), f"Exit code: {record.exit_code}"]
            self._summary = printable_lines("\n".join(lines))
            return
        full = self.console.full
        text = (summary if full else compact)(record, self.console.page)
        if self.rehearsal is not None:
            text += f"\n\n{self.rehearsal.text(record, full=full)}"
        folder = path.parent
        names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
        kept = path if path.name in names else "none, because it could not be written"
        report = path.with_name("report.html")
        others = [name for name in names if name not in (path.name, report.name)]
        lines = [
            f"Record: {kept}",
            *([f"Report: {report}"] if report.name in names else []),
            *([f"Other files: {', '.join(others) or 'nothing'}"] if full else []),
            *([] if full else [f"All figures: harness report --text {shlex.quote(str(folder))}"]),
            trace,
        ]
        if (replay := self._run.plan.profile.replay) is not None and path.name in names:
            recorded, replayed = shlex.quote(replay.trace), shlex.quote(str(folder))
            lines.append(f"Compare with the recording: harness compare {recorded} {replayed}")
        shown = printable_lines("\n".join(filter(None, lines)))
        self._summary = f"{text}\n\n{shown}\nExit code: {record.exit_code}"

    def result(self) -> None:
        """Show the summary, once."""
        if self._summary:
            self.console.show(self._summary)
        if self._output is not None:
            self.console.result(self._output)
        self._summary, self._output = "", None
