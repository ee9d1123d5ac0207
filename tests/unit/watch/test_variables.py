"""What an application finds in its environment."""

from __future__ import annotations

from pathlib import Path

import certifi
import pytest

from harness.endpoint.credential import EMULATOR_KEY
from harness.model.errors import SetupError
from harness.model.hosts import is_every_address
from harness.watch.application import with_addresses
from harness.watch.variables import (
    Addresses,
    addresses,
    environment,
    host_elsewhere,
    host_here,
    url_of,
)

GATEWAY = "http://127.0.0.1:5"
AZURE = "https://acme.table.core.windows.net"
KEY = "c2VjcmV0LWtleS1vZi1hY21l"
SAS = "sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2090-01-01&sig=c2ln"


def fields(text: str) -> dict[str, str]:
    """The fields of a connection string."""
    return dict(part.split("=", 1) for part in text.strip(";").split(";"))


@pytest.mark.parametrize(
    "environ",
    [{}, {"AZURE_STORAGE_KEY": KEY}, {"AZURE_STORAGE_CONNECTION_STRING": "nonsense"}],
)
def test_the_emulator_has_its_own_key(environ: dict[str, str]) -> None:
    """Credentials of an account are not given to an application on the emulator."""
    found = addresses(GATEWAY, "http://127.0.0.1:10002", "", environ)
    assert found.endpoint == f"{GATEWAY}/devstoreaccount1"
    assert fields(found.connection_string) == {
        "DefaultEndpointsProtocol": "http",
        "AccountName": "devstoreaccount1",
        "AccountKey": EMULATOR_KEY,
        "TableEndpoint": f"{GATEWAY}/devstoreaccount1",
    }


@pytest.mark.parametrize(
    ("environ", "name", "secret"),
    [
        ({"AZURE_STORAGE_KEY": KEY}, "AccountKey", KEY),
        ({"AZURE_STORAGE_SAS_TOKEN": f"?{SAS}"}, "SharedAccessSignature", SAS),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName=acme;AccountKey={KEY}"},
            "AccountKey",
            KEY,
        ),
    ],
)
def test_an_account_keeps_its_credential(environ: dict[str, str], name: str, secret: str) -> None:
    """Only the address of the application's own credential is another one."""
    found = addresses("https://127.0.0.1:5", AZURE, "acme", environ)
    assert found.endpoint == "https://127.0.0.1:5"
    assert fields(found.connection_string) == {
        "DefaultEndpointsProtocol": "https",
        "AccountName": "acme",
        name: secret,
        "TableEndpoint": "https://127.0.0.1:5",
    }
    assert secret not in repr(found)


def test_without_a_credential_there_is_only_an_endpoint() -> None:
    """An application with bearer tokens gets no connection string."""
    found = addresses(GATEWAY, AZURE, "acme", {})
    assert found == Addresses(endpoint=GATEWAY)
    made = environment({"HOME": "/home"}, found)
    assert made == {"HOME": "/home", "AZURE_TABLES_ENDPOINT": GATEWAY}
    with pytest.raises(SetupError, match="--env STORE"):
        environment({}, found, names=["STORE"])


def test_a_credential_for_another_account_is_refused() -> None:
    """The message does not repeat the credential."""
    text = f"AccountName=other;AccountKey={KEY};EndpointSuffix=core.windows.net"
    with pytest.raises(SetupError) as caught:
        addresses(GATEWAY, AZURE, "acme", {"AZURE_STORAGE_CONNECTION_STRING": text})
    assert KEY not in str(caught.value)


def test_more_variables_hold_the_connection_string() -> None:
    """Each --env gets the same; the environment itself stays as it is."""
    environ = {"AZURE_STORAGE_CONNECTION_STRING": "before", "OTHER": "1"}
    found = Addresses(endpoint="e", connection_string="c")
    made = environment(environ, found, names=["STORE", "Tables__Connection"])
    assert made == {
        "OTHER": "1",
        "AZURE_TABLES_ENDPOINT": "e",
        "AZURE_STORAGE_CONNECTION_STRING": "c",
        "STORE": "c",
        "Tables__Connection": "c",
    }
    assert environ["AZURE_STORAGE_CONNECTION_STRING"] == "before"


def test_authorities(tmp_path: Path) -> None:
    """Runtimes that replace their authorities get the usual ones too."""
    authority = tmp_path / "authority.pem"
    authority.write_bytes(b"-----OURS-----\n")
    made = environment({}, Addresses(endpoint="e"), authority=authority)
    assert made["NODE_EXTRA_CA_CERTS"] == made["SSL_CERT_FILE"]
    every = Path(made["SSL_CERT_FILE"])
    assert made["REQUESTS_CA_BUNDLE"] == str(every)
    usual = Path(certifi.where()).read_bytes()
    assert every.read_bytes() == usual + b"\n-----OURS-----\n"


def test_addresses_in_arguments() -> None:
    """Both names are replaced wherever they are, and nothing else is."""
    command = ["app", "--to={endpoint}/x", "{connection_string}", "{other}"]
    found = with_addresses(command, connection_string="C={endpoint}", endpoint="E")
    assert found[:2] + found[3:] == ["app", "--to=E/x", "{other}"]


def test_another_account_of_an_emulator_keeps_its_key() -> None:
    """A connection string for the very endpoint that is watched stays the application's."""
    text = (
        "DefaultEndpointsProtocol=http;AccountName=custom;AccountKey=c2VjcmV0;"
        "TableEndpoint=http://127.0.0.1:10002/custom;"
    )
    environ = {"AZURE_STORAGE_CONNECTION_STRING": text}
    found = addresses(GATEWAY, "http://127.0.0.1:10002", "", environ)
    assert found.endpoint == f"{GATEWAY}/custom"
    assert fields(found.connection_string)["AccountKey"] == "c2VjcmV0"


@pytest.mark.parametrize(
    ("listening", "here"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("::", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("192.0.2.7", "192.0.2.7"),
        ("gateway.example", "gateway.example"),
    ],
)
def test_a_gateway_at_every_address_has_names(listening: str, here: str) -> None:
    """0.0.0.0 is no address to connect to: this machine uses loopback, others a real one."""
    assert host_here(listening) == here
    elsewhere = host_elsewhere(listening)
    if listening == here:
        assert elsewhere == listening
    else:
        assert elsewhere
        assert not is_every_address(elsewhere)
    assert url_of("https", "::1", 5) == "https://[::1]:5"
