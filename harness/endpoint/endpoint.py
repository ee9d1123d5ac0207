"""The endpoint under test: an address of the command line, a credential of the environment."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from harness.endpoint.address import DEFAULT_PORTS, address_of, is_of_azure, kind_and_account
from harness.endpoint.credential import (
    EMULATOR_ACCOUNT,
    EMULATOR_KEY,
    Credential,
    SharedKey,
    account_for,
    credential_for,
)
from harness.endpoint.entra.login import Login, Logins
from harness.model.auth_mode import ACCOUNT, CREDENTIAL_VARIABLES, KEY_MODE, LOGIN_MODE, auth_mode
from harness.model.errors import SetupError
from harness.model.hosts import is_loopback
from harness.model.services import EMBEDDED, service_of
from harness.model.services.service import Server, Service

_VARIABLES = re.compile(rf"\b(?:{'|'.join(CREDENTIAL_VARIABLES)})\b")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A service with a credential.

    Attributes:
        url: Address without a trailing slash; the account is in its path where the host does
            not name it.
        account: The account under load, which is billed.
        behind_gateway: Whether its answers told that they passed the gateway.

    Raises:
        SetupError: a login would send its token over plain http.
    """

    kind: Service
    url: str
    account: str
    credential: Credential
    behind_gateway: bool = False

    def __post_init__(self) -> None:
        if self.login is not None and not self.url.startswith("https://"):
            raise SetupError(
                f"a login of Entra ID needs https, because everyone on the way could use its "
                f"token, but -H is {self.url}: give -H an https address, or use a key "
                f"(--auth-mode {KEY_MODE})"
            )

    @property
    def login(self) -> Login | None:
        return self.credential if isinstance(self.credential, Login) else None

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
    def takes_token(self) -> bool:
        """True where whoever has the host, and that is not Azure, gets the token of a login."""
        return self.remote and self.login is not None and not is_of_azure(self.hostname)

    @property
    def confirmed_by(self) -> str:
        """What ``--remote-ok`` has to name: the account that is billed, or who gets a token."""
        return self.hostname if self.takes_token else self.account

    @property
    def fingerprint(self) -> str:
        """A hash of kind, address, account and tenant, without secrets, that workers compare.

        The tenant is that of a login, once it has a token.
        """
        text = "\n".join((self.kind.name, self.url, self.account))
        if self.login is not None:
            text += f"\nlogin {self.login.identity.tenant}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def emulator_endpoint(url: str, kind: Service = EMBEDDED) -> Endpoint:
    """The emulator at ``url`` (scheme, host and port) with its development account."""
    return Endpoint(
        kind=kind,
        url=f"{url.rstrip('/')}/{EMULATOR_ACCOUNT}",
        account=EMULATOR_ACCOUNT,
        credential=SharedKey(EMULATOR_ACCOUNT, EMULATOR_KEY),
    )


def as_kind(endpoint: Endpoint, kind: Service) -> Endpoint:
    """An endpoint on this machine as one of a kind that its address does not tell.

    An endpoint elsewhere stays as it is.

    Its host gets the name by which SDKs know the dialect of the kind, where there is one.
    """
    if endpoint.remote:
        return endpoint
    parts = urlsplit(endpoint.url)
    name = kind.sdk_host or parts.hostname or ""
    netloc = f"[{name}]" if ":" in name else name
    netloc += f":{parts.port}" if parts.port else ""
    return dataclasses.replace(endpoint, kind=kind, url=parts._replace(netloc=netloc).geturl())


def endpoint_from(
    host: str,
    environ: Mapping[str, str],
    *,
    alone: bool = True,
    option: str = "-H",
    logins: Logins | None = None,
    server: Server | None = "table",
) -> Endpoint:
    """The endpoint at ``host`` (the value of ``option``), with the credential in ``environ``.

    ``server`` is what requests are for; None takes what the address tells, or else tables.

    The variables whose names end in the account's name, such as ``AZURE_STORAGE_KEY_MYACCOUNT``,
    come first. The others could belong to another account unless this one is ``alone``.

    A login is used only where ``environ`` asks for one; no token is fetched yet. ``logins`` are
    those of this process.

    The kind follows from the host, except that the emulator's account is Azurite on any host. The
    text of a `SetupError` never repeats a secret.
    """
    address = address_of(host, option, server)
    kind, account = kind_and_account(address, option, server)
    if not alone and not account:
        if not is_loopback(address.hostname or ""):
            raise SetupError(
                f"the address {address.netloc} names no account, which several accounts need: add "
                f"it, as in {address.scheme}://{address.netloc}/ACCOUNT"
            )
        account = EMULATOR_ACCOUNT
    credential: Credential
    suffix = f"_{re.sub('[^a-z0-9]', '_', account).upper()}"
    own = {
        name: environ[name + suffix] for name in CREDENTIAL_VARIABLES if environ.get(name + suffix)
    }
    if auth_mode(environ) == LOGIN_MODE:
        named = environ if alone else {**environ, ACCOUNT: ""}
        account = account_for(address, account, named)
        credential = (logins or Logins(environ)).of(kind, address.hostname or "")
    elif own or not alone:
        shared = {name: text for name, text in environ.items() if name not in CREDENTIAL_VARIABLES}
        try:
            credential, account = credential_for(address, account, shared | own, kind.server)
        except SetupError as error:
            # The sentence is about the variables of this account.
            raise SetupError(_VARIABLES.sub(rf"\g<0>{suffix}", str(error))) from None
    else:
        credential, account = credential_for(address, account, environ, kind.server)
    if account == EMULATOR_ACCOUNT and not kind.charges:
        kind = service_of(kind.server, emulated=True)
    url = f"{address.scheme}://{address.netloc}{address.path}"
    if kind.emulated and not address.path:
        url = f"{url}/{account}"
    return Endpoint(kind=kind, url=url, account=account, credential=credential)
