"""The question before a run: every way in which an endpoint cannot be used is a sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableSasPermissions,
    generate_account_sas,
    generate_table_sas,
)

from harness.endpoint.admin.probe import check
from harness.endpoint.credential import EMULATOR_ACCOUNT, EMULATOR_KEY, Sas, SharedKey
from harness.endpoint.endpoint import Endpoint, emulator_endpoint
from harness.model.errors import SetupError
from harness.model.services.blobs import AZURITE_BLOBS

pytestmark = pytest.mark.azurite

CREDENTIAL = AzureNamedKeyCredential(EMULATOR_ACCOUNT, EMULATOR_KEY)
HOUR_S = 3600


def account_sas(
    permission: str = "rwdlacu", types: str = "sco", start_s: int = -HOUR_S, end_s: int = HOUR_S
) -> str:
    now = dt.datetime.now(dt.UTC)
    return generate_account_sas(
        CREDENTIAL,
        ResourceTypes.from_string(types),
        AccountSasPermissions.from_string(permission),
        start=now + dt.timedelta(seconds=start_s),
        expiry=now + dt.timedelta(seconds=end_s),
    )


def table_sas(permission: str = "raud", end_s: int = HOUR_S) -> str:
    return generate_table_sas(
        CREDENTIAL,
        "sometable",
        permission=TableSasPermissions(
            read="r" in permission,
            add="a" in permission,
            update="u" in permission,
            delete="d" in permission,
        ),
        expiry=dt.datetime.now(dt.UTC) + dt.timedelta(seconds=end_s),
    )


def with_sas(endpoint: Endpoint, token: str) -> Endpoint:
    return dataclasses.replace(endpoint, credential=Sas(token))


def problem(endpoint: Endpoint, timeout_s: float = 5.0) -> str:
    with pytest.raises(SetupError) as caught:
        check(endpoint, timeout_s=timeout_s, environ={})
    return str(caught.value)


@contextlib.contextmanager
def answering(raw: bytes | None, hold: bool = False) -> Iterator[Endpoint]:
    """A server that takes one connection and says ``raw``, or holds its tongue."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                if raw is not None:
                    connection.recv(65536)
                    connection.sendall(raw)
                if hold:
                    done.wait(10)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield emulator_endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}")
        finally:
            done.set()
            thread.join(10)


def storage_error(status: int, code: str, message: str, date_s: float | None = None) -> bytes:
    body = json.dumps({"odata.error": {"code": code, "message": {"lang": "en", "value": message}}})
    date = formatdate(time.time() if date_s is None else date_s, usegmt=True)
    head = f"HTTP/1.1 {status} No\r\nDate: {date}\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def test_a_key_and_a_good_sas_are_let_in(endpoint: Endpoint) -> None:
    """The account key, a SAS for the account and a SAS for one table raise nothing."""
    for one in (
        endpoint,
        with_sas(endpoint, account_sas()),
        with_sas(endpoint, table_sas()),
    ):
        check(one, environ={})


def test_a_wrong_key_is_told(endpoint: Endpoint) -> None:
    """A key that is not the account's is named as that."""
    wrong = dataclasses.replace(endpoint, credential=SharedKey(EMULATOR_ACCOUNT, "d3Jvbmc="))
    assert "refuses the key for the account devstoreaccount1 (403" in problem(wrong)


def test_an_unknown_account_is_told(endpoint: Endpoint) -> None:
    """An account that the endpoint does not have is named."""
    url = endpoint.url.replace(EMULATOR_ACCOUNT, "stock")
    other = dataclasses.replace(
        endpoint, url=url, account="stock", credential=SharedKey("stock", "d3Jvbmc=")
    )
    assert "has no account stock" in problem(other)


def wrongly_signed(token: str) -> str:
    """The token with a well-formed signature that is not its own."""
    return f"{token.partition('sig=')[0]}sig={'A' * 43}%3D"


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (account_sas(end_s=-10), "the SAS expired at"),
        (table_sas(end_s=-10), "the SAS expired at"),
        (account_sas(start_s=HOUR_S, end_s=2 * HOUR_S), "not valid before"),
        (account_sas("r"), "lacks the permission add (a), update (u), delete (d), list (l), cre"),
        (account_sas("rwdlac"), "lacks the permission update (u)"),
        (table_sas("r"), "lacks the permission add (a), update (u), delete (d)"),
        (account_sas(types="o"), "lacks the resource type service (s), container (c)"),
        (wrongly_signed(account_sas()), "refuses the SAS"),
        (wrongly_signed(table_sas()), "refuses the SAS"),
    ],
)
def test_each_reason_to_refuse_a_sas_is_told_apart(
    endpoint: Endpoint, token: str, words: str
) -> None:
    """Expired, too early, lacking a right, wrong signature: each has its own sentence."""
    sentence = problem(with_sas(endpoint, token))
    assert words in sentence
    assert "sig=" not in sentence


