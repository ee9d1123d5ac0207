"""The endpoint under test: an address of the command line, a credential of the environment."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from harness.endpoint.address import (
    CREDENTIAL_VARIABLES,
    DEFAULT_PORTS,
    address_of,
    kind_and_account,
)
from harness.endpoint.credential import (
    EMULATOR_ACCOUNT,
    EMULATOR_KEY,
    Credential,
    SharedKey,
    credential_for,
)
from harness.model.errors import SetupError
from harness.model.hosts import is_loopback
from harness.model.target import EndpointKind

_VARIABLES = re.compile(rf"\b(?:{'|'.join(CREDENTIAL_VARIABLES)})\b")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A table service with a credential.

    Attributes:
        url: Address without a trailing slash; the account is in its path where the host does
            not name it.
        account: The account under load, which is billed.
    """

    kind: EndpointKind
    url: str
    account: str
    credential: Credential

    @property
    def host(self) -> str:
        """Host and port, as in a URL."""
        return urlsplit(self.url).netloc

    @property
    def hostname(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.url)
        return parts.port or DEFAULT_PORTS[parts.scheme]

    @property
    def loopback(self) -> bool:
        """True where requests cannot leave the machine."""
        return is_loopback(self.hostname)

    @property
    def remote(self) -> bool:
        """True where requests may reach a billed account."""
        return not self.loopback

    @property
    def fingerprint(self) -> str:
        """A hash of kind, address and account, without secrets, that workers compare."""
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
    """The same emulator, reached through the gateway of the harness."""
    return dataclasses.replace(endpoint, kind=EndpointKind.GATEWAY)


def endpoint_from(
    host: str, environ: Mapping[str, str], *, alone: bool = True, option: str = "-H"
) -> Endpoint:
    """The endpoint at ``host`` (the value of ``option``), with the credential in ``environ``.

    The variables whose names end in the account's name, such as ``AZURE_STORAGE_KEY_MYACCOUNT``,
    come first. The others could belong to another account unless this one is ``alone``.

    The kind follows from the host, except that the emulator's account is Azurite on any host. The
    text of a `SetupError` never repeats a secret.
    """
    address = address_of(host, option)
    kind, account = kind_and_account(address, option)
    if not alone and not account:
        if not is_loopback(address.hostname or ""):
            raise SetupError(
                f"the address {address.netloc} names no account, which several accounts need: add "
                f"it, as in {address.scheme}://{address.netloc}/ACCOUNT"
            )
        account = EMULATOR_ACCOUNT
    suffix = f"_{re.sub('[^a-z0-9]', '_', account).upper()}"
    own = {
        name: environ[name + suffix] for name in CREDENTIAL_VARIABLES if environ.get(name + suffix)
    }
    if own or not alone:
        shared = {name: text for name, text in environ.items() if name not in CREDENTIAL_VARIABLES}
        try:
            credential, account = credential_for(address, account, shared | own)
        except SetupError as error:
            # The sentence is about the variables of this account.
            raise SetupError(_VARIABLES.sub(rf"\g<0>{suffix}", str(error))) from None
    else:
        credential, account = credential_for(address, account, environ)
    if kind is EndpointKind.STORAGE and account == EMULATOR_ACCOUNT:
        kind = EndpointKind.AZURITE
    url = f"{address.scheme}://{address.netloc}{address.path}"
    if kind is EndpointKind.AZURITE and not address.path:
        url = f"{url}/{account}"
    return Endpoint(kind=kind, url=url, account=account, credential=credential)
