"""Raw requests, directly at an Azurite and through a gateway to another: nothing is different."""

from __future__ import annotations

import contextlib
import datetime as dt
import http.client
import re
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas

from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.gateway.limits import limits_path
from harness.gateway.process import GatewayProcess, start_gateway
from tests.support.differential import Answer, differences, gateway_counts, own_counts
from tests.support.gateways import StartGateway
from tests.support.raw_forms import Form, all_forms
from tests.support.sdk import named_key

pytestmark = [pytest.mark.azurite, pytest.mark.long]

_SINGLE_HOP = re.compile(
    rb"^(?:host|connection|keep-alive|te|expect|transfer-encoding|content-length|x-hop):",
    re.IGNORECASE,
)


@pytest.fixture
def both() -> Iterator[tuple[AzuriteProcess, GatewayProcess]]:
    """A fresh Azurite, and a gateway that refuses nothing before another one."""
    with (
        start_azurite() as direct,
        start_azurite() as behind,
        start_gateway(
            upstream=f"http://{behind.endpoint.host}", limits=limits_path("none")
        ) as gateway,
    ):
        yield direct, gateway


def sas_of(azurite: AzuriteProcess) -> str:
    """A shared access signature that allows everything."""
    permission = AccountSasPermissions(
        read=True, write=True, delete=True, list=True, add=True, create=True, update=True
    )
    every = ResourceTypes(service=True, container=True, object=True)
    expiry = dt.datetime(2090, 1, 1, tzinfo=dt.UTC)
    return generate_account_sas(named_key(azurite.endpoint), every, permission, expiry)


def ask(form: Form, port: int, sas: str) -> Answer:
    """Send a form on a connection of its own, and read the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30.0) as connection:
        # An endpoint that refuses a body may reset the connection before all of it is sent.
        with contextlib.suppress(ConnectionError):
            connection.sendall(form.bytes(port, sas))
        response = http.client.HTTPResponse(connection, method=form.method)
        response.begin()
        body = response.read()
        headers = (("(reason)", response.reason), *response.headers.items())
        response.close()
    return Answer(
        label=form.label,
        table=form.table,
        partition=None if form.partition is ... else form.partition,
        status=response.status,
        headers=headers,
        body=body,
    )


def test_every_form_of_a_request_is_answered_as_without_the_gateway(
    both: tuple[AzuriteProcess, GatewayProcess],
) -> None:
    """Status, reason, headers in their order, and body of each answer are equal, and counted.

    Bounds: some hundred requests twice, less than a minute.
    """
    azurite, gateway = both
    sas, gateway_port = sas_of(azurite), int(gateway.url.rpartition(":")[2])
    forms = list(all_forms())
    direct = [ask(form, azurite.endpoint.port, sas) for form in forms]
    through = [ask(form, gateway_port, sas) for form in forms]
    found = differences(direct, f":{azurite.endpoint.port}", through, f":{gateway_port}")
    assert not found, "\n".join(found[:20])
    assert len(through) > 600
    pairs = list(zip(forms, through, strict=True))
    counters = gateway_counts(gateway.counters())
    sure = own_counts(answer for form, answer in pairs if form.partition is not ...)
    assert sure <= counters, sure - counters
    left, open_ = Counter[str](), [a for form, a in pairs if form.partition is ...]
    for (_, _, status), count in (counters - sure).items():
        left[status] += count
    assert left == Counter(answer.counted_as() for answer in open_)


def test_every_form_of_a_request_reaches_the_endpoint_as_it_was_sent(
    service: Any, gateway_to: StartGateway
) -> None:
    """Request line, fields in their order, and body are those that the client sent."""
    forms = [
        form
        for form in all_forms()
        # These are sent on with a length, in HTTP/1.1, and by their path.
        if not form.chunks and form.version == "1.1" and form.target.startswith("/")
    ]
    service.script = [service.answer(404, "ResourceNotFound")] * (2 * len(forms))
    gateway = gateway_to(upstream=f"http://{service.endpoint.host}")
    port = int(gateway.url.rpartition(":")[2])
    for form in forms:
        ask(form, port, "sv=1&sig=a%2Bb%3D")
    # Before a table's first query the gateway asks which rows the table has.
    looks = [b"select=PartitionKey%2CRowKey " in sent for sent in service.requests]
    reached = [sent for sent, look in zip(service.requests, looks, strict=True) if not look]
    for form, sent in zip(forms, reached, strict=True):
        assert parts_of(sent) == parts_of(form.bytes(port, "sv=1&sig=a%2Bb%3D")), form.label


def parts_of(request: bytes) -> tuple[list[bytes], bytes]:
    """The head of a request without the fields of one connection, and the body."""
    head, _, body = request.partition(b"\r\n\r\n")
    return [line for line in head.split(b"\r\n") if _SINGLE_HOP.match(line) is None], body
