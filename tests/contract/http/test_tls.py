"""Certificates and host names are checked, and the environment says whom to trust."""

from __future__ import annotations

import dataclasses
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from harness.endpoint.azurite.process import start_azurite
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.pool import CA_VARIABLES
from harness.model.errors import SetupError
from harness.model.operation import Kind, Operation
from harness.model.outcome import Fault, Outcome
from harness.workload.retry import ScheduledBackoff
from tests.support.certificates import CertificateFiles, certificate

pytestmark = pytest.mark.azurite

QUESTION = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """A certificate authority that only these tests know."""
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """A certificate for 127.0.0.1."""
    return certificate(tmp_path_factory.mktemp("certificate"), authority=authority)


@pytest.fixture(scope="module")
def bundle(files: CertificateFiles) -> Path:
    """The authority's own certificate."""
    return files.authority


@pytest.fixture(scope="module")
def secure(files: CertificateFiles) -> Iterator[Endpoint]:
    """An Azurite behind TLS."""
    with start_azurite(cert=files.cert, key=files.key) as process:
        yield process.endpoint


@pytest.fixture(autouse=True)
def _no_bundle_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CA_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("variable", CA_VARIABLES)
def test_the_authority_of_the_environment_is_trusted(
    variable: str,
    bundle: Path,
    secure: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    open_to: Callable[..., Any],
) -> None:
    """With its authority named by either variable, the service is asked."""
    monkeypatch.setenv(variable, str(bundle))
    session = open_to(kind, secure, "nosuchtable", connections=1)
    for _ in range(3):
        result = session.execute(QUESTION)
        assert (result.outcome, result.attempts[0].status) == (Outcome.REJECTED, 404)
    assert session.connections_in_use == 0


def test_the_baseline_trusts_nothing_else(
    bundle: Path,
    secure: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_to: Callable[..., Any],
) -> None:
    """What the SDK's transport would trust by itself does not count; both variables together do."""
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    monkeypatch.setenv("CURL_CA_BUNDLE", str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
    refused = open_to("sdk-default", secure, "nosuchtable", connect_timeout_s=1.0)
    insert = dataclasses.replace(QUESTION, kind=Kind.INSERT, properties={"A": 1})
    assert refused.execute(insert).attempts[0].fault is Fault.TLS
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    trusting = open_to("sdk-default", secure, "nosuchtable")
    assert trusting.execute(QUESTION).attempts[0].status == 404


def test_an_unknown_authority_is_refused(
    secure: Endpoint, ours: str, open_to: Callable[..., Any]
) -> None:
    """Without its authority the service is not asked, and there is no retry."""
    session = open_to(ours, secure, retry=ScheduledBackoff(delays_s=(0.0,) * 3))
    result = session.execute(QUESTION)
    assert (result.outcome, len(result.attempts)) == (Outcome.CONNECTION, 1)
    assert result.attempts[0].fault is Fault.TLS
    assert "certificate verify failed" in result.attempts[0].message
    assert (result.bytes_sent, session.connections_in_use) == (0, 0)


def test_another_authority_is_refused(
    secure: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ours: str,
    open_to: Callable[..., Any],
) -> None:
    """Where the environment names another authority, the service is not asked."""
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
    assert open_to(ours, secure).execute(QUESTION).attempts[0].fault is Fault.TLS


def test_another_host_name_is_refused(
    bundle: Path,
    secure: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    ours: str,
    open_to: Callable[..., Any],
) -> None:
    """A certificate for 127.0.0.1 does not do for localhost."""
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    elsewhere = dataclasses.replace(secure, url=secure.url.replace("127.0.0.1", "localhost"))
    (attempt,) = open_to(ours, elsewhere).execute(QUESTION).attempts
    assert attempt.fault is Fault.TLS
    assert "mismatch" in attempt.message


def test_a_handshake_that_is_not_answered(
    ours: str, open_to: Callable[..., Any], secure: Endpoint
) -> None:
    """A server that accepts and then says nothing is a time-out of the connection, not sent."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"https://127.0.0.1:{mute.getsockname()[1]}/devstoreaccount1"
        session = open_to(ours, dataclasses.replace(secure, url=url), connect_timeout_s=0.3)
        (attempt,) = session.execute(QUESTION).attempts
    assert (attempt.fault, attempt.ambiguous) == (Fault.CONNECT_TIMEOUT, False)
    assert session.connections_in_use == 0


def test_a_bundle_that_is_none_is_bad_set_up(
    secure: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    open_to: Callable[..., Any],
) -> None:
    """A variable that names no certificates is a sentence, before anything is sent."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(SetupError, match=r"SSL_CERT_FILE=.* holds no certificates"):
        open_to(kind, secure)


def test_a_later_connection_resumes_the_session_of_an_earlier_one(
    authority: trustme.CA,
    bundle: Path,
    secure: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    ours: str,
    open_to: Callable[..., Any],
) -> None:
    """The second connection to a server does without most of the handshake."""
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    resumed: list[bool | None] = []

    def answer_once_each(listener: socket.socket) -> None:
        for _ in range(2):
            plain, _ = listener.accept()
            with context.wrap_socket(plain, server_side=True) as connection:
                resumed.append(connection.session_reused)
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10.0)
        server = threading.Thread(target=answer_once_each, args=(listener,), daemon=True)
        server.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/devstoreaccount1"
        session = open_to(ours, dataclasses.replace(secure, url=url), connections=1)
        for _ in range(2):
            assert session.execute(QUESTION).attempts[-1].status == 404
            # The server closes each connection behind its answer.
            time.sleep(0.2)
        server.join(10.0)
    assert resumed == [False, True]
