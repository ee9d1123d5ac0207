"""The environment in which an application finds the gateway in place of its endpoint.

The gateway passes every request on as it is signed. It needs no credential. A connection string
for the application is made of the credential that the environment holds already. Before an endpoint
on this machine, no variable that is known to lead to another one reaches the application.
"""

from __future__ import annotations

import contextlib
import dataclasses
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import certifi

from harness.endpoint.address import TABLE_HOSTS, address_of
from harness.endpoint.credential import (
    EMULATOR_ACCOUNT,
    EMULATOR_KEY,
    Secret,
    SharedKey,
    credential_for,
)
from harness.model.auth_mode import ACCOUNT, CONNECTION_STRING, KEY, SECRET_VARIABLES
from harness.model.errors import SetupError
from harness.model.hosts import is_every_address, is_loopback
from harness.model.services import BESIDE, USUAL
from harness.model.services.service import Server, Service
from harness.watch.other_endpoints import Lead, leads_of, server_at, server_of, without_secrets

ENDPOINT = "AZURE_TABLES_ENDPOINT"
_AUTHORITIES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Files that replace all authorities of OpenSSL, of Python's requests, and of curl."""
_MORE_AUTHORITIES = ("NODE_EXTRA_CA_CERTS",)
"""Files that are added to the authorities of Node."""
_PROXY = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")
_HERE = ("localhost", "127.0.0.1", "::1")
_ANYWHERE, _ANYWHERE_IPV6 = "192.0.2.1", "2001:db8::1"
"""Addresses on other networks, reserved for documentation."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """How an application reaches the gateway.

    Attributes:
        endpoint: URL of the gateway, with the account in its path where the service has it there.
        beside: The same of other servers, without those whose requests do not pass the gateway.
        connection_string: With the application's own credential; empty without one.
    """

    endpoint: str
    beside: Mapping[Server, str] = dataclasses.field(default_factory=dict)
    connection_string: str = dataclasses.field(default="", repr=False)


def upstreams_beside(upstream: str) -> dict[Server, str]:
    """The endpoints of an account beside that of its tables; empty if they are not known."""
    parts = urlsplit(upstream)
    host = parts.hostname or ""
    if is_loopback(host):
        return {one.server: _emulated(one) for one in BESIDE}
    if not host.endswith(USUAL.hosts):
        return {}
    names = {one.server: host_beside(parts.netloc, one.server) for one in BESIDE}
    return {server: f"{parts.scheme}://{name}" for server, name in names.items()}


def host_beside(host: str, server: Server) -> str:
    """The host of another server, by the host of the tables of the account."""
    return host.replace(f".{USUAL.server}.", f".{server}.", 1)


def _emulated(service: Service) -> str:
    """The usual address of an emulator."""
    return f"http://127.0.0.1:{service.port}"


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


def listening(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def urls_of(scheme: str, host: str, ports: Mapping[Server, int]) -> dict[Server, str]:
    """The URLs of the gateway for each server, of the ports at which it listens."""
    return {server: f"{scheme}://{listening(host, port)}" for server, port in ports.items()}


def addresses(
    urls: Mapping[Server, str], upstream: str, account: str, environ: Mapping[str, str]
) -> Addresses:
    """The addresses of a gateway for the application.

    Args:
        urls: The URLs of the gateway for the servers whose requests pass it.
        account: The account that the upstream's host names, or that of an emulator; empty for an
            emulator's usual one.
        environ: The environment, with the credential of the application.

    Raises:
        SetupError: the credential is malformed, or for another account or endpoint.
    """
    address = address_of(upstream, "--upstream")
    credential: Secret | None = None
    if is_loopback(address.hostname or ""):
        account = account or EMULATOR_ACCOUNT
        credential = SharedKey(account, EMULATOR_KEY)
        if environ.get(CONNECTION_STRING, "").strip():
            # One for another endpoint stays out.
            with contextlib.suppress(SetupError):
                credential, account = credential_for(address, "", environ)
        urls = {server: f"{url}/{account}" for server, url in urls.items()}
    elif any(environ.get(name, "").strip() for name in SECRET_VARIABLES):
        credential, account = credential_for(address, account, environ)
    # Without one the application asks for bearer tokens, for example.
    text, endpoint = "", urls[USUAL.server]
    if credential is not None:
        scheme = urlsplit(endpoint).scheme
        text = f"DefaultEndpointsProtocol={scheme};AccountName={account};{credential.field};"
        text += "".join(f"{one.field}={urls[one.server]};" for one in _within(urls))
    beside = {server: url for server, url in urls.items() if server != USUAL.server}
    return Addresses(endpoint=endpoint, beside=beside, connection_string=text)


def _within(urls: Mapping[Server, str]) -> list[Service]:
    """The services of the account that have a URL."""
    return [one for one in (USUAL, *BESIDE) if one.server in urls]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The environment of an application.

    Attributes:
        replaced: Names of those that led elsewhere, and have a value that does not.
        removed: Names of those that led elsewhere, and are left out.
        kept: Names of those that lead elsewhere, and stay because the user said so.
    """

    variables: Mapping[str, str] = dataclasses.field(repr=False)
    replaced: Sequence[str] = ()
    removed: Sequence[str] = ()
    kept: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """What was replaced, removed and kept, by name, for the user."""
        kept = [f"kept:       {', '.join(self.kept)}, for another endpoint"]
        return (kept if self.kept else []) + [
            f"{done + ':':<12}{', '.join(names)}, which led to another endpoint (--keep-env NAME)"
            for done, names in (("replaced", self.replaced), ("removed", self.removed))
            if names
        ]


