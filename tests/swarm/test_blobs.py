"""The log profiles: as a table and as blobs on the embedded Azurite; as blobs of an account."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import gevent
import pytest

from harness.endpoint.admin.stores import list_stores
from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.endpoint.credential import EMULATOR_KEY
from harness.measure.record.measured import OperationPart
from harness.measure.record.record import RunRecord
from harness.workload.scenarios.time_series import READ_SHARE
from tests.support.certificates import certificate
from tests.support.command import Command
from tests.support.entra import ManagedIdentity
from tests.support.http_pages import page
from tests.support.locust_process import WEB, LocustProcess, Stress, forked
from tests.support.ports import free_port
from tests.support.production_hosts import ACCOUNT, BLOB_HOST, LOCUSTFILE

pytestmark = [pytest.mark.azurite, pytest.mark.long]

LINES = 200
SHORT = (
    *("--headless", "-t", "5s", "--set", "load.settle_s=0", "--set", "loading.settle_s=0"),
    *("--set", "load.operations_per_s=8", "--set", f"keys.rows_per_partition={LINES}"),
)


def ended(process: LocustProcess) -> RunRecord:
    assert process.wait() in (0, 3), process.said
    return process.record


def operation(record: RunRecord, name: str) -> OperationPart:
    return next(part for part in record.operations if part.kind == name)


def test_both_ways_are_compared(stress: Stress, command: Command) -> None:
    """Batches and ranges have the same lines in both, and the comparison shows both.

    Bounds: two runs of some ten seconds at once.
    """
    processes = [
        stress(*SHORT, "--summary", "full", "--profile", profile)
        for profile in ("log-in-tables", "log-in-blobs")
    ]
    with gevent.Timeout(120):
        rows, lines = (ended(process) for process in processes)
    for name, each in (("write_lines", 100), ("read_back", LINES // READ_SHARE)):
        for part in (operation(rows, name), operation(lines, name)):
            assert part.entities == each * part.count > 0
            assert part.outcomes.keys() == {"success"}
    assert operation(lines, "read_back").entities_estimated == 0
    assert lines.invariants == ()
    assert lines.loading.entities == rows.loading.entities == LINES
    assert lines.account.target is None
    assert lines.session == "blob"
    # The first append to a blob creates it by a further request.
    assert lines.counts.attempts > lines.counts.operations
    assert "Not cleaned up" not in processes[1].said
    assert f"the container {lines.endpoint.table} at" in processes[1].said
    assert f", container {lines.endpoint.table}" in " ".join(processes[1].said.split())
    assert "table stress" not in processes[1].said
    folders = [str(process.folder / "out" / process.record.run_id) for process in processes]
    said = command.words("compare", *folders)
    assert "p50 write_lines, ms" in said
    assert "p50 read_back, ms" in said
    assert "billable /1,000 entities" in said
    assert "A line of a blob counts as an entity of a table." in said
    assert "B ran on Azurite's blobs" not in said
    assert "log-in-blobs on Azurite's blobs (emulator" in said


BUDGET = 60
LIFE_S = 12.0
"""Tokens are renewed after 7 s, so once in a run."""


@pytest.fixture(scope="module")
def on_account(
    stress: Stress, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[AzuriteProcess, dict[str, LocustProcess]]]:
    """Runs on an account under its host name of Azure, ended; and its server.

    Bounds: four runs of some ten seconds at once.
    """
    folder = tmp_path_factory.mktemp("account")
    locustfile = folder / "leading_here.py"
    locustfile.write_text(LOCUSTFILE, encoding="utf-8")
    files = certificate(folder, BLOB_HOST, "127.0.0.1")
    allowed = ("--remote-ok", ACCOUNT)
    chosen = {
        "plain": ("--profile", "log-in-blobs", *allowed, *forked(2)),
        "hashed": ("--profile", "log-in-blobs-hashed", *allowed),
        "budget": (
            *("--profile", "log-in-blobs", *allowed, "-t", "40s"),
            *("--set", f"limits.billable_transactions={BUDGET}"),
        ),
        "login": ("--profile", "log-in-blobs", *allowed, "--auth-mode", "login", *forked(2)),
        "without consent": ("--profile", "log-in-blobs"),
    }
    with (
        start_azurite(cert=files.cert, key=files.key, oauth=True, service="blob") as server,
        pytest.MonkeyPatch.context() as patch,
        contextlib.ExitStack() as stack,
    ):
        identity = ManagedIdentity(LIFE_S)
        stack.callback(identity.stop)
        patch.setenv("SSL_CERT_FILE", str(files.authority))
        at = ("-H", f"https://{BLOB_HOST}:{server.endpoint.port}")
        environ = {
            **identity.environ,
            "AZURE_STORAGE_KEY": EMULATOR_KEY,
            "SSL_CERT_FILE": str(files.authority),
        }
        started = {
            name: stress(*SHORT, *at, *options, environ=environ, locustfile=locustfile)
            for name, options in chosen.items()
        }
        with gevent.Timeout(120):
            for process in started.values():
                process.children()
                process.wait()
        yield server, started


@pytest.mark.parametrize("name", ["plain", "hashed", "budget", "login"])
def test_a_run_on_an_account_leaves_nothing_behind(
    name: str, on_account: tuple[AzuriteProcess, dict[str, LocustProcess]]
) -> None:
    """It says first what it may cost; every operation succeeds; its container is deleted."""
    server, runs = on_account
    process = runs[name]
    assert process.process.returncode in (0, 3), process.said
    assert process.records, process.said
    record = process.record
    assert record.endpoint.kind == "azure-blobs"
    assert record.outcomes.keys() == {"success"}
    assert record.invariants == ()
    assert record.account.target is None
    said = process.stdout
    announced = said.index(f"Account {ACCOUNT}: this run may make up to ")
    assert announced < said.index(f"the container {record.endpoint.table} at {BLOB_HOST}")
    assert ("Signed with: Entra ID (managed identity" in said) == (name == "login")
    assert "Not cleaned up" not in process.said
    assert list_stores(server.endpoint) == []


def test_a_spent_budget_ends_a_valid_run_on_blobs(
    on_account: tuple[AzuriteProcess, dict[str, LocustProcess]],
) -> None:
    """Probe, container, blobs, loading and deleting included."""
    process = on_account[1]["budget"]
    record = process.record
    assert f"up to {BUDGET} billable transactions (limits.billable_transactions)" in process.said
    assert record.ended_by == "budget of billable transactions"
    assert record.complete
    assert BUDGET - 10 < record.counts.billable_transactions <= BUDGET


def test_names_of_blobs_are_compared_on_an_account(
    on_account: tuple[AzuriteProcess, dict[str, LocustProcess]], command: Command
) -> None:
    """Names by date against names with a hashed prefix: a measured comparison as elsewhere."""
    runs = on_account[1]
    folders = [
        str(runs[name].folder / "out" / runs[name].record.run_id) for name in ("plain", "hashed")
    ]
    said = command.words("compare", *folders)
    assert "p50 write_lines, ms" in said
    assert "log-in-blobs-hashed" in said
    assert "Azure Blob Storage" in said


def test_a_run_without_consent_sends_nothing(
    on_account: tuple[AzuriteProcess, dict[str, LocustProcess]],
) -> None:
    """Exit code 2, and the name of the host is not even looked up."""
    process = on_account[1]["without consent"]
    assert process.process.returncode == 2, process.said
    assert f"To allow that, add --remote-ok {ACCOUNT}" in " ".join(process.said.split())
    assert not [text for _, text in process.addresses if BLOB_HOST in text]


def test_the_form_does_not_send_blobs_to_a_server_of_tables(stress: Stress, host: str) -> None:
    """A profile with another session than that of -H is refused in the form."""
    port = free_port()
    process = stress(*WEB, "-H", host, "--web-port", str(port))
    process.until_said("Web UI:")
    form = {"user_count": "4", "spawn_rate": "100", "profile": "log-in-blobs"}
    answer = json.loads(page(f"http://127.0.0.1:{port}/swarm", **form))
    assert not answer["success"]
    assert (
        "session blob sends to a blob service, and -H is the address of Azurite"
        in (answer["message"])
    )
    process.interrupt()
    assert process.wait() == 0
