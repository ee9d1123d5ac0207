"""Who the endpoint is: the host decides, the environment holds the credential."""

from __future__ import annotations

import base64
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.accounts import accounts_from, consent_problem
from harness.endpoint.credential import EMULATOR_ACCOUNT, EMULATOR_KEY, Sas, SharedKey
from harness.endpoint.endpoint import Endpoint, as_kind, emulator_endpoint, endpoint_from
from harness.model.errors import SetupError
from harness.model.services import service_of
from harness.model.services.blobs import AZURE_BLOBS, AZURITE_BLOBS
from harness.model.services.cosmos import COSMOS, COSMOS_EMULATOR
from harness.model.services.service import Service
from harness.model.services.storage import AZURITE, GATEWAY, STORAGE

KEY = base64.b64encode(b"a key that nobody has").decode()
LONG_KEY = base64.b64encode(bytes(range(7, 71))).decode()
SAS = "sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2030-01-01T00:00:00Z&sig=c2VjcmV0"
ACCOUNT_URL = "https://orders.table.core.windows.net"


def problem(host: str, environ: dict[str, str]) -> str:
    with pytest.raises(SetupError) as caught:
        endpoint_from(host, environ)
    return str(caught.value)


@pytest.mark.parametrize(
    ("host", "kind", "account"),
    [
        (ACCOUNT_URL, STORAGE, "orders"),
        ("https://orders.table.core.chinacloudapi.cn", STORAGE, "orders"),
        ("https://orders.table.core.usgovcloudapi.net", STORAGE, "orders"),
        ("https://orders.z01.table.storage.azure.net", STORAGE, "orders"),
        ("https://orders.table.cosmos.azure.com:443", COSMOS, "orders"),
        ("https://orders.table.cosmosdb.azure.com", COSMOS, "orders"),
        ("https://orders.table.cosmos.azure.us", COSMOS, "orders"),
        ("https://orders.documents.azure.com", COSMOS, "orders"),
        ("https://orders.documents.azure.cn", COSMOS, "orders"),
        ("http://127.0.0.1:10002/orders", AZURITE, "orders"),
        ("https://azurite.test:10002/devstoreaccount1", AZURITE, EMULATOR_ACCOUNT),
        ("https://tables.example.com/orders", STORAGE, "orders"),
    ],
)
def test_kind_and_account_follow_from_the_host(host: str, kind: Service, account: str) -> None:
    """The host alone decides the kind and, where it names one, the account."""
    endpoint = endpoint_from(host, {"AZURE_STORAGE_KEY": KEY})
    assert (endpoint.kind, endpoint.account) == (kind, account)
    assert endpoint.credential == SharedKey(account, KEY)


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("https://orders.blob.core.windows.net", AZURE_BLOBS),
        ("https://orders.blob.core.chinacloudapi.cn", AZURE_BLOBS),
        ("https://orders.blob.core.usgovcloudapi.net", AZURE_BLOBS),
        ("https://orders.z01.blob.storage.azure.net", AZURE_BLOBS),
        ("https://blobs.example.com/orders", AZURE_BLOBS),
        ("http://127.0.0.1:10000/orders", AZURITE_BLOBS),
    ],
)
def test_what_requests_are_for_decides_where_the_host_does_not(host: str, kind: Service) -> None:
    """A custom domain and a loopback address are those of the server that is asked for."""
    environ = {"AZURE_STORAGE_KEY": KEY}
    endpoint = endpoint_from(host, environ, server="blob")
    assert (endpoint.kind, endpoint.account) == (kind, "orders")
    told = endpoint_from(host, environ, server=None).kind
    assert told == (kind if ".blob." in host else service_of("table", emulated=kind.emulated))


def test_a_token_of_storage_opens_blobs_too() -> None:
    """Tables and blobs of a cloud have one audience, and so one login."""
    environ = {"AZURE_STORAGE_AUTH_MODE": "login"}
    for cloud, audience in (
        ("core.windows.net", "https://storage.azure.com"),
        ("core.usgovcloudapi.net", "https://storage.azure.us"),
        ("core.chinacloudapi.cn", "https://storage.azure.cn"),
    ):
        login = endpoint_from(f"https://orders.blob.{cloud}", environ, server="blob").login
        assert login is not None
        assert login.audience == audience


