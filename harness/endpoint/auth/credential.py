"""What signs the requests: read from the environment alone, and never shown.

A credential never chooses where requests go: one that belongs to another account or another
endpoint than the address is an error.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Mapping
from urllib.parse import SplitResult

from harness.endpoint.address import (
    ACCOUNT,
    CONNECTION_STRING,
    KEY,
    SAS_TOKEN,
    address_of,
    is_loopback,
    kind_and_account,
)
from harness.model.errors import SetupError

# The emulator's published development account: the same on every machine, no secret.
EMULATOR_ACCOUNT = "devstoreaccount1"
EMULATOR_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@dataclasses.dataclass(frozen=True, slots=True)
class SharedKey:
    """An account key. The key is not part of its text."""

    account: str
    key: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Sas:
    """A shared access signature, without the leading question mark. Its text does not show it."""

    token: str = dataclasses.field(repr=False)


def credential_for(
    address: SplitResult, account: str, environ: Mapping[str, str]
) -> tuple[SharedKey | Sas, str]:
    """The credential for the address, and the account it is for.

    The first of connection string, key and SAS that is set is the one used.

    Args:
        address: What `harness.endpoint.address.address_of` made of the host.
        account: The account the address names; empty where it names none.
        environ: The environment.

    Raises:
        SetupError: it is missing, malformed, or belongs elsewhere.
    """
    text = environ.get(CONNECTION_STRING, "").strip()
    if text:
        return _from_connection_string(text, address, account)
    named = environ.get(ACCOUNT, "").strip()
    key = environ.get(KEY, "").strip()
    token = environ.get(SAS_TOKEN, "").strip()
    loopback = is_loopback(address.hostname or "")
    if not key and not token:
        if loopback and account in ("", EMULATOR_ACCOUNT):
            return SharedKey(EMULATOR_ACCOUNT, EMULATOR_KEY), EMULATOR_ACCOUNT
        raise SetupError(
            f"no credential for {account or address.netloc} in the environment: set "
            f"{CONNECTION_STRING}, or {KEY}, or {SAS_TOKEN}"
        )
    if named and account and named != account:
        raise SetupError(
            f"{ACCOUNT} names {named}, but -H leads to the account {account}; make them agree"
        )
    account = account or named or (EMULATOR_ACCOUNT if loopback else "")
    if not account:
        raise SetupError(
            f"{address.netloc} does not tell its account: set {ACCOUNT} to the account behind it"
        )
    if key:
        return _shared_key(account, key, KEY), account
    return _sas(token, SAS_TOKEN), account


def _from_connection_string(
    text: str, address: SplitResult, account: str
) -> tuple[SharedKey | Sas, str]:
    fields: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals:
            raise SetupError(f"{CONNECTION_STRING} is malformed: a part of it has no '='")
        fields[name.strip().lower()] = value.strip()

    if fields.get("usedevelopmentstorage", "").lower() == "true":
        if not is_loopback(address.hostname or ""):
            raise SetupError(f"{CONNECTION_STRING} is the emulator's, but -H is {address.netloc}")
        if account not in ("", EMULATOR_ACCOUNT):
            raise SetupError(f"{CONNECTION_STRING} is the emulator's, but -H names {account}")
        return SharedKey(EMULATOR_ACCOUNT, EMULATOR_KEY), EMULATOR_ACCOUNT

    named = fields.get("accountname", "")
    where = _endpoint_of(fields, named)
    where_account = named or kind_and_account(where)[1]
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


def _endpoint_of(fields: Mapping[str, str], account: str) -> SplitResult:
    """The address a connection string is for, in the spelling of `address_of`."""
    url = fields.get("tableendpoint", "")
    if not url:
        if not account:
            raise SetupError(f"{CONNECTION_STRING} names neither AccountName nor TableEndpoint")
        protocol = fields.get("defaultendpointsprotocol", "https")
        url = f"{protocol}://{account}.table.{fields.get('endpointsuffix', 'core.windows.net')}"
    try:
        return address_of(url)
    except SetupError:
        raise SetupError(
            f"the endpoint in {CONNECTION_STRING} is not an https address of a table service"
        ) from None


def _shared_key(account: str, key: str, variable: str) -> SharedKey:
    try:
        base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise SetupError(f"the account key in {variable} is not base64: was it cut?") from None
    return SharedKey(account, key)


def _sas(token: str, variable: str) -> Sas:
    token = token.lstrip("?")
    if not any(part.startswith("sig=") for part in token.split("&")):
        raise SetupError(f"the SAS in {variable} has no signature (sig=): was it cut at an '&'?")
    return Sas(token)
