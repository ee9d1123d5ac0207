"""A real `locust` process of a test: started, watched, ended, and what it left behind.

It gets an environment without credentials, and a note of every address it looks up or connects
to, taken by Python's own audit events: nothing in it is patched.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from harness.measure.record.record import RunRecord
from tests.support.fork_server import ForkedProcess, ForkServer
from tests.support.network.hosts import Host
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
LOCUSTFILE = ROOT / "locustfile.py"
PATIENCE_S = 60.0
"""A process that does not do what is waited for within so long has failed the test."""

SESSION = os.environ.get("TEST_SESSION")
"""Which session every run of the suite has that names none; None leaves it to the profile."""

QUICK = (
    "--headless",
    *("-u", "4", "-r", "100"),
    *("--set", "load.max_entities_per_s=60"),
    *("--set", "load.run_time_s=5"),
    *("--set", "load.settle_s=0"),
    *("--set", "loading.settle_s=0"),
    *("--set", "keys.rows_per_partition=100"),
    *("--set", "conditions=[]"),
)
"""A small table, a short window, a load that leaves two cores mostly idle. Without conditions a
busy machine, which makes the verdict client-limited, does not change the exit code."""


def spread_over(partitions: int, rows: int) -> tuple[str, ...]:
    """Options for partitions p0, p1, ... of so many rows, in place of the one of QUICK."""
    return (
        *("--set", f"fields.key.values={partitions}", "--set", "fields.key.prefix=p"),
        *("--set", "keys.partition_key={key}", "--set", f"keys.rows_per_partition={rows}"),
    )


WEB = tuple(option for option in QUICK if option != "--headless")
"""The same with the web UI."""
JUDGED = ("--set", "conditions=['throttled_ratio < 1%']")
"""After `QUICK`: the shipped condition."""

_NOTE_ADDRESSES = """\
import os, sys, time
def note(event, args, _path=os.environ["NOTED_ADDRESSES"]):
    if event == "socket.getaddrinfo":
        text = f"lookup {args[0]}"
    elif event == "socket.connect" and isinstance(args[1], tuple):
        text = f"connect {args[1][0]} {args[1][1]}"
    else:
        return
    with open(_path, "a") as file:
        file.write(f"{time.time()} {text}\\n")
