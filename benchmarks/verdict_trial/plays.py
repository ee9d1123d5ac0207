"""Plays of situations by real parts: a run, a watch, a comparison.

The service stores in memory what it is sent and follows rules of its own
(`tests.support.faulty_service`); HAProxy throttles; signals stop and kill processes; hosts are
network namespaces. None of these asks the harness's model of the limits.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.verdict_trial.haproxy import throttled_by_haproxy
from harness.measure.record.record import RunRecord
from harness.report.compare.differences import Subject
from tests.support.burners import burnt_cores
from tests.support.certificates import certificate
from tests.support.faulty_service.process import Faulty
from tests.support.locust_process import LocustProcess, Stress, forked
from tests.support.network.hosts import Host, hosts
from tests.support.situation import Played, of_comparison, of_record, of_run
from tests.support.source_tree import ROOT

Rule = dict[str, Any]
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
SIGNALS = {"stop": signal.SIGSTOP, "continue": signal.SIGCONT, "kill": signal.SIGKILL}
ACCOUNT = "trial"
"""Of hosts of their own: no name that tells that they are no storage account."""
_PATIENCE_S = 150.0


class Cannot(Exception):
    """This machine lacks a part; the text says which."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a situation is played: who starts processes, and a folder for this situation."""

    stress: Stress
    folder: Path


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One account: a service with rules, see `tests.support.faulty_service.rules.Rule`.

    Attributes:
        haproxy: Arguments of `throttled_by_haproxy`, which is then in front of it.
    """

    rules: tuple[Rule, ...] = ()
    haproxy: Mapping[str, Any] = dataclasses.field(default_factory=dict)


Change = tuple[float, str, str]
"""So many seconds after the load began: what (``service``, ``run``, ``worker``, ``link`` or
``clock``), and what happens to it (of `SIGNALS`; a link is pulled or plugged; a clock is set)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of the harness.

    Attributes:
        options: Options of the command line.
        settings: Settings of the profile, ``name=value`` with blanks between.
        rows: Entities that loading writes, in all partitions.
        services: The accounts.
        azure: Whether they are hosts of their own with TLS, which the harness cannot tell from a
            storage account; else they are on loopback, as an emulator is.
        delay_ms: How long a packet is underway, each way, of hosts of their own.
        loss_percent: How many packets are lost.
        workers: Processes besides the master; 0 is one process that does both.
        burnt: Cores that other processes use up.
        pinned: Whether the run has only such a core.
        changes: What happens under load.
        disk_bytes: Room that the results have; 0 is enough.
    """

    profile: str = "single-partition"
    options: str = "-u 8 -t 7s"
    settings: str = ""
    rows: int = 100
    services: tuple[Service, ...] = (Service(),)
    azure: bool = False
    delay_ms: float = 0.0
    loss_percent: float = 0.0
    workers: int = 0
    burnt: int = 0
    pinned: bool = False
    changes: tuple[Change, ...] = ()
    disk_bytes: int = 0

    @property
    def busies(self) -> bool:
        """Whether it keeps the machine busy itself."""
        return self.burnt > 0

    def __call__(self, stage: Stage) -> Played:
        return self.played(stage)[0]

    def played(self, stage: Stage) -> tuple[Played, LocustProcess]:
        """What it concluded, and the process, which has ended."""
        with contextlib.ExitStack() as stack:
            scene = _Scene(self, stage, stack)
            process = scene.started()
            process.until_said("[3/4]", _PATIENCE_S)
            began_s = time.monotonic()
            if self.burnt:
                cores = sorted(os.sched_getaffinity(0))[: self.burnt]
                stack.enter_context(burnt_cores(cores))
                if self.pinned:
                    os.sched_setaffinity(process.pid, set(cores))
            for after_s, who, what in self.changes:
                time.sleep(max(0.0, began_s + after_s - time.monotonic()))
                scene.change(who, what)
            process.wait(_PATIENCE_S)
            if not process.records:
                return _of_console(process), process
            return of_run(process), process


class _Scene:
    """The parts of a run; all end with the stack."""

    def __init__(self, run: Run, stage: Stage, stack: contextlib.ExitStack) -> None:
        self._run, self._stage, self._stack = run, stage, stack
        self._lead: Host | None = None
        self._table: Host | None = None
        self._process: LocustProcess | None = None
        self._environ: dict[str, str] = {}
        self._clock = stage.folder / "clock"
        if run.azure:
            names = ("azure", "lead") if run.delay_ms or run.loss_percent else ("azure",)
            made = stack.enter_context(
                hosts(*names, delay_ms=run.delay_ms, loss_percent=run.loss_percent)
            )
            self._table, self._lead = made[0], made[-1]
        self._services = [self._serve(service) for service in run.services]

    def _serve(self, service: Service) -> tuple[Faulty, str]:
        files = None
        if self._table is not None:
            authority, *pair = certificate(self._stage.folder, self._table.address)
            files = (pair[0], pair[1])
            self._environ = {
                "SSL_CERT_FILE": str(authority),
                "AZURE_STORAGE_ACCOUNT": ACCOUNT,
                "AZURE_STORAGE_KEY": base64.b64encode(b"key").decode(),
            }
        faulty = Faulty(
            None,
            [list(service.rules)],
            loading_entities=self._run.rows // len(self._run.services),
            certificate=files,
            host=self._table,
        )
        self._stack.callback(faulty.kill)
        url = faulty.url
        if service.haproxy:
            folder = self._stage.folder
            throttle = throttled_by_haproxy(folder, faulty.port, **service.haproxy)
            url = self._stack.enter_context(throttle)
        return faulty, url

    def started(self) -> LocustProcess:
        """The run, started."""
        run, environ, python = self._run, dict(self._environ), None
        arguments = ["--headless", "--profile", run.profile, "-r", "100", *_ALWAYS]
        if "--session" not in run.options:
            # The one that costs least, so that a small machine has time.
            arguments += ["--session", "wire"]
        arguments += shlex.split(run.options)
        for setting in shlex.split(run.settings):
            arguments += ["--set", setting]
        for number, (_, url) in enumerate(self._services):
            arguments += ["-H", url if not number else f"{url}/devstoreaccount1"]
        if run.azure:
            arguments += ["--remote-ok", ACCOUNT]
        if run.workers:
            arguments += forked(run.workers)
        if any(who == "clock" for _, who, _ in run.changes):
            if not Path(FAKETIME).exists():
                raise Cannot("no libfaketime: run make test-deps")
            self.change("clock", "+0")
            python = sys.executable
            environ |= {
                "LD_PRELOAD": FAKETIME,
                "FAKETIME_TIMESTAMP_FILE": str(self._clock),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        if run.disk_bytes:
            disk = self._stage.folder / "disk"
            disk.mkdir()
            size = f"size={run.disk_bytes}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk], check=True)
            unmount = ["umount", "--lazy", str(disk)]
            self._stack.callback(lambda: subprocess.run(unmount, check=False))
            arguments += ["--out", str(disk)]
        self._process = self._stage.stress(
            *arguments, environ=environ, host=self._lead, python=python
        )
        return self._process

    def change(self, who: str, what: str) -> None:
        """Let something happen."""
        if who == "clock":
            self._clock.write_text(f"{what}\n", encoding="utf-8")
        elif who == "link":
            assert self._lead is not None
            self._lead.unplug() if what == "pull" else self._lead.plug_in()
        else:
            for pid in self._pids(who):
                os.kill(pid, SIGNALS[what])

    def _pids(self, who: str) -> list[int]:
        assert self._process is not None
        if who == "service":
            # What leads into a namespace becomes the service.
            return [self._services[-1][0].pid]
        if who == "run":
            return [self._process.pid]
        return [min(child.pid for child in self._process.children())]


_ALWAYS = (
    *("--set", "load.settle_s=0", "--set", "loading.settle_s=0", "--set", "conditions=[]"),
    *("--set", "retry.backoff_s=0.05", "--set", "retry.minimum_s=0.02", "--summary", "full"),
)


def _of_console(process: LocustProcess) -> Played:
    """What the console of a run without a record said."""
    verdict = re.sub(r"[│╭╮╰╯─\s]+", " ", process.stdout.rpartition("VERDICT: ")[2])
    verdict = verdict.partition(" Record: ")[0]
    return Played(
        sentence=verdict.partition(" why - ")[0],
        first_screen=verdict + re.sub(r"\s+", " ", process.stderr),
        conditions=(),
        exit_code=process.process.poll() or 0,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A watch of a small program.

    Attributes:
        between: What the program does after each write: a statement of Python.
        keys: How many PartitionKeys it writes to.
        seconds: How long it writes.
    """

    between: str = "time.sleep(0.02)"
    keys: int = 4
    seconds: float = 7.0
    service: Service = Service()
    burnt: int = 0

    @property
    def busies(self) -> bool:
        """Whether it keeps the machine busy itself."""
        return self.burnt > 0 or "sleep" not in self.between

    def __call__(self, stage: Stage) -> Played:
        program = _PROGRAM.format(seconds=self.seconds, keys=self.keys, between=self.between)
        with contextlib.ExitStack() as stack:
            faulty = Faulty(None, [list(self.service.rules)], loading_entities=0)
            stack.callback(faulty.kill)
            if self.burnt:
                stack.enter_context(burnt_cores(sorted(os.sched_getaffinity(0))[: self.burnt]))
            ended = subprocess.run(
                [
                    *(sys.executable, "-m", "harness", "watch", "--upstream", faulty.url),
                    *("--out", str(stage.folder / "out"), "--", sys.executable, "-c", program),
                ],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
                cwd=stage.folder,
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                check=False,
            )
        found = sorted((stage.folder / "out").rglob("run.json"))
        if not found:
            raise RuntimeError(ended.stdout + ended.stderr)
        record = RunRecord.from_json(found[-1].read_bytes())
        return of_record(record, ended.returncode, f"{ended.stdout} {ended.stderr}")


