"""A metering process: a gateway that counts, and reports every second to the watch.

``python -m harness.watch.metering SETTINGS`` takes its settings in JSON. Standard output is a pipe
of frames: the length in 4 bytes, then a report in MessagePack. The process ends when its standard
input ends; its last report is final. `MeteringProcess` is the process as the watch sees it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import json
import os
import pickle
import queue
import resource
import ssl
import struct
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Annotated
from urllib.parse import urlsplit

import msgpack
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from harness.gateway.forward import Interception
from harness.gateway.limits import load_limits
from harness.gateway.server import BesideAddress, run, serve, stopped_by_parent
from harness.model.errors import SetupError
from harness.model.process import ChildProcess, steady_clock
from harness.model.services import USUAL
from harness.model.services.service import Server
from harness.startup import BAD_SETUP
from harness.trace.recorder import Recorder
from harness.watch.books import Course, Drained, Identity, Marks
from harness.watch.observer import Observer
from harness.watch.other_endpoints import server_at

REPORT_EVERY_S = 1.0
# The pipe comes from a process of this program, so that unpickling executes nothing foreign.
_Handed = Annotated[
    list[tuple[Identity, Course]], PlainValidator(pickle.loads), PlainSerializer(pickle.dumps)
]
_LAST_TURNS = 10
_LENGTH = struct.Struct(">I")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeteringSettings:
    """The settings of one metering process.

    Attributes:
        name: Name of the process in the ledger.
        upstream: Scheme, host and port of the endpoint.
        certificate: File with key and certificate (PEM) for TLS; empty for plain HTTP.
        intercepts: Hosts for which the gateway is a forward proxy in plain HTTP: ``*`` for those of
            all endpoints of accounts, or one, with those of the same account. Empty for none, and
            the gateway listens with TLS.
        account: The account of an emulator that gets the intercepted requests, signed anew.
        budget: Most requests that may reach the endpoint.
        window_s: When the measured window begins, UTC seconds.
        looks_ahead: Whether the gateway may read rows that were stored before.
        marks: File of the `Marks` of all processes at the same address; empty for one alone.
        epoch_s: Of the clock of all processes; None for an own one.
        beside: Other servers of the same account, the endpoint of each, and where the gateway
            listens for it.
        traces: Whether the operations are recorded for a trace, with the values of ``properties``.
    """

    name: str
    upstream: str
    listen: str
    limits: str
    certificate: str = ""
    intercepts: str = ""
    account: str = ""
    budget: int | None = None
    window_s: float = 0.0
    looks_ahead: bool = True
    marks: str = ""
    epoch_s: float | None = None
    beside: tuple[tuple[Server, str, str], ...] = ()
    traces: bool = False
    properties: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeteringReport:
    """What a metering process counted since its last report.

    Attributes:
        urls: Where it listens for each server.
        handed: Attempts to be joined with those that other processes saw.
        until_s: Every attempt that ended earlier is in this report or one before, UTC seconds.
        latest_s: When the latest request arrived, likewise.
        in_flight: Operations that may be sent again, with ``attempts_in_flight``.
        trace: Blocks for the trace.
    """

    urls: dict[Server, str]
    counted: Drained
    handed: _Handed
    until_s: float
    latest_s: float
    final: bool
    in_flight: int
    attempts_in_flight: int
    trace: list[bytes]

    @classmethod
    def of(
        cls, observer: Observer, urls: Mapping[Server, str], now_s: float, *, final: bool
    ) -> MeteringReport:
        """What an observer counted since its last report, at ``now_s``, UTC."""
        handed, books = observer.hand_over(), observer.books
        counted = observer.drain(ended=final)
        return cls(
            urls=dict(urls),
            counted=counted,
            handed=handed,
            until_s=now_s,
            latest_s=books.latest_s,
            final=final,
            in_flight=len(books.pending),
            attempts_in_flight=books.attempts_in_flight,
            trace=[] if books.recorder is None else books.recorder.drain(now_s, final=final),
        )

    def write(self, file: IO[bytes]) -> None:
        content: bytes = msgpack.packb(_reports().dump_python(self))
        file.write(_LENGTH.pack(len(content)) + content)
        file.flush()

    @classmethod
    def read(cls, file: IO[bytes]) -> MeteringReport | None:
        """Read the next report; None at the end of the file, also in the middle of a frame."""
        head = file.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        length = _LENGTH.unpack(head)[0]
        content = file.read(length)
        if len(content) < length:
            return None
        return _reports().validate_python(msgpack.unpackb(content, strict_map_key=False))


@functools.cache
def _reports() -> TypeAdapter[MeteringReport]:
    return TypeAdapter(MeteringReport)


def settings_of(text: str) -> MeteringSettings:
    """The settings as the command line has them; see `text_of`."""
    return TypeAdapter(MeteringSettings).validate_python(json.loads(text))


def text_of(settings: MeteringSettings) -> str:
    """JSON of the settings in ASCII: the path of a file may have bytes that are no UTF-8."""
    return json.dumps(dataclasses.asdict(settings))


async def _meter(settings: MeteringSettings, out: IO[bytes]) -> None:
    marks = Marks(Path(settings.marks)) if settings.marks else None
    recorder = Recorder(settings.properties) if settings.traces else None
    observer = Observer(settings.name, settings.budget, marks, recorder)
    observer.books.open_window(settings.window_s)
    clock = steady_clock(settings.epoch_s)
    stop = stopped_by_parent()
    listening: dict[Server, str] = {}

    def report(*, final: bool) -> None:
        MeteringReport.of(observer, listening, clock(), final=final).write(out)

    async def report_forever() -> None:
        due_s = time.monotonic()
        while True:
            due_s = max(due_s + REPORT_EVERY_S, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())
            observer.expire(clock())
            report(final=False)

    reporting: list[asyncio.Task[None]] = []

    def ready(url: str) -> None:
        listening[USUAL.server] = url
        report(final=False)
        reporting.append(asyncio.create_task(report_forever()))
        # Without reports nothing is counted: the watch has to end.
        reporting[0].add_done_callback(lambda task: stop.set())

    tls = interception = None
    if certificate := settings.certificate:
        # Only a gateway with TLS needs the library.
        from harness.gateway.tls import given_certificate

        context = given_certificate(Path(certificate), None)
        if settings.intercepts:
            interception = _interception(settings, context)
        else:
            tls = context
    beside = [
        BesideAddress(
            server=server,
            upstream=upstream,
            listen=listen,
            ready=functools.partial(listening.__setitem__, server),
        )
        for server, upstream, listen in settings.beside
    ]
    await serve(
        upstream=settings.upstream,
        listen=settings.listen,
        limits=load_limits(Path(settings.limits)),
        ready=ready,
        stop=stop,
        tls=tls,
        interception=interception,
        meter=observer,
        looks_ahead=settings.looks_ahead,
        shared=marks is not None,
        clock=clock,
        beside=beside,
    )
    for task in reporting:
        if task.done():
            # It raised what ended it.
            await task
        task.cancel()
    # Handlers whose answers were broken off count their requests in their next turns.
    for _ in range(_LAST_TURNS):
        await asyncio.sleep(0)
    observer.finish()
    report(final=True)


def _interception(settings: MeteringSettings, tls: ssl.SSLContext) -> Interception:
    host, sign = settings.intercepts, None
    if settings.account:
        # It imports the SDK.
        from harness.endpoint.credential import EMULATOR_KEY, SharedKey

        sign = SharedKey(settings.account, EMULATOR_KEY).authorization_of
    hosts = {host, *(urlsplit(upstream).hostname for _, upstream, _ in settings.beside)}
    servers = {USUAL.server, *(server for server, _, _ in settings.beside)}

    def covers(name: str) -> bool:
        return name in hosts if host != "*" else server_at(name) in servers

    return Interception(covers=covers, tls=tls, account=settings.account, sign=sign)


_PACKAGES = Path(__file__).resolve().parents[2]
_READY_WITHIN_S = 20.0
_MOST_OUTPUT_BYTES = 64 * 1024

Reports = queue.SimpleQueue[tuple[str, MeteringReport | None]]
"""Name of a process and its report; None when its output ended."""


class MeteringProcess(ChildProcess):
    """One metering process; a thread puts its reports after the first into ``reports``.

    ``log`` is the file for its errors; ``proxies`` are variables that name proxies.
    """

    def __init__(
        self, settings: MeteringSettings, reports: Reports, log: Path, proxies: Mapping[str, str]
    ) -> None:
        self.settings = settings
        self._reports = reports
        self._first: queue.SimpleQueue[MeteringReport | None] = queue.SimpleQueue()
        self._log = log
        text = text_of(settings)
        receiving, sending = os.pipe()
        with os.fdopen(sending, "wb") as stdout, log.open("wb") as stderr:
            super().__init__(
                [sys.executable, "-m", "harness.watch.metering", text],
                stdout=stdout,
                stderr=stderr,
                environ={"PYTHONPATH": str(_PACKAGES), **proxies},
            )
        self._frames = os.fdopen(receiving, "rb")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._frames:
            self._first.put(MeteringReport.read(self._frames))
            while (report := MeteringReport.read(self._frames)) is not None:
                self._reports.put((self.settings.name, report))
        self._reports.put((self.settings.name, None))

    @property
    def last_words(self) -> str:
        """The end of its errors."""
        return self._log.read_bytes()[-_MOST_OUTPUT_BYTES:].decode("utf-8", "replace").strip()

    def first_report(self) -> MeteringReport:
        """Wait until the process listens.

        Raises:
            SetupError: it cannot listen, or its settings are invalid.
        """
        try:
            report = self._first.get(timeout=_READY_WITHIN_S)
        except queue.Empty:
            report = None
        if report is None:
            self.stop()
            raise SetupError(
                self.last_words or f"the gateway did not start within {_READY_WITHIN_S:g} s"
            )
        return report

    def stop(self) -> None:
        super().stop()
        self._reader.join()


if __name__ == "__main__":
    # A client takes two open files.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Prints of a library must not get between the frames.
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        run(_meter(settings_of(sys.argv[1]), frames))
    except SetupError as error:
        print(error, file=sys.stderr)
        sys.exit(BAD_SETUP)
    except BrokenPipeError:
        # The watch is gone.
        sys.exit(BAD_SETUP)
