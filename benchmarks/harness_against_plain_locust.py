"""Signed upserts of about 900 bytes that one core makes: the whole harness against plain Locust.

Both are `locust` commands with ten users against the same server, which only answers. Operations
are counted by that server, and held against the CPU time, user and system, of the process that
sends: other load on the machine then changes little. The two take turns, and the median of the
ratios is shown.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "benchmarks" / "parts"
WANTED = 3.0
ROUNDS = 3
USERS = "10"
WARM_UPSERTS = 1000
MEASURED_S = 5.0
BEGINS_WITHIN_S = 30.0
ENDS_WITHIN_S = 15.0
SERVER_LIMIT = 0.9

Command = Callable[[str, str], list[str]]


class CannotMeasure(Exception):
    """Why there is no figure."""


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """What one run of a generator did while it was watched."""

    per_cpu_second: float
    server_share: float


def plain(host: str, out: str) -> list[str]:
    """Arguments of plain Locust."""
    return ["-f", str(PARTS / "plain_locustfile.py"), "-H", host, "-u", USERS, "-r", USERS]


def harness(host: str, out: str) -> list[str]:
    """Arguments of the harness, with its metrics page."""
    profile = str(PARTS / "upserts.toml")
    arguments = ["-f", str(ROOT / "locustfile.py"), "-H", host, "-u", USERS, "-r", USERS]
    return [*arguments, "--profile", profile, "--out", out, "--metrics-port", str(free_port())]


def main() -> int:
    """Measure in turns and say the ratio."""
    found: dict[Command, list[Measured]] = {plain: [], harness: []}
    try:
        with tempfile.TemporaryDirectory() as folder, answering_server() as (port, server):
            for _ in range(ROUNDS):
                for command, results in found.items():
                    results.append(measure(command, port, server, folder))
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    ratios = [
        b.per_cpu_second / a.per_cpu_second
        for a, b in zip(found[plain], found[harness], strict=True)
    ]
    ratio = statistics.median(ratios)
    ours, theirs = (
        statistics.median(run.per_cpu_second for run in found[command])
        for command in (harness, plain)
    )
    busiest = max(run.server_share for results in found.values() for run in results)
    print(
        f"harness / plain Locust: {ratio:.2f} times the upserts of one core (wanted: {WANTED:g}; "
        f"{ours:,.0f} against {theirs:,.0f} a CPU second, {ROUNDS} turns from {min(ratios):.2f} "
        f"to {max(ratios):.2f}; server {busiest:.0%} busy)"
    )
    return 0


def measure(command: Command, port: int, server: psutil.Process, folder: str) -> Measured:
    """Run a generator, watch it for some seconds under load, and end it."""
    with generator(command(f"http://127.0.0.1:{port}", folder), folder) as process:
        first = upserts(port)
        deadline = time.monotonic() + BEGINS_WITHIN_S
        while upserts(port) < first + WARM_UPSERTS:
            if process.poll() is not None or time.monotonic() > deadline:
                raise CannotMeasure(f"{command.__name__} did not begin to send")
            time.sleep(0.2)
        watched = psutil.Process(process.pid)
        began, before = time.monotonic(), (upserts(port), cpu_s(watched), cpu_s(server))
        time.sleep(MEASURED_S)
        if process.poll() is not None:
            raise CannotMeasure(f"{command.__name__} ended while it was measured")
        took_s, after = time.monotonic() - began, (upserts(port), cpu_s(watched), cpu_s(server))
    done, busy_s, server_s = (b - a for a, b in zip(before, after, strict=True))
    if not done or not busy_s:
        raise CannotMeasure(f"{command.__name__} sent nothing while it was measured")
    if server_s / took_s > SERVER_LIMIT:
        raise CannotMeasure(f"the answering server was the bottleneck of {command.__name__}")
    return Measured(done / busy_s, server_s / took_s)


@contextlib.contextmanager
def answering_server() -> Iterator[tuple[int, psutil.Process]]:
    """The server, on a free port."""
    with started([sys.executable, str(PARTS / "answering_server.py")], ROOT) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise CannotMeasure("the answering server did not start")
        yield int(line), psutil.Process(process.pid)


@contextlib.contextmanager
def generator(arguments: list[str], folder: str) -> Iterator[subprocess.Popen[str]]:
    """A `locust` command, headless; what it printed is shown if the measurement fails."""
    with started(
        [sys.executable, "-m", "locust", "--headless", *arguments], Path(folder)
    ) as process:
        try:
            yield process
        except CannotMeasure as error:
            process.terminate()
            said, _ = process.communicate(timeout=ENDS_WITHIN_S)
            raise CannotMeasure(f"{error}; it said: {said[-500:].strip()}") from error


@contextlib.contextmanager
def started(arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a bare environment, so that no credential and no proxy reaches it."""
    process = subprocess.Popen(
        arguments,
        cwd=folder,
        env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def upserts(port: int) -> int:
    """How many upserts the server has answered."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/upserts", timeout=5) as answer:
        return int(answer.read())


def cpu_s(process: psutil.Process) -> float:
    """CPU time that a process has used, in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
