"""An access token, and the identity that its claims name."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
from typing import Any

_SHOWN = 64


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
