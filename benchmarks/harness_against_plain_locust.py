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
    arguments = ["-f", str(PARTS / "plain_locustfile.py"), "-H", host, "-u", USERS, "-r", USERS]
    # At Locust's own level azure-core would write twelve lines for every request.
    return [*arguments, "--loglevel", "WARNING"]


def harness(host: str, out: str) -> list[str]:
    """Arguments of the harness, with its metrics page."""
    profile = str(PARTS / "upserts.toml")
    arguments = ["-f", str(ROOT / "locustfile.py"), "-H", host, "-u", USERS, "-r", USERS]
    return [*arguments, "--profile", profile, "--out", out, "--metrics-port", str(free_port())]


def main() -> int:
    """Measure in turns and say the ratio."""
    found: dict[Command, list[Measured]] = {plain: [], harness: []}
    try:
        with (
            tempfile.TemporaryDirectory() as name,
            answering_server(folder := Path(name)) as (port, server),
        ):
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


def measure(command: Command, port: int, server: psutil.Process, folder: Path) -> Measured:
    """Run a generator, watch it for some seconds under load, and end it."""
    name = command.__name__
    output = folder / f"{name}.txt"
    arguments = command(f"http://127.0.0.1:{port}", str(folder))
    with started([sys.executable, "-m", "locust", "--headless", *arguments], output) as process:
        first = upserts(port)
        deadline = time.monotonic() + BEGINS_WITHIN_S
        while upserts(port) < first + WARM_UPSERTS:
            if process.poll() is not None or time.monotonic() > deadline:
                said = output.read_text()[-500:].strip()
                raise CannotMeasure(f"{name} did not begin to send; it said: {said}")
            time.sleep(0.2)
        watched = psutil.Process(process.pid)
        began, before = time.monotonic(), (upserts(port), cpu_s(watched), cpu_s(server))
        time.sleep(MEASURED_S)
        if process.poll() is not None:
            said = output.read_text()[-500:].strip()
            raise CannotMeasure(f"{name} ended while it was measured; it said: {said}")
        took_s, after = time.monotonic() - began, (upserts(port), cpu_s(watched), cpu_s(server))
    done, busy_s, server_s = (b - a for a, b in zip(before, after, strict=True))
    if not done or not busy_s:
        raise CannotMeasure(f"{name} sent nothing while it was measured")
    if server_s / took_s > SERVER_LIMIT:
        raise CannotMeasure(f"the answering server was the bottleneck of {name}")
    return Measured(done / busy_s, server_s / took_s)


@contextlib.contextmanager
def answering_server(folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    """The server, on a free port."""
    output = folder / "server.txt"
    with started([sys.executable, str(PARTS / "answering_server.py")], output) as process:
        deadline = time.monotonic() + BEGINS_WITHIN_S
        while not (said := output.read_text()).endswith("\n"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise CannotMeasure(f"the answering server did not start: {said[-500:].strip()}")
            time.sleep(0.05)
        yield int(said), psutil.Process(process.pid)


@contextlib.contextmanager
def started(arguments: list[str], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a bare environment, so that no credential and no proxy reaches it."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            arguments,
            cwd=output.parent,
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT)},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


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
