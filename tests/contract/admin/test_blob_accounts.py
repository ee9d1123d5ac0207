"""Blobs of an account under its host name of Azure: credentials, refusals, and what is swept."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    ContainerSasPermissions,
    ResourceTypes,
    Services,
    generate_account_sas,
    generate_container_sas,
)

from harness.cli import main
from harness.commands.schema import schema_of
from harness.endpoint.accounts import Credentials
from harness.endpoint.admin.probe import check
from harness.endpoint.admin.stores import (
    create_store,
    delete_store,
    leftovers,
    list_stores,
    require_library,
)
from harness.endpoint.azurite.process import AzuriteProcess, start_azurite
from harness.endpoint.credential import EMULATOR_KEY
from harness.endpoint.endpoint import Endpoint
from harness.model.auth_mode import AUTH_MODE, CONNECTION_STRING, KEY, LOGIN_MODE, SAS_TOKEN
from harness.model.errors import SetupError
from harness.model.operation import Kind, Operation, transaction
from harness.model.outcome import Outcome
from harness.model.services.blobs import AZURE_BLOBS
from harness.workload.budget import Budget
from tests.support.certificates import CertificateFiles, certificate
from tests.support.command import Command
from tests.support.entra import OBJECT_ID, ManagedIdentity
from tests.support.production_hosts import ACCOUNT, BLOB_HOST, lead_here

pytestmark = pytest.mark.azurite

OLD = "stress20260101t000000z0a1b2c3d"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """A certificate for the account."""
    return certificate(tmp_path_factory.mktemp("account"), BLOB_HOST, "127.0.0.1")


@pytest.fixture(scope="module")
def azurite_of_blobs(files: CertificateFiles) -> Iterator[AzuriteProcess]:
    """A blob server that takes tokens."""
    with start_azurite(cert=files.cert, key=files.key, oauth=True, service="blob") as process:
        yield process


@pytest.fixture
def url(
    azurite_of_blobs: AzuriteProcess, files: CertificateFiles, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The address of the account, which leads here."""
    lead_here(monkeypatch.setattr)
    monkeypatch.setenv("SSL_CERT_FILE", str(files.authority))
    return f"https://{BLOB_HOST}:{azurite_of_blobs.endpoint.port}"


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> Iterator[ManagedIdentity]:
    """The managed identity of this process."""
    identity = ManagedIdentity()
    for name, text in identity.environ.items():
        monkeypatch.setenv(name, text)
    yield identity
    identity.stop()


def sas(permission: str = "rwdlac", services: str = "b", types: str = "sco", end_h: int = 1) -> str:
    return generate_account_sas(
        ACCOUNT,
        EMULATOR_KEY,
        ResourceTypes.from_string(types),
        AccountSasPermissions.from_string(permission),
        dt.datetime.now(dt.UTC) + dt.timedelta(hours=end_h),
        services=Services.from_string(services),
    )


def container_sas() -> str:
    return generate_container_sas(
        ACCOUNT,
        "somecontainer",
        account_key=EMULATOR_KEY,
        permission=ContainerSasPermissions(read=True, add=True, create=True, list=True),
        expiry=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1),
    )


def endpoint_of(url: str, environ: dict[str, str]) -> Endpoint:
    """The account as a run with session ``blob`` has it."""
    credentials = Credentials({**os.environ, **environ})
    (endpoint,) = credentials.permitted(url, ACCOUNT, server="blob")
    return endpoint


CREDENTIALS = {
    "key": lambda url: {KEY: EMULATOR_KEY},
    "connection string": lambda url: {
        CONNECTION_STRING: f"AccountName={ACCOUNT};AccountKey={EMULATOR_KEY};BlobEndpoint={url}/"
    },
    "connection string with a SAS": lambda url: {
        CONNECTION_STRING: f"BlobEndpoint={url};TableEndpoint=https://x.table.core.windows.net;"
        f"SharedAccessSignature={sas()}"
    },
    "SAS": lambda url: {SAS_TOKEN: sas()},
    "SAS without write": lambda url: {SAS_TOKEN: sas("rdlac", "bt")},
    "login": lambda url: {AUTH_MODE: LOGIN_MODE},
}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_each_credential_is_enough_for_a_run(
    name: str, url: str, identity: ManagedIdentity, open_to: Callable[..., Any]
) -> None:
    """It lists, creates, appends, reads and deletes; each request is one of the budget."""
    endpoint = endpoint_of(url, CREDENTIALS[name](url))
    assert (endpoint.kind, endpoint.account) == (AZURE_BLOBS, ACCOUNT)
    assert endpoint.remote
    check(endpoint)
    require_library(endpoint)
    budget, container = Budget(), f"contract-{name.replace(' ', '-').lower()}"
    create_store(endpoint, container, budget)
    with pytest.raises(SetupError, match=r"cannot be created: .*ContainerAlreadyExists"):
        create_store(endpoint, container, budget)
    lines = transaction(
        tuple(
            Operation(kind=Kind.INSERT, partition_key="p", row_key=row, properties={"A": 1})
            for row in ("a", "b")
        )
    )
    session = open_to("blob", endpoint, container, budget=budget)
    written = session.execute(lines)
    assert (written.outcome, len(written.attempts)) == (Outcome.SUCCESS, 2), written.attempts
    read = session.execute(Operation(kind=Kind.QUERY, partition_key="p"))
    assert [line["RowKey"] for line in read.value] == ["a", "b"]
    assert container in list_stores(endpoint, budget)
    delete_store(endpoint, container, budget)
    assert container not in list_stores(endpoint)
    # Created, refused, blob created, appended, read, listed, deleted.
    assert budget.spent == 7
    assert bool(identity.issued) == (name == "login")