def environment(
    environ: Mapping[str, str],
    found: Addresses,
    *,
    names: Sequence[str] = (),
    authority: Path | None = None,
    proxy: str = "",
    local: bool = False,
    keep: Sequence[str] = (),
) -> Environment:
    """The environment of the application.

    Args:
        names: More variables for the connection string.
        authority: File of the authority to trust (PEM); a file beside it holds the usual ones too.
        proxy: URL of the gateway as a proxy that intercepts the hosts of the account's endpoints.
        local: Whether the endpoint is on this machine: no variable may lead elsewhere.
        keep: Variables that stay as they are.

    Raises:
        SetupError: there is no connection string for ``names``.
    """
    made = dict(environ)
    text = found.connection_string
    if local:
        # Without an address an SDK makes names in Azure of the account.
        others = (one for one in BESIDE if one.server not in found.beside)
        text += "".join(f"{one.field}={_emulated(one)}/{EMULATOR_ACCOUNT};" for one in others)
    leads = leads_of(environ) if local else {}
    led = {name: lead for name, lead in leads.items() if name not in keep}
    for name, lead in led.items():
        value = text
        if lead is not Lead.CONNECTION_STRING:
            value = _instead(lead, environ[name], found, intercepted=bool(proxy))
        made[name] = value
        if not value:
            del made[name]
    made[ENDPOINT] = found.endpoint
    made |= {one.variable: found.beside[one.server] for one in _within(found.beside)}
    if names and not found.connection_string:
        raise SetupError(
            f"--env {names[0]}: there is no connection string without a credential: set "
            f"{CONNECTION_STRING}, or {ACCOUNT} and {KEY}"
        )
    if found.connection_string:
        made |= dict.fromkeys((CONNECTION_STRING, *names), text)
    if authority is not None:
        every = authority.with_name("authorities.pem")
        known = [certifi.where(), *(environ.get(name, "") for name in _AUTHORITIES)]
        more = [environ.get(name, "") for name in _MORE_AUTHORITIES]
        every.write_bytes(b"\n".join(filter(None, map(_content, [*known, *more, str(authority)]))))
        made |= dict.fromkeys((*_AUTHORITIES, *_MORE_AUTHORITIES), str(every))
    if proxy:
        made |= {**dict.fromkeys(_PROXY, proxy), "NODE_USE_ENV_PROXY": "1"}
        # Nothing may keep table endpoints from the proxy.
        kept = [host for host in map(str.strip, _no_proxy(environ).split(",")) if host]
        kept = [host for host in kept if not _has_tables(host)]
        made |= dict.fromkeys(_NO_PROXY, ",".join(dict.fromkeys((*kept, *_HERE))))
    elif any(name.upper().endswith("_PROXY") for name in environ):
        # Another proxy does not reach the gateway.
        hosts = (_no_proxy(environ), *_HERE, urlsplit(found.endpoint).hostname or "")
        made |= dict.fromkeys(_NO_PROXY, ",".join(dict.fromkeys(filter(None, hosts))))
    made |= {name: environ[name] for name in keep if name in environ}
    return Environment(
        variables=made,
        replaced=[name for name in led if name in made and made[name] != environ[name]],
        removed=[name for name in led if name not in made],
        kept=[name for name in keep if name in leads],
    )


def _instead(lead: Lead, value: str, found: Addresses, *, intercepted: bool) -> str:
    """The value in place of one that leads elsewhere; empty for no variable at all.

    Where the hosts of its endpoints are intercepted, an account leads to the gateway. Its secrets
    do not reach an application that does without the proxy.
    """
    if lead is Lead.URL and not (intercepted and server_at(urlsplit(value).hostname or "")):
        server = server_of(value)
        return found.endpoint if server == USUAL.server else found.beside.get(server, "")
    if not intercepted:
        return ""
    return EMULATOR_KEY if lead is Lead.KEY else without_secrets(value, EMULATOR_KEY)


def _no_proxy(environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in _NO_PROXY if name in environ), "")


def _has_tables(entry: str) -> bool:
    """Whether an entry of NO_PROXY is about an endpoint that is intercepted."""
    name = entry.lower().partition(":")[0].lstrip("*.")
    return (
        not name
        or server_at(f"x.{name}") is not None
        or any(pattern.endswith(f".{name}") for pattern in TABLE_HOSTS)
    )


def _content(path: str) -> bytes:
    """The content of a file of authorities; empty if there is none."""
    try:
        return Path(path).read_bytes() if path else b""
    except OSError:
        return b""