_PROGRAM = """
import os, time
from azure.data.tables import TableServiceClient
service = TableServiceClient.from_connection_string(
    os.environ["AZURE_STORAGE_CONNECTION_STRING"], retry_backoff_factor=0.05
)
table = service.create_table_if_not_exists("orders")
end, number = time.monotonic() + {seconds}, 0
while time.monotonic() < end:
    keys = {{"PartitionKey": f"p{{number % {keys}}}", "RowKey": f"{{number:06d}}"}}
    try:
        table.upsert_entity({{**keys, "Value": "x" * 900}})
    except Exception as error:
        print(type(error).__name__)
    number += 1
    {between}
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Runs, and their comparison."""

    runs: tuple[Run, ...]
    fail_if: Sequence[str] = ("entities_per_s < 95%", "throttled_ratio > first + 1%")

    @property
    def busies(self) -> bool:
        """Whether a run keeps the machine busy."""
        return any(run.busies for run in self.runs)

    def __call__(self, stage: Stage) -> Played:
        subjects, busy = [], None
        for letter, run in zip("ABC", self.runs, strict=False):
            folder = stage.folder / letter
            folder.mkdir()
            played, process = run.played(dataclasses.replace(stage, folder=folder))
            subjects.append(Subject(source=letter, records=(process.record,)))
            busy = busy or played.busy
        return dataclasses.replace(of_comparison(subjects, self.fail_if), busy=busy)


Play = Run | Watch | Comparison
