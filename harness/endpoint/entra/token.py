"""Access tokens: where they come from, the identity that they name, and when they are renewed.

They come from the authority of an endpoint's cloud, by azure-identity. Its `DefaultAzureCredential`
looks for a login in this order: environment variables, workload identity, managed identity, Azure
CLI, and other tools for developers. It opens no browser.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import logging
import os
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from azure.core.exceptions import AzureError

from harness.model.errors import SetupError
from harness.model.services.service import Service

_SHOWN = 64
AHEAD_S = 290.0
"""How long before its end a token is renewed. Azure CLI and other caches return the old token
until five minutes before its end (MSAL)."""
_SHARE_AHEAD = 0.4
"""The share of a short lifetime that is left when the token is renewed."""
_SHARE_UNCHANGED = 0.1
"""Of the time to its end, how long to wait after the current token was returned once more."""
_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 30.0
REFUSALS_APART_S = 30.0
"""Refused requests renew the token at most so often: they may have another cause."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a token was issued to. Each text is empty where the token does not tell.

    Attributes:
        kind: ``user``, ``service principal`` or ``managed identity``.
        object_id: Id of the user or principal, to which roles are assigned.
        tenant: Id of the tenant that issued the token.
    """

    kind: str = ""
    object_id: str = ""
    tenant: str = ""

    @property
    def described(self) -> str:
        """Kind, object id and tenant, for a message: no secret."""
        named = [self.kind]
        named += [f"object id {self.object_id}"] * bool(self.object_id)
        named += [f"tenant {self.tenant}"] * bool(self.tenant)
        return ", ".join(filter(None, named)) or "an identity that the token does not name"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An access token. Times are UTC seconds.

    Attributes:
        refresh_s: When the issuer recommends to renew it; None without a recommendation.
    """

    value: str = dataclasses.field(repr=False)
    fetched_s: float
    expires_s: float
    refresh_s: float | None = None
    identity: Identity


def identity_of(token: str, tenant: str = "") -> Identity:
    """The identity in an access token (access token claims reference), which is not verified.

    ``tenant`` holds where the token names none. A token that is not a JWT names nothing.
    """
    claims = _claims(token)
    return Identity(
        kind=_kind(claims),
        object_id=_text(claims, "oid"),
        tenant=_text(claims, "tid") or tenant,
    )


def _claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _kind(claims: dict[str, Any]) -> str:
    if not claims:
        return ""
    # The resource id of a managed identity is in its tokens alone.
    if "xms_mirid" in claims:
        return "managed identity"
    # `idtyp` is an optional claim. `scp` is in the tokens of users alone.
    application = claims.get("idtyp", "" if "scp" in claims else "app") == "app"
    return "service principal" if application else "user"


def _text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) and value.isprintable() and len(value) <= _SHOWN else ""


class Renewal:
    """The time of the next renewal of one token. All times are UTC seconds.

    Attributes:
        due_s: When to try next; infinite without a token.
        failures: Tries in a row that failed.
    """

    def __init__(self) -> None:
        self.due_s = float("inf")
        self.failures = 0
        self._refused_s = -float("inf")

    def taken(self, token: Token) -> None:
        """A new token was fetched."""
        self.failures = 0
        life_s = token.expires_s - token.fetched_s
        due_s = token.expires_s - min(AHEAD_S, _SHARE_AHEAD * life_s)
        if token.refresh_s is not None:
            due_s = min(due_s, token.refresh_s)
        self.due_s = max(due_s, token.fetched_s + _FIRST_DELAY_S)

    def unchanged(self, token: Token, now_s: float) -> None:
        """A try at ``now_s`` returned ``token``, which is the current one, from a cache."""
        self.failures = 0
        self.due_s = now_s + max(_SHARE_UNCHANGED * (token.expires_s - now_s), _FIRST_DELAY_S)

    def failed(self, now_s: float) -> float:
        """A try failed at ``now_s``. Returns the seconds until the next one."""
        delay_s = min(_FIRST_DELAY_S * 2.0**self.failures, _LONGEST_DELAY_S)
        self.failures += 1
        self.due_s = now_s + delay_s
        return delay_s

    def may_follow_refusal(self, now_s: float) -> bool:
        """Whether a request that was refused at ``now_s`` renews the token; True marks the time."""
        if now_s - self._refused_s < REFUSALS_APART_S:
            return False
        self._refused_s = now_s
        return True


AUTHORITY_HOST = "AZURE_AUTHORITY_HOST"
"""The variable that names the authority, as in every Azure SDK."""

