"""The situations that conclusions have to be right about: cause, what must be said, what must not.

Each entry of `SITUATIONS` is played by real parts in `test_situations.py`. To add one, append an
entry; a cause that is not here yet is a function from a `Stage` to what was `Played`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gevent

from harness.endpoint.azurite.process import AzuriteProcess
from harness.gateway.process import start_gateway
from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import VerdictResult
from harness.report.compare.differences import Subject
from tests.support.burners import burnt_core, burnt_cores
from tests.support.faulty_service.process import Faulty
from tests.support.locust_process import Stress
from tests.support.situation import Played, Truth, conditions, of_comparison, of_record, of_run
from tests.support.source_tree import ROOT

BUSY = {"status": 503, "code": "ServerBusy", "message": "The server is busy."}
ROWS = 100
"""Entities of the table, and so where loading ends."""
RUN = (
    *("--headless", "-u", "8", "-r", "100", "-t", "5s", "--profile", "single-partition"),
    *("--set", "load.max_entities_per_s=150", "--set", "load.emulator_max_entities_per_s=150"),
    *("--set", "load.settle_s=0", "--set", "loading.settle_s=0"),
    *("--set", f"keys.rows_per_partition={ROWS}"),
    *("--set", "retry.backoff_s=0.02", "--set", "retry.minimum_s=0.01"),
    *("--set", "session.read_timeout_s=1", "--summary", "full"),
)
"""A load that leaves the machine idle, in a window just long enough for a verdict."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a cause is made with: it starts runs, has an Azurite, and a folder of its own."""

    stress: Stress
    azurite: AzuriteProcess
    folder: Path


Cause = Callable[[Stage], Played]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation(Truth):
    """One situation.

    Attributes:
        cause: Makes the situation by real parts.
        alone: True if the machine has to have time meanwhile.
        busy: True if it keeps the machine busy itself, so that nothing else goes on meanwhile.
        idle: True if a machine that others keep busy leads to another conclusion.
    """

    name: str
    cause: Cause
    alone: bool = False
    busy: bool = False
    idle: bool = False

    @property
    def group(self) -> object:
        """Equal for situations that may go on at the same time."""
        return self.name if self.busy else self.alone


def service(*rules: dict[str, Any], options: tuple[str, ...] = conditions()) -> Cause:
    """A run against a service with faults, by `tests.support.faulty_service.rules.Rule`."""

    def play(stage: Stage) -> Played:
        faulty = Faulty(stage.azurite.endpoint.port, [rules], loading_entities=ROWS)
        with contextlib.closing(faulty):
            return of_run(stage.stress(*RUN, "-H", faulty.url, *options))

    return play


def stand_in(limits: str, *options: str) -> Cause:
    """A run at the stand-in for Azure Storage, with these limits."""

    def play(stage: Stage) -> Played:
        file = stage.folder / "limits.toml"
        file.write_text(limits, encoding="utf-8")
        return of_run(stage.stress(*RUN, "--throttling", str(file), *options))

    return play


def killed_gateway(stage: Stage) -> Played:
    """A run through a gateway that throttles a little and is killed in the middle."""
    limits = stage.folder / "limits.toml"
    limits.write_text("[faults]\nerror_503 = 0.01\n", encoding="utf-8")
    upstream = f"http://127.0.0.1:{stage.azurite.endpoint.port}"
    with start_gateway(upstream=upstream, limits=limits) as gateway:
        process = stage.stress(*RUN, "-H", gateway.url, *SHIPPED)
        process.until_said("[3/4]")
        gevent.sleep(2.5)
        os.kill(gateway.pid, signal.SIGKILL)
        return of_run(process)


def busy_machine(stage: Stage) -> Played:
    """A run whose only core is used by two other processes too."""
    with burnt_core() as core:
        low = conditions("p99(service) < 0.1ms", "p99(service) < 10s", "throttled_ratio < 1%")
        process = stage.stress(*RUN, "-H", stage.azurite.endpoint.url, *low)
        process.until_said("[3/4]")
        os.sched_setaffinity(process.pid, {core})
        return of_run(process)


def compared(fail_if: Sequence[str], *, busy: bool = False) -> Cause:
    """Two equal runs, compared; the only core of the second one may be busy."""

    def play(stage: Stage) -> Played:
        subjects = []
        for second in (False, True):
            with contextlib.ExitStack() as meanwhile:
                process = stage.stress(*RUN, "-H", stage.azurite.endpoint.url, *conditions())
                if busy and second:
                    process.until_said("[3/4]")
                    os.sched_setaffinity(process.pid, {meanwhile.enter_context(burnt_core())})
                process.wait()
            record = process.record
            if record.verdict.result == VerdictResult.CLIENT_LIMITED:
                return of_run(process)
            subjects.append(Subject(source="run", records=(record,)))
        return of_comparison(subjects, fail_if)

    return play


