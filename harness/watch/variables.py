"""The environment in which an application finds the gateway in place of its endpoint.

The gateway passes every request on as it is signed. It needs no credential. A connection string
for the application is made of the credential that the environment holds already.
"""

from __future__ import annotations

import contextlib
import dataclasses
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import certifi

from harness.endpoint.address import (
    ACCOUNT,
    CONNECTION_STRING,
    KEY,
    SAS_TOKEN,
    address_of,
)
from harness.endpoint.credential import (
    EMULATOR_ACCOUNT,
    EMULATOR_KEY,
    Credential,
    SharedKey,
    credential_for,
)
from harness.model.errors import SetupError
from harness.model.hosts import is_every_address, is_loopback

ENDPOINT = "AZURE_TABLES_ENDPOINT"
_AUTHORITIES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""Files that replace all authorities of OpenSSL, and of Python's requests."""
_MORE_AUTHORITIES = ("NODE_EXTRA_CA_CERTS",)
"""Files that are added to the authorities of Node."""
_ANYWHERE, _ANYWHERE_IPV6 = "192.0.2.1", "2001:db8::1"
"""Addresses on other networks, reserved for documentation."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """How an application reaches the gateway.

    Attributes:
        endpoint: URL of the gateway, with the account in its path where the service has it there.
        connection_string: With the application's own credential; empty without one.
    """

    endpoint: str
    connection_string: str = dataclasses.field(default="", repr=False)


def host_here(listening: str) -> str:
    """The host by which this machine reaches a listener at the address ``listening``."""
    if not is_every_address(listening):
        return listening
    return "::1" if ":" in listening else "127.0.0.1"


def host_elsewhere(listening: str) -> str:
    """The host by which other machines reach it; as far as that can be known from here."""
    if not is_every_address(listening):
        return listening
    family, anywhere = socket.AF_INET, _ANYWHERE
    if ":" in listening:
        family, anywhere = socket.AF_INET6, _ANYWHERE_IPV6
    with socket.socket(family, socket.SOCK_DGRAM) as asked, contextlib.suppress(OSError):
        # Sends nothing: it only chooses the address from which a packet would leave.
        asked.connect((anywhere, 9))
        return str(asked.getsockname()[0])
    return socket.gethostname()


def url_of(scheme: str, host: str, port: int) -> str:
    """The URL of a listener."""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def addresses(gateway: str, upstream: str, account: str, environ: Mapping[str, str]) -> Addresses:
    """The addresses of a gateway for the application.

    Args:
        gateway: URL of the gateway.
        upstream: URL of the endpoint behind it.
        account: The account that the upstream's host names, or that of an emulator; empty for an
            emulator's usual one.
        environ: The environment, with the credential of the application.

    Raises:
        SetupError: the credential is malformed, or for another account or endpoint.
    """
    address = address_of(upstream, "--upstream")
    if is_loopback(address.hostname or ""):
        account = account or EMULATOR_ACCOUNT
        emulated: Credential = SharedKey(account, EMULATOR_KEY)
        if environ.get(CONNECTION_STRING, "").strip():
            # One for another endpoint stays out.
            with contextlib.suppress(SetupError):
                emulated, account = credential_for(address, "", environ)
        url = f"{gateway}/{account}"
        return Addresses(endpoint=url, connection_string=_connection_string(url, emulated, account))
    if not any(environ.get(name, "").strip() for name in (CONNECTION_STRING, KEY, SAS_TOKEN)):
        # Such as an application that asks for bearer tokens.
        return Addresses(endpoint=gateway)
    credential, account = credential_for(address, account, environ)
    return Addresses(
        endpoint=gateway, connection_string=_connection_string(gateway, credential, account)
    )


def _connection_string(url: str, credential: Credential, account: str) -> str:
    signs = f"SharedAccessSignature={credential.query}"
    if isinstance(credential, SharedKey):
        signs = f"AccountKey={credential.key}"
    scheme = urlsplit(url).scheme
    return f"DefaultEndpointsProtocol={scheme};AccountName={account};{signs};TableEndpoint={url};"


def environment(
    environ: Mapping[str, str],
    found: Addresses,
    *,
    names: Sequence[str] = (),
    authority: Path | None = None,
) -> dict[str, str]:
    """The environment of the application.

    Args:
        environ: The environment of this process.
        found: How to reach the gateway.
        names: More variables that hold the connection string.
        authority: File of the authority to trust (PEM); a file beside it holds the usual ones too.

    Raises:
        SetupError: there is no connection string for ``names``.
    """
    made = {**environ, ENDPOINT: found.endpoint}
    if names and not found.connection_string:
        raise SetupError(
            f"--env {names[0]}: there is no connection string without a credential: set "
            f"{CONNECTION_STRING}, or {ACCOUNT} and {KEY}"
        )
    if found.connection_string:
        made |= dict.fromkeys((CONNECTION_STRING, *names), found.connection_string)
    if authority is not None:
        every = authority.with_name("authorities.pem")
        known = [certifi.where(), *(environ.get(name, "") for name in _AUTHORITIES)]
        more = [environ.get(name, "") for name in _MORE_AUTHORITIES]
        every.write_bytes(b"\n".join(filter(None, map(_content, [*known, *more, str(authority)]))))
        made |= dict.fromkeys((*_AUTHORITIES, *_MORE_AUTHORITIES), str(every))
    return made


def _content(path: str) -> bytes:
    """The content of a file of authorities; empty if there is none."""
    try:
        return Path(path).read_bytes() if path else b""
    except OSError:
        return b""
