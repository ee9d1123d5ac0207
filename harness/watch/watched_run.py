"""One watch: its options, and its state: its counts, its end, and its record.

`Circumstances` know why no request about entities reached the gateway, as far as a watch can.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from harness.measure.counts.behaviour import Behaviour
from harness.measure.counts.generator import CpuSample, GeneratorLog
from harness.measure.counts.ledger import Ledger
from harness.measure.counts.redaction import Aliases
from harness.measure.counts.snapshot import Snapshot
from harness.measure.record.enforced import EnforcedPart
from harness.measure.record.origin import WatchedPart
from harness.measure.record.record import EndpointPart, EntityPart, RunRecord
from harness.measure.record.record_builder import (
    Unfinished,
    assembled,
    broken_invariants,
    bytes_of_entity,
)
from harness.measure.verdict.conditions import Condition
from harness.measure.verdict.evidence import Evidence, untargeted_in
from harness.measure.verdict.verdict import judge
from harness.model.figures import counted
from harness.model.partition import is_beside
from harness.model.process import Clock
from harness.model.services import USUAL
from harness.model.services.service import Service
from harness.model.target import UNKNOWN_THROUGHPUT, Throughput
from harness.profile.practices.checklist import with_advice
from harness.report.export.run_folder import this_machine
from harness.trace.recorder import Recorder
from harness.trace.writer import TraceWriter
from harness.watch.books import Drained, Joining, WatchTally
from harness.watch.metering import MeteringReport

EMULATOR_PORT = USUAL.port
EMULATOR = f"127.0.0.1:{EMULATOR_PORT}"
"""Where applications with ``UseDevelopmentStorage=true`` look for an emulator."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known of a command and of the gateway that it should use.

    Attributes:
        failed: How the command failed: ``exit code 1``; empty if it did not.
        at_emulator: The gateway listens at `EMULATOR`.
        to_emulator: The command was connected to `EMULATOR`, where the gateway does not listen.
        proxy: The gateway intercepts the hosts of the account's endpoints.
        removed: Variables that the command did not get, because they lead elsewhere.
    """

    failed: str = ""
    at_emulator: bool = False
    to_emulator: bool = False
    tls: bool = False
    proxy: bool = False
    removed: Sequence[str] = ()

    def cause(self, unreadable: int) -> str:
        """The possible causes and the options that help; ``unreadable`` requests were no HTTP."""
        seen = []
        if self.failed:
            seen.append(f"The command failed ({self.failed}): see its own output")
        if self.to_emulator:
            seen.append(
                f"The command was connected to {EMULATOR}, where UseDevelopmentStorage=true leads, "
                f"past the gateway: use --listen {EMULATOR}"
            )
        if unreadable and not self.tls:
            seen.append(
                f"{counted(unreadable, 'request')} could not be read as http, as those of an SDK "
                "that speaks https: use --tls"
            )
        if self.removed and not self.proxy:
            seen.append(
                f"The command did not get {', '.join(self.removed)}: for an application that makes "
                "the host of account and key, use --proxy"
            )
        if len(seen) > bool(self.failed):
            return ". ".join(seen)
        used = {
            "--listen": self.at_emulator,
            "--tls": self.tls or self.proxy,
            "--proxy": self.proxy,
            "trust": not (self.tls or self.proxy),
            "ignored": not self.proxy,
        }
        possible = [text for option, text in _POSSIBLE.items() if not used.get(option)]
        lead = "Other causes may be" if seen else "Possible causes"
        return ". ".join([*seen, f"{lead}: {', '.join(possible)}"])


_POSSIBLE = {
    "--listen": f"UseDevelopmentStorage=true or {EMULATOR} in the application "
    f"(--listen {EMULATOR})",
    "--tls": "an SDK that refuses http (--tls)",
    "--proxy": "an account and key of which the SDK makes the host (--proxy)",
    "--env": "a connection string in another variable than AZURE_STORAGE_CONNECTION_STRING "
    "(--env NAME)",
    "trust": "an application that does not trust the gateway's certificate",
    "ignored": "an application that ignores HTTPS_PROXY and HTTP_PROXY",
    "none": "an application that sends none",
}


_PACKAGES = ("datasketches", "hdrhistogram", "httptools")
"""Packages whose version can change the results."""
SESSION = "application"
"""In place of the kind of a session: the application's own SDK sends."""