def watched(code: str, *, busy: bool = False, limits: str = "") -> Cause:
    """A watch of a Python program, on a busy machine or with limits."""

    def play(stage: Stage) -> Played:
        command = [sys.executable, "-m", "harness", "watch", "--out", str(stage.folder)]
        if limits:
            file = stage.folder / "limits.toml"
            file.write_text(limits, encoding="utf-8")
            command += ["--limits", str(file)]
        with contextlib.ExitStack() as meanwhile:
            if busy:
                meanwhile.enter_context(burnt_cores(os.sched_getaffinity(0)))
            ended = subprocess.run(
                [*command, "--", sys.executable, "-c", code],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
                cwd=stage.folder,
                capture_output=True,
                text=True,
                timeout=120,
            )
        (path,) = stage.folder.glob("*/run.json")
        return of_record(RunRecord.from_json(path.read_bytes()), ended.returncode, ended.stderr)

    return play


IDLE_BETWEEN_INSERTS = """
import os, time
from azure.data.tables import TableServiceClient
text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
table = TableServiceClient.from_connection_string(text).create_table("orders")
for number in range(200):
    table.create_entity({"PartitionKey": f"p{number % 5}", "RowKey": str(number)})
    time.sleep(0.02)
"""
SCANS = """
import os, time
from azure.data.tables import TableServiceClient
text = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
table = TableServiceClient.from_connection_string(text).create_table("orders")
for number in range(200):
    table.upsert_entity({"PartitionKey": f"p{number % 4}", "RowKey": str(number)})
for _ in range(16):
    list(table.query_entities("Value eq 'none'"))
"""
SHIPPED = conditions("throttled_ratio < 1%")
REGRESSED = ("entities_per_s < 95%", "throttled_ratio > first + 1%")
ERROR = {"status": 500, "code": "InternalError", "message": "Sorry."}
FORBIDDEN = {"status": 403, "code": "AuthorizationFailure", "message": "Not any more."}
A_LITTLE = {**BUSY, "every": 50, "at_most": 2}
FAILS = "The endpoint, or the way to it, fails"
DEAD = ("Within target", "Throttled", "PartitionKey", "holds")
"""What nobody may say of an endpoint that died."""

