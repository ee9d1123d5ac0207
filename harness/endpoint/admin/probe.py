"""The probe before a run: is the endpoint a table service, and does it accept the credential?

Every refusal becomes a sentence that says what to change. Where one response can have several
causes, the date of the response and the fields of the SAS tell them apart.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from harness.endpoint.admin.probe_request import ProbeRequest, ProbeResponse
from harness.endpoint.auth.credential import EMULATOR_ACCOUNT, Sas, SharedKey
from harness.endpoint.auth.sas import sas_problem, sas_table
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.exchange import UNREADABLE
from harness.endpoint.http.tls import trust_context
from harness.endpoint.protocol.errors import read_error
from harness.model.errors import SetupError

MAX_CLOCK_SKEW_S = 15 * 60.0
"""The service refuses a request whose date is further off (Authorize with Shared Key)."""


def check(
    endpoint: Endpoint,
    *,
    timeout_s: float = 5.0,
    environ: Mapping[str, str] = os.environ,
    now: Callable[[], float] = time.time,
) -> None:
    """Send the endpoint one request and check the response. Costs one transaction.

    The request lists the tables of the account; with a SAS for one table, entities of that table.

    Args:
        endpoint: The endpoint.
        timeout_s: Time-out for the request.
        environ: Names trusted authorities, see `harness.endpoint.http.tls`.
        now: UTC seconds, for the date of the request and the comparison with the service's clock.

    Raises:
        SetupError: a run against the endpoint cannot work; the sentence says why.
    """
    credential = endpoint.credential
    table = sas_table(credential.token) if isinstance(credential, Sas) else None
    request = ProbeRequest(endpoint, "Tables" if table is None else f"{table}()", {"$top": "1"})
    response = request.send(context=trust_context(environ), timeout_s=timeout_s, now_s=now())
    refused = None
    if not 200 <= response.status < 300:
        refused = Refusal(response.status, *read_error(response.headers, response.body))
    skew_s = _skew_s(response, now())
    if isinstance(credential, Sas) and (refused is None or refused.status in (401, 403, 404)):
        problem = sas_problem(credential.token, now() + (skew_s or 0.0))
        if problem is not None:
            raise SetupError(f"{endpoint.host}: {problem}")
    if refused is None:
        if not _is_listing(response):
            raise SetupError(_not_a_table_service(endpoint))
        return
    if table is not None and refused.code == "TableNotFound":
        # The credential was accepted; whether the table exists is checked where it is needed.
        return
    raise SetupError(explain(endpoint, refused, skew_s))


class Refusal(NamedTuple):
    """An error response. The code is empty where the response is not a table service's."""

    status: int
    code: str
    message: str


def explain(endpoint: Endpoint, refused: Refusal, skew_s: float | None = None) -> str:
    """The sentence for a refusal.

    Args:
        endpoint: The endpoint that refused.
        refused: The error response.
        skew_s: The service's clock minus this machine's, where it is known.
    """
    host, account, code = endpoint.host, endpoint.account, refused.code
    credential = endpoint.credential
    if 300 <= refused.status < 400:
        return f"{_not_a_table_service(endpoint)} (it redirects with status {refused.status})"
    if not code:
        return f"{_not_a_table_service(endpoint)} (it responds with status {refused.status})"
    said = f"{refused.status} {code}" + (f": {refused.message}" if refused.message else "")
    off = skew_s is not None and abs(skew_s) > MAX_CLOCK_SKEW_S
    if refused.status == 403 and off and isinstance(credential, SharedKey):
        assert skew_s is not None
        return (
            f"the clock of this machine is {_span(skew_s)} the clock of {host}, which refuses "
            f"requests that are more than 15 minutes off ({said}): set the clock"
        )
    if "not valid in the specified time frame" in refused.message:
        return f"{host}: the SAS has expired or is not valid yet ({said}): create a new one"
    if code in _REASONS:
        return f"{host}: {_REASONS[code]} ({said})"
    if code in ("AuthenticationFailed", "InvalidAuthenticationInfo", "AuthorizationFailure"):
        more = (
            ", and does a firewall of the account block this machine"
            if code == "AuthorizationFailure" and endpoint.remote
            else ""
        )
        return (
            f"{host} refuses the {credential.noun} for the account {account} ({said}): is it the "
            f"right one, complete, and not replaced since{more}?"
        )
    if code in ("ResourceNotFound", "AccountNotFound") and account != EMULATOR_ACCOUNT:
        return f"{host} has no account {account} ({said})"
    return f"{host} refuses the request: {said}"


_REASONS = {
    "AuthorizationPermissionMismatch": "the credential lacks a permission",
    "AuthorizationResourceTypeMismatch": "the SAS does not cover this resource type (srt)",
    "AuthorizationServiceMismatch": "the SAS does not cover the table service (ss)",
    "AuthorizationProtocolMismatch": "the SAS allows https only (spr)",
    "AuthorizationSourceIPMismatch": "the SAS does not allow the address of this machine (sip)",
    "KeyBasedAuthenticationNotPermitted": "the account does not allow access with keys",
    "AccountIsDisabled": "the account is disabled",
}


def _skew_s(response: ProbeResponse, now_s: float) -> float | None:
    """The service's clock minus this machine's, within about a second; None where unknown."""
    try:
        return parsedate_to_datetime(response.headers["date"]).timestamp() - now_s
    except UNREADABLE:
        return None


def _span(skew_s: float) -> str:
    amount = abs(skew_s)
    shown = (
        f"{amount / 86400:.1f} days"
        if amount >= 36 * 3600
        else f"{amount / 3600:.1f} h"
        if amount >= 3600
        else f"{amount / 60:.0f} min"
    )
    return f"{shown} {'behind' if skew_s > 0 else 'ahead of'}"


def _is_listing(response: ProbeResponse) -> bool:
    try:
        document = json.loads(response.body)
    except UNREADABLE:
        return False
    return isinstance(document, dict) and isinstance(document.get("value"), list)


def _not_a_table_service(endpoint: Endpoint) -> str:
    return f"the server at {endpoint.host} is not a table service: check -H"
