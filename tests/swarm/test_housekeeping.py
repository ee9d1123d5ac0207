"""Endpoints that hold up what is done around a load: Ctrl-C ends it, and nothing is hidden."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import gevent
import gevent.event
import gevent.pool
import pytest
from azure.data.tables import TableServiceClient

from harness.endpoint.accounts import Accounts
from harness.endpoint.endpoint import Endpoint, emulator_endpoint
from harness.endpoint.sessions import open_sessions
from harness.model.operation import Kind, Operation
from harness.model.process import steady_clock
from harness.profile.profile_loader import resolve
from harness.swarm.master.master_run import MasterRun
from harness.swarm.master.run_tables import LoadingFailed, load_table
from harness.swarm.plan import new_plan
from tests.support.http_pages import page
from tests.support.locust_process import QUICK, ROOT, WEB, LocustProcess, Stress, wait_until
from tests.support.ports import free_port
from tests.support.proxy import RESET, Proxy, Seen, refusal
from tests.support.sdk import named_key, table_names

pytestmark = [pytest.mark.azurite, pytest.mark.session]

HELD_S = 100.0
"""An endpoint holds a request for so long: longer than anything here is waited for."""
GIVEN = "heldtable"

ENDLESS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json;odata=minimalmetadata\r\n"
    b"x-ms-continuation-NextPartitionKey: p%d\r\nx-ms-continuation-NextRowKey: r\r\n"
    b'Content-Length: 12\r\n\r\n{"value":[]}'
)

ENDED = {
    # Which step is held up: (what ended the run, exit code)
    "creating": ("Ctrl-C", 3),
    "loading": ("Ctrl-C", 3),
    "deleting": ("run time", 0),
    "loading refused": ("a failed loading", 3),
}


def service_at(endpoint: Endpoint) -> TableServiceClient:
    credential = named_key(endpoint)
    return TableServiceClient(endpoint.url, credential=credential)


def sweep(command: str) -> subprocess.CompletedProcess[str]:
    """Run the command that a run has told."""
    words = shlex.split(command)
    assert words[0] == "harness"
    kept = {name: text for name, text in os.environ.items() if not name.startswith("AZURE_")}
    return subprocess.run(
        [sys.executable, "-m", "harness", *words[1:]],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


class HeldUp:
    """What is started before which endpoint, and how it is ended."""

    def __init__(self, stress: Stress, endpoint: Endpoint, proxy_to: Callable[..., Proxy]) -> None:
        self._stress = stress
        self._endpoint = endpoint
        self._proxy_to = proxy_to
        self.done: dict[str, LocustProcess] = {}
        self.left_within_s: dict[str, float] = {}
        self.form_said: dict[str, Any] = {}
        self.released = gevent.event.Event()

    def run(self, name: str) -> None:
        process = self.done[name] = getattr(self, name.replace(" ", "_"))()
        last_s = time.monotonic()
        process.wait()
        self.left_within_s[name] = time.monotonic() - last_s

    def _started(self, *arguments: str, **said: Any) -> LocustProcess:
        return self._stress(*QUICK, *arguments, "-H", self._proxy_to(**said).url)

    def creating(self) -> LocustProcess:
        """The table is made, and nobody says so."""

        def answer(seen: Seen) -> None:
            if seen.method == "POST" and seen.of_table:
                with service_at(self._endpoint) as service:
                    service.create_table(json.loads(seen.body)["TableName"])
                gevent.sleep(HELD_S)

        process = self._started(answer=answer)
        process.until_said("creating the table stress")
        process.interrupt()
        return process

    def loading(self) -> LocustProcess:
        """No entity is answered."""

        def hold(seen: Seen) -> None:
            if seen.path.endswith("$batch"):
                gevent.sleep(HELD_S)

        process = self._started(before=hold)
        process.until_said("no answer for")
        process.interrupt()
        return process

    def deleting(self) -> LocustProcess:
        """The table stays there until the test says otherwise."""

        def answer(seen: Seen) -> bytes | None:
            if seen.method != "DELETE" or not seen.of_table or self.released.is_set():
                return None
            self.released.wait()
            return RESET

        process = self._started(answer=answer)
        process.until_said("deleting stress")
        process.interrupt()
        gevent.sleep(0.7)
        assert process.process.poll() is None
        process.interrupt()
        return process

    def loading_refused(self) -> LocustProcess:
        """The credential may not add entities."""

        def answer(seen: Seen) -> bytes | None:
            if seen.path.endswith("$batch"):
                return refusal(403, "AuthorizationPermissionMismatch", "Not authorized.")
            return None

        return self._started(answer=answer)

    def azurite_killed(self) -> LocustProcess:
        """The embedded endpoint goes while the load runs."""
        process = self._stress(*QUICK, "-t", "60s")
        process.until_said("[3/4]")
        (azurite,) = (child for child in process.children() if "guard.cjs" in str(child.cmdline()))
        azurite.kill()
        process.interrupt()
        return process

    def form(self) -> LocustProcess:
        """A table that is given, and whose pages do not end, is looked through for a start."""

        def answer(seen: Seen) -> bytes | None:
            if GIVEN not in seen.path:
                return None
            # Of a hundred empty pages nobody looks at more.
            gevent.sleep(0.1)
            return ENDLESS % len(proxy.seen)

        proxy, port = self._proxy_to(answer=answer), free_port()
        given = ("--table", GIVEN, "--web-port", str(port))
        process = self._stress(*WEB, *given, "-H", proxy.url)
        process.until_said("Web UI:")
        url = f"http://127.0.0.1:{port}"
        started = gevent.spawn(page, f"{url}/swarm", user_count=2, spawn_rate=10)
        wait_until(lambda: len(proxy.of_entities) > 3, "it looks for entities")
        again = json.loads(page(f"{url}/swarm", user_count=2, spawn_rate=10))
        page(f"{url}/stop", now=1)
        self.form_said = {"first": json.loads(started.get(timeout=20)), "second": again}
        process.interrupt()
        return process

    def repeats(self) -> LocustProcess:
        """The endpoint lets nobody in after the second of three runs."""

        def answer(seen: Seen) -> bytes | None:
            gone = sum(one.method == "DELETE" and one.of_table for one in proxy.seen)
            if gone == 2 and seen.method == "GET":
                return refusal(403, "AuthenticationFailed", "No.")
            return None

        proxy = self._proxy_to(answer=answer)
        return self._stress(*QUICK, "-t", "1s", "--repeat", "3", "--quiet", "-H", proxy.url)


NAMES = (*ENDED, "azurite killed", "form", "repeats")


@pytest.fixture(scope="module")
def held_up(stress: Stress, endpoint: Endpoint, proxy_to: Callable[..., Proxy]) -> HeldUp:
    """All of them, a few at once, ended."""
    made = HeldUp(stress, endpoint, proxy_to)
    pool = gevent.pool.Pool(4)
    with gevent.Timeout(300):
        pool.map(made.run, NAMES)
    return made


@pytest.mark.parametrize("name", ENDED)
def test_the_record_and_the_process_tell_one_end(name: str, held_up: HeldUp) -> None:
    """Whatever step was held up, the run is recorded, with the exit code of the process."""
    process = held_up.done[name]
    ended_by, code = ENDED[name]
    assert process.process.returncode == code, process.said
    assert process.record.ended_by == ended_by
    assert process.record.exit_code == code
    assert process.record.invariants == ()


@pytest.mark.parametrize("name", NAMES)
def test_nobody_sees_a_traceback(name: str, held_up: HeldUp) -> None:
    """What is said are sentences."""
    assert "Traceback" not in held_up.done[name].said


@pytest.mark.parametrize("name", ["creating", "loading refused"])
def test_a_run_without_load_has_no_tables_of_locust(name: str, held_up: HeldUp) -> None:
    """They would be empty."""
    assert "Aggregated" not in held_up.done[name].said


@pytest.mark.parametrize("name", ["creating", "loading", "deleting", "form"])
def test_it_ends_long_before_the_endpoint_answers(name: str, held_up: HeldUp) -> None:
    """From the last Ctrl-C on nothing is waited for that the endpoint holds."""
    assert held_up.left_within_s[name] < HELD_S / 10


@pytest.mark.parametrize("name", ["creating", "loading", "loading refused"])
def test_nothing_is_left_behind(name: str, held_up: HeldUp, endpoint: Endpoint) -> None:
    """The table is deleted, also where nobody said that it had been made."""
    process = held_up.done[name]
    assert "Not cleaned up" not in process.said
    assert process.record.endpoint.table not in table_names(endpoint)


def test_a_failed_loading_says_why(held_up: HeldUp) -> None:
    """The sentence names the refusal; entities were sent, so it is no bad set-up."""
    process = held_up.done["loading refused"]
    assert process.stderr.count("error: loading the table failed: partition") == 1
    assert "403 AuthorizationPermissionMismatch" in process.stderr
    assert process.record.loading.attempts > 0


def test_what_is_left_behind_is_named_with_the_command_that_deletes_it(
    held_up: HeldUp, endpoint: Endpoint
) -> None:
    """The command that the run tells deletes the table that it left."""
    process = held_up.done["deleting"]
    (command,) = (line for line in process.stdout.splitlines() if "harness sweep" in line)
    table = process.record.endpoint.table
    assert table in table_names(endpoint)
    held_up.released.set()
    done = sweep(command.strip())
    assert done.returncode == 0, done.stderr
    assert f"{table} " in done.stdout
    assert table not in table_names(endpoint)


def test_after_the_end_of_its_own_azurite_no_sweep_is_advised(held_up: HeldUp) -> None:
    """The tables were in its memory: there is nothing to delete."""
    said = held_up.done["azurite killed"].said
    assert "sweep" not in said
    assert "Nothing is left behind: an embedded Azurite holds its tables in memory" in said


def test_stop_ends_a_start_that_is_being_checked(held_up: HeldUp) -> None:
    """The form hears of it, and meanwhile takes no other start."""
    assert held_up.form_said["first"]["success"] is False
    assert "the start was stopped" in held_up.form_said["first"]["message"]
    assert "an earlier start is still preparing a run" in held_up.form_said["second"]["message"]


def test_a_repeat_that_cannot_be_ends_the_process(held_up: HeldUp) -> None:
    """Two runs have records, the third its sentence, and the exit code is the severest: 2."""
    process = held_up.done["repeats"]
    assert process.process.returncode == 2, process.said
    assert "refuses the key" in process.stderr
    assert len(process.records) == 2
    (folder,) = (process.folder / "out").iterdir()
    end = process.stdout.splitlines()[-4:]
    assert end[-1] == "Exit code: 2 (the severest of 3 runs)"
    assert end[0] == f"Records: out/{folder.name}"
    assert process.stdout.count("Inconclusive: ") == 2
    for chatter in ("[1/4]", "workers", "Aggregated", "operations"):
        assert chatter not in process.stdout
    shown = subprocess.run(
        [sys.executable, "-m", "harness", *end[1].partition("harness ")[2].split()],
        cwd=process.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "2 runs of single-partition" in shown.stdout
    assert {line.split()[-1] for line in shown.stdout.splitlines() if "Z-" in line} == {"3"}


def test_loading_that_is_not_answered_fails() -> None:
    """An endpoint that takes entities and says nothing is given up, with a sentence."""
    silent = Proxy(None, answer=lambda seen: gevent.sleep(HELD_S))
    named = resolve("single-partition", ["loading.concurrency=2"])
    accounts = Accounts((emulator_endpoint(silent.url),))
    plan = new_plan(named, dt.datetime.now(dt.UTC), accounts, session="sdk")
    run = MasterRun(plan, accounts, steady_clock())
    options = plan.session_options(0, accounts, run.budgets, run.clock)
    question = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
    silences: list[float] = []
    with (
        contextlib.closing(open_sessions(plan.session, options)) as session,
        gevent.Timeout(20),
        pytest.raises(LoadingFailed, match=r"no answer for 0\.2 s"),
    ):
        load_table(
            run,
            session,
            iter([question] * 9),
            total=9,
            on_progress=lambda done, total, elapsed_s, silent_s: silences.append(silent_s),
            silent_s=0.2,
        )
    silent.stop()
    assert max(silences) >= 0.2


@pytest.mark.parametrize("name", NAMES)
def test_no_process_is_left(name: str, held_up: HeldUp) -> None:
    """Azurite is gone with the run."""
    process = held_up.done[name]
    wait_until(lambda: not process.left_behind(), "no process is left", 5.0)
