"""Credentials: read from the environment alone, and never shown.

A credential never chooses where requests go. A credential for another account or endpoint than the
address names is an error.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import SplitResult

from harness.endpoint.auth.address import (
    ACCOUNT,
    CONNECTION_STRING,
    KEY,
    SAS_TOKEN,
    address_of,
    is_account_name,
    kind_and_account,
)
from harness.model.errors import SetupError
from harness.model.hosts import is_loopback

# The emulator's published development account: the same on every machine, no secret.
EMULATOR_ACCOUNT = "devstoreaccount1"
EMULATOR_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@dataclasses.dataclass(frozen=True, slots=True)
class SharedKey:
    """An account key. Its text does not show the key."""

    noun: ClassVar[str] = "key"
    account: str
    key: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Sas:
    """A shared access signature, without the leading question mark. Its text does not show it."""

    noun: ClassVar[str] = "SAS"
    token: str = dataclasses.field(repr=False)


Credential = SharedKey | Sas
"""All types of credentials. `harness.endpoint.auth.signing` knows how each of them signs."""


def credential_for(
    address: SplitResult, account: str, environ: Mapping[str, str]
) -> tuple[Credential, str]:
    """The credential for an address, and its account.

    The first of connection string, key and SAS that is set is used.

    Args:
        address: The address, normalized by `harness.endpoint.auth.address.address_of`.
        account: The account that the address names; empty where it names none.
        environ: The environment.

    Raises:
        SetupError: the credential is missing, malformed, or for another account or endpoint.
    """
    text = environ.get(CONNECTION_STRING, "").strip()
    if text:
        return _from_connection_string(text, address, account)
    named = _account_name(environ.get(ACCOUNT, "").strip(), ACCOUNT)
    key = environ.get(KEY, "").strip()
    token = environ.get(SAS_TOKEN, "").strip()
    loopback = is_loopback(address.hostname or "")
    if not key and not token:
        if loopback and account in ("", EMULATOR_ACCOUNT):
            return SharedKey(EMULATOR_ACCOUNT, EMULATOR_KEY), EMULATOR_ACCOUNT
        raise SetupError(
            f"the environment has no credential for {account or address.netloc}: set "
            f"{CONNECTION_STRING}, {KEY} or {SAS_TOKEN}"
        )
    if named and account and named != account:
        raise SetupError(
            f"{ACCOUNT} names {named}, but -H leads to the account {account}; make them agree"
        )
    account = account or named or (EMULATOR_ACCOUNT if loopback else "")
    if not account:
        raise SetupError(
            f"the address {address.netloc} names no account: set {ACCOUNT} to its account"
        )
    if key:
        return _shared_key(account, key, KEY), account
    return _sas(token, SAS_TOKEN), account


def _from_connection_string(
    text: str, address: SplitResult, account: str
) -> tuple[Credential, str]:
    fields: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals:
            raise SetupError(f"{CONNECTION_STRING} is malformed: a part of it has no '='")
        fields[name.strip().lower()] = value.strip()

    if fields.get("usedevelopmentstorage", "").lower() == "true":
        if not is_loopback(address.hostname or ""):
            raise SetupError(f"{CONNECTION_STRING} is for the emulator, but -H is {address.netloc}")
        if account not in ("", EMULATOR_ACCOUNT):
            raise SetupError(f"{CONNECTION_STRING} is for the emulator, but -H names {account}")
        return SharedKey(EMULATOR_ACCOUNT, EMULATOR_KEY), EMULATOR_ACCOUNT

    named = _account_name(fields.get("accountname", ""), f"AccountName in {CONNECTION_STRING}")
    where, where_account = _endpoint_of(fields, named)
    if where.netloc != address.netloc or where.scheme != address.scheme:
        raise SetupError(
            f"{CONNECTION_STRING} is for {where.scheme}://{where.netloc}, but -H is "
            f"{address.scheme}://{address.netloc}; make them agree"
        )
    if account and where_account and account != where_account:
        raise SetupError(
            f"{CONNECTION_STRING} names the account {where_account}, but -H leads to {account}"
        )
    account = account or where_account
    if not account:
        raise SetupError(f"{CONNECTION_STRING} names no account (AccountName)")
    if key := fields.get("accountkey"):
        return _shared_key(account, key, CONNECTION_STRING), account
    if token := fields.get("sharedaccesssignature"):
        return _sas(token, CONNECTION_STRING), account
    raise SetupError(f"{CONNECTION_STRING} has neither AccountKey nor SharedAccessSignature")


def _account_name(text: str, variable: str) -> str:
    """``text``, checked to be an account name; the error does not repeat it."""
    if text and not is_account_name(text):
        raise SetupError(
            f"{variable} is not an account name (lower case letters, digits, hyphens); it is not "
            f"shown in case it is a secret. A key belongs in {KEY}"
        )
    return text


def _endpoint_of(fields: Mapping[str, str], account: str) -> tuple[SplitResult, str]:
    """The normalized address in a connection string, and its account."""
    url = fields.get("tableendpoint", "")
    if not url:
        if not account:
            raise SetupError(f"{CONNECTION_STRING} names neither AccountName nor TableEndpoint")
        protocol = fields.get("defaultendpointsprotocol", "https")
        url = f"{protocol}://{account}.table.{fields.get('endpointsuffix', 'core.windows.net')}"
    try:
        address = address_of(url)
        return address, account or kind_and_account(address)[1]
    except SetupError:
        raise SetupError(
            f"the endpoint in {CONNECTION_STRING} is not an https address of a table service"
        ) from None


def _shared_key(account: str, key: str, variable: str) -> SharedKey:
    try:
        base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise SetupError(f"the account key in {variable} is not base64: is it complete?") from None
    return SharedKey(account, key)


def _sas(token: str, variable: str) -> Sas:
    token = token.lstrip("?")
    if not any(part.startswith("sig=") for part in token.split("&")):
        raise SetupError(f"the SAS in {variable} has no signature (sig=): was it cut at an '&'?")
    return Sas(token)
