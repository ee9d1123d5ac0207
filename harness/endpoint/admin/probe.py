"""The probe before a run: is the endpoint such a service, and does it accept the credential?

One signed GET without the SDK. Every failure and refusal becomes a sentence that says what to
change. Where one response can have several causes, its date, the fields of the SAS or the claims of
the token tell them apart.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import os
import socket
import ssl
import time
from collections.abc import Mapping

from harness.endpoint.admin.listing import Listing, ListingResponse, listable, of_tables
from harness.endpoint.credential import EMULATOR_ACCOUNT, Refusal
from harness.endpoint.endpoint import Endpoint, as_kind
from harness.endpoint.http.exchange import CHARGE_HEADER
from harness.endpoint.http.pool import CA_VARIABLES, trust_context
from harness.endpoint.protocol.responses import read_error
from harness.model.errors import SetupError
from harness.model.process import bounded
from harness.model.services import EMBEDDED, SERVICES
from harness.model.services.service import GATEWAY_VIA, Service

_WAITING = "waiting for the response"
MAX_CLOCK_SKEW_S = 15 * 60.0
"""The service refuses a request whose date is further off (Authorize with Shared Key)."""


class ProbeRequest:
    """A `Listing` that is sent once, whose failure becomes a sentence."""

    def __init__(self, endpoint: Endpoint, resource: str) -> None:
        self._endpoint = endpoint
        self._where = f"{endpoint.hostname} port {endpoint.port}"
        self._server = endpoint.kind.server
        self._listing = Listing(endpoint, resource)
        # How far the request has come, for the sentence about its failure.
        self._stage = "looking up the host name"

    def send(self, *, context: ssl.SSLContext, timeout_s: float, now_s: float) -> ListingResponse:
        """Send the request once, dated ``now_s`` UTC seconds; the response may have any status.

        It is waited for up to ``timeout_s``: a name look-up has no time-out, and a host that sends
        a byte a second would outlast any other. A `SetupError` says why no response came.
        """
        try:
            return bounded(lambda: self._exchange(context, timeout_s, now_s), timeout_s)
        except TimeoutError:
            raise SetupError(
                f"no response from {self._where} within {timeout_s:g} s, while {self._stage}"
            ) from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise SetupError(self._sentence(error)) from error

    def _exchange(self, context: ssl.SSLContext, timeout_s: float, now_s: float) -> ListingResponse:
        socket.getaddrinfo(self._endpoint.hostname, self._endpoint.port, type=socket.SOCK_STREAM)
        self._stage = "connecting"
        connection = self._listing.connection(context, timeout_s)
        try:
            connection.connect()
            self._stage = _WAITING
            return self._listing.send(connection, now_s)
        finally:
            connection.close()

    def _sentence(self, error: Exception) -> str:
        """Why no response came. Only texts of the socket layer are shown: they hold no secret."""
        where = self._where
        if isinstance(error, (socket.gaierror, UnicodeError)) and self._stage != _WAITING:
            return (
                f"the host name {self._endpoint.hostname} cannot be resolved (port "
                f"{self._endpoint.port}): check the spelling of the account"
            )
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"the certificate of {where} is not trusted: {error.verify_message}. To trust a "
                f"private certificate authority, set {' or '.join(CA_VARIABLES)}"
            )
        if isinstance(error, ssl.SSLError):
            return f"the TLS handshake with {where} failed ({error.reason}): is it plain http?"
        if isinstance(error, ConnectionRefusedError):
            return f"nothing listens at {where}: the connection was refused"
        if isinstance(error, http.client.HTTPException) or self._stage == _WAITING:
            return (
                f"{where} accepted the connection but sent no valid HTTP response "
                f"({type(error).__name__}): is it a {self._server} endpoint, and does it need "
                "https?"
            )
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"{where} cannot be reached: {reason}"


def check(
    endpoint: Endpoint,
    *,
    timeout_s: float = 5.0,
    environ: Mapping[str, str] = os.environ,
) -> Endpoint:
    """Send the endpoint one request and check the response. Costs one transaction.

    The request lists the tables, or the containers, of the account; with a SAS for one table,
    entities of that table. A login that has no valid token fetches one first. ``environ`` names
    trusted authorities (see `harness.endpoint.http.pool`). A `SetupError` says why a run against
    the endpoint cannot work.

    Returns:
        The endpoint as what answered, which the address of one on this machine does not tell.
    """
    credential = endpoint.credential
    if endpoint.login is not None:
        endpoint.login.sign_in()
    request = ProbeRequest(endpoint, listable(endpoint))
    response = request.send(context=trust_context(environ), timeout_s=timeout_s, now_s=time.time())
    refused = None
    if not 200 <= response.status < 300:
        challenge = response.headers.get("www-authenticate", "")
        refused = Refusal(response.status, *read_error(response.headers, response.body), challenge)
    told = kind_told(response.headers, endpoint) or endpoint.kind
    via = response.headers.get("via") == GATEWAY_VIA
    answered = dataclasses.replace(recognised(endpoint, told), behind_gateway=via)
    if told.server != endpoint.kind.server:
        raise SetupError(
            f"the server at {endpoint.host} is a {told.server} service{told.reached}, and not a "
            f"{endpoint.kind.server} service: check -H and --session"
        )
    # The service's clock minus this machine's, within about a second.
    skew_s = None if response.date_s is None else response.date_s - time.time()
    if refused is None or refused.status in (401, 403, 404):
        problem = credential.problem(time.time() + (skew_s or 0.0), endpoint.kind)
        if problem is not None:
            raise SetupError(f"{endpoint.host}: {problem}")
    if refused is None:
        if not _is_listing(response, endpoint):
            raise SetupError(_not_the_service(endpoint))
        return answered
    if credential.table is not None and refused.code == "TableNotFound":
        # The credential was accepted; whether the table exists is checked where it is needed.
        return answered
    raise SetupError(explain(endpoint, refused, skew_s))


def kind_told(headers: Mapping[str, str], endpoint: Endpoint) -> Service | None:
    """The kind of service that sent ``headers`` (names in lower case); None where they do not tell.

    Of a service and its stand-in, the one that is as far away as the endpoint. Cosmos DB is told by
    a charge alone: its ``Server`` is that of any Windows server, such as the front of Storage.
    """
    server = headers.get("server", "").lower()
    told = [one for one in SERVICES if one.server_header and server.startswith(one.server_header)]
    if CHARGE_HEADER in headers:
        told = [one for one in SERVICES if one.charges]
    near = (one for one in told if one.emulated == endpoint.loopback)
    return next(near, told[0] if told else None)


def recognised(endpoint: Endpoint, told: Service) -> Endpoint:
    """The endpoint as the kind that its answer told, where its address does not tell the kind."""
    unknown = endpoint.kind == EMBEDDED and endpoint.loopback
    return as_kind(endpoint, told) if unknown and told.charges else endpoint


def explain(endpoint: Endpoint, refused: Refusal, skew_s: float | None = None) -> str:
    """The sentence for a refusal; ``skew_s`` is the service's clock minus this machine's."""
    host, account, code = endpoint.host, endpoint.account, refused.code
    credential = endpoint.credential
    if 300 <= refused.status < 400:
        return f"{_not_the_service(endpoint)} (it redirects with status {refused.status})"
    if not code:
        return f"{_not_the_service(endpoint)} (it responds with status {refused.status})"
    # Callers append to this sentence.
    message = refused.message.rstrip(".")
    said = f"{refused.status} {code}" + (f": {message}" if message else "")
    off = skew_s is not None and abs(skew_s) > MAX_CLOCK_SKEW_S
    if refused.status == 403 and off and credential.dated:
        assert skew_s is not None
        return (
            f"the clock of this machine is {_span(skew_s)} the clock of {host}, which refuses "
            f"requests that are more than 15 minutes off ({said}): set the clock"
        )
    of_cosmos = endpoint.kind.charges and refused.status in (401, 403)
    reasons = _COSMOS_REASONS.items() if of_cosmos else ()
    why = next((why for part, why in reasons if part in refused.message.lower()), None)
    if why is None:
        why = credential.why_refused(endpoint.kind, refused)
    if why is None and of_cosmos:
        why = (
            f"it refuses the {credential.noun} for the account {account}: is it the right one, "
            "complete, not replaced since, and not read-only?"
        )
    if why is not None:
        return f"{host}: {why} ({said})"
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


_COSMOS_REASONS = {
    "local authorization is disabled": "the account does not allow access with keys: use a login "
    "of Entra ID (--auth-mode login)",
    "firewall": "the firewall of the account blocks this machine",
    "token limit": "the account has no place for another token of Entra ID: use fewer processes, "
    "or the key of the account",
}
"""Parts of messages in small letters, from reports of users (see docs/cosmos.md): Cosmos DB has one
code for every cause."""

_REASONS = {
    "AuthorizationPermissionMismatch": "the credential lacks a permission",
    "AuthorizationResourceTypeMismatch": "the SAS does not cover this resource type (srt)",
    "AuthorizationServiceMismatch": "the SAS does not cover this service (ss)",
    "AuthorizationProtocolMismatch": "the SAS allows https only (spr)",
    "AuthorizationSourceIPMismatch": "the SAS does not allow the address of this machine (sip)",
    "KeyBasedAuthenticationNotPermitted": "the account does not allow access with keys, nor with a "
    "SAS that a key signed: use a login of Entra ID (--auth-mode login)",
    "AccountIsDisabled": "the account is disabled",
}


def _span(skew_s: float) -> str:
    amount_h = abs(skew_s) / 3600
    if amount_h >= 36:
        shown = f"{amount_h / 24:.1f} days"
    else:
        shown = f"{amount_h:.1f} h" if amount_h >= 1 else f"{amount_h * 60:.0f} min"
    return f"{shown} {'behind' if skew_s > 0 else 'ahead of'}"


def _is_listing(response: ListingResponse, endpoint: Endpoint) -> bool:
    if not of_tables(endpoint):
        return b"<EnumerationResults" in response.body
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and isinstance(document.get("value"), list)


def _not_the_service(endpoint: Endpoint) -> str:
    return f"the server at {endpoint.host} is not a {endpoint.kind.server} service: check -H"
