"""A login: the access token of this process for one audience, and how it signs requests.

The token is fetched before the load and renewed in the background ahead of its end. A request
always takes the newest token, and never waits for a renewal.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import gevent
from azure.core.credentials import AccessToken, AccessTokenInfo
from gevent.util import wrap_errors

from harness.endpoint.credential import Credential, Refusal
from harness.endpoint.entra.token import (
    TENANT,
    Cloud,
    Identity,
    NoToken,
    Renewal,
    Token,
    cloud_of,
    fetch,
)
from harness.model.auth_mode import SECRET_VARIABLES
from harness.model.errors import SetupError
from harness.model.figures import counted
from harness.model.services.service import Service

FETCHED_WITHIN_S = 60.0
"""The longest that a token may take."""
_TRUSTED_TENANT = re.compile(r"authorization_uri=\"?https://[^/\s,\"]+/([\w.-]{1,64})")


class Login(Credential):
    """The access token for one audience; safe among greenlets of one thread.

    Args:
        fetch: Gets a new token; raises `SetupError` where there is none.
        tenant: Tenant of the login where its token names none.
        look_every_s: How soon it is noticed that the clock was set, or the machine slept.

    Attributes:
        header: The ``Authorization`` header of any request; empty before the first token.
        ignored: Variables with other credentials, which a login ignores.
    """

    noun: ClassVar[str] = "login"

    def __init__(
        self,
        fetch: Callable[[], Token],
        *,
        audience: str = "",
        tenant: str = "",
        ignored: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
        look_every_s: float = 30.0,
    ) -> None:
        self.audience = audience
        self.ignored = ignored
        self._fetch = fetch
        self._tenant = tenant
        self._clock = clock
        self._look_every_s = look_every_s
        self._renewal = Renewal()
        self._token: Token | None = None
        self.header = ""
        self._underway: gevent.Greenlet | None = None
        self._keeper: gevent.Greenlet | None = None
        self._tell: Callable[[str], None] = lambda text: None

    # The interface of every credential.

    def authorization(self, method: str, content_type: str, date: str, path: str) -> str:
        return self.header

    def for_sdk(self) -> dict[str, Any]:
        return {"credential": SdkLogin(self), "audience": self.audience}

    @property
    def described(self) -> str:
        return f"Entra ID ({self.identity.described})"

    def why_refused(self, service: Service, refused: Refusal) -> str | None:
        if refused.status not in (401, 403):
            return None
        who, message = f"the login ({self.identity.described})", refused.message
        lacks_role = refused.code == "AuthorizationPermissionMismatch"
        if lacks_role or (service.charges and "RBAC" in message):
            return (
                f"{who} lacks a role: assign it {service.role}. A new assignment can take ten "
                "minutes"
            )
        if refused.code == "AuthorizationFailure":
            return f"{who} is refused: does a firewall of the account block this machine?"
        found = _TRUSTED_TENANT.search(refused.challenge)
        trusted = "" if found is None else found[1]
        own = self.identity.tenant
        if "issuer" in message.lower() or (trusted and own and trusted != own):
            return (
                f"{who} is of another tenant than the account"
                f"{f', which trusts {trusted}' * bool(trusted)}: choose the tenant with "
                f"`az login --tenant {trusted or 'TENANT'}` or AZURE_TENANT_ID"
            )
        if "audience" in message.lower():
            return (
                f"{who} got a token for {self.audience}, which the endpoint does not accept: for a "
                "custom domain in another cloud, set AZURE_AUTHORITY_HOST"
            )
        return f"{who} is refused"

    # The interface of a login.

    @property
    def token(self) -> Token:
        """The current token; a `NoToken` before the first."""
        if self._token is None:
            raise NoToken("no token of Entra ID was fetched yet")
        return self._token

    @property
    def identity(self) -> Identity:
        return Identity(tenant=self._tenant) if self._token is None else self._token.identity

    def sign_in(self) -> None:
        """Fetch a token unless there is a valid one; a `SetupError` lists what was tried."""
        if self._token is None or self._token.expires_s <= self._clock():
            self._join_fetch()

    def keep(self, tell: Callable[[str], None]) -> None:
        """Renew the token in the background from now on, and ``tell`` failures. Once is enough."""
        if self._keeper is None:
            self._tell = tell
            self._keeper = gevent.spawn(self._keep)

    def close(self) -> None:
        """End the renewal in the background."""
        gevent.killall([one for one in (self._keeper, self._underway) if one is not None])
        self._keeper = self._underway = None

    def renewed_after(self, refused: str) -> bool:
        """Whether there is a newer token than that of the header ``refused``, after waiting for it.

        All who ask at the same time wait for one renewal. A second refusal soon after begins none.
        """
        if refused == self.header and self._underway is None:
            if not self._renewal.may_follow_refusal(self._clock()):
                return False
            self._tell("a request was refused with status 401, so the access token is renewed")
        if refused == self.header:
            # A failure is told, and the renewal in the background tries again.
            with contextlib.suppress(SetupError):
                self._join_fetch()
        return refused != self.header

    def _keep(self) -> None:
        while True:
            wait_s = self._renewal.due_s - self._clock()
            if wait_s > 0:
                gevent.sleep(min(wait_s, self._look_every_s))
            else:
                with contextlib.suppress(SetupError):
                    self._join_fetch()

    def _join_fetch(self) -> None:
        """Wait for the fetch under way, or begin one; a `SetupError` if it failed."""
        if self._underway is None:
            # A greenlet of its own: whoever waits may be killed, and the others wait on.
            self._underway = gevent.spawn(wrap_errors(SetupError, self._fetch_once))
        found = self._underway.get()
        if isinstance(found, SetupError):
            raise found

    def _fetch_once(self) -> None:
        try:
            self._take(self._fetched())
        except NoToken as error:
            if self._token is not None:
                self._tell(self._failed(self._token, error))
            raise
        finally:
            self._underway = None

    def _fetched(self) -> Token:
        try:
            # No `Exception`, which the library would take for a failure of one kind of login.
            with gevent.Timeout(FETCHED_WITHIN_S):
                return self._fetch()
        except gevent.Timeout:
            raise NoToken(f"no token of Entra ID within {FETCHED_WITHIN_S:g} s") from None

    def _take(self, token: Token) -> None:
        now_s, old = self._clock(), self._token
        if token.expires_s <= now_s:
            raise NoToken(
                f"the new token expired {now_s - token.expires_s:,.0f} s ago: is the "
                "clock of this machine right?"
            )
        if old is not None:
            if token.value == old.value:
                self._renewal.unchanged(old, now_s)
                return
            if token.identity != old.identity:
                # Another login was found, because that of the run does not respond.
                raise NoToken(
                    f"the new token is for {token.identity.described}, and the run began with "
                    f"{old.identity.described}"
                )
        if tries := self._renewal.failures:
            failed = counted(tries, "failed try", "failed tries")
            self._tell(f"the access token was renewed after {failed}")
        self._renewal.taken(token)
        self._token, self.header = token, f"Bearer {token.value}"

    def _failed(self, token: Token, error: NoToken) -> str:
        now_s = self._clock()
        delay_s = self._renewal.failed(now_s)
        left_s = token.expires_s - now_s
        state = (
            f"it is valid for another {left_s:,.0f} s"
            if left_s > 0
            else f"it expired {-left_s:,.0f} s ago, so requests are refused"
        )
        return (
            f"the access token could not be renewed (try {self._renewal.failures}: {error.cause}); "
            f"{state}; next try in {delay_s:g} s"
        )


class SdkLogin:
    """A login as azure-core's policies take it.

    It gives the current token, whatever is asked for: a challenge in a response can name another
    audience or tenant, whose token the endpoint must not get.
    """

    def __init__(self, login: Login) -> None:
        self._login = login

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        token = self._login.token
        return AccessToken(token.value, int(token.expires_s))

    def get_token_info(self, *scopes: str, options: Any = None) -> AccessTokenInfo:
        token = self._login.token
        return AccessTokenInfo(token.value, int(token.expires_s))


class Logins:
    """The logins of this process, one for each cloud: several endpoints can share a token."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._made: dict[Cloud, Login] = {}

    def of(self, kind: Service, hostname: str) -> Login:
        """The login for an endpoint. Nothing is fetched yet."""
        cloud = cloud_of(kind, hostname, self._environ)
        if cloud not in self._made:
            given = (name for name in SECRET_VARIABLES if self._environ.get(name, "").strip())
            self._made[cloud] = Login(
                partial(fetch, cloud, self._environ),
                audience=cloud.audience,
                tenant=self._environ.get(TENANT, ""),
                ignored=tuple(given),
            )
        return self._made[cloud]