@pytest.mark.parametrize(
    "host",
    [
        "http://127.0.0.1:10002",
        "http://127.0.0.1:10002/",
        "http://localhost:10002/devstoreaccount1/",
        "HTTP://LOCALHOST:10002",
    ],
)
def test_loopback_without_credentials_is_the_emulator(host: str) -> None:
    """All spellings of a loopback address give one URL and the development account."""
    endpoint = endpoint_from(host, {})
    assert endpoint.url == "http://127.0.0.1:10002/devstoreaccount1"
    assert endpoint.credential == SharedKey(EMULATOR_ACCOUNT, EMULATOR_KEY)
    assert (endpoint.host, endpoint.hostname, endpoint.port) == (
        "127.0.0.1:10002",
        "127.0.0.1",
        10002,
    )
    assert endpoint == emulator_endpoint("http://127.0.0.1:10002")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("http://127.8.9.10:1", True),
        ("http://[::1]:1", True),
        ("http://localhost:1", True),
        (ACCOUNT_URL, False),
        ("https://10.0.0.1/devstoreaccount1", False),
        ("https://localhost.example.com/orders", False),
        ("https://127.0.0.1.example.com/orders", False),
    ],
)
def test_only_this_machine_is_loopback(host: str, loopback: bool) -> None:
    """A name that merely looks like loopback is remote."""
    endpoint = endpoint_from(host, {"AZURE_STORAGE_KEY": KEY})
    assert (endpoint.loopback, endpoint.remote) == (loopback, not loopback)


@pytest.mark.parametrize(
    ("environ", "credential"),
    [
        ({"AZURE_STORAGE_KEY": KEY}, SharedKey("orders", KEY)),
        ({"AZURE_STORAGE_ACCOUNT": "orders", "AZURE_STORAGE_KEY": KEY}, SharedKey("orders", KEY)),
        ({"AZURE_STORAGE_SAS_TOKEN": SAS}, Sas(SAS)),
        ({"AZURE_STORAGE_SAS_TOKEN": f"?{SAS}"}, Sas(SAS)),
        (
            {"AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_SAS_TOKEN": SAS},
            SharedKey("orders", KEY),
        ),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName=orders;AccountKey={KEY};"},
            SharedKey("orders", KEY),
        ),
        (
            {
                "AZURE_STORAGE_CONNECTION_STRING": (
                    f"TableEndpoint={ACCOUNT_URL}/;SharedAccessSignature={SAS}"
                )
            },
            Sas(SAS),
        ),
    ],
)
def test_credentials_come_from_the_variables_of_azure_cli(
    environ: dict[str, str], credential: SharedKey | Sas
) -> None:
    """Connection string, then key, then SAS."""
    assert endpoint_from(ACCOUNT_URL, environ).credential == credential


@pytest.mark.parametrize(
    "named",
    ["TableEndpoint=https://my-db.table.cosmos.azure.com:443/", "EndpointSuffix=cosmos.azure.com"],
)
def test_a_connection_string_of_cosmos_db_is_taken(named: str) -> None:
    """As the portal shows it, with a port, or with the suffix that the SDKs take."""
    text = f"DefaultEndpointsProtocol=https;AccountName=my-db;AccountKey={KEY};{named};"
    host = "https://my-db.table.cosmos.azure.com"
    endpoint = endpoint_from(host, {"AZURE_STORAGE_CONNECTION_STRING": text})
    assert (endpoint.kind, endpoint.account, endpoint.url) == (COSMOS, "my-db", host)
    assert endpoint.credential == SharedKey("my-db", KEY)


def test_the_emulators_connection_string_is_for_any_loopback_port() -> None:
    """UseDevelopmentStorage=true stands for the emulator, wherever on this machine it listens."""
    environ = {"AZURE_STORAGE_CONNECTION_STRING": "UseDevelopmentStorage=true"}
    assert endpoint_from("http://127.0.0.1:4", environ) == emulator_endpoint("http://127.0.0.1:4")
    assert "emulator" in problem(ACCOUNT_URL, environ)


_IN_STRING = "AZURE_STORAGE_CONNECTION_STRING"


