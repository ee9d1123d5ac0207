"""The examination of endpoints that work, refuse, drop packets, or are interrupted."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableSasPermissions, generate_table_sas

from harness.doctor.checks import CheckResult, Status
from harness.doctor.endpoint import EXPECTED_TRANSACTIONS, Examination
from harness.endpoint.admin.tables import create_table, delete_table, list_tables, made_at
from harness.endpoint.credential import EMULATOR_ACCOUNT, EMULATOR_KEY
from harness.endpoint.endpoint import Endpoint
from harness.gateway.limits import limits_path
from harness.gateway.process import start_gateway
from harness.gateway.tls import made_certificate
from harness.model.errors import SetupError
from tests.support.http_messages import read_message

pytestmark = pytest.mark.azurite

OK, WARNING, FAILED, NOT_TRIED = Status
REQUESTS = (
    *("credential", "round trip", "users", "clock", "kind"),
    *("permissions", "key length", "leftovers"),
)


def examined(host: str, environ: dict[str, str] | None = None) -> dict[str, CheckResult]:
    examination = Examination(host, environ=environ or {}, say=lambda line: None)
    return {check.name: check for check in examination.checks()}


def states(checks: dict[str, CheckResult]) -> dict[str, Status]:
    return {name: check.status for name, check in checks.items()}


def runs_tables(endpoint: Endpoint) -> list[str]:
    return [name for name in list_tables(endpoint) if made_at(name) is not None]


@contextlib.contextmanager
def serving(handle: object, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server that gives each connection to ``handle`` in a thread; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    raw, _ = listener.accept()
                    threading.Thread(target=talk, args=(raw,), daemon=True).start()

        def talk(raw: socket.socket) -> None:
            with contextlib.suppress(OSError), raw:
                if context is None:
                    handle(raw)  # type: ignore[operator]
                else:
                    with context.wrap_socket(raw, server_side=True) as wrapped:
                        handle(wrapped)  # type: ignore[operator]

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def test_azurite_passes_every_check(endpoint: Endpoint) -> None:
    """Each line has its figure, the table of its own is gone, and every request is counted."""
    before = runs_tables(endpoint)
    examination = Examination(endpoint.url, environ={}, say=lambda line: None)
    checks = {check.name: check for check in examination.checks()}
    assert set(states(checks).values()) <= {OK, WARNING}, checks
    assert tuple(checks) == ("name", "connection", *REQUESTS)
    assert runs_tables(endpoint) == before
    assert checks["permissions"].figures["transactions"] == 9
    assert checks["key length"].figures == {"taken": 512, "tried": [512, 1024]}
    assert "1,024 characters: " in checks["key length"].text
    assert checks["round trip"].figures["requests"] == 50
    assert abs(checks["clock"].figures["least_s"]) < 2
    assert "Azurite" in checks["kind"].text
    assert examination.budget.spent == EXPECTED_TRANSACTIONS
    assert checks["users"].figures["for_2000_per_s"] >= 1


def test_a_gateway_is_told_from_what_is_behind_it(endpoint: Endpoint) -> None:
    """Its answers are those of Azurite, and yet it can throttle."""
    limits = limits_path("demo")
    with start_gateway(upstream=f"http://{endpoint.host}", limits=limits) as gateway:
        checks = examined(gateway.url)
    assert set(states(checks).values()) <= {OK, WARNING}, checks
    assert "a gateway of the harness" in checks["kind"].text
    assert "Azurite" in checks["kind"].text


def test_a_run_works_at_a_gateway_that_stores_nothing() -> None:
    """Its reads find nothing, which is a warning."""
    with start_gateway(upstream="none", limits=limits_path("published")) as gateway:
        found = examined(gateway.url)["permissions"]
    assert found.status is Status.WARNING
    assert "stores nothing" in found.text


@pytest.mark.parametrize(
    ("token", "status", "words"),
    [("a", FAILED, "leads back to an earlier page"), ("%d", NOT_TRIED, "100 billable")],
    ids=["the same token", "a new token"],
)
def test_a_listing_without_end_is_a_sentence(token: str, status: Status, words: str) -> None:
    """Each page names another one: the check of leftovers ends, as every other check does."""
    numbers = itertools.count()

    def list_without_end(connection: socket.socket) -> None:
        while read_message(connection):
            body = b'{"value":[]}'
            next_name = token.replace("%d", str(next(numbers)))
            head = f"HTTP/1.1 200 OK\r\nx-ms-continuation-NextTableName: {next_name}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)

    with serving(list_without_end) as port:
        found = examined(f"http://127.0.0.1:{port}")["leftovers"]
    assert (found.status, words in found.text) == (status, True)


def test_leftovers_are_named(endpoint: Endpoint) -> None:
    """A table of a run that was killed long ago is a warning that names sweep."""
    name = "stress20200102T030405Z0badc0de"
    create_table(endpoint, name)
    try:
        found = examined(endpoint.url)["leftovers"]
    finally:
        delete_table(endpoint, name)
    assert found.status is WARNING
    assert name in found.text
    assert "harness sweep -H" in found.advice


def test_a_wrong_key_fails_and_the_rest_is_examined(endpoint: Endpoint) -> None:
    """Latency and clock do not need the key; permissions do."""
    checks = examined(
        endpoint.url,
        {"AZURE_STORAGE_ACCOUNT": EMULATOR_ACCOUNT, "AZURE_STORAGE_KEY": "d3Jvbmc="},
    )
    assert checks["credential"].status is FAILED
    assert "refuses the key" in checks["credential"].text
    assert checks["round trip"].status is OK
    assert checks["permissions"].status is NOT_TRIED
    assert "d3Jvbmc" not in repr(checks)


def test_a_missing_credential_is_a_failed_check(endpoint: Endpoint) -> None:
    """The network is examined all the same."""
    checks = examined(endpoint.url.replace(EMULATOR_ACCOUNT, "another"))
    assert checks["connection"].status is OK
    assert checks["credential"].status is FAILED
    assert "no credential for another" in checks["credential"].text


def test_a_sas_for_one_table_needs_that_table(endpoint: Endpoint) -> None:
    """No table can be created with it, which is said and no failure."""
    sas = generate_table_sas(
        AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY),
        "sometable",
        permission=TableSasPermissions(read=True, add=True, update=True, delete=True),
        expiry=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1),
    )
    checks = examined(endpoint.url, {"AZURE_STORAGE_SAS_TOKEN": sas})
    assert "--table sometable" in checks["permissions"].text
    assert checks["leftovers"].status is NOT_TRIED
    assert sas.split("sig=")[1][:20] not in repr(checks)


def test_a_stopped_server_refuses_connections() -> None:
    """The name is fine, the connection is not, and nothing else is tried."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    checks = examined(f"http://127.0.0.1:{port}")
    assert states(checks) == {
        "name": OK,
        "connection": FAILED,
        **dict.fromkeys(REQUESTS, NOT_TRIED),
    }
    assert "start the server" in checks["connection"].advice


