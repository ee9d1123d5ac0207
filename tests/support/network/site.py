"""A table service, a master and workers on hosts of their own, as a company runs them."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.endpoint.credential import EMULATOR_ACCOUNT, EMULATOR_KEY
from harness.measure.record.record import RunRecord
from harness.swarm.master.rehearsal import NO_ANSWER, Counts
from tests.support.locust_process import ROOT, LocustProcess, Stress, wait_until
from tests.support.network.hosts import Host

_HARNESS = (sys.executable, "-m", "harness")
_PORT, _AZURITE_PORT = 10102, 10002
_READ = (
    "import ssl, sys, urllib.request as request; "
    "context = ssl.create_default_context(cafile=sys.argv[2]); "
    "print(request.urlopen(sys.argv[1], context=context).read().decode())"
)
_LOADED = "202"
"""Status of the transactions that load the table; the runs send none."""


class Site:
    """Azurite behind a gateway with TLS on the host ``table``, and processes on the others.

    Attributes:
        url: What ``-H`` takes to reach the gateway.
    """

    def __init__(self, stress: Stress, table: Host, lead: Host, folder: Path) -> None:
        self._stress = stress
        self._table = table
        self._lead = lead
        self._folder = folder
        self._authority = ""
        self.url = f"https://{table.address}:{_PORT}"

    @contextlib.contextmanager
    def serving(self) -> Iterator[Site]:
        """Serve tables until the context is left."""
        upstream = f"http://127.0.0.1:{_AZURITE_PORT}"
        listen = f"{self._table.address}:{_PORT}"
        with (
            self._server("azurite", "start", "--port", str(_AZURITE_PORT)) as azurite,
            self._server(
                *("gateway", "--upstream", upstream, "--listen", listen, "--limits", "none"),
                "--tls",
            ) as gateway,
        ):
            wait_until(lambda: str(_AZURITE_PORT) in azurite.read_text(), "Azurite listens")
            wait_until(lambda: "authority" in gateway.read_text(), "the gateway listens")
            found = re.search(r"\S+authority\.pem", gateway.read_text())
            assert found is not None
            self._authority = found[0]
            yield self

    def master(self, *arguments: str, port: int) -> LocustProcess:
        """Start the master of a run, which workers reach at ``port``."""
        return self._stress(
            *("--headless", "--master", "-H", self.url, "--remote-ok", EMULATOR_ACCOUNT),
            *("--master-bind-host", self._lead.address, "--master-bind-port", str(port)),
            *arguments,
            environ=self._environ(),
            host=self._lead,
        )

    def worker(self, host: Host, *, port: int, ahead_s: float = 0.0) -> LocustProcess:
        """Start a worker on a host, whose clock is ``ahead_s`` ahead."""
        return self._stress(
            *("--worker", "--master-host", self._lead.address, "--master-port", str(port)),
            environ=self._environ(),
            host=host,
            ahead_s=ahead_s,
        )

    def counters(self, record: RunRecord) -> Counts:
        """The gateway's own count of a run, by partition and status, without its loading."""
        url = f"{self.url}/-/truth"
        command = self._table.command(sys.executable, "-c", _READ, url, self._authority)
        page = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
        counts: Counts = collections.Counter()
        for row in json.loads(page.stdout)["counts"]:
            named = row["table"] == record.endpoint.table and row["partition"] is not None
            if named and row["sent"] != _LOADED:
                status = row["sent"] if row["sent"].isdigit() else NO_ANSWER
                counts[row["partition"], status] += row["requests"]
        return counts

    def _environ(self) -> dict[str, str]:
        return {
            "SSL_CERT_FILE": self._authority,
            "AZURE_STORAGE_ACCOUNT": EMULATOR_ACCOUNT,
            "AZURE_STORAGE_KEY": EMULATOR_KEY,
        }

    @contextlib.contextmanager
    def _server(self, *arguments: str) -> Iterator[Path]:
        """A server on the host ``table``; gives the file with what it says."""
        said = self._folder / f"{arguments[0]}.txt"
        with (
            said.open("wb") as out,
            subprocess.Popen(
                self._table.command(*_HARNESS, *arguments),
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield said
            finally:
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10.0)
                process.kill()
