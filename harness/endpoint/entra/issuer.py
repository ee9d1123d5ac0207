"""Where tokens come from: the authority of an endpoint's cloud, and azure-identity.

Its `DefaultAzureCredential` looks for a login in this order: environment variables, workload
identity, managed identity, Azure CLI, and other tools for developers. It opens no browser.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from typing import NamedTuple

from azure.core.exceptions import AzureError

from harness.endpoint.entra.token import Token, identity_of
from harness.model.errors import SetupError
from harness.model.services.service import Service

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
    """Get a new token. Takes up to about a minute, where tools do not respond.

    ``environ`` is the environment of this process: azure-identity reads no other.

    Raises:
        NoToken: there is no login, or the one that was found is refused.
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
