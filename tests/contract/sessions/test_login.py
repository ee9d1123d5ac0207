"""Requests that are signed with the token of a login, and what follows a 401."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.endpoint.admin.tables import list_tables
from harness.endpoint.azurite.process import start_azurite
from harness.endpoint.endpoint import Endpoint, as_kind, endpoint_from
from harness.endpoint.entra.login import Login
from harness.endpoint.entra.token import Token, identity_of
from harness.model.auth_mode import AUTH_MODE, LOGIN_MODE
from harness.model.errors import SetupError
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Outcome
from harness.model.services.cosmos import COSMOS_EMULATOR
from harness.workload.budget import Budget
from tests.contract.conftest import ScriptedService
from tests.support.certificates import CertificateFiles
from tests.support.entra import TENANT, ManagedIdentity, access_token

INSERT = Operation(kind=Kind.INSERT, partition_key="p", row_key="r", properties={"A": 1})
QUESTION = Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r")
CHALLENGE = (
    f"Bearer authorization_uri=https://login.microsoftonline.com/{TENANT}/oauth2/authorize "
    "resource_id=https://management.azure.com"
)
RENEWAL_S = 0.2


class Issuer:
    """Issues tokens, slowly after the first; a problem ends that."""

    def __init__(self) -> None:
        self.issued: list[str] = []
        self.problem = ""

    def __call__(self) -> Token:
        if self.problem:
            raise SetupError(self.problem)
        if self.issued:
            time.sleep(RENEWAL_S)
        value = access_token()
        self.issued.append(value)
        now_s = time.time()
        identity = identity_of(value)
        return Token(value=value, fetched_s=now_s, expires_s=now_s + 3600, identity=identity)


@pytest.fixture
def secure(
    certificates: CertificateFiles, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ScriptedService]:
    """A scripted service behind TLS, whose authority is trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.cert, certificates.key)
    service = ScriptedService(context)
    yield service
    service.stop()


@pytest.fixture
def issuer() -> Issuer:
    """An issuer."""
    return Issuer()


@pytest.fixture
def login(issuer: Issuer) -> Login:
    """A login with its first token."""
    login = Login(issuer, audience="https://storage.azure.com")
    login.sign_in()
    return login


def refusal(service: ScriptedService, **headers: str) -> bytes:
    return service.answer(
        401, "InvalidAuthenticationInfo", "Lifetime validation failed.", **headers
    )


def tokens_of(requests: list[bytes]) -> list[str]:
    heads = [request.partition(b"\r\n\r\n")[0].decode() for request in requests]
    lines = [line.partition(": ") for head in heads for line in head.split("\r\n")[1:]]
    return [
        text.removeprefix("Bearer ") for name, _, text in lines if name.lower() == "authorization"
    ]


def test_every_request_carries_the_token_in_its_header(
    kind: str, secure: ScriptedService, login: Login, issuer: Issuer, open_to: Callable[..., Any]
) -> None:
    """Single requests, pages and transactions; never in the URL or the body."""
    secure.script = [secure.no_content] * 2
    secure.script += [secure.transaction_answer(secure.no_content, secure.no_content)]
    session = open_to(kind, dataclasses.replace(secure.endpoint, credential=login))
    delete = dataclasses.replace(INSERT, kind=Kind.DELETE, properties=None)
    other = dataclasses.replace(INSERT, row_key="s")
    for operation in (INSERT, delete, transaction((INSERT, other))):
        assert session.execute(operation).outcome is Outcome.SUCCESS
    assert tokens_of(secure.requests) == issuer.issued * 3
    for request in secure.requests:
        assert request.count(issuer.issued[0].encode()) == 1


def test_after_a_401_an_operation_goes_on_with_a_new_token(
    ours: str, secure: ScriptedService, login: Login, issuer: Issuer, open_to: Callable[..., Any]
) -> None:
    """The 401 is an attempt; the renewal is in no attempt's latency, nor in the operation's."""
    secure.script = [refusal(secure), secure.no_content]
    reported: list[int] = []
    session = open_to(
        ours,
        dataclasses.replace(secure.endpoint, credential=login),
        on_attempt=lambda _, attempt: reported.append(attempt.status),
    )
    result = session.execute(INSERT)
    assert [attempt.status for attempt in result.attempts] == [401, 204]
    assert (result.outcome, reported) == (Outcome.SUCCESS, [401])
    assert tokens_of(secure.requests) == issuer.issued
    assert len(set(issuer.issued)) == 2
    assert result.outside_s >= RENEWAL_S
    assert result.done_s - result.sent_s >= RENEWAL_S
    assert result.service_s == pytest.approx(
        sum(attempt.latency_s for attempt in result.attempts), abs=RENEWAL_S / 2
    )


@pytest.mark.parametrize("problem", ["", "the identity is gone"])
def test_a_token_is_renewed_once_for_an_operation(
    problem: str,
    ours: str,
    secure: ScriptedService,
    login: Login,
    issuer: Issuer,
    open_to: Callable[..., Any],
) -> None:
    """A second 401, or a renewal that fails, ends the operation with the refusal."""
    secure.script = [refusal(secure)] * 2
    issuer.problem = problem
    session = open_to(ours, dataclasses.replace(secure.endpoint, credential=login))
    result = session.execute(QUESTION)
    assert result.outcome is Outcome.FORBIDDEN
    assert len(result.attempts) == len(secure.requests) == (1 if problem else 2)