_PUBLIC, _US, _CHINA = "com", "us", "cn"
_AUTHORITIES = {
    _PUBLIC: "login.microsoftonline.com",
    _US: "login.microsoftonline.us",
    _CHINA: "login.chinacloudapi.cn",
}
_CLOUDS_OF_HOSTS = {
    ".usgovcloudapi.net": _US,
    ".azure.us": _US,
    ".chinacloudapi.cn": _CHINA,
    ".azure.cn": _CHINA,
    ".windows.net": _PUBLIC,
    ".azure.net": _PUBLIC,
    ".azure.com": _PUBLIC,
}
TENANT = "AZURE_TENANT_ID"
_SECRETS = (
    "AZURE_CLIENT_SECRET",
    "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    "AZURE_PASSWORD",
    "IDENTITY_HEADER",
    "MSI_SECRET",
)
_JWT = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")
_LOG_LEVELS = {"azure": logging.WARNING, "azure.identity": logging.CRITICAL, "msal": logging.ERROR}
"""These libraries log requests, and errors that the harness shows as sentences."""

_NAMES = {
    "EnvironmentCredential": "environment variables",
    "WorkloadIdentityCredential": "workload identity",
    "ManagedIdentityCredential": "managed identity",
    "AzureCliCredential": "Azure CLI",
    "AzurePowerShellCredential": "Azure PowerShell",
    "AzureDeveloperCliCredential": "Azure Developer CLI",
}
_TRIED = re.compile(rf"^\s*({'|'.join(_NAMES)}): ", re.MULTILINE)
_SAID_TWICE = re.compile(
    r"\s*(?:\w+Credential authentication unavailable[.,]\s*(?=\S)"
    r"|Visit https\S+ to\s+troubleshoot this issue\.?"
    r"|See the troubleshooting guide for more information: \S+"
    r"|To mitigate this issue, please refer to.*)",
    re.DOTALL,
)
_NOT_SET_UP = re.compile(
    r"not fully configured|not found on path|is not installed|could not be found"
)
_TRIED_LOGINS = (
    "no login gives a token of Entra ID: run `az login`, or set AZURE_TENANT_ID, AZURE_CLIENT_ID "
    "and AZURE_CLIENT_SECRET, or use a machine with a managed identity. Tried were:"
)
_LONGEST_REASON = 300


class Cloud(NamedTuple):
    """What a token is for, and where it comes from.

    Attributes:
        audience: The resource that accepts the token, such as ``https://storage.azure.com``.
        authority: Host name of the authority that issues it.
    """

    audience: str
    authority: str


def cloud_of(kind: Service, hostname: str, environ: Mapping[str, str]) -> Cloud:
    """The cloud of an endpoint.

    Host names of Azure name their cloud. For other host names, such as custom domains, the
    authority in ``environ`` tells the cloud.
    """
    named = environ.get(AUTHORITY_HOST, "").strip().removeprefix("https://").strip("/")
    cloud = next(
        (cloud for ending, cloud in _CLOUDS_OF_HOSTS.items() if hostname.endswith(ending)), None
    )
    if cloud is None:
        last = named.rpartition(".")[2]
        cloud = last if last in _AUTHORITIES else _PUBLIC
    return Cloud(f"https://{kind.audience}.azure.{cloud}", named or _AUTHORITIES[cloud])


class NoToken(SetupError):
    """There is no token. The message lists each login that was tried, a line each.

    ``cause`` is the reason in one line, without the logins that are not set up.
    """

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or message


def fetch(cloud: Cloud, environ: Mapping[str, str] = os.environ) -> Token:
    """Get a new token, or raise `NoToken`. Takes about a minute where tools do not respond.

    ``environ`` is the environment of this process: azure-identity reads no other.
    """
    # Most runs sign with a key, and this import takes a while.
    from azure.identity import DefaultAzureCredential

    for library, level in _LOG_LEVELS.items():
        logging.getLogger(library).setLevel(level)
    try:
        # A new object, because it has no cache that could return a token which was refused.
        with DefaultAzureCredential(
            authority=cloud.authority,
            # These need a package that the harness does not install, or Windows.
            exclude_visual_studio_code_credential=True,
            exclude_broker_credential=True,
            exclude_shared_token_cache_credential=True,
        ) as credential:
            info = credential.get_token_info(f"{cloud.audience}/.default")
    except (AzureError, ValueError, OSError) as error:
        raise explained(str(error), environ) from None
    return Token(
        value=info.token,
        fetched_s=time.time(),
        expires_s=info.expires_on,
        refresh_s=info.refresh_on,
        identity=identity_of(info.token, environ.get(TENANT, "")),
    )


def explained(said: str, environ: Mapping[str, str]) -> NoToken:
    """An error of azure-identity in words, without the secrets of ``environ``."""
    for name in _SECRETS:
        if secret := environ.get(name):
            said = said.replace(secret, "***")
    said = _JWT.sub("***", said)
    _, *parts = _TRIED.split(said)
    if not parts:
        return NoToken(f"no token of Entra ID: {_reason(said)}", _reason(said))
    names = parts[::2]
    tried = [
        f"{_NAMES[name]}: {_reason(text)}" for name, text in zip(names, parts[1::2], strict=True)
    ]
    set_up = [text for text in tried if _NOT_SET_UP.search(text) is None]
    return NoToken("\n  ".join((_TRIED_LOGINS, *tried)), "; ".join(set_up or tried))


def _reason(text: str) -> str:
    return " ".join(_SAID_TWICE.sub(" ", text).split())[:_LONGEST_REASON]
