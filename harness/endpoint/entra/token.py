"""An access token: the identity that its claims name, and when the token is renewed.

Time is an argument.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
from typing import Any

_SHOWN = 64
AHEAD_S = 290.0
"""How long before its end a token is renewed. Azure CLI and other caches return the old token
until five minutes before its end (MSAL)."""
_SHARE_AHEAD = 0.4
"""The share of a short lifetime that is left when the token is renewed."""
_SHARE_UNCHANGED = 0.1
"""Of the time to its end, how long to wait after the current token was returned once more."""
_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 30.0
REFUSALS_APART_S = 30.0
"""Refused requests renew the token at most so often: they may have another cause."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a token was issued to. Each text is empty where the token does not tell.

    Attributes:
        kind: ``user``, ``service principal`` or ``managed identity``.
        object_id: Id of the user or principal, to which roles are assigned.
        tenant: Id of the tenant that issued the token.
    """

    kind: str = ""
    object_id: str = ""
    tenant: str = ""

    @property
    def described(self) -> str:
        """Kind, object id and tenant, for a message: no secret."""
        named = [self.kind]
        named += [f"object id {self.object_id}"] * bool(self.object_id)
        named += [f"tenant {self.tenant}"] * bool(self.tenant)
        return ", ".join(filter(None, named)) or "an identity that the token does not name"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An access token. Times are UTC seconds.

    Attributes:
        refresh_s: When the issuer recommends to renew it; None without a recommendation.
    """

    value: str = dataclasses.field(repr=False)
    fetched_s: float
    expires_s: float
    refresh_s: float | None = None
    identity: Identity


def identity_of(token: str, tenant: str = "") -> Identity:
    """The identity in an access token (access token claims reference), which is not verified.

    ``tenant`` holds where the token names none. A token that is not a JWT names nothing.
    """
    claims = _claims(token)
    return Identity(
        kind=_kind(claims),
        object_id=_text(claims, "oid"),
        tenant=_text(claims, "tid") or tenant,
    )


def _claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _kind(claims: dict[str, Any]) -> str:
    if not claims:
        return ""
    # The resource id of a managed identity is in its tokens alone.
    if "xms_mirid" in claims:
        return "managed identity"
    # `idtyp` is an optional claim. `scp` is in the tokens of users alone.
    application = claims.get("idtyp", "" if "scp" in claims else "app") == "app"
    return "service principal" if application else "user"


def _text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) and value.isprintable() and len(value) <= _SHOWN else ""


class Renewal:
    """The time of the next renewal of one token. All times are UTC seconds.

    Attributes:
        due_s: When to try next; infinite without a token.
        failures: Tries in a row that failed.
    """

    def __init__(self) -> None:
        self.due_s = float("inf")
        self.failures = 0
        self._refused_s = -float("inf")

    def taken(self, token: Token) -> None:
        """A new token was fetched."""
        self.failures = 0
        life_s = token.expires_s - token.fetched_s
        due_s = token.expires_s - min(AHEAD_S, _SHARE_AHEAD * life_s)
        if token.refresh_s is not None:
            due_s = min(due_s, token.refresh_s)
        self.due_s = max(due_s, token.fetched_s + _FIRST_DELAY_S)

    def unchanged(self, token: Token, now_s: float) -> None:
        """A try at ``now_s`` returned ``token``, which is the current one, from a cache."""
        self.failures = 0
        self.due_s = now_s + max(_SHARE_UNCHANGED * (token.expires_s - now_s), _FIRST_DELAY_S)

    def failed(self, now_s: float) -> float:
        """A try failed at ``now_s``. Returns the seconds until the next one."""
        delay_s = min(_FIRST_DELAY_S * 2.0**self.failures, _LONGEST_DELAY_S)
        self.failures += 1
        self.due_s = now_s + delay_s
        return delay_s

    def may_follow_refusal(self, now_s: float) -> bool:
        """Whether a request that was refused at ``now_s`` renews the token; True marks the time."""
        if now_s - self._refused_s < REFUSALS_APART_S:
            return False
        self._refused_s = now_s
        return True
