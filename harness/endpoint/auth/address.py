"""Which addresses are those of a table service, and what an address alone tells.

Azure's own names are Storage or Cosmos DB, and their first label is the account. Loopback is
Azurite. Any other host is taken for the custom domain of a storage account; it may hold the
account in its path (`https://host/account`).

No message here repeats what was typed before it is known to hold no secret.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from harness.model.errors import SetupError
from harness.model.target import EndpointKind

_CLOUDS = ("core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net")
_STORAGE_SUFFIXES = (*(f".table.{cloud}" for cloud in _CLOUDS), ".table.storage.azure.net")
_COSMOS_SUFFIXES = (".table.cosmos.azure.com", ".documents.azure.com")
_ACCOUNT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{1,62}")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_EXAMPLE = "https://ACCOUNT.table.core.windows.net or http://127.0.0.1:10002"

CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"
ACCOUNT = "AZURE_STORAGE_ACCOUNT"
KEY = "AZURE_STORAGE_KEY"
SAS_TOKEN = "AZURE_STORAGE_SAS_TOKEN"
CREDENTIAL_VARIABLES = (CONNECTION_STRING, ACCOUNT, KEY, SAS_TOKEN)
"""Where credentials belong: Azure CLI's names. No address may hold one."""


def address_of(host: str) -> SplitResult:
    """``host`` taken apart and put into one spelling: no default port, no slash at the end.

    Raises:
        SetupError: it is no address, or holds more than one.
    """
    # What was typed is not repeated before it is known to hold no secret.
    if "accountkey=" in host.lower() or "sharedaccesssignature=" in host.lower():
        raise SetupError(
            "-H holds a connection string. A command line is readable by others: put it into "
            f"{CONNECTION_STRING} and give -H the address alone, such as {_EXAMPLE}"
        )
    try:
        parts = urlsplit(host.strip())
        port = parts.port
    except ValueError:
        raise SetupError(f"-H is not a URL; it looks like {_EXAMPLE}") from None
    if "@" in parts.netloc:
        raise SetupError(
            "-H holds a user name or password. A table service takes none: give the address alone "
            f"and put the credential into {KEY} or {SAS_TOKEN}"
        )
    if parts.query or parts.fragment or "?" in host or "#" in host:
        raise SetupError(
            "-H holds more than an address. A command line is readable by others: put a SAS into "
            f"{SAS_TOKEN} and give -H everything before the question mark"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError(f"-H is not a URL with http or https; it looks like {_EXAMPLE}")
    name = parts.hostname.rstrip(".")
    # The SDK takes http://localhost:PORT for the Cosmos emulator, and speaks another dialect.
    name = "127.0.0.1" if name == "localhost" else name
    netloc = f"[{name}]" if ":" in name else name
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        netloc = f"{netloc}:{port}"
    if parts.scheme == "http" and not is_loopback(name):
        raise SetupError(
            f"-H names {name} with plain http: whoever listens on the way could read a SAS or send "
            "a signed request again. Use https"
        )
    return SplitResult(parts.scheme, netloc, parts.path.rstrip("/"), "", "")


def kind_and_account(address: SplitResult) -> tuple[EndpointKind, str]:
    """What the address alone tells; the account is empty where it does not name one.

    Raises:
        SetupError: it is the address of something else than a table service.
    """
    name = address.hostname or ""
    in_path = address.path.lstrip("/")
    for suffixes, kind in (
        (_STORAGE_SUFFIXES, EndpointKind.STORAGE),
        (_COSMOS_SUFFIXES, EndpointKind.COSMOS),
    ):
        if name.endswith(suffixes):
            account = name.split(".", 1)[0]
            if in_path:
                raise SetupError(f"-H has a path, /{in_path}; {name} is an address without one")
            if kind is EndpointKind.STORAGE and account.endswith("-secondary"):
                raise SetupError(
                    f"{name} is the read-only secondary of an account; use the primary address"
                )
            return kind, account
    if name.endswith(tuple(f".{cloud}" for cloud in _CLOUDS)):
        raise SetupError(f"{name} is not the address of a table service; it looks like {_EXAMPLE}")
    if in_path and not _ACCOUNT_NAME.fullmatch(in_path):
        raise SetupError(f"the path of -H, /{in_path}, is not the name of an account")
    kind = EndpointKind.AZURITE if is_loopback(name) else EndpointKind.STORAGE
    return kind, in_path


def port_of(address: SplitResult) -> int:
    """The port, the scheme's own where the address names none."""
    return address.port or _DEFAULT_PORTS[address.scheme]


def is_loopback(name: str) -> bool:
    """True for localhost, 127.0.0.0/8 and ::1: what is sent there does not leave the machine."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
