"""Generators that take turns at one server, so that other load on the machine meets all alike.

Each is a process of its own, paused while it is not its turn. What the server answered meanwhile
is held against the CPU time, user and system, of the process that sent.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from benchmarks.parts.serving import NULL_SERVER, PARTS, ROOT, CannotMeasure, environ

USERS = "10"
TURN_S = 1.2
_WARM_ENTITIES = 1000
_BEGINS_WITHIN_S = 30.0
_ENDS_WITHIN_S = 10.0
_SERVER_LIMIT = 0.9


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


@contextlib.contextmanager
def server(folder: Path, *certificate: str) -> Iterator[tuple[Started, list[int]]]:
    """The server that only answers; its ports: plain, and with TLS if there is a certificate."""
    command = [NULL_SERVER, *certificate]
    with started("the server", command, folder) as process:
        deadline = time.monotonic() + _BEGINS_WITHIN_S
        while not process.said.endswith("\n"):
            process.require()
            if time.monotonic() > deadline:
                raise CannotMeasure("the server did not start")
            time.sleep(0.05)
        yield process, [int(port) for port in process.said.split()]


def by_turns(
    answering: Started,
    port: int,
    generators: Mapping[str, Sequence[str]],
    folder: Path,
    turns: int,
    **variables: str,
) -> dict[str, list[float]]:
    """Entities a CPU second of each generator, turn by turn.

    Args:
        answering: The server.
        port: Where it counts entities.
        generators: The arguments of Locust, by a name to call it.
        folder: Where they write.
        turns: How often each has its turn.
        variables: Of their environment.

    Raises:
        CannotMeasure: one of them did not do as it should.
    """
    with contextlib.ExitStack() as stack:
        paused = []
        for name, arguments in generators.items():
            command = ["-m", "locust", "--headless", *arguments]
            generator = stack.enter_context(started(name, command, folder, **variables))
            _warm_up(generator, port)
            # Whatever happens, it is let go on before it is asked to end.
            stack.callback(generator.process.send_signal, signal.SIGCONT)
            generator.process.send_signal(signal.SIGSTOP)
            paused.append(generator)
        before, began = answering.cpu_s, time.monotonic()
        found: dict[str, list[float]] = {name: [] for name in generators}
        for _ in range(turns):
            for generator in paused:
                found[generator.name].append(_turn(generator, port))
        busy = (answering.cpu_s - before) / (time.monotonic() - began)
    if busy > _SERVER_LIMIT:
        raise CannotMeasure("the server was the bottleneck")
    return found


def plain(port: int) -> list[str]:
    """Arguments of plain Locust with azure-data-tables as it comes."""
    return ["-f", str(PARTS / "plain_locustfile.py"), *_common(f"http://127.0.0.1:{port}")]


def harness(url: str, folder: Path, *more: str) -> list[str]:
    """Arguments of the harness, with its metrics page."""
    return [
        *("-f", str(ROOT / "locustfile.py"), "--profile", str(PARTS / "upserts.toml")),
        *("--out", str(folder / "out"), "--metrics-port", str(_free_port())),
        *_common(url),
        *more,
    ]


def _common(url: str) -> list[str]:
    """Arguments of both. At Locust's own level azure-core writes many lines for every request."""
    return ["-H", url, "-u", USERS, "-r", USERS, "--loglevel", "WARNING"]


def _turn(generator: Started, port: int) -> float:
    """Let a paused generator go on for a moment: its entities a CPU second."""
    cpu_s, done = generator.cpu_s, entities(port)
    generator.process.send_signal(signal.SIGCONT)
    time.sleep(TURN_S)
    generator.process.send_signal(signal.SIGSTOP)
    generator.require()
    # What it sent last is answered by now, or after the pause; there are ten requests at most.
    time.sleep(0.05)
    cpu_s, done = generator.cpu_s - cpu_s, entities(port) - done
    if not done or not cpu_s:
        raise CannotMeasure(f"{generator.name} sent nothing when it was its turn")
    return done / cpu_s


def _warm_up(generator: Started, port: int) -> None:
    """Wait until a generator is under load."""
    enough = entities(port) + _WARM_ENTITIES
    deadline = time.monotonic() + _BEGINS_WITHIN_S
    while entities(port) < enough:
        generator.require()
        if time.monotonic() > deadline:
            said = generator.said[-500:].strip()
            raise CannotMeasure(f"{generator.name} did not begin to send; it said: {said}")
        time.sleep(0.1)


@contextlib.contextmanager
def started(
    name: str, arguments: Sequence[str], folder: Path, **variables: str
) -> Iterator[Started]:
    """A Python process with a bare environment: no credential and no proxy reaches it."""
    output = folder / f"{name}.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env={**environ(), **variables},
            stdout=file,
            stderr=subprocess.STDOUT,
            # Ctrl-C in a terminal reaches the script alone, which ends the others.
            start_new_session=True,
        )
    try:
        yield Started(name, process, output)
    finally:
        process.terminate()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_ENDS_WITHIN_S)
        finally:
            # Also where somebody is impatient; it does nothing to a process that has ended.
            process.kill()
            process.wait()


def entities(port: int) -> int:
    """How many entities the server has answered for."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/entities", timeout=5) as answer:
        return int(answer.read())


def _free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def folder_of_its_own() -> Iterator[Path]:
    """Where generators write; gone at the end."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
