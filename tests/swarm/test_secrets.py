"""A secret of the environment is in no output, whatever happens.

An Azurite with an account of its own is asked through a proxy that refuses and resets, so that
there are errors to be told of. Everything is looked through: standard output and error with debug
logging, records, error logs, metrics, the web UI's pages, what master and worker say to each other.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import json
import os
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator

import gevent
import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas
from gevent.server import StreamServer

from harness.endpoint.azurite.process import installed, node
from tests.support.http_pages import content
from tests.support.locust_process import QUICK, WEB, LocustProcess, Stress, wait_until
from tests.support.ports import free_port
from tests.support.proxy import RESET, Proxy, Seen, refusal

pytestmark = [pytest.mark.azurite, pytest.mark.session]

ACCOUNT = "ownaccount"
KEY = base64.b64encode(bytes(range(7, 71))).decode()
PAGES = (
    *("/", "/stats/requests", "/logs", "/exceptions", "/tasks", "/stats/report"),
    *("/stats/requests/csv", "/stats/failures/csv", "/exceptions/csv", "/stress/", "/stress/data"),
)


class Tap:
    """Passes on what a worker and its master say, and keeps it."""

    def __init__(self, master_port: int) -> None:
        self.heard = bytearray()
        self._master_port = master_port
        self._server = StreamServer(("127.0.0.1", 0), self._serve)
        self._server.start()

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def stop(self) -> None:
        self._server.stop(timeout=1.0)

    def _serve(self, worker: socket.socket, _: object) -> None:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._master_port)) as master,
        ):
            back = gevent.spawn(self._pass_on, master, worker)
            self._pass_on(worker, master)
            back.kill()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(65536):
                self.heard += block
                target.sendall(block)


@pytest.fixture(scope="module")
def own_azurite() -> Iterator[int]:
    """The port of an Azurite that knows the account."""
    entry, port = installed(), free_port()
    assert entry is not None
    process = subprocess.Popen(
        [
            *(str(node()), str(entry), "--inMemoryPersistence", "--silent", "--disableTelemetry"),
            *("--skipApiVersionCheck", "--tableHost", "127.0.0.1", "--tablePort", str(port)),
        ],
        cwd=entry.parent,
        env={"PATH": os.environ["PATH"], "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
        stdout=subprocess.DEVNULL,
    )

    def listens() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return True
        return False

    wait_until(listens, "Azurite listens", 20.0)
    yield port
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def troubled(own_azurite: int) -> Iterator[Proxy]:
    """It, behind a proxy that resets some requests for entities and refuses others."""
    asked = 0

    def answer(seen: Seen) -> bytes | None:
        nonlocal asked
        if seen.of_table:
            return None
        asked += 1
        if asked % 23 == 0:
            return RESET
        denied = "This request is not authorized to perform this operation."
        return refusal(403, "AuthorizationFailure", denied) if asked % 29 == 0 else None

    proxy = Proxy(own_azurite, answer=answer)
    yield proxy
    proxy.stop()


@pytest.fixture(scope="module")
def sas() -> str:
    """A SAS for the account."""
    token: str = generate_account_sas(
        AzureNamedKeyCredential(ACCOUNT, KEY),
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions.from_string("rwdlacu"),
        dt.datetime.now(dt.UTC) + dt.timedelta(hours=1),
    )
    return token


@pytest.fixture(scope="module")
def secrets(sas: str) -> list[bytes]:
    """What must not be seen, in the spellings it has on the way."""
    (signature,) = (part[4:] for part in sas.split("&") if part.startswith("sig="))
    plain = [KEY, urllib.parse.unquote(signature)]
    return [
        spelled.encode()
        for secret in plain
        for spelled in {
            secret,
            urllib.parse.quote(secret),
            urllib.parse.quote(secret, safe=""),
            urllib.parse.quote_plus(secret),
            secret[:40],
        }
    ]


@pytest.fixture(scope="module")
def outputs(stress: Stress, troubled: Proxy, sas: str) -> dict[str, bytes]:
    """Everything that came out of three runs, by where."""
    debug = ("-L", "DEBUG", "-H", f"{troubled.url}/{ACCOUNT}")
    master, metrics, web = free_port(), free_port(), free_port()
    tap = Tap(master)
    with_key = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY}
    with_string = {
        "AZURE_STORAGE_CONNECTION_STRING": f"AccountName={ACCOUNT};AccountKey={KEY};"
        f"TableEndpoint={troubled.url}/{ACCOUNT}"
    }
    processes: dict[str, LocustProcess] = {
        "key": stress(
            *(*QUICK, *debug, "--master", "--expect-workers", "1"),
            *("--master-bind-port", str(master), "--metrics-port", str(metrics)),
            *("--metrics-linger", "30"),
            environ=with_key,
        ),
        "worker": stress("--worker", *debug, "--master-port", str(tap.port), environ=with_key),
        "SAS": stress(
            *(*QUICK, *debug, "--session", "sdk-default"),
            environ={"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_SAS_TOKEN": sas},
        ),
        "connection string": stress(*(*WEB, *debug, "--web-port", str(web)), environ=with_string),
    }
    found: dict[str, bytes] = {}
    ui = f"http://127.0.0.1:{web}"
    processes["connection string"].until_said("Web UI:")
    found["start"] = content(f"{ui}/swarm", user_count=2, spawn_rate=10)
    processes["connection string"].until_said("[3/4]")
    # On a busy machine two users send little in a few seconds.
    failures = f"{ui}/stats/requests"
    wait_until(lambda: bool(json.loads(content(failures))["errors"]), "operations fail", 30.0)
    found.update({f"page {path}": content(ui + path) for path in PAGES})
    processes["connection string"].interrupt()
    processes["key"].until_said("Metrics stay")
    found["metrics"] = content(f"http://127.0.0.1:{metrics}/metrics")
    processes["key"].interrupt()
    for name, process in processes.items():
        process.wait()
        for file in process.folder.rglob("*"):
            if file.is_file():
                found[f"{name}: {file.relative_to(process.folder)}"] = file.read_bytes()
    tap.stop()
    found["messages of master and worker"] = bytes(tap.heard)
    return found


def test_there_is_something_to_look_through(outputs: dict[str, bytes]) -> None:
    """Each kind of output is there, with errors in it, and debug logging was on."""
    names = " ".join(outputs)
    assert names.count("run.json") == 3
    assert names.count("errors.jsonl") == 3
    assert b"DEBUG" in outputs["SAS: stderr.txt"]
    assert b"aztables_attempts_total" in outputs["metrics"]
    assert b"aztables-WorkerReport" in outputs["messages of master and worker"]
    assert b"aztables-Share" in outputs["messages of master and worker"]
    errors = b"".join(text for name, text in outputs.items() if name.endswith("errors.jsonl"))
    assert b"AuthorizationFailure" in errors
    assert b"connection_" in errors or b"reset" in errors
    assert len(outputs["page /"]) > 1000


def test_no_output_holds_a_secret(outputs: dict[str, bytes], secrets: list[bytes]) -> None:
    """Neither the account key nor the signature of a SAS is anywhere, in no spelling."""
    leaks = [
        (name, text[max(0, text.index(secret) - 80) :][:100])
        for name, text in outputs.items()
        for secret in secrets
        if secret in text
    ]
    assert leaks == []


def test_no_output_holds_a_signature_of_a_request(outputs: dict[str, bytes]) -> None:
    """What is signed with the key is not shown either: it could be sent again for a while."""
    for name, text in outputs.items():
        assert f"SharedKey {ACCOUNT}:".encode() not in text, name
        assert b"sig=" not in text, name


def test_the_runs_went_as_runs_go(outputs: dict[str, bytes]) -> None:
    """No traceback in any of them, with debug logging either."""
    for name, text in outputs.items():
        if name.endswith((": stdout.txt", ": stderr.txt")):
            assert b"Traceback" not in text, (name, text[-3000:])