sys.addaudithook(note)
"""
_HIDDEN = ("AZURE_", "AZURITE_", "GITHUB_", "LOCUST_", "STRESS_")
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def wait_until(
    true: Callable[[], object], what: str, within_s: float = PATIENCE_S, *, every_s: float = 0.03
) -> None:
    """Wait until ``true`` gives something true; else the test has failed."""
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
        time.sleep(every_s)


def forked(count: int) -> tuple[str, ...]:
    """Options for so many worker processes, with a port of their own to meet the master at."""
    port = str(free_port())
    return ("--processes", str(count), "--master-port", port, "--master-bind-port", port)


class LocustProcess:
    """One process, in a folder and a session of its own."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        locustfile: Path | None,
        python: str,
        server: ForkServer | None,
        host: Host | None,
        ahead_s: float,
    ) -> None:
        self.folder = folder
        self._seen: dict[int, psutil.Process] = {}
        # A name of its own: the interpreter looks for sitecustomize on PYTHONPATH.
        hook = folder / "hook"
        hook.mkdir(parents=True)
        (hook / "sitecustomize.py").write_text(_NOTE_ADDRESSES, encoding="utf-8")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_HIDDEN) and name not in _AUTHORITIES
        }
        metrics = () if "--metrics-port" in arguments else ("--metrics-port", "0")
        session = () if SESSION is None or "--session" in arguments else ("--session", SESSION)
        self._out = folder / "stdout.txt"
        self._err = folder / "stderr.txt"
        arguments = ("-f", str(locustfile or LOCUSTFILE), *metrics, *session, *arguments)
        environ = {
            **kept,
            "PYTHONPATH": os.pathsep.join((str(hook), str(ROOT))),
            "PYTHONIOENCODING": "utf-8",
            "NOTED_ADDRESSES": str(folder / "addresses.txt"),
            **environ,
        }
        self.process: subprocess.Popen[bytes] | ForkedProcess
        if server is not None:
            self.process = server.start(
                arguments, folder=folder, environ=environ, hook=hook / "sitecustomize.py", host=host
            )
            return
        command = [python, "-m", "locust", *arguments]
        if host is not None:
            command = host.command(*command, ahead_s=ahead_s)
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stdout(self) -> str:
        return self._out.read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        return self._err.read_text(encoding="utf-8")

    @property
    def said(self) -> str:
        """All it wrote."""
        return self.stdout + self.stderr

    @property
    def addresses(self) -> list[tuple[float, str]]:
        """What it looked up (``lookup name``) and connected to (``connect 127.0.0.1 80``), when."""
        noted = self.folder / "addresses.txt"
        lines = noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []
        return [(float(line.split(" ", 1)[0]), line.split(" ", 1)[1]) for line in lines]

    @property
    def records(self) -> list[RunRecord]:
        """What its runs recorded, oldest first."""
        files = sorted((self.folder / "out").rglob("run.json"))
        found = [RunRecord.from_json(file.read_bytes()) for file in files]
        return sorted(found, key=lambda record: record.started_at)

    @property
    def record(self) -> RunRecord:
        """The record of its only run."""
        (record,) = self.records
        return record

    def wait(self, within_s: float = PATIENCE_S) -> int:
        """Its exit code, once it has ended."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within_s:g} s:\n{self.said}") from None

    def until_said(self, text: str, within_s: float = PATIENCE_S) -> None:
        """Wait until it has said ``text``."""

        def said() -> bool:
            if text in self.said:
                return True
            assert self.process.poll() is None, f"it ended without saying {text!r}:\n{self.said}"
            return False

        wait_until(said, f"{text!r} in\n{self.said}", within_s)

    def children(self) -> list[psutil.Process]:
        """Processes below it now; they are remembered for `left_behind`."""
        found: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            found = psutil.Process(self.pid).children(recursive=True)
        self._seen.update({process.pid: process for process in found})
        return found

    def left_behind(self) -> list[psutil.Process]:
        """Processes seen below it that still run."""
        return [
            process
            for process in self._seen.values()
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        ]

    def has_left_nothing(self) -> bool:
        """Whether no process that was seen below it still runs."""
        return not self.left_behind()

    def interrupt(self) -> None:
        """Ctrl-C as a terminal sends it: to every process of the group."""
        os.killpg(self.pid, signal.SIGINT)

    def terminate(self) -> None:
        """SIGTERM to the process alone, as a supervisor sends it."""
        self.process.terminate()

    def end(self) -> None:
        """Kill it with its whole session, whatever it does."""
        self.children()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(10.0)
        for process in self.left_behind():
            # What started a session of its own dies with the pipe; see that it does.
            with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
                process.wait(5.0)
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


class Stress:
    """Starts processes, and ends those that still run when the tests are over.

    Args:
        folder: Where each process gets a folder of its own.
        server: Forks them; without it each is started anew.
    """

    def __init__(self, folder: Path, server: ForkServer | None = None) -> None:
        self._folder = folder
        self._server = server
        self._number = itertools.count()
        self._started: list[LocustProcess] = []

    def __call__(
        self,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        locustfile: Path | None = None,
        python: str | None = None,
        host: Host | None = None,
        ahead_s: float = 0.0,
    ) -> LocustProcess:
        """Start one with these arguments and additions to the environment.

        An interpreter that is named starts anew, and so does a process on a ``host`` whose clock is
        ``ahead_s`` ahead.
        """
        process = LocustProcess(
            self._folder / f"process{next(self._number)}",
            arguments,
            environ=environ or {},
            locustfile=locustfile,
            python=python or sys.executable,
            server=self._server if python is None and not ahead_s else None,
            host=host,
            ahead_s=ahead_s,
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        for process in self._started:
            process.end()