@pytest.mark.parametrize("secret", [LONG_KEY, LONG_KEY.replace("=", ""), SAS])
@pytest.mark.parametrize(
    ("host", "environ"),
    [
        (ACCOUNT_URL, {"AZURE_STORAGE_ACCOUNT": "SECRET", "AZURE_STORAGE_KEY": KEY}),
        ("http://127.0.0.1:1", {"AZURE_STORAGE_ACCOUNT": "SECRET", "AZURE_STORAGE_KEY": KEY}),
        (
            "https://tables.test",
            {"AZURE_STORAGE_ACCOUNT": "SECRET", "AZURE_STORAGE_SAS_TOKEN": SAS},
        ),
        (ACCOUNT_URL, {_IN_STRING: f"AccountName=SECRET;AccountKey={KEY}"}),
        ("http://127.0.0.1:1", {_IN_STRING: f"AccountName=SECRET;AccountKey={KEY}"}),
        (ACCOUNT_URL, {_IN_STRING: "TableEndpoint=https://SECRET.test;AccountKey=a"}),
        (ACCOUNT_URL, {_IN_STRING: "TableEndpoint=https://tables.test/SECRET;AccountKey=a"}),
        (ACCOUNT_URL, {_IN_STRING: f"TableEndpoint={ACCOUNT_URL}/SECRET;AccountKey=a"}),
        (ACCOUNT_URL, {_IN_STRING: "AccountName=orders;EndpointSuffix=SECRET;AccountKey=a"}),
        (ACCOUNT_URL, {_IN_STRING: "SECRET"}),
        (ACCOUNT_URL, {"AZURE_STORAGE_KEY": "SECRET!"}),
        ("SECRET", {"AZURE_STORAGE_KEY": KEY}),
        ("https://SECRET", {"AZURE_STORAGE_KEY": KEY}),
        ("https://SECRET.table.core.windows.net", {}),
        (f"{ACCOUNT_URL}/SECRET", {"AZURE_STORAGE_KEY": KEY}),
        ("http://127.0.0.1:1/SECRET", {"AZURE_STORAGE_KEY": KEY}),
    ],
)
def test_a_secret_in_the_wrong_place_is_refused_and_not_repeated(
    host: str, environ: dict[str, str], secret: str
) -> None:
    """Nothing that was put where a name belongs is shown unless it can be one."""
    put = {name: value.replace("SECRET", secret) for name, value in environ.items()}
    sentence = problem(host.replace("SECRET", secret), put)
    for part in (secret, secret.lower(), secret[:30], secret[-30:]):
        assert part not in sentence


def test_consent_does_not_repeat_a_secret() -> None:
    """A key given to --remote-ok is not shown."""
    accounts = accounts_from(ACCOUNT_URL, {"AZURE_STORAGE_KEY": KEY})
    sentence = consent_problem(accounts, LONG_KEY)
    assert sentence is not None
    assert LONG_KEY[:30] not in sentence
    assert "orders" in sentence


@pytest.mark.parametrize("credential", [SharedKey("orders", KEY), Sas(SAS)])
def test_no_text_of_an_endpoint_shows_its_secret(credential: SharedKey | Sas) -> None:
    """Neither repr nor str of the endpoint or the credential holds the key or the signature."""
    endpoint = Endpoint(kind=STORAGE, url=ACCOUNT_URL, account="orders", credential=credential)
    for shown in (repr(endpoint), str(endpoint), repr(credential), f"{credential}"):
        assert KEY not in shown
        assert "c2VjcmV0" not in shown


def test_the_fingerprint_is_of_kind_address_and_account_alone() -> None:
    """Another credential gives the same fingerprint, another account or address another one."""
    endpoint = endpoint_from(ACCOUNT_URL, {"AZURE_STORAGE_KEY": KEY})
    assert dataclasses.replace(endpoint, credential=Sas(SAS)).fingerprint == endpoint.fingerprint
    for change in ({"account": "stock"}, {"url": "https://x.test"}, {"kind": COSMOS}):
        assert dataclasses.replace(endpoint, **change).fingerprint != endpoint.fingerprint


@pytest.mark.parametrize("host", ["127.0.0.1:10010", "localhost:10010", "[::1]:10010"])
def test_a_stand_in_of_cosmos_db_is_reached_as_localhost(host: str) -> None:
    """The SDK speaks the dialect of Cosmos DB on this machine to that name only."""
    found = endpoint_from(f"http://{host}/orders", {"AZURE_STORAGE_KEY": KEY})
    assert found.kind == AZURITE
    stand_in = as_kind(found, COSMOS_EMULATOR)
    assert stand_in.url == "http://localhost:10010/orders"
    assert stand_in.loopback
    assert as_kind(found, GATEWAY).url == found.url


def test_an_endpoint_elsewhere_keeps_its_kind() -> None:
    """Its address tells what it is, and must never become this machine's."""
    endpoint = endpoint_from(ACCOUNT_URL, {"AZURE_STORAGE_KEY": KEY})
    assert as_kind(endpoint, COSMOS_EMULATOR) is endpoint


LOGIN = {"AZURE_STORAGE_AUTH_MODE": "login"}


@pytest.mark.parametrize(
    ("host", "account", "audience"),
    [
        (ACCOUNT_URL, "orders", "https://storage.azure.com"),
        ("https://orders.table.core.usgovcloudapi.net", "orders", "https://storage.azure.us"),
        ("https://orders.table.cosmos.azure.cn", "orders", "https://cosmos.azure.cn"),
        ("https://127.0.0.1:10002", EMULATOR_ACCOUNT, "https://storage.azure.com"),
        ("https://tables.example.com/orders", "orders", "https://storage.azure.com"),
    ],
)
def test_a_login_is_used_where_it_is_asked_for(host: str, account: str, audience: str) -> None:
    """Also where there are keys, which are ignored; nothing is fetched yet."""
    keys = {"AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_CONNECTION_STRING": "nonsense"}
    endpoint = endpoint_from(host, LOGIN | keys)
    assert endpoint.login is not None
    assert (endpoint.account, endpoint.login.audience) == (account, audience)
    assert endpoint.login.ignored == ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY")
    assert endpoint.login.header == ""


