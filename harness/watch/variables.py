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

from harness.endpoint.address import TABLE_HOSTS, address_of, is_table_host
from harness.endpoint.credential import (
    EMULATOR_ACCOUNT,
    EMULATOR_KEY,
    Secret,
    SharedKey,
    credential_for,
)
from harness.gateway.queue_requests import is_queue_host
from harness.model.auth_mode import ACCOUNT, CONNECTION_STRING, KEY, SECRET_VARIABLES
from harness.model.errors import SetupError
from harness.model.hosts import is_every_address, is_loopback
from harness.model.services import USUAL
from harness.watch.other_endpoints import Lead, leads_of, leads_to_queue, without_secrets

ENDPOINT = "AZURE_TABLES_ENDPOINT"
QUEUE_ENDPOINT = "AZURE_STORAGE_QUEUE_ENDPOINT"
_AUTHORITIES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Files that replace all authorities of OpenSSL, of Python's requests, and of curl."""
_MORE_AUTHORITIES = ("NODE_EXTRA_CA_CERTS",)
"""Files that are added to the authorities of Node."""
_PROXY = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")
_HERE = ("localhost", "127.0.0.1", "::1")
_BLOBS = f"BlobEndpoint=http://127.0.0.1:10000/{EMULATOR_ACCOUNT};"
_QUEUES = "http://127.0.0.1:10001"
"""The usual addresses of an emulator. Without them an SDK makes names in Azure of the account."""
_ANYWHERE, _ANYWHERE_IPV6 = "192.0.2.1", "2001:db8::1"
"""Addresses on other networks, reserved for documentation."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """How an application reaches the gateway.

    Attributes:
        endpoint: URL of the gateway, with the account in its path where the service has it there.
        queue_endpoint: The same for queues; empty if they do not pass the gateway.
        connection_string: With the application's own credential; empty without one.
    """

    endpoint: str
    queue_endpoint: str = ""
    connection_string: str = dataclasses.field(default="", repr=False)


def queue_upstream_of(upstream: str) -> str:
    """The endpoint of the queues of an account, by that of its tables; empty if it is not known."""
    parts = urlsplit(upstream)
    host = parts.hostname or ""
    if is_loopback(host):
        return _QUEUES
    if not host.endswith(USUAL.hosts):
        return ""
    return f"{parts.scheme}://{parts.netloc.replace('.table.', '.queue.', 1)}"


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


def urls_of(scheme: str, host: str, ports: tuple[int, int]) -> tuple[str, str]:
    """The URLs of the gateway for tables and for queues; the second is empty without a port."""
    of_tables, of_queue = (f"{scheme}://{listening(host, port)}" for port in ports)
    return of_tables, of_queue if ports[1] else ""


def addresses(
    gateway: str, upstream: str, account: str, environ: Mapping[str, str], queue: str = ""
) -> Addresses:
    """The addresses of a gateway for the application.

    Args:
        account: The account that the upstream's host names, or that of an emulator; empty for an
            emulator's usual one.
        environ: The environment, with the credential of the application.
        queue: The URL of the gateway for queues; empty if there is none.

    Raises:
        SetupError: the credential is malformed, or for another account or endpoint.
    """
    address = address_of(upstream, "--upstream")
    if is_loopback(address.hostname or ""):
        account = account or EMULATOR_ACCOUNT
        emulated: Secret = SharedKey(account, EMULATOR_KEY)
        if environ.get(CONNECTION_STRING, "").strip():
            # One for another endpoint stays out.
            with contextlib.suppress(SetupError):
                emulated, account = credential_for(address, "", environ)
        url = f"{gateway}/{account}"
        queue = queue and f"{queue}/{account}"
        text = _connection_string(url, queue, emulated, account)
        return Addresses(endpoint=url, queue_endpoint=queue, connection_string=text)
    if not any(environ.get(name, "").strip() for name in SECRET_VARIABLES):
        # Such as an application that asks for bearer tokens.
        return Addresses(endpoint=gateway, queue_endpoint=queue)
    credential, account = credential_for(address, account, environ)
    text = _connection_string(gateway, queue, credential, account)
    return Addresses(endpoint=gateway, queue_endpoint=queue, connection_string=text)


def _connection_string(url: str, queue: str, credential: Secret, account: str) -> str:
    start = f"DefaultEndpointsProtocol={urlsplit(url).scheme};AccountName={account}"
    text = f"{start};{credential.field};TableEndpoint={url};"
    return f"{text}QueueEndpoint={queue};" if queue else text


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
        proxy: URL of the gateway as a proxy that intercepts the hosts of tables and queues.
        local: Whether the endpoint is on this machine: no variable may lead elsewhere.
        keep: Variables that stay as they are.

    Raises:
        SetupError: there is no connection string for ``names``.
    """
    made = dict(environ)
    text = found.connection_string
    if local:
        text += _BLOBS
        if not found.queue_endpoint:
            text += f"QueueEndpoint={_QUEUES}/{EMULATOR_ACCOUNT};"
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
    if found.queue_endpoint:
        made[QUEUE_ENDPOINT] = found.queue_endpoint
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

    Where the hosts of tables and queues are intercepted, an account leads to the gateway. Its
    secrets do not reach an application that does without the proxy.
    """
    if lead is Lead.URL and not (intercepted and _is_intercepted(urlsplit(value).hostname or "")):
        return found.queue_endpoint if leads_to_queue(value) else found.endpoint
    if not intercepted:
        return ""
    return EMULATOR_KEY if lead is Lead.KEY else without_secrets(value, EMULATOR_KEY)


def _is_intercepted(host: str) -> bool:
    return is_table_host(host) or is_queue_host(host)


def _no_proxy(environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in _NO_PROXY if name in environ), "")


def _has_tables(entry: str) -> bool:
    """Whether an entry of NO_PROXY is about an endpoint of tables or queues."""
    name = entry.lower().partition(":")[0].lstrip("*.")
    return (
        not name
        or _is_intercepted(f"x.{name}")
        or any(pattern.endswith(f".{name}") for pattern in TABLE_HOSTS)
    )


def _content(path: str) -> bytes:
    """The content of a file of authorities; empty if there is none."""
    try:
        return Path(path).read_bytes() if path else b""
    except OSError:
        return b""