class WatchEnd(enum.Enum):
    """What ended a watch, as records and pages name it."""

    COMMAND = "the end of the command"
    DURATION = "--duration"
    BUDGET = "budget of billable transactions"
    CTRL_C = "Ctrl-C"
    SIGTERM = "SIGTERM"
    SIGHUP = "SIGHUP"
    ENDPOINT = "the end of the embedded Azurite"
    GATEWAY = "the loss of a gateway process"

    @property
    def regular(self) -> bool:
        """False if a part of the watch was lost."""
        return self not in (WatchEnd.ENDPOINT, WatchEnd.GATEWAY)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WatchPlan:
    """What a watch was asked for.

    Attributes:
        command: The program; empty without one.
        kind: The kind of the endpoint, as the application sees it, and how it is ``described``.
        budget: Most billable transactions; None is unlimited.
        throughput: What is known to be provisioned at Cosmos DB.
    """

    run_id: str
    name: str
    command: str
    kind: Service
    described: str
    host: str
    processes: int = 1
    warm_up_s: float = 0.0
    budget: int | None = None
    conditions: tuple[Condition, ...] = ()
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    throughput: Throughput = UNKNOWN_THROUGHPUT


class WatchedRun:
    """The counts of all metering processes, and what else the record of a watch needs.

    Times are UTC seconds, by the clock of all processes. The watch starts now. The live page reads
    in a thread of its own: `lock` guards all counts.
    """

    def __init__(
        self,
        plan: WatchPlan,
        clock: Clock,
        aliases: Aliases | None,
        trace: TraceWriter | None = None,
    ) -> None:
        self.plan = plan
        self.clock = clock
        self.started_s = clock()
        self.aliases = aliases
        self.lock = threading.Lock()
        self.ledger, self._targeted = Ledger("watch"), Ledger("watch")
        self.tally = WatchTally()
        self.behaviour = Behaviour()
        self.trace = trace
        self._joining = Joining(None if trace is None else Recorder())
        self._joining.books.open_window(self.window_s)
        self.application = GeneratorLog()
        self.gateway = GeneratorLog()
        self.enforced: EnforcedPart | None = None
        self.ended_by: WatchEnd | None = None
        self.command_ended = ""
        self.circumstances = Circumstances()
        self._states: dict[str, MeteringReport] = {}
        self._final: set[str] = set()

    def take_report(self, process: str, report: MeteringReport) -> None:
        """Merge what a metering process counted since its last report."""
        with self.lock:
            self._merge(report.counted)
            self._states[process] = report
            if report.final:
                self._final.add(process)
            if self.plan.processes > 1:
                books = self._joining.books
                books.latest_s = max(books.latest_s, report.latest_s)
                self._joining.take(process, report.handed, report.until_s)
                self._joining.join(self.plan.processes)
                self._merge(books.drain())
            self._record_blocks(report.trace, report.until_s)

    def _record_blocks(self, blocks: Sequence[bytes], now_s: float, *, final: bool = False) -> None:
        recorder = self._joining.books.recorder
        if self.trace is not None and recorder is not None:
            self.trace.append([*blocks, *recorder.drain(now_s, final=final)])

    def end_trace(self) -> str:
        """End the trace, after the last report; return what there is to say, or an empty text."""
        if self.trace is None:
            return ""
        self._record_blocks((), self.clock(), final=True)
        beside = self.tally.beside
        notes = [f"{counted(beside, 'operation')} beside tables left out"]
        self.trace.close(
            counted=self.ledger.counts.operations - beside, notes=notes if beside else ()
        )
        return self.trace.sentence

    def _merge(self, drained: Drained) -> None:
        for delta in (drained.delta, drained.untargeted):
            self.ledger.merge(delta)
        self._targeted.merge(drained.delta)
        self.tally.merge(drained.tally)
        self.behaviour.merge(drained.behaviour)

    def know(self, **more: Any) -> None:
        """Keep more of the `Circumstances`."""
        self.circumstances = dataclasses.replace(self.circumstances, **more)

    @property
    def cause(self) -> str:
        """Why no request about entities arrived, in sentences; empty if one did."""
        tally = self.tally
        if tally.requests > tally.others:
            return ""
        return self.circumstances.cause(tally.unreadable)

    @property
    def window_s(self) -> float:
        """When latencies begin to count; 0 without a warm-up."""
        return self.started_s + self.plan.warm_up_s if self.plan.warm_up_s else 0.0

    def take_samples(self, application: CpuSample | None, gateway: Mapping[str, CpuSample]) -> None:
        """Keep the CPU of the last second."""
        with self.lock:
            if application is not None:
                self.application.add(SESSION, application)
            for process, sample in gateway.items():
                self.gateway.add(process, sample)

    @property
    def in_flight(self) -> int:
        """Operations that may be sent again, or had no answer when the application ended."""
        reported = sum(report.in_flight for report in self._states.values())
        return reported + len(self._joining.books.pending)

    def shown(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot as outputs show it: with aliases if there are any."""
        return snapshot if self.aliases is None else self.aliases.snapshot(snapshot)

    def kind_of(self, snapshot: Snapshot) -> Service:
        """The endpoint, in the words and with the targets of what the application used of it."""
        only = snapshot.alone
        return self.plan.kind if only is None else only.alone_at(self.plan.kind)

    def snapshots(self, until_s: float) -> tuple[Snapshot, Snapshot]:
        """All counts, and those that targets are for.

        Rates are from the first operation after the warm-up to the last one.
        """
        counted = self.ledger.snapshot(start=0, end=0, latencies=True).series
        begin = int(self.started_s + self.plan.warm_up_s)
        busy = [
            point.second
            for point in counted
            if begin <= point.second < until_s and (point.operations or point.attempts)
        ]
        start, end = (busy[0], busy[-1] + 1) if busy else (begin, begin)
        whole, targeted = (
            self.shown(ledger.snapshot(start=start, end=end, latencies=True))
            for ledger in (self.ledger, self._targeted)
        )
        return whole, targeted

    def record(self, now_s: float, *, over: bool) -> RunRecord:
        """Judge the watch by its counts at ``now_s``, its end or now."""
        with self.lock:
            if over:
                self._joining.finish()
                self._merge(self._joining.books.drain(ended=True))
            return self._record(now_s, over=over)

    def _record(self, now_s: float, *, over: bool) -> RunRecord:
        plan = self.plan
        snapshot, targeted = self.snapshots(math.inf if over else int(now_s) - 1)
        kind, only = self.kind_of(snapshot), snapshot.alone
        application = self.application.view(snapshot.start, snapshot.end)
        all_reported = len(self._final) == plan.processes or not over
        ended_by = "" if self.ended_by is None else self.ended_by.value
        regular = self.ended_by is None or self.ended_by.regular
        untargeted = untargeted_in(snapshot, targeted)
        evidence = Evidence(
            snapshot=snapshot if untargeted.alone else targeted,
            untargeted=untargeted,
            generator=application,
            kind=kind,
            targets=kind.targets,
            wanted_per_s=None,
            users=0,
            entity_bytes=0,
            all_reported=all_reported,
            cut_short_by="" if regular else ended_by,
            watched=self._watched_part(snapshot),
            throughput=plan.throughput,
            enforced=self.enforced if kind.documented else None,
        )
        verdict = judge(evidence)
        facts = evidence.facts()
        conditions = tuple(condition.evaluate(snapshot, facts) for condition in plan.conditions)
        attempts = sum(one.attempts_in_flight for one in self._states.values())
        attempts += self._joining.books.attempts_in_flight
        unfinished = Unfinished(in_flight=self.in_flight, attempts_in_flight=attempts)
        named = {part.partition.table for part in snapshot.partitions}
        tables = [table for table in sorted(named) if table and not is_beside(table)]
        # Without conditions, a watch that is too short has not failed.
        enough = evidence.shortcoming is None or not conditions
        record = assembled(
            dataclasses.replace(evidence, snapshot=snapshot),
            verdict,
            conditions,
            span_s=(self.started_s, now_s),
            enough=enough and all_reported and regular,
            unfinished=unfinished,
            billable_transactions=self.tally.passed,
            run_id=plan.run_id,
            profile={
                "name": plan.name,
                "watch": dict(plan.settings),
                "conditions": [condition.text for condition in plan.conditions],
            },
            endpoint=EndpointPart(
                kind=str(kind),
                described=plan.described,
                host=plan.host,
                table=", ".join(tables),
                alone="" if only is None else only.beside,
            ),
            session=SESSION,
            ended_by=ended_by,
            workers=plan.processes,
            invariants=broken_invariants(snapshot, unfinished) if over and all_reported else (),
            redacted=self.aliases is not None,
            enforced=evidence.enforced,
            machine=this_machine(_PACKAGES),
            entity=EntityPart(stored_bytes=0, wire_bytes=bytes_of_entity(targeted)),
            behaviour=self.behaviour.part(),
        )
        return with_advice(record)

    def _watched_part(self, snapshot: Snapshot) -> WatchedPart:
        tally, gateway = self.tally, self.gateway.view(snapshot.start, snapshot.end)
        return WatchedPart(
            command=self.plan.command,
            ended=self.command_ended,
            requests=tally.requests,
            passed=tally.passed,
            others=tally.others,
            over_budget=tally.over_budget,
            unjoined=tally.unjoined,
            cause=self.cause,
            succeeded_after=dict(sorted(tally.succeeded_after.items())),
            clients=tally.client_parts,
            gateway_cpu_percent=gateway.cpu_percent_mean,
            gateway_busy_share=gateway.busy_share,
        )


def gateway_sample(process: psutil.Process, second: int) -> CpuSample | None:
    """The CPU of a metering process since the last call; None once it is gone."""
    try:
        percent = process.cpu_percent()
    except psutil.Error:
        return None
    return CpuSample(second=second, cpu_percent=percent, machine_percent=0.0, lag_s=0.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """The options of a watch.

    Attributes:
        upstream: Scheme, host and port of the endpoint; None starts an Azurite.
        account: The account that the host of the upstream names; may be empty.
        remote: Whether the upstream is not on this machine.
        command: Program and arguments; empty waits for Ctrl-C.
        proxy: Whether the gateway is the command's proxy, which intercepts table endpoints.
        env: More variables that get the connection string.
        keep_env: Variables that reach the command as they are.
        wait_for_children: Whether the command ends when all that it started has ended.
        duration_s: When the watch ends at the latest.
        out: Folder of all runs.
        page: Host and port of the live page; port -1 serves none.
        metrics: Host and port of the metrics page; port 0 serves none.
        push: URL of a Pushgateway.
        otlp: URL of an OpenTelemetry receiver.
        aliases: Replace the keys in all outputs.
        trace: The new folder of the trace, which has the values of ``trace_properties``.
        as_json: Standard output is left to one object: the command's goes to standard error.
    """

    plan: WatchPlan
    upstream: str | None
    account: str
    remote: bool
    command: Sequence[str]
    listen: tuple[str, int]
    limits: Path
    tls: bool
    proxy: bool
    env: Sequence[str]
    keep_env: Sequence[str]
    wait_for_children: bool
    duration_s: float | None
    out: str
    page: tuple[str, int]
    metrics: tuple[str, int]
    push: str | None
    otlp: str | None
    aliases: Aliases | None
    trace: Path | None = None
    trace_properties: tuple[str, ...] = ()
    as_json: bool = False