@pytest.mark.parametrize("mode", ["", " ", "key"])
def test_a_login_is_never_chosen_silently(mode: str) -> None:
    """Whatever azure-identity could use, a key is used; without a key there is an error."""
    environ = {
        "AZURE_STORAGE_AUTH_MODE": mode,
        "AZURE_TENANT_ID": "t",
        "AZURE_CLIENT_ID": "c",
        "AZURE_CLIENT_SECRET": "s",
    }
    endpoint = endpoint_from(ACCOUNT_URL, environ | {"AZURE_STORAGE_KEY": KEY})
    assert endpoint.login is None
    assert "--auth-mode login" in problem(ACCOUNT_URL, environ)


def test_the_fingerprint_of_a_login_names_its_tenant() -> None:
    """A worker of another tenant, or with a key, is not the master's."""
    with_key = endpoint_from(ACCOUNT_URL, {"AZURE_STORAGE_KEY": KEY})
    mine = endpoint_from(ACCOUNT_URL, LOGIN | {"AZURE_TENANT_ID": "mine"})
    again = endpoint_from(ACCOUNT_URL, LOGIN | {"AZURE_TENANT_ID": "mine"})
    theirs = endpoint_from(ACCOUNT_URL, LOGIN | {"AZURE_TENANT_ID": "theirs"})
    assert mine.fingerprint == again.fingerprint
    assert len({one.fingerprint for one in (with_key, mine, theirs)}) == 3


def test_no_endpoint_with_a_login_can_be_made_for_plain_http() -> None:
    """However an endpoint is made, its login and plain http do not go together."""
    endpoint = endpoint_from(ACCOUNT_URL, LOGIN)
    with pytest.raises(SetupError, match="https"):
        dataclasses.replace(endpoint, url="http://127.0.0.1:1/orders")


@pytest.mark.parametrize(
    ("host", "remote_ok", "words"),
    [
        ("http://127.0.0.1:1", None, None),
        ("http://127.0.0.1:1", "whatever", None),
        (ACCOUNT_URL, "orders", None),
        (ACCOUNT_URL, None, "--remote-ok orders"),
        (ACCOUNT_URL, "", "--remote-ok orders"),
        (ACCOUNT_URL, "stock", "names stock"),
        ("https://10.0.0.1/devstoreaccount1", None, "--remote-ok devstoreaccount1"),
    ],
)
def test_a_remote_host_needs_its_account_said_again(
    host: str, remote_ok: str | None, words: str | None
) -> None:
    """Loopback needs no consent; anything else needs the account of the host, and no other."""
    accounts = accounts_from(host, {"AZURE_STORAGE_KEY": KEY})
    sentence = consent_problem(accounts, remote_ok)
    assert (sentence is None) if words is None else (sentence is not None and words in sentence)


OWN_DOMAIN = "https://tables.example.com/orders"


@pytest.mark.parametrize(
    ("host", "remote_ok", "refused"),
    [
        (ACCOUNT_URL, "orders", False),
        ("https://orders.z01.table.storage.azure.net", "orders", False),
        ("https://orders.table.cosmos.azure.com", "orders", False),
        ("https://127.0.0.1:1/orders", None, False),
        (OWN_DOMAIN, "orders", True),
        (OWN_DOMAIN, None, True),
        (OWN_DOMAIN, "tables.example.com", False),
        ("https://vm.westeurope.cloudapp.azure.com/orders", "orders", True),
        ("https://orders.table.core.windows.net.example.com/orders", "orders", True),
    ],
)
def test_a_token_goes_to_a_host_of_azure_or_one_that_is_named(
    host: str, remote_ok: str | None, refused: bool
) -> None:
    """The account's name does not confirm who gets a token: anybody may have such a host."""
    sentence = consent_problem(accounts_from(host, LOGIN), remote_ok)
    assert (sentence is not None) is refused
    assert sentence is None or "access token" in sentence


def test_a_custom_domain_with_a_key_is_confirmed_by_its_account() -> None:
    """A signature is good for one request, so its host needs no name of its own."""
    accounts = accounts_from(OWN_DOMAIN, {"AZURE_STORAGE_KEY": KEY})
    assert consent_problem(accounts, "orders") is None


@given(host=st.text(), scheme=st.sampled_from(["", "http://", "https://"]))
def test_no_host_whatever_breaks_the_parser(host: str, scheme: str) -> None:
    """Any text is either an endpoint or a sentence, and plain http stays on this machine."""
    try:
        endpoint = endpoint_from(scheme + host, {"AZURE_STORAGE_KEY": KEY})
    except SetupError:
        return
    assert endpoint.loopback or endpoint.url.startswith("https://")
