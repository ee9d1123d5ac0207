"""Signed upserts of about 900 bytes that one core makes: the whole harness against plain Locust.

Both are `locust` commands with ten users against the same server, which only answers. They run by
turns, a second or so each: the other one is paused. What the server answered meanwhile is held
against the CPU time, user and system, of the process that sent. So other load on the machine meets
both alike, and the median of the turns' ratios stands for many of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "benchmarks" / "parts"
WANTED = 3.0
USERS = "10"
TURNS = 12
TURN_S = 1.2
WARM_UPSERTS = 1000
BEGINS_WITHIN_S = 30.0
ENDS_WITHIN_S = 10.0
SERVER_LIMIT = 0.9


class CannotMeasure(Exception):
    """Why there is no figure."""


@dataclasses.dataclass(frozen=True, slots=True)
class Started:
    """A process that was started, and where it writes what it says."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path

    def require(self) -> None:
        """See to it that it still runs."""
        if self.process.poll() is not None:
            raise CannotMeasure(f"{self.name} ended too early; it said: {self.said[-500:].strip()}")

    @property
    def said(self) -> str:
        """All that it wrote."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def cpu_s(self) -> float:
        """CPU time that it has used, in seconds."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)


def main() -> int:
    """Measure by turns and say the ratio."""
    try:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server = stack.enter_context(
                started("the server", [str(PARTS / "answering_server.py")], folder)
            )
            port = port_of(server)
            generators = []
            for name, arguments in (("plain", plain()), ("harness", harness(folder))):
                command = ["-m", "locust", "--headless", *common(port), *arguments]
                generator = stack.enter_context(started(name, command, folder))
                warm_up(generator, port)
                # Whatever happens, it is let go on before it is asked to end.
                stack.callback(generator.process.send_signal, signal.SIGCONT)
                generator.process.send_signal(signal.SIGSTOP)
                generators.append(generator)
            before, began = server.cpu_s, time.monotonic()
            found = [[turn(generator, port) for generator in generators] for _ in range(TURNS)]
            busy = (server.cpu_s - before) / (time.monotonic() - began)
    except CannotMeasure as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    if busy > SERVER_LIMIT:
        print("not measured: the server was the bottleneck", file=sys.stderr)
        return 1
    ratios = sorted(ours / theirs for theirs, ours in found)
    theirs, ours = (statistics.median(column) for column in zip(*found, strict=True))
    low, _, high = statistics.quantiles(ratios, n=4)
    print(
        f"harness / plain Locust: {statistics.median(ratios):.2f} times the upserts of one core, "
        f"{WANTED:g} wanted (half of {TURNS} turns between {low:.2f} and {high:.2f}; {ours:,.0f} "
        f"against {theirs:,.0f} a CPU second; server {busy:.0%} busy)"
    )
    return 0


def common(port: int) -> list[str]:
    """Arguments of both. At Locust's own level azure-core writes many lines for every request."""
    host = f"http://127.0.0.1:{port}"
    return ["-H", host, "-u", USERS, "-r", USERS, "--loglevel", "WARNING"]


def plain() -> list[str]:
    """Arguments of plain Locust."""
    return ["-f", str(PARTS / "plain_locustfile.py")]


def harness(folder: Path) -> list[str]:
    """Arguments of the harness, with its metrics page."""
    arguments = ["-f", str(ROOT / "locustfile.py"), "--profile", str(PARTS / "upserts.toml")]
    return [*arguments, "--out", str(folder / "out"), "--metrics-port", str(free_port())]


def turn(generator: Started, port: int) -> float:
    """Let a paused generator go on for a moment: its upserts a CPU second."""
    cpu_s, done = generator.cpu_s, upserts(port)
    generator.process.send_signal(signal.SIGCONT)
    time.sleep(TURN_S)
    generator.process.send_signal(signal.SIGSTOP)
    generator.require()
    # What it sent last is answered by now, or after the pause; there are ten of them at most.
    time.sleep(0.05)
    cpu_s, done = generator.cpu_s - cpu_s, upserts(port) - done
    if not done or not cpu_s:
        raise CannotMeasure(f"{generator.name} sent nothing when it was its turn")
    return done / cpu_s


def warm_up(generator: Started, port: int) -> None:
    """Wait until a generator is under load."""
    enough = upserts(port) + WARM_UPSERTS
    deadline = time.monotonic() + BEGINS_WITHIN_S
    while upserts(port) < enough:
        generator.require()
        if time.monotonic() > deadline:
            said = generator.said[-500:].strip()
            raise CannotMeasure(f"{generator.name} did not begin to send; it said: {said}")
        time.sleep(0.1)


@contextlib.contextmanager
def started(name: str, arguments: list[str], folder: Path) -> Iterator[Started]:
    """A Python process with a bare environment: no credential and no proxy reaches it."""
    output = folder / f"{name}.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT)},
            stdout=file,
            stderr=subprocess.STDOUT,
            # Ctrl-C in a terminal reaches this script alone, which ends the others.
            start_new_session=True,
        )
    try:
        yield Started(name, process, output)
    finally:
        process.terminate()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=ENDS_WITHIN_S)
        finally:
            # Also where somebody is impatient; it does nothing to a process that has ended.
            process.kill()
            process.wait()


def port_of(server: Started) -> int:
    """The port that the server says it listens at."""
    deadline = time.monotonic() + BEGINS_WITHIN_S
    while not server.said.endswith("\n"):
        server.require()
        if time.monotonic() > deadline:
            raise CannotMeasure("the server did not start")
        time.sleep(0.05)
    return int(server.said)


def upserts(port: int) -> int:
    """How many upserts the server has answered."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/upserts", timeout=5) as answer:
        return int(answer.read())


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
