"""What this machine can generate: workers of a run, against a server that only answers.

The server is a process of its own and takes CPU from the workers. So the measure is not how much
was sent in a second, but how much was sent in a second of CPU time of the workers: once by a single
worker, and once by several at the same time, which share caches and the threads of cores.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from harness.doctor.checks import CheckResult, judged
from harness.gateway.tls import made_certificate
from harness.measure.record.measured import CapacityPart, MachineLoadPart
from harness.model.errors import SetupError
from harness.model.figures import counted, number
from harness.model.physical_partitions import MAX_PARTITION_RU_PER_S
from harness.model.process import ChildProcess
from harness.model.request_units import RU, WRITE_CHARGES
from harness.model.services.service import PUBLISHED
from harness.model.sessions import TABLE_SESSIONS, session_named

SESSIONS = tuple(name for name in TABLE_SESSIONS if not session_named(name).as_is)
"""What is measured: the sessions whose requests the harness sends itself."""
_SECONDS = 0.5
"""How long each measurement takes, after a warm-up of about half as long."""
_STARTS_WITHIN_S = 30.0
_MEASURES_WITHIN_S = 15.0
_MOST_PROCESSES = 4
_PACKAGES = Path(__file__).resolve().parents[2]
_NULL_SERVER = Path(__file__).parent / "null_server.py"
_TARGETS = {"one partition": PUBLISHED.partition, "the account": PUBLISHED.account}
_TARGETS_IN_UNITS = {"one partition": MAX_PARTITION_RU_PER_S * RU / WRITE_CHARGES[0][1]}
"""Writes of 1 KB, the cheapest, that a partition serves."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What one kind of session generates, with or without TLS.

    Attributes:
        alone: Operations of a single worker.
        together: Operations of each of several workers that run at the same time.
    """

    tls: bool
    alone: CapacityPart
    together: CapacityPart


class _Child(ChildProcess):
    """A child that is asked by lines on its standard input, and answers by lines."""

    def __init__(self, command: Sequence[str], errors: IO[bytes], **environ: str) -> None:
        self._unread = b""
        environ["PYTHONPATH"] = str(_PACKAGES)
        super().__init__(command, stdout=subprocess.PIPE, stderr=errors, environ=environ)
        assert self._popen.stdout is not None
        self._output = self._popen.stdout

    def ask(self, line: str) -> None:
        assert self._popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.write(f"{line}\n".encode())
            self._popen.stdin.flush()

    def line(self, within_s: float) -> str:
        """The next line of its output; a `SetupError` where none comes in time."""
        deadline = time.monotonic() + within_s
        while b"\n" not in self._unread:
            left_s = deadline - time.monotonic()
            data = b""
            if left_s > 0 and select.select([self._output], [], [], left_s)[0]:
                data = os.read(self._output.fileno(), 65536)
            if not data:
                raise SetupError("a process of the measurement ended or does not answer")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def stop(self) -> None:
        super().stop()
        self._output.close()


def generate(
    sessions: Sequence[str], machine: MachineLoadPart, on_step: Callable[[str], None]
) -> Iterator[Generated]:
    """Measure each session without and with TLS; ``on_step`` is told what is measured.

    Raises:
        SetupError: a process did not start or did not answer.
    """
    count = min(machine.cores, _MOST_PROCESSES)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="table-doctor-")))
        errors = stack.enter_context(tempfile.TemporaryFile())
        authority = made_certificate(folder, "127.0.0.1")[1]
        command = [sys.executable, str(_NULL_SERVER), "--guarded", str(folder / "server.pem")]
        on_step(f"starting {count} worker processes and a server")
        servers = [stack.enter_context(_Child(command, errors)) for _ in range(max(1, count // 2))]
        command = [sys.executable, "-P", "-m", "harness.swarm.capacity_load"]
        workers = [
            stack.enter_context(_Child(command, errors, SSL_CERT_FILE=str(authority)))
            for _ in range(count)
        ]
        ports = [server.line(_STARTS_WITHIN_S).split() for server in servers]
        for worker in workers:
            worker.line(_STARTS_WITHIN_S)
        for session in sessions:
            for tls in (False, True):
                urls = [f"http{'s' * tls}://127.0.0.1:{port[tls]}" for port in ports]
                over = f"session {session}{' over TLS' if tls else ''}"
                on_step(f"{over}, 1 process")
                alone = _measure(session, workers[:1], urls, machine)
                together = alone
                if count > 1:
                    on_step(f"{over}, {count} processes at once")
                    together = _measure(session, workers, urls, machine)
                yield Generated(tls=tls, alone=alone, together=together)


def _measure(
    session: str, workers: Sequence[_Child], urls: Sequence[str], machine: MachineLoadPart
) -> CapacityPart:
    for place, worker in enumerate(workers):
        worker.ask(f"{session} {urls[place % len(urls)]} {_SECONDS}")
    made = [json.loads(worker.line(_MEASURES_WITHIN_S)) for worker in workers]
    cpu_s = sum(one["cpu_s"] for one in made)
    if cpu_s <= 0:
        raise SetupError("the workers got no CPU time")
    return CapacityPart(
        session=session,
        operations_per_cpu_s=round(sum(one["operations"] for one in made) / cpu_s, 1),
        entities_per_cpu_s=round(sum(one["entities"] for one in made) / cpu_s, 1),
        machines=(machine,),
    )


def capacity_checks(made: Sequence[Generated], *, charged: bool = False) -> Iterator[CheckResult]:
    """A line for each session, and a line for each target. Accounts need TLS.

    ``charged``: the endpoints charge request units.
    """
    by_session: dict[str, list[Generated]] = {}
    for one in made:
        by_session.setdefault(one.alone.session, []).append(one)
    for session, pair in by_session.items():
        yield _session(session, pair)
    for name, rate in (_TARGETS_IN_UNITS if charged else _TARGETS).items():
        yield _target(name, rate, [one.together for one in made if one.tls])


def _session(session: str, pair: Iterable[Generated]) -> CheckResult:
    parts = []
    figures = {}
    for one in pair:
        over = "over TLS" if one.tls else "without TLS"
        cores = one.together.cores
        every = one.together.entities_per_cpu_s * cores
        parts.append(
            f"{over} {number(one.alone.entities_per_cpu_s)}/s a process, {number(every)}/s on "
            f"{counted(cores, 'core')}"
        )
        figures["tls" if one.tls else "plain"] = {
            "alone": one.alone.model_dump(),
            "together": one.together.model_dump(),
            "all_cores_per_s": every,
        }
    return CheckResult(name=session, text=f"upserts of 1 KiB: {'; '.join(parts)}", figures=figures)


def _target(name: str, rate: float, made: Iterable[CapacityPart]) -> CheckResult:
    ways, figures, fits = [], {}, False
    for capacity in made:
        processes, cores = capacity.processes_for(rate), capacity.cores
        machines = capacity.machines_for(rate, cores)
        if processes is None or machines is None:
            continue
        figures[capacity.session] = {"processes": processes, "machines": machines}
        if machines > 1:
            ways.append(
                f"--session {capacity.session} on {machines:,} such machines "
                f"({counted(processes, 'process', 'processes')})"
            )
        else:
            fits = True
            ways.append(f"--session {capacity.session} --processes {processes}")
    advice = "" if fits else "one machine such as this one cannot reach the target"
    return judged(f"for {name}", f"{number(rate)}/s need {' or '.join(ways)}", advice, figures)
