"""Several accounts: their addresses, their credentials by name, and the consent to load them."""

from __future__ import annotations

import base64

import pytest

from harness.endpoint.accounts import Accounts, accounts_from, consent_problem
from harness.endpoint.credential import EMULATOR_KEY, Sas, SharedKey
from harness.endpoint.endpoint import endpoint_from
from harness.model.errors import SetupError

KEY = base64.b64encode(b"a key that nobody has").decode()
OTHER_KEY = base64.b64encode(b"another key").decode()
SAS = "sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2030-01-01T00:00:00Z&sig=c2VjcmV0"
A, B = "https://orders1.table.core.windows.net", "https://orders2.table.core.windows.net"
BOTH = {"AZURE_STORAGE_KEY_ORDERS1": KEY, "AZURE_STORAGE_SAS_TOKEN_ORDERS2": SAS}


def problem(hosts: str, environ: dict[str, str]) -> str:
    with pytest.raises(SetupError) as caught:
        accounts_from(hosts, environ)
    return str(caught.value)


@pytest.mark.parametrize("hosts", [f"{A},{B}", f"{A} {B}", f" {A}/, {B}\n"])
def test_each_account_has_the_credential_of_its_name(hosts: str) -> None:
    """Hosts are separated by commas or blanks; a credential goes to the account it is named for."""
    accounts = accounts_from(hosts, BOTH)
    assert [endpoint.url for endpoint in accounts] == [A, B]
    assert [endpoint.credential for endpoint in accounts] == [SharedKey("orders1", KEY), Sas(SAS)]
    assert accounts.names == ("orders1", "orders2")
    assert accounts.remote


def test_a_connection_string_is_named_like_the_others() -> None:
    """It is checked against the address, as that of a single account."""
    text = f"DefaultEndpointsProtocol=https;AccountName=orders2;AccountKey={OTHER_KEY}"
    environ = {**BOTH, "AZURE_STORAGE_CONNECTION_STRING_ORDERS2": text}
    assert accounts_from(f"{A},{B}", environ).endpoints[1].credential == SharedKey(
        "orders2", OTHER_KEY
    )
    wrong = problem(f"{B},{A}", {**BOTH, "AZURE_STORAGE_CONNECTION_STRING_ORDERS1": text})
    assert wrong.startswith("AZURE_STORAGE_CONNECTION_STRING_ORDERS1 is for")
    assert OTHER_KEY not in wrong


def test_a_key_without_a_name_signs_for_no_account_of_several() -> None:
    """It belongs to one of them, and nobody knows to which; the sentence names the variables."""
    sentence = problem(f"{A},{B}", {"AZURE_STORAGE_KEY": KEY, **BOTH, BOTHS_KEY: ""})
    assert "no credential for orders1: set AZURE_STORAGE_CONNECTION_STRING_ORDERS1, " in sentence
    assert "AZURE_STORAGE_KEY_ORDERS1 or AZURE_STORAGE_SAS_TOKEN_ORDERS1" in sentence


BOTHS_KEY = "AZURE_STORAGE_KEY_ORDERS1"


def test_a_single_account_takes_the_variable_of_its_name_first() -> None:
    """A shell that is set up for several accounts can also load one of them."""
    environ = {**BOTH, "AZURE_STORAGE_CONNECTION_STRING": "of=another"}
    assert endpoint_from(A, environ).credential == SharedKey("orders1", KEY)
    assert endpoint_from(A, {"AZURE_STORAGE_KEY": OTHER_KEY, "AZURE_STORAGE_KEY_X": KEY}) == (
        endpoint_from(A, {"AZURE_STORAGE_KEY": OTHER_KEY})
    )


def test_hyphens_of_a_name_are_underscores_in_its_variables() -> None:
    """No shell takes a hyphen in the name of a variable."""
    host = "https://my-tables.table.cosmos.azure.com"
    endpoint = endpoint_from(host, {"AZURE_STORAGE_KEY_MY_TABLES": KEY})
    assert endpoint.credential == SharedKey("my-tables", KEY)


def test_emulators_are_told_apart_by_their_hosts() -> None:
    """They share the development account and its published key."""
    accounts = accounts_from("http://127.0.0.1:1 http://127.0.0.1:2", {"AZURE_STORAGE_KEY": KEY})
    assert accounts.names == ("127.0.0.1:1", "127.0.0.1:2")
    assert {endpoint.credential for endpoint in accounts} == {
        SharedKey("devstoreaccount1", EMULATOR_KEY)
    }
    assert not accounts.remote
    assert accounts_from(accounts.url, {}) == accounts


def test_a_sentence_names_where_the_addresses_come_from() -> None:
    """A profile can name them in place of the command line."""
    with pytest.raises(SetupError, match=r"^hosts of the profile is not an http or https URL"):
        accounts_from("ftp://x", {}, "hosts of the profile")
    with pytest.raises(SetupError, match=r"^hosts of the profile names the account orders1 twice"):
        accounts_from(f"{A} {A}", BOTH, "hosts of the profile")


def test_the_fingerprint_is_of_all_accounts_in_order() -> None:
    """Workers with the same accounts in another order would send each key to another account."""
    first, second = accounts_from(f"{A},{B}", BOTH), accounts_from(f"{B},{A}", BOTH)
    assert first.fingerprint != second.fingerprint
    assert first.fingerprint == accounts_from(first.url, BOTH).fingerprint
    [one] = accounts_from(A, BOTH)
    assert Accounts((one,)).fingerprint == one.fingerprint


@pytest.mark.parametrize("remote_ok", ["orders1,orders2", "orders2 orders1"])
def test_consent_names_every_account(remote_ok: str) -> None:
    """In any order; one that is not named is not loaded."""
    assert consent_problem(accounts_from(f"{A},{B}", BOTH), remote_ok) is None
