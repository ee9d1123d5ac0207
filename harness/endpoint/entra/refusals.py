"""What a refusal means for a login: a missing role, another tenant, a token that does not fit."""

from __future__ import annotations

import re

from harness.endpoint.entra.login import Login
from harness.model.target import EndpointKind

_STORAGE_ROLE = (
    "Storage Table Data Contributor on the account. Owner, Contributor and Reader give no access "
    "to data, and Storage Table Data Reader does not write"
)
_COSMOS_ROLE = "Cosmos DB Built-in Data Contributor on the account"
_TRUSTED_TENANT = re.compile(r"authorization_uri=\"?https://[^/\s,\"]+/([\w.-]{1,64})")


def login_problem(
    login: Login, kind: EndpointKind, status: int, code: str, message: str, challenge: str
) -> str | None:
    """Why a login is refused, and what to do; None where the response is about something else.

    ``challenge`` is the header ``WWW-Authenticate``, which names the tenant of the account.
    """
    if status not in (401, 403):
        return None
    who = f"the login ({login.identity.described})"
    cosmos = kind.cosmos
    if code == "AuthorizationPermissionMismatch" or (cosmos and "RBAC" in message):
        role = _COSMOS_ROLE if cosmos else _STORAGE_ROLE
        return f"{who} lacks a role: assign it {role}. A new assignment can take ten minutes"
    if code == "AuthorizationFailure":
        return f"{who} is refused: does a firewall of the account block this machine?"
    found = _TRUSTED_TENANT.search(challenge)
    trusted = "" if found is None else found[1]
    own = login.identity.tenant
    if "issuer" in message.lower() or (trusted and own and trusted != own):
        return (
            f"{who} is of another tenant than the account"
            f"{f', which trusts {trusted}' * bool(trusted)}: choose the tenant with "
            f"`az login --tenant {trusted or 'TENANT'}` or AZURE_TENANT_ID"
        )
    if "audience" in message.lower():
        return (
            f"{who} got a token for {login.audience}, which the endpoint does not accept: for a "
            "custom domain in another cloud, set AZURE_AUTHORITY_HOST"
        )
    return f"{who} is refused"