def test_a_renewal_takes_from_the_budget(
    ours: str, secure: ScriptedService, login: Login, open_to: Callable[..., Any]
) -> None:
    """Without budget for another request the operation ends with its 401."""
    secure.script = [refusal(secure)]
    session = open_to(
        ours, dataclasses.replace(secure.endpoint, credential=login), budget=Budget(1)
    )
    assert session.execute(INSERT).outcome is Outcome.FORBIDDEN
    assert len(secure.requests) == 1


def test_the_baseline_follows_a_challenge_with_its_own_token(
    secure: ScriptedService, login: Login, issuer: Issuer, open_to: Callable[..., Any]
) -> None:
    """The SDK sends again after a challenge; the audience that it names gets no token."""
    secure.script = [refusal(secure, WWW_Authenticate=CHALLENGE), secure.no_content]
    secure.script += [refusal(secure)]
    session = open_to("sdk-default", dataclasses.replace(secure.endpoint, credential=login))
    result = session.execute(INSERT)
    assert [attempt.status for attempt in result.attempts] == [401, 204]
    assert result.outside_s >= RENEWAL_S
    assert tokens_of(secure.requests) == issuer.issued
    assert len(issuer.issued) == 2
    assert session.execute(INSERT).outcome is Outcome.FORBIDDEN


def test_an_append_after_a_challenge_is_an_attempt_of_its_own(
    secure: ScriptedService, login: Login, issuer: Issuer, open_to: Callable[..., Any]
) -> None:
    """The library for blobs neither sends again by itself nor keeps the refused token."""
    created = b'HTTP/1.1 201 Created\r\nETag: "1"\r\nContent-Length: 0\r\n\r\n'
    secure.script = [created, refusal(secure, WWW_Authenticate=CHALLENGE), created]
    budget = Budget()
    session = open_to("blob", dataclasses.replace(secure.endpoint, credential=login), budget=budget)
    result = session.execute(INSERT)
    assert [attempt.status for attempt in result.attempts] == [201, 401, 201]
    first, second = issuer.issued
    assert tokens_of(secure.requests) == [first, first, second]
    assert budget.spent == 3


def test_a_login_at_cosmos_db_asks_for_its_audience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A managed identity is asked for a token of Cosmos DB, and the SDK names the same scope."""
    identity = ManagedIdentity()
    for name, text in identity.environ.items():
        monkeypatch.setenv(name, text)
    host = "https://orders.table.cosmos.azure.com"
    login = endpoint_from(host, {**os.environ, AUTH_MODE: LOGIN_MODE}).login
    assert login is not None
    try:
        login.sign_in()
    finally:
        identity.stop()
    claims = login.token.value.split(".")[1]
    claimed = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert claimed["aud"] == login.for_sdk()["audience"] == "https://cosmos.azure.com"


def test_cosmos_db_takes_the_token_in_its_dialect(
    ours: str, secure: ScriptedService, login: Login, issuer: Issuer, open_to: Callable[..., Any]
) -> None:
    """In the header of every request; a refusal without a challenge renews it too."""
    secure.script = [secure.answer(401, "Unauthorized", "The token has expired.")]
    secure.script += [secure.no_content] * 2
    secure.script += [secure.transaction_answer(secure.no_content)]
    secure.script += [secure.entity_answer(RowKey="r")]
    endpoint = dataclasses.replace(secure.endpoint, credential=login)
    session = open_to(ours, as_kind(endpoint, COSMOS_EMULATOR))
    merge = dataclasses.replace(INSERT, kind=Kind.UPSERT_MERGE)
    result = session.execute(merge)
    assert [attempt.status for attempt in result.attempts] == [401, 204]
    for operation in (INSERT, transaction((merge,)), QUESTION):
        assert session.execute(operation).outcome is Outcome.SUCCESS
    first, second = issuer.issued
    assert tokens_of(secure.requests) == [first, *[second] * 4]
    for request in secure.requests[:2]:
        head = request.lower()
        assert head.startswith(b"post ")
        assert b"\r\nx-http-method: merge\r\n" in head
    for request, token in zip(secure.requests, tokens_of(secure.requests), strict=True):
        assert request.count(token.encode()) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_token_follows_a_redirect(
    kind: str, status: int, secure: ScriptedService, login: Login, open_to: Callable[..., Any]
) -> None:
    """Neither to the same host nor to another one."""
    elsewhere = secure.endpoint.url.replace("127.0.0.1", "localhost")
    secure.script = [secure.answer(status, "Moved", Location=elsewhere)]
    session = open_to(kind, dataclasses.replace(secure.endpoint, credential=login))
    assert not session.execute(INSERT).outcome.succeeded
    assert len(secure.requests) == 1


def test_requests_around_a_run_go_on_after_a_401(
    secure: ScriptedService, login: Login, issuer: Issuer
) -> None:
    """They are the SDK's, which sends again after a challenge."""
    body = b'{"value": []}'
    listing = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    secure.script = [refusal(secure, WWW_Authenticate=CHALLENGE), listing % len(body) + body]
    assert list_tables(dataclasses.replace(secure.endpoint, credential=login)) == []
    assert tokens_of(secure.requests) == issuer.issued
    assert len(issuer.issued) == 2


@pytest.mark.azurite
def test_a_real_service_takes_the_token(
    certificates: CertificateFiles,
    monkeypatch: pytest.MonkeyPatch,
    login: Login,
    open_to: Callable[..., Any],
) -> None:
    """Azurite with OAuth serves all sessions."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    with start_azurite(cert=certificates.cert, key=certificates.key, oauth=True) as azurite:
        endpoint: Endpoint = dataclasses.replace(azurite.endpoint, credential=login)
        for kind in ("sdk", "wire", "sdk-default"):
            session = open_to(kind, endpoint, "nosuchtable")
            assert session.execute(INSERT).attempts[0].error_code == "TableNotFound"
