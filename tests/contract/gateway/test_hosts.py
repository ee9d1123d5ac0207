"""The names by which a gateway is addressed, and where links in answers lead."""

from __future__ import annotations

import datetime as dt
import gzip
import http.client
import json
from collections.abc import Callable
from typing import Any

import pytest
from azure.data.tables import TableClient, TableSasPermissions, generate_table_sas

from harness.endpoint.endpoint import Endpoint
from harness.gateway.answers import GatewayAnswer
from harness.gateway.headers import Headers
from harness.gateway.links import route_of
from harness.gateway.upstream import MAX_HELD_BYTES
from tests.support.gateways import StartGateway, Told
from tests.support.sdk import named_key

AZURE = "acme.table.core.windows.net"
ENTITY = {"PartitionKey": "p", "RowKey": "r", "Text": "http://127.0.0.1:10002/account/x"}


@pytest.mark.azurite
@pytest.mark.parametrize(
    ("host", "account_in_path"),
    [("{account}.table.localhost:81", False), ("gateway.example:81", True), ("gateway:81", True)],
)
def test_a_name_of_any_form_reaches_the_account_and_gets_links_to_itself(
    gateway_to: StartGateway,
    client_of: Callable[..., TableClient],
    endpoint: Endpoint,
    host: str,
    account_in_path: bool,
) -> None:
    """A signed query by a production-style name, any name and a short one finds the entity."""
    client = client_of(None)
    client.create_entity(ENTITY)
    gateway = gateway_to()
    credential = named_key(endpoint)
    account = credential.named_key.name
    host = host.format(account=account)
    expiry = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    permission = TableSasPermissions(read=True)
    sas = generate_table_sas(credential, client.table_name, permission=permission, expiry=expiry)
    path = f"/{account}" if account_in_path else ""
    connection = http.client.HTTPConnection(gateway.url.partition("://")[2], timeout=10.0)
    try:
        connection.request(
            "GET",
            f"{path}/{client.table_name}(PartitionKey='p',RowKey='r')?{sas}",
            headers={"Host": host, "Accept": "application/json;odata=fullmetadata"},
        )
        answer = connection.getresponse()
        body = answer.read().decode()
    finally:
        connection.close()
    assert answer.status == 200, body
    assert f'"odata.metadata":"http://{host}/' in body
    assert f'"odata.id":"http://{host}/' in body
    assert f'"Text":"{ENTITY["Text"]}"' in body
    assert Told(gateway).by("partition", "sent") == {("p", "200"): 1}


def test_a_transaction_holds_the_urls_of_its_recipient(
    gateway_to: StartGateway, service: Any, connect: Callable[..., Any]
) -> None:
    """Where the Host is replaced, so are the URLs of the parts and the links of their answers."""
    inside, outside = f"http://{service.endpoint.host}", "http://gateway.example"
    part = b"HTTP/1.1 201 Created\r\nLocation: %b/account/t(a)\r\n\r\n" % inside.encode()
    part += b'{"odata.id":"%b/account/t(a)","Text":"%b/"}' % (inside.encode(), inside.encode())
    service.script = [service.transaction_answer(part)]
    gateway = gateway_to(upstream=inside)
    connection = connect(gateway)
    body = f'--b\r\n\r\nPOST {outside}/account/t HTTP/1.1\r\n\r\n{{"Text":"{outside}/"}}\r\n'
    head = "POST /account/$batch HTTP/1.1\r\nHost: gateway.example\r\n"
    head += f"Content-Type: multipart/mixed; boundary=b\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(f"{head}{body}".encode())
    answer = connection.recv(65536)
    assert f"POST {inside}/account/t HTTP/1.1".encode() in service.requests[0]
    assert f'"Text":"{outside}/"'.encode() in service.requests[0]
    assert f"Location: {outside}/account/t(a)".encode() in answer
    assert f'"odata.id":"{outside}/account/t(a)","Text":"{inside}/"'.encode() in answer
    assert service.requests[0].count(service.endpoint.host.encode()) == 2


