"""The gateway behind TLS, with a certificate of its own and with a given one."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from azure.data.tables import TableClient

from harness.endpoint.azurite.process import AzuriteProcess
from harness.endpoint.endpoint import Endpoint
from tests.support.certificates import certificate
from tests.support.command import Command
from tests.support.sdk import named_key

ROOT = Path(__file__).parents[3]
ENTITY = {"PartitionKey": "p", "RowKey": "r"}


@contextlib.contextmanager
def listening(*arguments: str) -> Iterator[tuple[str, str]]:
    """A gateway in the foreground: its URL, and the other lines it printed."""
    with subprocess.Popen(
        [sys.executable, "-m", "harness", "gateway", "--listen", "127.0.0.1:0", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3 if "--tls" in arguments else 2)]
        try:
            yield lines[0].split()[1], "".join(lines[1:])
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20.0) == 0


@pytest.mark.azurite
def test_the_sdk_trusts_the_authority_that_is_named(
    azurite: AzuriteProcess, endpoint: Endpoint, client_of: Callable[..., TableClient]
) -> None:
    """With the printed file the SDK writes and reads over https; the file ends with the gateway."""
    table = client_of(None).table_name
    with listening("--tls", "--upstream", f"http://{azurite.endpoint.host}") as (url, printed):
        match = re.search(r"authority to trust: (\S+),", printed)
        assert match is not None
        assert url.startswith("https://")
        authority = Path(match[1])
        with TableClient(
            f"{url}/{endpoint.account}",
            table,
            credential=named_key(endpoint),
            connection_verify=str(authority),
        ) as client:
            client.create_entity(ENTITY)
            assert client.get_entity("p", "r").metadata["etag"]
            found = client.get_entity("p", "r", headers={"Accept": "application/json"})
        assert found["RowKey"] == "r"
    assert not authority.exists()


def test_the_certificate_is_for_the_names_of_this_machine() -> None:
    """Also for production-style names; a stranger's name is refused by the client."""
    with listening("--tls", "--upstream", "none") as (url, printed):
        authority = printed.rpartition("authority to trust: ")[2].partition(",")[0]
        context = ssl.create_default_context(cafile=authority)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        for name in ("127.0.0.1", "localhost", "acme.table.localhost"):
            with (
                socket.create_connection(address, 10.0) as plain,
                context.wrap_socket(plain, server_hostname=name) as connection,
            ):
                connection.sendall(f"GET /-/truth HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
                assert connection.recv(100).startswith(b"HTTP/1.1 ")
        with socket.create_connection(address, 10.0) as plain, pytest.raises(ssl.SSLError):
            context.wrap_socket(plain, server_hostname="elsewhere.example")


def test_a_given_certificate_is_used(tmp_path: Path) -> None:
    """The certificate and the key may be in two files."""
    authority = trustme.CA()
    made = certificate(tmp_path, authority=authority)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    files = ("--tls-cert", str(made.cert), "--tls-key", str(made.key))
    with listening("--upstream", "none", *files) as (url, _):
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        with (
            socket.create_connection(address, 10.0) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            assert connection.version() is not None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tls", "--tls-cert", __file__], "leave out --tls, or --tls-cert"),
        (["--tls-key", __file__], "--tls-key needs --tls-cert"),
        (["--tls-cert", "nosuch.pem"], "--tls-cert nosuch.pem: no such file"),
        (["--tls-cert", __file__], "the certificate and its key cannot be used"),
    ],
)
def test_what_is_no_certificate_is_a_sentence(
    command: Command, arguments: list[str], sentence: str
) -> None:
    """Mistakes are said with exit code 2, before the gateway listens."""
    assert sentence in command.refused("gateway", "--upstream", "none", *arguments)
