"""One signed GET without the SDK, which tells every kind of failure apart.

The request runs in a thread of its own, which is waited for only up to the time-out: a name look-up
takes no time-out, and a host that sends a byte a second would outlast every other one.
"""

from __future__ import annotations

import http.client
import io
import queue
import socket
import ssl
import threading
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from harness.endpoint.auth.signing import signer_of
from harness.endpoint.endpoint import Endpoint
from harness.endpoint.http.exchange import UNREADABLE
from harness.endpoint.http.tls import CA_VARIABLES
from harness.endpoint.protocol.odata import JSON_PLAIN, VERSION
from harness.model.errors import SetupError

_MAX_BODY_BYTES = 256 * 1024
_MAX_BYTES = 4 * _MAX_BODY_BYTES
_WAITING = "waiting for the response"


class ProbeResponse(NamedTuple):
    """The response to a probe. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ProbeRequest:
    """A GET of one resource of an account.

    Args:
        endpoint: The account, and the credential that signs.
        resource: Path below the account, such as ``Tables``.
        query: Query parameters, not encoded.
    """

    def __init__(self, endpoint: Endpoint, resource: str, query: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        parts = urlsplit(endpoint.url)
        self._https = parts.scheme == "https"
        self._path = f"{parts.path}/{resource}"
        self._query = "&".join(f"{quote(k, safe='$')}={quote(v)}" for k, v in query.items())
        # How far the request has come, for the sentence about its failure.
        self._stage = "looking up the host name"

    def send(self, *, context: ssl.SSLContext, timeout_s: float, now_s: float) -> ProbeResponse:
        """Send the request once; the response may have any status.

        Args:
            context: Checks certificates.
            timeout_s: Time-out for everything, the name look-up included.
            now_s: UTC seconds, for the date that is signed.

        Raises:
            SetupError: there was no response; the sentence names host, port and reason.
        """
        results: queue.SimpleQueue[ProbeResponse | Exception] = queue.SimpleQueue()

        def run() -> None:
            try:
                results.put(self._exchange(context, timeout_s, now_s))
            except Exception as error:  # Raised again in the thread that waits.
                results.put(error)

        threading.Thread(target=run, daemon=True, name="probe").start()
        try:
            result = results.get(timeout=timeout_s)
        except queue.Empty:
            raise SetupError(
                f"no response from {self._where} within {timeout_s:g} s, while {self._stage}"
            ) from None
        if isinstance(result, ProbeResponse):
            return result
        # Once the request has left, whatever parsing its response raises is about the response.
        about = UNREADABLE if self._stage == _WAITING else (http.client.HTTPException, UnicodeError)
        if not isinstance(result, (OSError, *about)):
            raise result
        raise SetupError(self._sentence(result)) from result

    def _exchange(self, context: ssl.SSLContext, timeout_s: float, now_s: float) -> ProbeResponse:
        signer = signer_of(self._endpoint.credential)
        date = formatdate(now_s, usegmt=True)
        headers = {"Accept": JSON_PLAIN, "x-ms-date": date, "x-ms-version": VERSION}
        if signature := signer.authorization("GET", "", date, self._path):
            headers["Authorization"] = signature
        query = "&".join(filter(None, (self._query, signer.query)))

        host, port = self._endpoint.hostname, self._endpoint.port
        socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self._stage = "connecting"
        connection: http.client.HTTPConnection
        if self._https:
            connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        try:
            connection.connect()
            self._stage = _WAITING
            connection.response_class = _BoundedResponse
            connection.request("GET", f"{self._path}?{query}", headers=headers)
            response = connection.getresponse()
            return ProbeResponse(
                status=response.status,
                headers={name.lower(): text for name, text in response.getheaders()},
                body=response.read(_MAX_BODY_BYTES),
            )
        finally:
            connection.close()

    @property
    def _where(self) -> str:
        return f"{self._endpoint.hostname} port {self._endpoint.port}"

    def _sentence(self, error: Exception) -> str:
        """Why there was no response. Shows texts of the socket layer alone: they hold no secret."""
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
        if isinstance(error, TimeoutError):
            return f"no response from {where} in time, while {self._stage}"
        if isinstance(error, http.client.HTTPException) or self._stage == _WAITING:
            return (
                f"{where} accepted the connection but sent no valid HTTP response "
                f"({type(error).__name__}): is it a table endpoint, and does it need https?"
            )
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"{where} cannot be reached: {reason}"


class _BoundedResponse(http.client.HTTPResponse):
    """A response of limited size: ``http.client`` limits the length of lines, not their number."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_Bounded(self.fp.detach()))


class _Bounded(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._left = _MAX_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._left <= 0:
            raise http.client.HTTPException("the response is too large")
        count: int | None = self._raw.readinto(buffer)
        self._left -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