SITUATIONS = [
    Situation(
        name="a server throttles the scans of a table, whose partitions have time",
        cause=stand_in(
            "[servers]\ncount = 1\nentities_per_s = 400.0\n",
            *("--profile", "query-types", "-t", "8s", "--set", "keys.rows_per_partition=20"),
            *("--set", "load.max_entities_per_s=2000"),
            *("--set", "load.emulator_max_entities_per_s=2000"),
            *SHIPPED,
        ),
        sentence=("by the limit of a server: 400 entities/s",),
        first_screen=("A server was throttled: its limit is 400 entities/s", "by a server's limit"),
        never=("was throttled: its limit is 2,000", "finer PartitionKey", "Within target"),
        conditions=(False,),
        exit_code=1,
    ),
    Situation(
        name="a partition throttles at its own limit",
        cause=stand_in("[partition]\nentities_per_s = 100.0\nburst_s = 0.2\n", *SHIPPED),
        sentence=("Throttled", "for partition 'p0'"),
        first_screen=("Partition 'p0' was throttled: its limit is 100", "finer PartitionKey"),
        never=("server's limit", "Within target"),
        conditions=(False,),
        exit_code=1,
    ),
    Situation(
        name="one row takes all of a partition that throttles at its own limit",
        cause=stand_in(
            "[partition]\nentities_per_s = 60.0\nburst_s = 0.2\n",
            *("--set", "keys.rows_per_partition=1", "--set", "mix.transaction=0"),
            *SHIPPED,
        ),
        sentence=("Throttled", "for partition 'p0'"),
        first_screen=("Split the row", "of the entities counted for partition 'p0' are of one row"),
        never=("Use a finer PartitionKey", "Collect related writes", "Within target"),
        conditions=(False,),
        exit_code=1,
    ),
    Situation(
        name="retries hide a twelfth of the attempts, which were answered 500",
        cause=service({**ERROR, "every": 12}, options=SHIPPED),
        sentence=("Failing", "500 InternalError", "(8.", "retries hid all", FAILS),
        first_screen=(FAILS, "of the attempts failed (500 InternalError)", "NOT DECIDED"),
        never=("Within target",),
        conditions=(None,),
        exit_code=3,
    ),
    Situation(
        name="a sixth of the connections is reset",
        cause=service(
            {"how": "reset", "every": 6},
            options=conditions("failed_attempts_ratio(kind='connection_reset') < 1%"),
        ),
        sentence=("Failing", "connection_reset", FAILS),
        first_screen=(FAILS, "of the attempts failed (connection_reset)"),
        never=("Within target",),
        conditions=(False,),
        exit_code=1,
    ),
    Situation(
        name="no request is ever answered",
        cause=service({"how": "hang", "timeout_s": 1.0}, options=SHIPPED),
        sentence=("Failing", "read_timeout", "failed for good (100%)", FAILS),
        first_screen=("100% of the attempts failed (read_timeout)",),
        never=(*DEAD, "Inconclusive", "earlier rate"),
        conditions=(None,),
        exit_code=3,
    ),
    Situation(
        name="one attempt in 200 is answered 500",
        cause=service({**ERROR, "every": 200}, options=SHIPPED),
        sentence=("Within target", "500 InternalError", "retries hid all"),
        first_screen=("of the attempts failed (500 InternalError)",),
        never=("fails",),
        conditions=(True,),
        alone=True,
    ),
    Situation(
        name="a few failures keep most users in back-off",
        cause=service(
            {**ERROR, "every": 130},
            options=(
                *(*SHIPPED, "-u", "2", "-t", "15s", "--set", "retry.backoff_s=6"),
                *("--set", "load.max_entities_per_s=500"),
                *("--set", "load.emulator_max_entities_per_s=500"),
            ),
        ),
        sentence=("Client-limited", "in back-off before a retry", "500 InternalError"),
        first_screen=("too few users", "of the attempts failed (500 InternalError)"),
        never=("was reached beside them", "fails"),
        conditions=(True,),
        exit_code=3,
        alone=True,
    ),
    Situation(
        name="two inserts of five find their row there",
        cause=service(
            {"status": 409, "code": "EntityAlreadyExists", "kinds": ["insert"], "chance": 0.4},
            options=(*SHIPPED, "--set", "mix.insert=10", "--set", "mix.upsert_merge=0"),
        ),
        sentence=("Within target", "nothing was throttled"),
        first_screen=("ended with 409 (conflict)",),
        never=("failed", "fails"),
        conditions=(True,),
    ),
    Situation(
        name="operations give up because they are throttled every time",
        cause=service({**BUSY, "every": 4}, options=(*SHIPPED, "--set", "retry.retries=1")),
        sentence=("Throttled",),
        first_screen=("failed for good because they were throttled every time",),
        never=("Within target", "endpoint, or the way to it"),
        conditions=(False,),
        exit_code=1,
    ),
    Situation(
        name="most users are in back-off before a retry",
        cause=service(
            {**BUSY, "every": 3},
            options=(*SHIPPED, "-u", "12", "--set", "retry.backoff_s=0.4"),
        ),
        sentence=("Throttled",),
        first_screen=("in back-off before a retry",),
        never=("Within target", "more users"),
        conditions=(False,),
        exit_code=1,
    ),
    Situation(
        name="an endpoint throttles a little, then refuses every request",
        cause=service(A_LITTLE, {**FORBIDDEN, "after_s": 2.0}, options=SHIPPED),
        sentence=("Failing", "403 AuthorizationFailure", "The endpoint refuses requests"),
        never=DEAD,
        conditions=(None,),
        exit_code=3,
    ),
    Situation(
        name="a gateway that throttles a little is killed",
        cause=killed_gateway,
        sentence=("Failing", "connection_refused", FAILS),
        first_screen=(FAILS,),
        never=DEAD,
        conditions=(None,),
        exit_code=3,
    ),
    Situation(
        name="other processes keep the machine busy",
        cause=busy_machine,
        sentence=("Within target",),
        first_screen=(
            *("NOT DECIDED", "p99(service) < 0.1ms", "Latencies are only upper bounds"),
            *("the machine was saturated in", "mostly by other processes"),
        ),
        never=("FAIL",),
        conditions=(None, True, True),
        exit_code=3,
        alone=True,
        busy=True,
    ),
    Situation(
        name="the endpoint stops for 0.8 s of every second, and holds the rate",
        cause=service(
            {"stall_s": 0.8},
            options=(*SHIPPED, "-u", "30", "--set", "load.entities_per_s=60"),
        ),
        sentence=("Within target",),
        first_screen=("The endpoint did not answer", "times, for up to 0.8 s"),
        never=("failed",),
        conditions=(True,),
        alone=True,
        idle=True,
    ),
    Situation(
        name="two equal runs are compared",
        cause=compared(fail_if=REGRESSED),
        sentence=("No difference that the scatter of these runs does not explain.",),
        first_screen=("No difference: entities/s",),
        never=("entities/s is better", "throttled: "),
        conditions=(True, True),
    ),
    Situation(
        name="two equal runs are compared, one of them beside busy processes",
        cause=compared(fail_if=("entities_per_s < 95%", "p99(service) > 120%"), busy=True),
        sentence=("No difference", "because in ", " the machine was saturated in"),
        first_screen=("Shown, not judged: p50 of service latency, p99 of service latency",),
        never=(" is better",),
        conditions=(True, None),
        exit_code=3,
        alone=True,
        busy=True,
    ),
    Situation(
        name="a watched application scans its table, and a server throttles it",
        cause=watched(SCANS, limits="[servers]\ncount = 1\nentities_per_s = 300.0\n"),
        sentence=("Throttled", "all of them by the limit of a server: 300 entities/s"),
        first_screen=("A server was throttled: its limit is 300 entities/s",),
        never=("asked for no more", "its limit is 2,000", "Within target"),
    ),
    Situation(
        name="a watched application sleeps, beside busy processes",
        cause=watched(IDLE_BETWEEN_INSERTS, busy=True),
        sentence=("Within target: in the best ", "nothing was throttled"),
        first_screen=("Latencies are only upper bounds: the machine was",),
        never=("was the limit",),
        alone=True,
        busy=True,
    ),
]
