"""One signed request without the SDK, so that every way to fail is seen as what it is.

Everything happens in a thread of its own that is waited for only as long as told: looking up a
name takes no time-out, and a host that answers a byte a second would outlast any other one.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import http.client
import queue
import socket
import ssl
import threading
from collections.abc import Mapping
from email.utils import formatdate
from urllib.parse import quote, urlsplit

from harness.endpoint.connection import Endpoint, SharedKey
from harness.endpoint.trust import CA_VARIABLES
from harness.model.errors import SetupError

_VERSION = "2019-02-02"
_MAX_BODY_BYTES = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. Header names are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def knock(
    endpoint: Endpoint,
    resource: str,
    query: Mapping[str, str],
    *,
    context: ssl.SSLContext,
    timeout_s: float,
    now_s: float,
) -> Answer:
    """Send one GET and give its answer, whatever its status.

    Args:
        endpoint: Whom to ask.
        resource: Path below the account, such as ``Tables``.
        query: Query parameters, not encoded.
        context: Whose certificates are trusted.
        timeout_s: After so long it counts as no answer.
        now_s: UTC seconds, for the date that is signed.

    Raises:
        SetupError: no answer; the sentence names host, port and reason.
    """
    progress = _Progress()
    results: queue.SimpleQueue[Answer | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put(_ask(endpoint, resource, query, context, timeout_s, now_s, progress))
        except Exception as error:  # Raised again where it is waited for.
            results.put(error)

    threading.Thread(target=run, daemon=True, name="knock").start()
    try:
        result = results.get(timeout=timeout_s)
    except queue.Empty:
        raise SetupError(
            f"no answer from {_where(endpoint)} within {timeout_s:g} s, while {progress.stage}"
        ) from None
    if isinstance(result, Answer):
        return result
    if not isinstance(result, (OSError, http.client.HTTPException, UnicodeError)):
        raise result
    raise SetupError(_sentence(endpoint, result, progress)) from result


class _Progress:
    """How far a request has come, for the sentence about its failure."""

    __slots__ = ("stage",)

    def __init__(self) -> None:
        self.stage = "looking up its name"


def _ask(
    endpoint: Endpoint,
    resource: str,
    query: Mapping[str, str],
    context: ssl.SSLContext,
    timeout_s: float,
    now_s: float,
    progress: _Progress,
) -> Answer:
    parts = urlsplit(endpoint.url)
    path = f"{parts.path}/{resource}"
    asked = "&".join(f"{quote(name, safe='$')}={quote(text)}" for name, text in query.items())
    date = formatdate(now_s, usegmt=True)
    headers = {
        "Accept": "application/json;odata=nometadata",
        "x-ms-date": date,
        "x-ms-version": _VERSION,
    }
    if isinstance(endpoint.credential, SharedKey):
        headers["Authorization"] = _signature(endpoint.credential, path, date)
    else:
        asked = f"{asked}&{endpoint.credential.token}"

    socket.getaddrinfo(endpoint.hostname, endpoint.port, type=socket.SOCK_STREAM)
    progress.stage = "connecting"
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(
            endpoint.hostname, endpoint.port, timeout=timeout_s, context=context
        )
    else:
        connection = http.client.HTTPConnection(endpoint.hostname, endpoint.port, timeout=timeout_s)
    try:
        connection.connect()
        progress.stage = "waiting for an answer"
        connection.request("GET", f"{path}?{asked}", headers=headers)
        response = connection.getresponse()
        return Answer(
            status=response.status,
            headers={name.lower(): text for name, text in response.getheaders()},
            body=response.read(_MAX_BODY_BYTES),
        )
    finally:
        connection.close()


def _signature(credential: SharedKey, path: str, date: str) -> str:
    """Shared Key of the Table service: verb, MD5, type, date, and the account before the path."""
    text = f"GET\n\n\n{date}\n/{credential.account}{path}"
    key = base64.b64decode(credential.key)
    digest = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return f"SharedKey {credential.account}:{base64.b64encode(digest).decode()}"


def _where(endpoint: Endpoint) -> str:
    return f"{endpoint.hostname} port {endpoint.port}"


def _sentence(endpoint: Endpoint, error: Exception, progress: _Progress) -> str:
    """Why there was no answer. Only texts of the socket layer, which know no secret, are shown."""
    where = _where(endpoint)
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return (
            f"the name {endpoint.hostname} is not known (port {endpoint.port} was to be asked): "
            "is the account spelled right?"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the certificate of {where} is not trusted: {error.verify_message}. A private "
            f"authority is named by {' or '.join(CA_VARIABLES)}"
        )
    if isinstance(error, ssl.SSLError):
        return f"{where} does not speak TLS as expected ({error.reason}): is it http?"
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens at {where}: the connection was refused"
    if isinstance(error, TimeoutError):
        return f"no answer from {where} in time, while {progress.stage}"
    if isinstance(error, http.client.HTTPException) or progress.stage == "waiting for an answer":
        return (
            f"{where} took the connection but gave no answer over HTTP "
            f"({type(error).__name__}): is it a table endpoint, and does it want https?"
        )
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{where} cannot be reached: {reason}"
