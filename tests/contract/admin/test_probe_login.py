"""The question before a run, signed with a login: who is refused, why, and what to do."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.endpoint.admin.probe import check, explain
from harness.endpoint.azurite.process import start_azurite
from harness.endpoint.credential import Refusal
from harness.endpoint.endpoint import Endpoint, endpoint_from
from harness.endpoint.entra.login import Login
from harness.endpoint.entra.token import Token, identity_of
from harness.model.errors import SetupError
from tests.support.certificates import CertificateFiles
from tests.support.entra import MANAGED, OBJECT_ID, TENANT, access_token

OTHER = "99999999-2222-3333-4444-555555555555"
WHO = f"the login (managed identity, object id {OBJECT_ID}, tenant {TENANT})"


def login(**claims: Any) -> Login:
    value = access_token(**{**MANAGED, **claims})
    token = Token(
        value=value, fetched_s=0, expires_s=time.time() + 3600, identity=identity_of(value)
    )
    return Login(lambda: token, audience="https://storage.azure.com")


@pytest.fixture(scope="module")
def secure(certificates: CertificateFiles) -> Iterator[Endpoint]:
    """An Azurite that takes tokens."""
    with start_azurite(cert=certificates.cert, key=certificates.key, oauth=True) as azurite:
        yield azurite.endpoint


@pytest.mark.azurite
@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"exp": time.time() - 60},
        {"nbf": time.time() + 86_400},
        {"iss": "https://login.example.com/"},
        {"aud": "https://management.azure.com"},
    ],
)
def test_a_real_service_checks_the_token(
    secure: Endpoint, certificates: CertificateFiles, claims: dict[str, Any]
) -> None:
    """A good token is let in, after it was fetched; else the sentence names the identity."""
    endpoint = dataclasses.replace(secure, credential=login(**claims))
    environ = {"SSL_CERT_FILE": str(certificates.authority)}
    if not claims:
        check(endpoint, environ=environ)
        return
    with pytest.raises(SetupError) as caught:
        check(endpoint, environ=environ)
    assert f"{WHO} is refused (403 AuthenticationFailed" in str(caught.value)
    assert endpoint.login is not None
    assert endpoint.login.token.value not in str(caught.value)


def explained(refused: Refusal, host: str = "orders.table.core.windows.net") -> str:
    """The sentence for the refusal of a managed identity."""
    endpoint = endpoint_from(f"https://{host}", {"AZURE_STORAGE_KEY": "d3Jvbmc="}, server=None)
    signed = login()
    signed.sign_in()
    return explain(dataclasses.replace(endpoint, credential=signed), refused)


def test_a_missing_role_is_named() -> None:
    """With the one that writes, and those of blobs and of Cosmos DB there."""
    refused = Refusal(403, "AuthorizationPermissionMismatch", "Not authorized.")
    sentence = explained(refused)
    assert f"{WHO} lacks a role: assign it Storage Table Data Contributor" in sentence
    sentence = explained(refused, "orders.blob.core.windows.net")
    assert f"{WHO} lacks a role: assign it Storage Blob Data Contributor" in sentence
    cosmos = Refusal(403, "Forbidden", "Principal does not have required RBAC permissions")
    sentence = explained(cosmos, "orders.table.cosmos.azure.com")
    assert "Cosmos DB Built-in Data Contributor" in sentence


@pytest.mark.parametrize("named", [True, False])
def test_another_tenant_is_named(named: bool) -> None:
    """The challenge of the response tells which tenant the account trusts."""
    uri = f"https://login.microsoftonline.com/{OTHER}/oauth2/authorize"
    challenge = f"Bearer authorization_uri={uri} resource_id=https://storage.azure.com"
    message = "Issuer validation failed. Issuer did not match."
    refused = Refusal(401, "InvalidAuthenticationInfo", message, challenge if named else "")
    sentence = explained(refused)
    assert f"{WHO} is of another tenant than the account" in sentence
    assert (f"az login --tenant {OTHER}" if named else "az login --tenant TENANT") in sentence


def test_other_refusals_name_the_login_too() -> None:
    """A firewall, a reason that is unknown; what is about something else stays as it is."""
    firewall = explained(Refusal(403, "AuthorizationFailure", "Not authorized."))
    assert "firewall" in firewall
    assert WHO in firewall
    assert f"{WHO} is refused" in explained(Refusal(401, "Whatever", "Hm."))
    audience = explained(Refusal(401, "InvalidAuthenticationInfo", "Audience validation failed."))
    assert "got a token for https://storage.azure.com" in audience
    assert "the account is disabled" in explained(Refusal(409, "AccountIsDisabled", "Hm."))


def test_an_account_without_keys_is_told_of_logins() -> None:
    """Who uses a key there is told what to do."""
    endpoint = endpoint_from(
        "https://orders.table.core.windows.net", {"AZURE_STORAGE_KEY": "d3Jvbmc="}
    )
    sentence = explain(endpoint, Refusal(403, "KeyBasedAuthenticationNotPermitted", "No keys."))
    assert "--auth-mode login" in sentence