def test_a_clock_off_by_a_day_is_told() -> None:
    """A refused key whose answer is dated a day later is a matter of the clock, not of the key."""
    day_s = 86400
    raw = storage_error(403, "AuthenticationFailed", "Server failed", time.time() + day_s)
    with answering(raw) as endpoint:
        assert "clock of this machine is 24.0 h behind" in problem(endpoint)
    raw = storage_error(403, "AuthenticationFailed", "Server failed", time.time() - 9 * day_s)
    with answering(raw) as endpoint:
        assert "clock of this machine is 9.0 days ahead of" in problem(endpoint)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("AuthenticationFailed", "refuses the key"),
        ("AuthorizationPermissionMismatch", "lacks a permission"),
        ("AuthorizationResourceTypeMismatch", "(srt)"),
        ("AuthorizationServiceMismatch", "(ss)"),
        ("AuthorizationProtocolMismatch", "(spr)"),
        ("AuthorizationSourceIPMismatch", "(sip)"),
        ("KeyBasedAuthenticationNotPermitted", "does not allow access with keys"),
        ("AccountIsDisabled", "disabled"),
    ],
)
def test_the_codes_of_the_service_have_their_own_sentences(code: str, words: str) -> None:
    """Each code of a 403 is told in words, with the code beside them."""
    with answering(storage_error(403, code, "No.\nRequestId:1")) as endpoint:
        sentence = problem(endpoint)
    assert words in sentence
    assert code in sentence
    assert "RequestId" not in sentence


def test_an_answer_in_xml_is_read_too() -> None:
    """Storage answers in XML where a request does not reach the table service."""
    body = '<?xml version="1.0"?><m:error xmlns:m="x"><m:code/><code>AccountIsDisabled</code>'
    raw = f"HTTP/1.1 403 No\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    with answering(raw) as endpoint:
        assert "the account is disabled" in problem(endpoint)


def test_the_front_of_storage_is_not_taken_for_cosmos_db() -> None:
    """What a firewall of an account refuses names the server that Cosmos DB names too."""
    body = "<Error><Code>AuthorizationFailure</Code><Message>No.</Message></Error>"
    head = f"HTTP/1.1 403 No\r\nServer: Microsoft-HTTPAPI/2.0\r\nContent-Length: {len(body)}"
    with answering(f"{head}\r\n\r\n{body}".encode()) as endpoint:
        blobs = dataclasses.replace(endpoint, kind=AZURITE_BLOBS)
        assert "refuses the key for the account devstoreaccount1 (403 Auth" in problem(blobs)


def test_a_closed_port_is_named() -> None:
    """Nothing listening: host and port are in the sentence."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    endpoint = emulator_endpoint(f"http://127.0.0.1:{port}")
    assert f"nothing listens at 127.0.0.1 port {port}" in problem(endpoint)


def test_an_unknown_name_is_told() -> None:
    """A name that cannot be looked up is another matter than a port that is closed."""
    endpoint = emulator_endpoint("https://no-such-account.invalid")
    assert "the host name no-such-account.invalid cannot be resolved (port 443" in problem(endpoint)


def test_silence_ends_in_time() -> None:
    """Who takes the connection and says nothing is given up, and the stage is told."""
    with answering(None, hold=True) as endpoint:
        sentence = problem(endpoint, timeout_s=0.5)
    assert "no response from 127.0.0.1 port" in sentence
    assert "while waiting for the response" in sentence


@pytest.mark.parametrize("raw", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 2"])
def test_something_that_is_not_http_is_told(raw: bytes) -> None:
    """An answer in another protocol is no answer."""
    with answering(raw) as endpoint:
        assert "no valid HTTP response" in problem(endpoint)


def test_https_asked_of_plain_http_is_told(endpoint: Endpoint) -> None:
    """A server that does not speak TLS is named as that."""
    https = dataclasses.replace(endpoint, url=endpoint.url.replace("http:", "https:"))
    assert "the TLS handshake with" in problem(https)


class _Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<html>hello</html>"
        self.send_response(200 if "/Tables" in self.path else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def test_another_web_server_is_told() -> None:
    """A server that answers 200 with a page is no table service, and neither is one of 404s."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            endpoint = emulator_endpoint(f"http://127.0.0.1:{server.server_port}")
            assert "is not a table service" in problem(endpoint)
            assert "is not a table service" in problem(with_sas(endpoint, table_sas()))
        finally:
            server.shutdown()
            thread.join()