REFUSED = {
    "wrong key": ({KEY: "d3Jvbmc="}, f"refuses the key for the account {ACCOUNT} ("),
    "SAS of tables": ({SAS_TOKEN: sas(services="t")}, "the SAS does not cover blobs: ss=t lacks b"),
    "reading SAS": (
        {SAS_TOKEN: sas("rl")},
        "the SAS lacks the permission add (a), delete (d), create (c): sp=rl; a run needs rwdlac "
        "on services b, resource types sco",
    ),
    "objects only": ({SAS_TOKEN: sas(types="o")}, "lacks the resource type service (s)"),
    "container": ({SAS_TOKEN: container_sas()}, "a run creates a container of its own"),
    "expired": ({SAS_TOKEN: sas(end_h=-1)}, "the SAS expired at"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_credential_that_is_not_enough_is_refused(name: str, url: str) -> None:
    """One sentence says what it lacks, and repeats no secret."""
    environ, words = REFUSED[name]
    with pytest.raises(SetupError) as caught:
        check(endpoint_of(url, environ))
    assert words in str(caught.value)
    assert "sig=" not in str(caught.value)


def test_a_token_for_something_else_is_refused(url: str, identity: ManagedIdentity) -> None:
    """The sentence names the identity."""
    identity.claims["aud"] = "https://management.azure.com"
    with pytest.raises(SetupError) as caught:
        check(endpoint_of(url, {AUTH_MODE: LOGIN_MODE}))
    assert OBJECT_ID in str(caught.value)
    assert identity.issued[0] not in str(caught.value)


def test_a_server_of_tables_is_not_taken_for_one_of_blobs(endpoint: Endpoint) -> None:
    """The address of one on this machine does not tell which server it is."""
    (tables,) = Credentials({}).accounts(f"http://{endpoint.host}", server="blob")
    with pytest.raises(SetupError, match="is a table service, and not a blob service: check -H"):
        check(tables)


@pytest.fixture
def old_and_new(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Containers of a run that was killed, and of one that goes on; and one of somebody else."""
    monkeypatch.setenv(KEY, EMULATOR_KEY)
    endpoint = endpoint_of(url, {})
    new = f"stress{dt.datetime.now(dt.UTC):%Y%m%dt%H%M%S}z0a1b2c3d"
    for name in (OLD, new, "precious"):
        create_store(endpoint, name)
    yield new, "precious"
    for name in (OLD, new, "precious"):
        with contextlib.suppress(SetupError):
            delete_store(endpoint, name)


def test_containers_are_swept_like_tables(
    url: str, old_and_new: tuple[str, str], command: Command
) -> None:
    """The address tells that it is one of blobs; what is listed and named is deleted."""
    new, other = old_and_new
    at = ("sweep", "-H", url, "--remote-ok", ACCOUNT)
    endpoint = endpoint_of(url, {})
    assert list(leftovers(endpoint, dt.datetime.now(dt.UTC), 0)) == [OLD, new]
    listed = command(*at)
    assert OLD in listed
    assert new not in listed
    for stranger in (new, other):
        assert "no leftover container older than" in command.refused(*at, "--delete", OLD, stranger)
    swept = json.loads(command(*at, "--json", "--delete", OLD))
    jsonschema.validate(swept, schema_of("sweep"))
    assert [(part["table"], part["deleted"]) for part in swept["tables"]] == [(OLD, True)]
    assert list_stores(endpoint) == [other, new]
    assert "no leftover containers older than 3600 s at" in command(*at)


def test_a_sweep_on_this_machine_is_told_the_session(command: Command) -> None:
    """The address of an Azurite of one's own does not tell that it is one of blobs."""
    with start_azurite(service="blob") as own:
        create_store(own.endpoint, OLD)
        at = f"http://{own.endpoint.host}"
        assert OLD in command("sweep", "-H", at, "--session", "blob")
        said = command.refused("sweep", "-H", at)
        assert "is a blob service, to which only session blob sends, and not a table" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), f"To allow that, add --remote-ok {ACCOUNT}"),
        (("--remote-ok", "stock"), f"-H leads to the account {ACCOUNT}"),
        (("--remote-ok", ACCOUNT, "--session", "sdk"), "a table service looks like https://ACC"),
    ],
)
def test_a_sweep_without_consent_asks_nothing(
    arguments: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2 with one sentence; the host is not even looked up."""
    monkeypatch.setenv(KEY, EMULATOR_KEY)
    assert main(["sweep", "-H", f"https://{BLOB_HOST}", *arguments]) == 2
    assert words in capsys.readouterr().err
