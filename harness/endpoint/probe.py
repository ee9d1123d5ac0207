"""Whether the endpoint answers, lets us in, and is a table service: asked once, before a run.

Every refusal becomes a sentence that says what to change. The service's answer is the evidence;
where one answer has several causes, the date of the answer and the fields of the SAS decide.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

from harness.endpoint.connection import Endpoint, Sas
from harness.endpoint.credential import EMULATOR_ACCOUNT
from harness.endpoint.knock import Answer, knock
from harness.endpoint.sas import sas_problem, sas_table
from harness.endpoint.trust import trust_context
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
    """Ask the endpoint one question, and say what is wrong with it. Costs one transaction.

    An account is asked for its tables; a SAS for one table is asked for an entity of that table.

    Args:
        endpoint: Whom to ask.
        timeout_s: After so long there is no answer.
        environ: Names trusted authorities, see `harness.endpoint.trust`.
        now: UTC seconds; signs the request and is compared with the answer's date.

    Raises:
        SetupError: a run against it cannot work; the sentence says why.
    """
    table = sas_table(endpoint.credential.token) if isinstance(endpoint.credential, Sas) else None
    answer = knock(
        endpoint,
        "Tables" if table is None else f"{table}()",
        {"$top": "1"},
        context=trust_context(environ),
        timeout_s=timeout_s,
        now_s=now(),
    )
    refused = refusal(answer)
    skew_s = _skew_s(answer, now())
    if isinstance(endpoint.credential, Sas) and (
        refused is None or refused.status in (401, 403, 404)
    ):
        problem = sas_problem(endpoint.credential.token, now() + (skew_s or 0.0))
        if problem is not None:
            raise SetupError(f"{endpoint.host}: {problem}")
    if refused is None:
        if not _is_listing(answer):
            raise SetupError(_not_a_table_service(endpoint))
        return
    if table is not None and refused.code == "TableNotFound":
        # It let us in; whether the table is there is asked where the table is needed.
        return
    raise SetupError(explain(endpoint, refused, skew_s))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer that is no success. The code is empty where the answer is no table service's."""

    status: int
    code: str
    message: str


def refusal(answer: Answer) -> Refusal | None:
    """The error an answer holds, or None for a success."""
    if 200 <= answer.status < 300:
        return None
    code, message = answer.headers.get("x-ms-error-code", ""), ""
    try:
        document = json.loads(answer.body)
        error = document["odata.error"]
        code, message = code or str(error["code"]), str(error["message"]["value"])
    except (ValueError, KeyError, TypeError):
        # Storage answers in XML where it does not get as far as the table service.
        text = answer.body.decode("utf-8", "replace")
        code = code or _between(text, "<code>", "</code>") or _between(text, "<Code>", "</Code>")
    return Refusal(status=answer.status, code=code, message=message.split("\n", 1)[0].strip())


def explain(endpoint: Endpoint, refused: Refusal, skew_s: float | None = None) -> str:
    """The sentence for a refusal.

    Args:
        endpoint: Who refused.
        refused: How.
        skew_s: The service's clock minus ours, where it is known.
    """
    host, account, code = endpoint.host, endpoint.account, refused.code
    if not code:
        return f"{_not_a_table_service(endpoint)} (it answered {refused.status})"
    said = f"{refused.status} {code}" + (f": {refused.message}" if refused.message else "")
    off = skew_s is not None and abs(skew_s) > MAX_CLOCK_SKEW_S
    if refused.status == 403 and off and not isinstance(endpoint.credential, Sas):
        assert skew_s is not None
        return (
            f"the clock of this machine is {_span(skew_s)} {host}, which refuses requests "
            f"that are more than 15 minutes off ({said}): set the clock"
        )
    if "not valid in the specified time frame" in refused.message:
        return f"{host}: the SAS is expired or not valid yet ({said}): make a new one"
    if code in _REASONS:
        return f"{host}: {_REASONS[code]} ({said})"
    if code in ("AuthenticationFailed", "InvalidAuthenticationInfo", "AuthorizationFailure"):
        secret = "SAS" if isinstance(endpoint.credential, Sas) else "key"
        more = (
            f"; a firewall of the account answers the same for {account}"
            if code == "AuthorizationFailure" and endpoint.remote
            else ""
        )
        return (
            f"{host} refuses the {secret} for the account {account} ({said}): is it the right "
            f"one, whole, and not replaced since{more}?"
        )
    if code in ("ResourceNotFound", "AccountNotFound") and endpoint.account != EMULATOR_ACCOUNT:
        return f"{host} knows no account {account} ({said})"
    return f"{host} refuses: {said}"


_REASONS = {
    "AuthorizationPermissionMismatch": "the credential lacks a permission",
    "AuthorizationResourceTypeMismatch": "the SAS is not for this type of resource (srt)",
    "AuthorizationServiceMismatch": "the SAS is not for the table service (ss)",
    "AuthorizationProtocolMismatch": "the SAS allows https only (spr)",
    "AuthorizationSourceIPMismatch": "the SAS does not allow this machine's address (sip)",
    "KeyBasedAuthenticationNotPermitted": "the account does not let keys in",
    "AccountIsDisabled": "the account is disabled",
}


def _skew_s(answer: Answer, now_s: float) -> float | None:
    """The service's clock minus ours, to a second or so; None where it does not tell."""
    try:
        return parsedate_to_datetime(answer.headers["date"]).timestamp() - now_s
    except (KeyError, ValueError):
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


def _is_listing(answer: Answer) -> bool:
    try:
        document = json.loads(answer.body)
    except ValueError:
        return False
    return isinstance(document, dict) and isinstance(document.get("value"), list)


def _not_a_table_service(endpoint: Endpoint) -> str:
    return f"something answers at {endpoint.host}, but it is no table service: check -H"


def _between(text: str, before: str, after: str) -> str:
    return text.partition(before)[2].partition(after)[0].strip()