@pytest.mark.parametrize("packed", [False, True])
def test_a_page_of_any_size_leads_to_the_gateway(
    gateway_to: StartGateway, service: Any, connect: Callable[..., Any], packed: bool
) -> None:
    """Links of a large page are replaced while it passes, and those of a packed one; texts stay."""
    inside, outside = f"http://{service.endpoint.host}", "http://gateway.example"
    count = 10 if packed else 200_000
    row = '{"odata.id":"%s/account/table(%06d)","PartitionKey":"p","Text":"%s/"}'
    rows = ",".join(row % (inside, number, inside) for number in range(count))
    body = plain = f'{{"value":[{rows}]}}'.encode()
    assert packed or len(body) > MAX_HELD_BYTES
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json;odata=fullmetadata\r\n"
    if packed:
        body = gzip.compress(plain)
        head += b"Content-Encoding: gzip\r\n"
    service.script = [
        service.answer(404, "TableNotFound"),
        head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
    ]
    gateway = gateway_to(upstream=inside)
    connection = connect(gateway)
    connection.sendall(b"GET /account/table() HTTP/1.1\r\nHost: gateway.example\r\n\r\n")
    response = http.client.HTTPResponse(connection)
    response.begin()
    received = response.read()
    response.close()
    if packed:
        received = gzip.decompress(received)
    whole = plain.replace(b'"odata.id":"%b' % inside.encode(), b'"odata.id":"%b' % outside.encode())
    assert received == whole
    assert json.loads(gateway.counters())["counts"][0]["returned"] == count


@pytest.mark.parametrize(
    ("host", "upstream", "sent"),
    [
        ("127.0.0.1:10102", "127.0.0.1:10002", "127.0.0.1:10102"),
        ("[::1]:10102", "azurite:10002", "[::1]:10102"),
        ("acme.table.localhost:10102", "127.0.0.1:10002", "acme.table.localhost:10102"),
        ("gateway.example", "127.0.0.1:10002", "127.0.0.1:10002"),
        ("", "127.0.0.1:10002", "127.0.0.1:10002"),
        ("127.0.0.1:10102", AZURE, AZURE),
        ("acme.table.localhost:10102", AZURE, AZURE),
    ],
)
def test_the_endpoint_gets_a_host_by_which_it_finds_the_account(
    host: str, upstream: str, sent: str
) -> None:
    """An emulator gets the client's where it can read it; a named account gets its own."""
    route = route_of(scheme="http", host=host, upstream_scheme="https", upstream_host=upstream)
    assert route.host == sent


def test_links_change_their_scheme_too() -> None:
    """Behind TLS, or before an endpoint with TLS, links have the scheme of the client."""
    route = route_of(
        scheme="http", host="127.0.0.1:1", upstream_scheme="https", upstream_host=AZURE
    )
    answer = GatewayAnswer(
        status=201,
        headers=Headers(
            [
                (b"Content-Type", b"application/json;odata=minimalmetadata"),
                (b"Location", f"https://{AZURE}/t(a)".encode()),
                (b"x-ms-note", f"https://{AZURE}.example/".encode()),
            ]
        ),
        body=f'{{"odata.metadata":"https://{AZURE}/$metadata#t","Url":"https://{AZURE}/"}}'.encode(),
    )
    passed = route.answer(answer)
    assert passed.headers["location"] == "http://127.0.0.1:1/t(a)"
    assert passed.headers["x-ms-note"] == f"https://{AZURE}.example/"
    assert passed.body == (
        f'{{"odata.metadata":"http://127.0.0.1:1/$metadata#t","Url":"https://{AZURE}/"}}'.encode()
    )


def test_a_body_with_a_checksum_stays_as_it_is() -> None:
    """The signature covers Content-MD5, so that the body may not change."""
    route = route_of(scheme="http", host="h.example", upstream_scheme="https", upstream_host=AZURE)
    body = b"--b\r\n\r\nPOST http://h.example/t HTTP/1.1\r\n"
    kind = (b"Content-Type", b"multipart/mixed; boundary=b")
    assert route.request_body(Headers([kind]), body) != body
    assert route.request_body(Headers([kind, (b"Content-MD5", b"x")]), body) == body
