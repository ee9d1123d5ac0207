"""Who a token was issued to."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.endpoint.entra.token import Identity, Token, identity_of
from tests.support.entra import MANAGED, OBJECT_ID, TENANT, access_token


@pytest.mark.parametrize(
    ("claims", "kind"),
    [
        (MANAGED, "managed identity"),
        ({**MANAGED, "idtyp": "app"}, "managed identity"),
        ({"idtyp": "app", "appid": "1"}, "service principal"),
        ({"appid": "1"}, "service principal"),
        ({"idtyp": "user", "upn": "a@b.c"}, "user"),
        ({"scp": "user_impersonation", "upn": "a@b.c"}, "user"),
    ],
)
def test_the_claims_tell_the_kind(claims: dict[str, Any], kind: str) -> None:
    """Managed identity, service principal or user, with object id and tenant."""
    found = identity_of(access_token(**claims))
    assert found == Identity(kind=kind, object_id=OBJECT_ID, tenant=TENANT)
    assert found.described == f"{kind}, object id {OBJECT_ID}, tenant {TENANT}"


@pytest.mark.parametrize("token", ["", "opaque", "a.b", "a.b.c", "a.e30.c", "é.é.é", "a.W10.c"])
def test_a_token_that_tells_nothing_has_the_tenant_of_the_environment(token: str) -> None:
    """A token that cannot be read is no error: only its service has to read it."""
    found = identity_of(token, "mytenant")
    assert found.tenant == "mytenant"
    assert found.object_id == ""


def test_a_token_is_not_shown() -> None:
    """Neither its text nor that of its identity holds the token."""
    value = access_token()
    token = Token(value=value, fetched_s=0, expires_s=1, identity=identity_of(value))
    assert value[:20] not in repr(token)


CLAIMS = st.recursive(
    st.none() | st.text() | st.floats(), lambda e: st.dictionaries(st.text(), e), max_leaves=5
)


@given(CLAIMS)
def test_no_claims_break_the_reading(claims: Any) -> None:
    """Whatever a token says, what is shown of it is short and printable."""
    content = {"oid": claims, "tid": claims, "idtyp": claims}
    payload = base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
    described = identity_of(f"a.{payload}.c").described
    assert described.isprintable()
    assert len(described) < 200
