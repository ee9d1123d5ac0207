"""Addresses of services, and the kind and account that they imply.

Azure's own host names are Storage or Cosmos DB, and their first label is the account. Loopback is
Azurite. Any other host is taken for the custom domain of a storage account, which may have the
account in its path (`https://host/account`).

Messages repeat only input that cannot hold a secret.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from harness.model.auth_mode import CONNECTION_STRING, KEY, SAS_TOKEN
from harness.model.errors import SetupError
from harness.model.hosts import host_of, is_loopback
from harness.model.services import SERVICES, USUAL, service_of
from harness.model.services.service import Server, Service

_TABLE_SUFFIXES = tuple(
    suffix for service in SERVICES if service.store == "table" for suffix in service.hosts
)
_OF_AZURE = tuple(
    suffix for service in SERVICES for suffix in (*service.hosts, *service.other_hosts)
)
_STORAGE_SUFFIXES = tuple(suffix.removeprefix(".table") for suffix in USUAL.hosts)
TABLE_HOSTS = (
    *(f"*{suffix}" for suffix in _TABLE_SUFFIXES),
    *(f"*.z{zone:02}.table.storage.azure.net" for zone in range(100)),
)
"""Patterns of the hosts of table endpoints, as a certificate has them: one label each."""
# Lower case only, and shorter than any key: a key never passes as an account name.
_ACCOUNT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,43}")
DEFAULT_PORTS = {"http": 80, "https": 443}


def _example(server: Server | None) -> str:
    server = server or USUAL.server
    host = service_of(server, emulated=False).hosts[0]
    return f"https://ACCOUNT{host} or http://127.0.0.1:{service_of(server, emulated=True).port}"


def address_of(host: str, option: str = "-H", server: Server | None = "table") -> SplitResult:
    """The parts of the URL ``host``, without default port and trailing slash.

    A `SetupError` says why ``host`` is not an address, or what it contains besides one. For the
    messages, ``option`` is the option that gave it, and ``server`` what requests are for.
    """
    example = _example(server)
    if "accountkey=" in host.lower() or "sharedaccesssignature=" in host.lower():
        raise SetupError(
            f"{option} is a connection string, and others can read a command line: put it into "
            f"{CONNECTION_STRING} and give {option} only the address, such as {example}"
        )
    try:
        parts = urlsplit(host.strip())
        port = parts.port
    except ValueError:
        raise SetupError(f"{option} is not a URL; it should look like {example}") from None
    if "@" in parts.netloc:
        raise SetupError(
            f"{option} contains a user name or password, which storage services do not use: give "
            f"{option} only the address, and put the credential into {KEY} or {SAS_TOKEN}"
        )
    if parts.query or parts.fragment or "?" in host or "#" in host:
        raise SetupError(
            f"{option} contains more than an address, and others can read a command line: put a "
            f"SAS into {SAS_TOKEN}, and give {option} only the part before the question mark"
        )
    if parts.scheme not in ("http", "https") or host_of(parts.netloc) is None:
        raise SetupError(f"{option} is not an http or https URL; it should look like {example}")
    name = (parts.hostname or "").rstrip(".")
    # The SDK treats http://localhost:PORT as the Cosmos emulator, with another protocol dialect.
    name = "127.0.0.1" if name == "localhost" else name
    netloc = f"[{name}]" if ":" in name else name
    if port is not None and port != DEFAULT_PORTS[parts.scheme]:
        netloc = f"{netloc}:{port}"
    if parts.scheme == "http" and not is_loopback(name):
        raise SetupError(
            f"{option} names {name} with plain http, where others could read a SAS or replay a "
            "signed request: use https"
        )
    return SplitResult(parts.scheme, netloc, parts.path.rstrip("/"), "", "")


def kind_and_account(
    address: SplitResult, option: str = "-H", server: Server | None = "table"
) -> tuple[Service, str]:
    """The kind and the account that an address implies; the account may be empty.

    ``server`` is what requests are for; None takes what the address tells, or else tables. A
    `SetupError` says why it is not the address of such a service; ``option`` gave it.
    """
    name = address.hostname or ""
    in_path = address.path.lstrip("/")
    for kind in SERVICES:
        if name.endswith((*kind.hosts, *kind.other_hosts)):
            if server not in (None, kind.server):
                raise SetupError(
                    f"{name} is an address of {kind.described}{kind.reached}; a {server} service "
                    f"looks like {_example(server)}"
                )
            account = name.split(".", 1)[0]
            if in_path:
                raise SetupError(f"{option} has a path, but {name} takes none")
            if not kind.charges and account.endswith("-secondary"):
                raise SetupError(
                    f"{name} is the read-only secondary endpoint of an account: use the primary one"
                )
            return kind, account
    server = server or USUAL.server
    if name.endswith(_STORAGE_SUFFIXES):
        raise SetupError(
            f"{name} is not the address of a {server} service; it should look like "
            f"{_example(server)}"
        )
    if in_path and not is_account_name(in_path):
        raise SetupError(
            f"the path of {option} is not an account name (lower case letters, digits, hyphens)"
        )
    return service_of(server, emulated=is_loopback(name)), in_path


def is_table_host(name: str) -> bool:
    """Whether a host name in lower case is that of a table endpoint in Azure."""
    return name.endswith(_TABLE_SUFFIXES)


def is_of_azure(hostname: str) -> bool:
    """Whether ``hostname`` is one that only Azure gives, to an account of a known service."""
    return hostname.endswith(_OF_AZURE)


def is_account_name(text: str) -> bool:
    """Whether ``text`` can be an account name, which a message may show."""
    return _ACCOUNT_NAME.fullmatch(text) is not None
