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
    upstreams_beside,
    urls_of,
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
    found = addresses({"table": GATEWAY}, "http://127.0.0.1:10002", "", environ)
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
    found = addresses({"table": "https://127.0.0.1:5"}, AZURE, "acme", environ)
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
    found = addresses({"table": GATEWAY}, AZURE, "acme", {})
    assert found == Addresses(endpoint=GATEWAY)
    made = environment({"HOME": "/home"}, found).variables
    assert made == {"HOME": "/home", "AZURE_TABLES_ENDPOINT": GATEWAY}
    with pytest.raises(SetupError, match="--env STORE"):
        environment({}, found, names=["STORE"])


def test_a_credential_for_another_account_is_refused() -> None:
    """The message does not repeat the credential."""
    text = f"AccountName=other;AccountKey={KEY};EndpointSuffix=core.windows.net"
    with pytest.raises(SetupError) as caught:
        addresses({"table": GATEWAY}, AZURE, "acme", {"AZURE_STORAGE_CONNECTION_STRING": text})
    assert KEY not in str(caught.value)


def test_more_variables_hold_the_connection_string() -> None:
    """Each --env gets the same; the environment itself stays as it is."""
    environ = {"AZURE_STORAGE_CONNECTION_STRING": "before", "OTHER": "1"}
    found = Addresses(endpoint="e", connection_string="c")
    made = environment(environ, found, names=["STORE", "Tables__Connection"]).variables
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
    made = environment({}, Addresses(endpoint="e"), authority=authority).variables
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
    found = addresses({"table": GATEWAY}, "http://127.0.0.1:10002", "", environ)
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
    assert urls_of("https", "::1", {"table": 5}) == {"table": "https://[::1]:5"}
    assert urls_of("http", "127.0.0.1", {"queue": 6}) == {"queue": "http://127.0.0.1:6"}


HERE = Addresses(endpoint="http://127.0.0.1:5/devstoreaccount1", connection_string="C;")
ELSEWHERE = {
    "AZURE_STORAGE_ACCOUNT": "acme",
    "AZURE_STORAGE_ACCESS_KEY": KEY,
    "STORE": f"AccountName=acme;AccountKey={KEY}",
    "TABLES_URL": AZURE,
    "SETTINGS": f'{{"url": "{AZURE}/?{SAS}"}}',
    "HOME": "/home",
}


def test_before_an_emulator_nothing_leads_elsewhere() -> None:
    """Connection strings and URLs lead to the gateway; accounts, keys and other texts are gone."""
    made = environment(ELSEWHERE, HERE, local=True)
    assert made.replaced == ["STORE", "TABLES_URL"]
    assert made.removed == ["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCESS_KEY", "SETTINGS"]
    assert made.variables["STORE"].startswith("C;BlobEndpoint=http://127.0.0.1:10000/")
    assert made.variables == {
        "HOME": "/home",
        "TABLES_URL": HERE.endpoint,
        "AZURE_TABLES_ENDPOINT": HERE.endpoint,
        "AZURE_STORAGE_CONNECTION_STRING": made.variables["STORE"],
        "STORE": made.variables["STORE"],
    }
    assert KEY not in f"{made.lines}{made!r}"
    assert "AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_ACCESS_KEY, SETTINGS" in made.lines[1]


def test_a_variable_is_kept_where_the_user_says_so() -> None:
    """It is neither replaced nor removed, and the others still are."""
    made = environment(ELSEWHERE, HERE, local=True, keep=["STORE", "AZURE_STORAGE_ACCOUNT"])
    assert made.variables["STORE"] == ELSEWHERE["STORE"]
    assert made.variables["AZURE_STORAGE_ACCOUNT"] == "acme"
    assert (list(made.replaced), list(made.removed)) == (
        ["TABLES_URL"],
        ["AZURE_STORAGE_ACCESS_KEY", "SETTINGS"],
    )


def test_a_real_account_keeps_every_variable() -> None:
    """What the user consented to is the application's own endpoint."""
    made = environment(ELSEWHERE, HERE)
    assert (made.replaced, made.removed) == ([], [])
    assert ELSEWHERE.items() <= made.variables.items()


