"""Credentials: read from the environment alone, never shown, and how they sign requests.

A credential never chooses where requests go. A credential for another account or endpoint than the
address names is an error.
"""

from __future__ import annotations

import abc
import base64
import binascii
import dataclasses
import datetime as dt
import hashlib
import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any, ClassVar, NamedTuple
from urllib.parse import SplitResult, parse_qs

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from harness.endpoint.address import address_of, is_account_name, kind_and_account
from harness.model.auth_mode import ACCOUNT, CONNECTION_STRING, KEY, SAS_TOKEN
from harness.model.errors import SetupError
from harness.model.hosts import is_loopback
from harness.model.services.service import Server, Service

# The emulator's published development account: the same on every machine, no secret.
EMULATOR_ACCOUNT = "devstoreaccount1"
EMULATOR_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

STAND_IN_ACCOUNT = "cosmosstandin"
"""A second account of the embedded Azurite, with the same key. The SDK for JavaScript speaks the
dialect of Cosmos DB to ``localhost`` unless the account is `EMULATOR_ACCOUNT`."""

_BLOCK_BYTES = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))

_TABLE_RIGHTS = {"r": "read", "a": "add", "u": "update", "d": "delete"}
_ACCOUNT_RIGHTS = {**_TABLE_RIGHTS, "l": "list", "c": "create", "p": "process"}
_RESOURCE_TYPES = {"s": "service", "c": "container", "o": "object"}


class Refusal(NamedTuple):
    """An error response. The code is empty where the response is not the service's.

    ``challenge`` is its header ``WWW-Authenticate``, which names the tenant that is trusted.
    """

    status: int
    code: str
    message: str
    challenge: str = ""


class Credential(abc.ABC):
    """What can sign requests.

    Attributes:
        noun: Its kind, in sentences about refused requests.
        dated: Whether the service refuses what it signs if the clock of this machine is wrong.
    """

    __slots__ = ()

    noun: ClassVar[str]
    dated: ClassVar[bool] = False

    @abc.abstractmethod
    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        """The header of a request for this path, without its query, as it is sent; may be empty."""

    def authorization_of(self, text: str) -> str:
        """The header of a request whose protocol has ``text`` signed; may be empty."""
        # Only a key signs anything.
        return self.authorization("", "", "", "")

    @abc.abstractmethod
    def for_sdk(self) -> dict[str, Any]:
        """Keywords for a client of the SDK."""

    @property
    @abc.abstractmethod
    def described(self) -> str:
        """The kind of credential, for outputs, without a secret."""

    @property
    def query(self) -> str:
        """What ends the query of every request."""
        return ""

    @property
    def table(self) -> str | None:
        """The only table that it is for; None for all tables of the account."""
        return None

    def problem(self, now_s: float, service: Service) -> str | None:
        """Why a run cannot work with it at ``now_s`` UTC seconds; None where it may."""
        return None

    def why_refused(self, service: Service, refused: Refusal) -> str | None:
        """Why ``service`` refuses it, and what to do; None where the kind does not tell."""
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class SharedKey(Credential):
    """An account key, which signs requests (Authorize with Shared Key).

    A `ValueError` says that it is not base64.
    """

    noun: ClassVar[str] = "key"
    dated: ClassVar[bool] = True
    account: str
    key: str = dataclasses.field(repr=False)
    _hashes: tuple[Any, Any] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        key = base64.b64decode(self.key, validate=True)
        if len(key) > _BLOCK_BYTES:
            key = hashlib.sha256(key).digest()
        key = key.ljust(_BLOCK_BYTES, b"\0")
        # HMAC's two hashes (RFC 2104), fed with the key once: `hmac` would feed it every time.
        hashes = hashlib.sha256(key.translate(_INNER)), hashlib.sha256(key.translate(_OUTER))
        object.__setattr__(self, "_hashes", hashes)

    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        return self.authorization_of(f"{method}\n\n{content_type}\n{date}\n/{self.account}{path}")

    def authorization_of(self, text: str) -> str:
        inner, outer = self._hashes
        inner, outer = inner.copy(), outer.copy()
        inner.update(text.encode())
        outer.update(inner.digest())
        signature = binascii.b2a_base64(outer.digest(), newline=False).decode("ascii")
        return f"SharedKey {self.account}:{signature}"

    def for_sdk(self) -> dict[str, Any]:
        return {"credential": AzureNamedKeyCredential(self.account, self.key)}

    @property
    def field(self) -> str:
        """Its part of a connection string."""
        return f"AccountKey={self.key}"

    @property
    def described(self) -> str:
        """Empty for the emulator's own key."""
        return "" if self.key == EMULATOR_KEY else "account key"


