"""Who the endpoint is, and with which credential it is asked.

The host of the command line chooses the endpoint, the environment holds the credential.

The kind follows from the host (see `harness.endpoint.address`), but for the emulator's account:
that is Azurite wherever it is.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from urllib.parse import urlsplit

from harness.endpoint.address import address_of, is_loopback, kind_and_account, port_of
from harness.endpoint.credential import (
    EMULATOR_ACCOUNT,
    EMULATOR_KEY,
    Sas,
    SharedKey,
    credential_for,
)
from harness.model.target import EndpointKind

__all__ = [
    "Endpoint",
    "Sas",
    "SharedKey",
    "behind_gateway",
    "consent_problem",
    "emulator_endpoint",
    "endpoint_from",
]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A table service, and how to be let in.

    Attributes:
        kind: Decides which targets hold.
        url: Address without a trailing slash; the account is in its path where the host does
            not name it.
        account: The account that is stressed, and charged.
        credential: What signs the requests.
    """

    kind: EndpointKind
    url: str
    account: str
    credential: SharedKey | Sas

    @property
    def host(self) -> str:
        """Host and port, as in a URL."""
        return urlsplit(self.url).netloc

    @property
    def hostname(self) -> str:
        """The host alone, without brackets."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port, the scheme's own where the URL names none."""
        return port_of(urlsplit(self.url))

    @property
    def loopback(self) -> bool:
        """True where requests cannot leave the machine."""
        return is_loopback(self.hostname)

    @property
    def remote(self) -> bool:
        """True where requests may reach an account that somebody pays for."""
        return not self.loopback

    @property
    def fingerprint(self) -> str:
        """Same for the same kind, address and account; holds no secret. Workers compare it."""
        text = "\n".join((self.kind.value, self.url, self.account))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def emulator_endpoint(url: str) -> Endpoint:
    """The emulator at ``url`` (scheme, host and port) with its development account."""
    return Endpoint(
        kind=EndpointKind.AZURITE,
        url=f"{url.rstrip('/')}/{EMULATOR_ACCOUNT}",
        account=EMULATOR_ACCOUNT,
        credential=SharedKey(EMULATOR_ACCOUNT, EMULATOR_KEY),
    )


def behind_gateway(endpoint: Endpoint) -> Endpoint:
    """The same emulator, where the harness's own gateway stands before it."""
    return dataclasses.replace(endpoint, kind=EndpointKind.GATEWAY)


def endpoint_from(host: str, environ: Mapping[str, str]) -> Endpoint:
    """The endpoint that ``host`` names, with the credential that ``environ`` holds for it.

    Args:
        host: The value of Locust's ``-H``.
        environ: The environment; only Azure CLI's four variables are read.

    Raises:
        SetupError: the host is no address of a table service, or the credential is missing,
            malformed or another account's. The text never repeats a secret.
    """
    address = address_of(host)
    kind, account = kind_and_account(address)
    credential, account = credential_for(address, account, environ)
    if kind is EndpointKind.STORAGE and account == EMULATOR_ACCOUNT:
        kind = EndpointKind.AZURITE
    url = f"{address.scheme}://{address.netloc}{address.path}"
    if kind is EndpointKind.AZURITE and not address.path:
        url = f"{url}/{account}"
    return Endpoint(kind=kind, url=url, account=account, credential=credential)


def consent_problem(endpoint: Endpoint, remote_ok: str | None) -> str | None:
    """Why a run may not be started against ``endpoint``, or None where it may.

    Loopback needs no consent. Any other host is an account that somebody pays for, and its name
    has to be said a second time.

    Args:
        endpoint: What would be stressed.
        remote_ok: The value of ``--remote-ok``.
    """
    if endpoint.loopback:
        return None
    if not remote_ok:
        return (
            f"{endpoint.host} is not on this machine: every request to it is billed to the account "
            f"{endpoint.account}. If that is what you want, add --remote-ok {endpoint.account}"
        )
    if remote_ok != endpoint.account:
        return (
            f"--remote-ok names {remote_ok}, but -H leads to the account {endpoint.account}; "
            "nothing was sent"
        )
    return None
