"""Blobs through a gateway: bodies that are larger than what it holds, and how they end."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import (
    AccountSasPermissions,
    ContainerClient,
    ResourceTypes,
    generate_account_sas,
)

from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.endpoint.endpoint import emulator_endpoint
from harness.gateway.process import GatewayProcess, start_gateway
from tests.contract.gateway.conftest import WIDE
from tests.support.gateways import Told
from tests.support.sdk import account_key

pytestmark = pytest.mark.azurite
MIB = 1 << 20
LARGE = 96 * MIB
AT_ONCE: dict[str, Any] = {
    "max_single_put_size": LARGE,
    "max_single_get_size": LARGE,
    "retry_total": 0,
}


@pytest.fixture(scope="module")
def blobs() -> Iterator[AzuriteProcess]:
    """An Azurite with blobs."""
    with start_azurite(service="blob") as process:
        yield process


@pytest.fixture
def gateway(blobs: AzuriteProcess, tmp_path: Path) -> Iterator[GatewayProcess]:
    """A process before it, which knows from an answer that these are blobs."""
    limits = tmp_path / "limits.toml"
    limits.write_text(WIDE, encoding="utf-8")
    with start_gateway(upstream=f"http://{blobs.endpoint.host}", limits=limits) as started:
        with container(started, blobs, "first") as client:
            client.create_container()
            client.delete_container()
        yield started


def container(gateway: GatewayProcess, blobs: AzuriteProcess, name: str) -> ContainerClient:
    """The SDK's client of a container behind the gateway."""
    endpoint = blobs.endpoint
    credential = {"account_name": endpoint.account, "account_key": account_key(endpoint)}
    url = emulator_endpoint(gateway.url).url
    return ContainerClient(url, name, credential=credential, **AT_ONCE)


def target_of(blobs: AzuriteProcess, gateway: GatewayProcess, path: str) -> tuple[str, int, str]:
    """Host, port and signed target of a blob."""
    endpoint = blobs.endpoint
    sas = generate_account_sas(
        endpoint.account,
        account_key(endpoint),
        ResourceTypes(container=True, object=True),
        AccountSasPermissions.from_string("rwdlac"),
        "2090-01-01T00:00:00Z",
    )
    parts = urlsplit(gateway.url)
    return parts.hostname or "", parts.port or 0, f"/{endpoint.account}/{path}?{sas}"


def head_of(target: str, *more: str) -> bytes:
    """The head of a request that writes a blob."""
    lines = [f"PUT {target} HTTP/1.1", "Host: 127.0.0.1", "x-ms-blob-type: BlockBlob", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def test_large_blobs_take_no_memory(gateway: GatewayProcess, blobs: AzuriteProcess) -> None:
    """A blob of 96 MiB goes up in one request and comes back in one, and is the same.

    Bounds: two transfers over loopback, some seconds; the gateway grows by less than 40 MiB.
    """
    content = os.urandom(MIB) * (LARGE // MIB)
    before = psutil.Process(gateway.pid).memory_info().rss
    with container(gateway, blobs, "large") as client:
        client.create_container()
        client.upload_blob("a", content)
        assert client.download_blob("a").readall() == content
    assert psutil.Process(gateway.pid).memory_info().rss - before < 40 * MIB
    told = Told(gateway).by("partition", "sent", table="(blobs)")
    assert told["large/a", "201"] == 1
    assert told["large/a", "206"] == 1


def test_a_connection_serves_again_after_a_large_answer(
    gateway: GatewayProcess, blobs: AzuriteProcess
) -> None:
    """The end of an answer may come while the gateway does not read on.

    Bounds: thirty answers of 12 MiB, some seconds.
    """
    with container(gateway, blobs, "again") as client:
        client.create_container()
        client.upload_blob("a", b"x" * (12 * MIB))
        began_s = time.monotonic()
        for _ in range(30):
            assert len(client.download_blob("a").readall()) == 12 * MIB
            assert client.get_blob_client("a").exists()
            with pytest.raises(ResourceExistsError):
                # Azurite answers before it has read all.
                client.upload_blob("a", b"y" * (12 * MIB))
        assert time.monotonic() - began_s < 60.0


def test_a_client_waits_for_the_invitation(gateway: GatewayProcess, blobs: AzuriteProcess) -> None:
    """Expect: 100-continue is answered, and the connection serves a second request."""
    with container(gateway, blobs, "expect") as client:
        client.create_container()
        host, port, target = target_of(blobs, gateway, "expect/a")
        with socket.create_connection((host, port), timeout=20) as connection:
            for _ in range(2):
                expects = ("Expect: 100-continue", f"Content-Length: {8 * MIB}")
                connection.sendall(head_of(target, *expects))
                assert connection.recv(1024).startswith(b"HTTP/1.1 100 ")
                connection.sendall(b"x" * (8 * MIB))
                assert b" 201 Created" in connection.recv(4096)
        assert client.get_blob_client("a").get_blob_properties().size == 8 * MIB
        part = client.download_blob("a", offset=MIB, length=10)
        assert part.readall() == b"x" * 10


def test_an_answer_before_the_end_of_a_body(gateway: GatewayProcess, blobs: AzuriteProcess) -> None:
    """A refusal arrives although the client has not sent all; the gateway serves others."""
    host, port, target = target_of(blobs, gateway, "missing/a")
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(head_of(f"{target}x", f"Content-Length: {512 * MIB}") + b"x" * MIB)
        assert b" 403 " in connection.recv(4096)
    assert Told(gateway).by("partition", "sent", table="(blobs)")["missing/a", "403"] == 1


def test_a_client_that_breaks_off_is_told_apart(
    gateway: GatewayProcess, blobs: AzuriteProcess
) -> None:
    """Its blob is not written, and the endpoint did not fail."""
    with container(gateway, blobs, "broken") as client:
        client.create_container()
        host, port, target = target_of(blobs, gateway, "broken/a")
        with socket.create_connection((host, port), timeout=20) as connection:
            connection.sendall(head_of(target, f"Content-Length: {8 * MIB}") + b"x" * MIB)
            time.sleep(0.2)
        told: dict[object, int] = {}
        until_s = time.monotonic() + 10.0
        while not told and time.monotonic() < until_s:
            found = Told(gateway).by("partition", "rule", "sent", table="(blobs)")
            told = {key: count for key, count in found.items() if "broken/a" in key}
        assert told == {("broken/a", "client", "gone"): 1}
        assert not client.get_blob_client("a").exists()


def test_chunks_stay_chunks(gateway: GatewayProcess, blobs: AzuriteProcess) -> None:
    """Azurite refuses them, as it does without the gateway, of small and of large bodies."""
    for size in (10, 2 * MIB):
        host, port, target = target_of(blobs, gateway, "chunks/a")
        answers = []
        behind = blobs.endpoint.host.partition(":")
        for place in ((host, port), (behind[0], int(behind[2]))):
            with socket.create_connection(place, timeout=20) as connection:
                body = b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size)
                connection.sendall(head_of(target, "Transfer-Encoding: chunked") + body)
                answers.append(connection.recv(12))
        assert answers[0] == answers[1] == b"HTTP/1.1 400"