def test_packets_that_are_dropped_end_in_time() -> None:
    """A listener with a full backlog answers as a firewall does: not at all."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(listener.getsockname())
        began_s = time.monotonic()
        checks = examined(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert time.monotonic() - began_s < 30
    assert checks["connection"].status is FAILED
    assert "firewall" in checks["connection"].advice


def test_an_unknown_name_is_told() -> None:
    """A name that cannot exist fails its check, and a remote host without consent gets nothing."""
    checks = examined(
        "https://account.table.core.windows.net.invalid/account", {"AZURE_STORAGE_KEY": "a2V5"}
    )
    assert checks["name"].status is FAILED
    assert checks["TLS"].status is NOT_TRIED


def test_consent_for_another_account_is_bad_input() -> None:
    """The name in --remote-ok has to be the account's, before anything is looked up."""
    with pytest.raises(SetupError, match="--remote-ok names other"):
        Examination(
            "https://mine.table.core.windows.net",
            remote_ok="other",
            environ={"AZURE_STORAGE_KEY": "a2V5"},
        )


def test_a_certificate_is_shown_and_has_to_be_trusted(tmp_path: Path) -> None:
    """Version, cipher, issuer and expiry of a trusted one; the name of one that is not."""
    context, authority = made_certificate(tmp_path, "127.0.0.1")
    with serving(lambda connection: connection.recv(1), context) as port:
        url = f"https://127.0.0.1:{port}"
        untrusted = examined(url)["TLS"]
        trusted = examined(url, {"SSL_CERT_FILE": str(authority)})["TLS"]
    assert untrusted.status is FAILED
    assert "Table gateway, issued by Authority of a table gateway" in untrusted.text
    assert "SSL_CERT_FILE" in untrusted.advice
    assert trusted.status is OK
    assert trusted.figures["version"] == "TLSv1.3"
    assert trusted.figures["resumed_ms"] is not None
    assert "valid for 29 days" in trusted.text or "valid for 30 days" in trusted.text


@pytest.mark.parametrize(("off_s", "status"), [(60, WARNING), (3600, FAILED), (0, OK)])
def test_a_clock_that_is_off_is_told(off_s: int, status: Status) -> None:
    """5 s are too much for workers, 15 min for the service."""

    def answer(connection: socket.socket) -> None:
        while connection.recv(65536):
            date = formatdate(time.time() + off_s, usegmt=True)
            body = '{"value":[]}'
            connection.sendall(
                f"HTTP/1.1 200 OK\r\nDate: {date}\r\nx-ms-request-charge: 1\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )

    with serving(answer) as port:
        checks = {}
        for check in Examination(
            f"http://127.0.0.1:{port}", environ={}, say=lambda line: None
        ).checks():
            checks[check.name] = check
            if check.name == "kind":
                break
    assert checks["clock"].status is status
    if off_s:
        assert f"{off_s:,}" in checks["clock"].text or f"{off_s - 1:,}." in checks["clock"].text
        assert "behind the service" in checks["clock"].text
    # What answers on this machine is known by its answers alone.
    assert "Cosmos DB stand-in (emulator" in checks["kind"].text
    assert checks["kind"].status is OK


def test_an_interrupted_examination_deletes_its_table(endpoint: Endpoint) -> None:
    """Ctrl-C while permissions are tried leaves no table behind."""
    before = runs_tables(endpoint)
    asked: list[bytes] = []
    there: list[list[str]] = []

    def pass_on(connection: socket.socket) -> None:
        with socket.create_connection((endpoint.hostname, endpoint.port)) as upstream:
            while request := connection.recv(65536):
                asked.append(request)
                upstream.sendall(request)
                answer = upstream.recv(65536)
                if request.startswith(b"PATCH ") and not there:
                    there.append(runs_tables(endpoint))
                    os.kill(os.getpid(), signal.SIGUSR1)
                    time.sleep(0.3)
                connection.sendall(answer)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with serving(pass_on) as port, pytest.raises(KeyboardInterrupt):
            examined(f"http://127.0.0.1:{port}")
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert len(there[0]) == len(before) + 1
    assert runs_tables(endpoint) == before