@dataclasses.dataclass(frozen=True, slots=True)
class Sas(Credential):
    """A shared access signature, without the leading question mark, which ends every query."""

    noun: ClassVar[str] = "SAS"
    query: str = dataclasses.field(repr=False)

    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        return ""

    def for_sdk(self) -> dict[str, Any]:
        return {"credential": AzureSasCredential(self.query)}

    @property
    def field(self) -> str:
        return f"SharedAccessSignature={self.query}"

    @property
    def described(self) -> str:
        return "SAS for the account" if self.table is None else "SAS for one table"

    @property
    def table(self) -> str | None:
        return self._fields().get("tn")

    def problem(self, now_s: float, service: Service) -> str | None:
        """Why a run cannot work with this SAS, by its own fields.

        The service often gives one error for all causes of a refused SAS. The fields of the SAS,
        which are signed, tell them apart. The grants of a stored access policy (`si`) are unknown.
        """
        fields = self._fields()
        expiry, start = _time(fields.get("se")), _time(fields.get("st"))
        if expiry is not None and expiry <= now_s:
            return f"the SAS expired at {fields['se']}: create a new one"
        if start is not None and start > now_s:
            return f"the SAS is not valid before {fields['st']}: wait, or create a new one"
        if "si" in fields:
            return None
        rights, server = fields.get("sp", ""), service.server
        if "tn" in fields and server == "table":
            return _lacking(rights, _TABLE_RIGHTS, "permission", "sp", "raud")
        if "sr" in fields or "tn" in fields:
            return (
                f"the SAS is not for the whole account, and a run creates a {service.store} of its "
                "own: use a SAS for the account, the key, or a login"
            )
        if "ss" in fields and server[0] not in fields["ss"]:
            return f"the SAS does not cover {server}s: ss={fields['ss']} lacks {server[0]}"
        types = fields.get("srt", "sco")
        wanted = f"{service.sas_rights} on services {server[0]}, resource types sco"
        needed = {one: name for one, name in _ACCOUNT_RIGHTS.items() if one in service.sas_rights}
        problem = _lacking(types, _RESOURCE_TYPES, "resource type", "srt", wanted)
        return problem or _lacking(rights, needed, "permission", "sp", wanted)

    def why_refused(self, service: Service, refused: Refusal) -> str | None:
        if not service.charges or refused.status not in (401, 403):
            return None
        return (
            "Cosmos DB takes a SAS for one table only, and was seen to refuse those of this version"
            " of the protocol: use the key of the account, or a login (--auth-mode login)"
        )

    def _fields(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.query).items()}


Secret = SharedKey | Sas
"""What variables and connection strings hold."""


def _lacking(given: str, needed: dict[str, str], noun: str, field: str, wanted: str) -> str | None:
    missing = [f"{name} ({letter})" for letter, name in needed.items() if letter not in given]
    if not missing:
        return None
    return f"the SAS lacks the {noun} {', '.join(missing)}: {field}={given}; a run needs {wanted}"


def _time(text: str | None) -> float | None:
    """UTC seconds of a SAS time, which may be a date alone; None where it is missing or invalid."""
    try:
        moment = dt.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()


