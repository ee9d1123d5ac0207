"""Runs against a faulty table service: what each recorded, and what the service knows of it."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import gevent
import gevent.lock

from harness.endpoint.azurite.process import AzuriteProcess
from harness.measure.record.record import RunRecord
from tests.support.certificates import certificate
from tests.support.faulty_service.books import Books, differences
from tests.support.faulty_service.process import Faulty
from tests.support.locust_process import PATIENCE_S, LocustProcess, Stress
from tests.support.sdk import account_key

SHORT = (
    *("--headless", "-u", "8", "-r", "100", "-t", "3s"),
    *("--set", "load.max_entities_per_s=150"),
    *("--set", "load.emulator_max_entities_per_s=150"),
    *("--set", "load.settle_s=0"),
    *("--set", "loading.settle_s=0"),
    *("--set", "conditions=[]"),
    *("--set", "retry.backoff_s=0.02"),
    *("--set", "retry.minimum_s=0.01"),
    *("--set", "session.read_timeout_s=2"),
)
"""Little load for a little time, and hardly a wait before a retry."""
AT_ONCE = 4
"""So many processes at the same time: each waits most of the time."""
REMOTE = "127.1"
"""Leads to this machine, and is no address of it as far as its text says."""
_A_RUN_S = 30.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One process.

    Attributes:
        profile: Its name.
        session: How it sends.
        entities: How many it loads.
        scripts: What the service does to each of its runs.
        more: Further options.
        remote: Whether the host is one that is not this machine, as far as its name says.
    """

    profile: str
    session: str
    entities: int
    scripts: tuple[tuple[dict[str, Any], ...], ...]
    more: tuple[str, ...] = ()
    remote: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """A run that has ended, and what the service knows of it."""

    process: LocustProcess
    record: RunRecord
    books: Books

    def agree(self) -> None:
        """The record and the books say the same, and the run ended as any run does."""
        assert "Traceback" not in self.process.said, self.process.said
        found = differences(self.record, self.books)
        assert not found, "\n".join(found)
        assert self.record.exit_code in (0, 3), self.process.said


class Runs:
    """Makes the runs of cases, some at once, each once."""

    def __init__(self, stress: Stress, azurite: AzuriteProcess, folder: Path) -> None:
        self._stress = stress
        self._azurite = azurite
        self._folder = folder
        self._room = gevent.lock.Semaphore(AT_ONCE)
        self._running: dict[str, gevent.Greenlet] = {}

    def begin(self, name: str, case: Case) -> None:
        """Run it as soon as there is room."""
        self._running[name] = gevent.spawn(self._run, case)

    def of(self, name: str) -> list[Ran]:
        """What became of the runs of this name, when they have ended."""
        ran: list[Ran] = self._running[name].get()
        return ran

    def __getitem__(self, name: str) -> Ran:
        """What became of the only run of this name, when it has ended."""
        (ran,) = self.of(name)
        return ran

    def end(self) -> None:
        """End those that still go on."""
        gevent.killall(list(self._running.values()))

    def _run(self, case: Case) -> list[Ran]:
        port = self._azurite.endpoint.port
        tls = certificate(self._folder, REMOTE)[1:] if case.remote else None
        with (
            self._room,
            contextlib.closing(
                Faulty(port, case.scripts, loading_entities=case.entities, certificate=tls)
            ) as faulty,
        ):
            at: tuple[str, ...] = ("-H", faulty.url)
            environ: dict[str, str] = {}
            if case.remote:
                account = self._azurite.endpoint.account
                at = ("-H", f"https://{REMOTE}:{faulty.port}/{account}", "--remote-ok", account)
                environ = {
                    "AZURE_STORAGE_KEY": account_key(self._azurite.endpoint),
                    "SSL_CERT_FILE": str(self._folder / "authority.pem"),
                }
            process = self._stress(
                *(*SHORT, *at, "--repeat", str(len(case.scripts))),
                *("--profile", case.profile, "--session", case.session),
                *case.more,
                environ=environ,
            )
            process.wait(PATIENCE_S + _A_RUN_S * len(case.scripts))
            records, books = process.records, faulty.books()
            assert len(records) == len(books) == len(case.scripts), process.said
            return [Ran(process, *run) for run in zip(records, books, strict=True)]