def test_a_proxy_leaves_the_account_and_takes_its_secrets() -> None:
    """An application that goes past the proxy has no key that an account would accept."""
    made = environment(ELSEWHERE, HERE, local=True, proxy=GATEWAY)
    variables = made.variables
    assert variables["AZURE_STORAGE_ACCOUNT"] == "acme"
    assert variables["AZURE_STORAGE_ACCESS_KEY"] == EMULATOR_KEY
    assert variables["TABLES_URL"] == AZURE
    assert "sig=AAAA" in variables["SETTINGS"]
    assert not made.removed
    assert made.replaced == ["AZURE_STORAGE_ACCESS_KEY", "STORE", "SETTINGS"]
    assert not any(KEY in value or "c2ln" in value for value in variables.values())
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        assert variables[name] == GATEWAY
    assert variables["NODE_USE_ENV_PROXY"] == "1"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("", "localhost,127.0.0.1,::1"),
        ("intra.example, .windows.net", "intra.example,localhost,127.0.0.1,::1"),
        ("*", "localhost,127.0.0.1,::1"),
        ("acme.table.core.windows.net:443,localhost", "localhost,127.0.0.1,::1"),
        (".blob.core.windows.net", "localhost,127.0.0.1,::1"),
        (".file.core.windows.net", ".file.core.windows.net,localhost,127.0.0.1,::1"),
    ],
)
def test_no_exception_keeps_a_table_endpoint_from_the_proxy(given: str, made: str) -> None:
    """NO_PROXY keeps its other hosts, and gets those of this machine."""
    variables = environment({"no_proxy": given}, HERE, proxy=GATEWAY).variables
    assert variables["NO_PROXY"] == variables["no_proxy"] == made


def test_another_proxy_does_not_take_the_requests_to_the_gateway() -> None:
    """With a proxy in the environment, the gateway is added to the hosts that do without it."""
    proxies = {"HTTP_PROXY": "http://proxy.example", "no_proxy": "a.example"}
    variables = environment(proxies, HERE).variables
    assert variables["NO_PROXY"] == variables["no_proxy"] == "a.example,localhost,127.0.0.1,::1"
    assert "NO_PROXY" not in environment({}, HERE).variables


def test_a_kept_variable_that_leads_elsewhere_is_named() -> None:
    """One that leads nowhere is not, and neither is one before a real account."""
    environ = {"AZURE_STORAGE_ACCOUNT": "prodacct", "PORT": "80"}
    made = environment(environ, HERE, local=True, keep=[*environ, "ABSENT"])
    assert made.lines == ["kept:       AZURE_STORAGE_ACCOUNT, for another endpoint"]
    assert environment(environ, HERE, keep=[*environ]).lines == []


@pytest.mark.parametrize(
    ("tables", "queues"),
    [
        ("http://127.0.0.1:10002", "http://127.0.0.1:10001"),
        ("https://acme.table.core.windows.net", "https://acme.queue.core.windows.net"),
        ("https://acme.z07.table.storage.azure.net", "https://acme.z07.queue.storage.azure.net"),
        ("https://acme.table.cosmos.azure.com", ""),
        ("https://tables.example", ""),
    ],
)
def test_the_queues_of_an_account_are_found_by_its_tables(tables: str, queues: str) -> None:
    """Cosmos DB has none, and of a custom domain they are not known."""
    assert upstreams_beside(tables).get("queue", "") == queues


def test_queues_have_an_endpoint_of_their_own() -> None:
    """It is in the connection string, in a variable, and in place of a URL that led elsewhere."""
    found = addresses(
        {"table": GATEWAY, "queue": "http://127.0.0.1:6"}, "http://127.0.0.1:10002", "", {}
    )
    queues = "http://127.0.0.1:6/devstoreaccount1"
    assert fields(found.connection_string)["QueueEndpoint"] == found.beside["queue"] == queues
    environ = {
        "JOBS_URL": "https://acme.queue.core.windows.net/",
        "LOCAL_JOBS": "http://localhost:10001/devstoreaccount1",
        "TABLES_URL": AZURE,
    }
    made = environment(environ, found, local=True).variables
    assert made["AZURE_STORAGE_QUEUE_ENDPOINT"] == queues
    assert made["JOBS_URL"] == made["LOCAL_JOBS"] == queues
    assert made["TABLES_URL"] == found.endpoint