class ServiceDate:
    """The current date as the service expects it, formatted once a second."""

    __slots__ = ("_date", "_second")

    def __init__(self) -> None:
        self._second = 0
        self._date = ""

    def now(self) -> str:
        second = int(time.time())
        if second != self._second:
            self._second, self._date = second, formatdate(second, usegmt=True)
        return self._date


def account_for(address: SplitResult, account: str, environ: Mapping[str, str]) -> str:
    """The account at a normalized address that names ``account``, or none where that is empty.

    A `SetupError` says that address and environment name different accounts, or none.
    """
    named = _account_name(environ.get(ACCOUNT, "").strip(), ACCOUNT)
    if named and account and named != account:
        raise SetupError(
            f"{ACCOUNT} names {named}, but -H leads to the account {account}; make them agree"
        )
    account = account or named or (EMULATOR_ACCOUNT if is_loopback(address.hostname or "") else "")
    if not account:
        raise SetupError(
            f"the address {address.netloc} names no account: set {ACCOUNT} to its account"
        )
    return account


def credential_for(
    address: SplitResult, account: str, environ: Mapping[str, str], server: Server = "table"
) -> tuple[Secret, str]:
    """The key or SAS for a normalized address of a ``server``, and its account.

    The first of connection string, key and SAS that is set is used. ``account`` is the account that
    the address names; it may be empty. A `SetupError` says what is missing, malformed, or for
    another account or endpoint.
    """
    text = environ.get(CONNECTION_STRING, "").strip()
    if text:
        return _from_connection_string(text, address, account, server)
    key = environ.get(KEY, "").strip()
    token = environ.get(SAS_TOKEN, "").strip()
    if not key and not token:
        _account_name(environ.get(ACCOUNT, "").strip(), ACCOUNT)
        if is_loopback(address.hostname or "") and account in ("", EMULATOR_ACCOUNT):
            return SharedKey(EMULATOR_ACCOUNT, EMULATOR_KEY), EMULATOR_ACCOUNT
        raise SetupError(
            f"the environment has no credential for {account or address.netloc}: set "
            f"{CONNECTION_STRING}, {KEY} or {SAS_TOKEN}, or use a login of Entra ID with "
            "--auth-mode login"
        )
    account = account_for(address, account, environ)
    if key:
        return _shared_key(account, key, KEY), account
    return _sas(token, SAS_TOKEN), account


def _from_connection_string(
    text: str, address: SplitResult, account: str, server: Server
) -> tuple[Secret, str]:
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
    where, where_account = _endpoint_of(fields, named, server)
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
    if text and not is_account_name(text):
        raise SetupError(
            f"{variable} is not an account name (lower case letters, digits, hyphens); it is not "
            f"shown in case it is a secret. A key belongs in {KEY}"
        )
    return text


def _endpoint_of(
    fields: Mapping[str, str], account: str, server: Server
) -> tuple[SplitResult, str]:
    """The normalized address of a ``server`` in a connection string, and its account."""
    field = f"{server.capitalize()}Endpoint"
    url = fields.get(field.lower(), "")
    if not url:
        if not account:
            raise SetupError(f"{CONNECTION_STRING} names neither AccountName nor {field}")
        protocol = fields.get("defaultendpointsprotocol", "https")
        url = f"{protocol}://{account}.{server}.{fields.get('endpointsuffix', 'core.windows.net')}"
    try:
        address = address_of(url)
        return address, account or kind_and_account(address, server=server)[1]
    except SetupError:
        raise SetupError(
            f"the endpoint in {CONNECTION_STRING} is not an https address of a {server} service"
        ) from None


def _shared_key(account: str, key: str, variable: str) -> SharedKey:
    try:
        return SharedKey(account, key)
    except ValueError:
        raise SetupError(f"the account key in {variable} is not base64: is it complete?") from None


def _sas(token: str, variable: str) -> Sas:
    token = token.lstrip("?")
    if not any(part.startswith("sig=") for part in token.split("&")):
        raise SetupError(f"the SAS in {variable} has no signature (sig=): was it cut at an '&'?")
    return Sas(token)
