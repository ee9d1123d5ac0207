"""Whether a host can be reached, step by step: its name, a connection, the TLS handshake.

No HTTP request is sent, so that nothing is billed. Every step has a time limit: a name look-up has
none of its own, and a firewall that drops packets answers nothing.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import socket
import ssl
from time import perf_counter
from typing import NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID

from harness.endpoint.http.pool import CA_VARIABLES
from harness.model.errors import SetupError
from harness.model.process import bounded

_LOOK_UP_WITHIN_S = 5.0
_CONNECT_WITHIN_S = 3.0
_HANDSHAKE_WITHIN_S = 5.0
_TICKET_WITHIN_S = 0.3
"""How long to wait for the session that a TLS 1.3 server sends after the handshake."""


class Unreachable(SetupError):
    """A step failed; ``advice`` says what to do."""

    def __init__(self, sentence: str, advice: str) -> None:
        super().__init__(sentence)
        self.advice = advice


class Connected(NamedTuple):
    address: str
    seconds: float


class Handshake(NamedTuple):
    """A TLS handshake whose certificate is trusted.

    Attributes:
        resumed_s: Time of a handshake that resumed the session; None where none was resumed.
    """

    version: str
    cipher: str
    subject: str
    issuer: str
    expires: dt.datetime
    seconds: float
    resumed_s: float | None


def addresses_of(hostname: str, port: int) -> list[str]:
    """The addresses of a host, in the order in which a run tries them, or `Unreachable`."""

    def look_up() -> list[str]:
        found = socket.getaddrinfo(hostname, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(place[0]) for *_, place in found))

    try:
        return bounded(look_up, _LOOK_UP_WITHIN_S)
    except TimeoutError:
        raise Unreachable(
            f"no answer about {hostname} within {_LOOK_UP_WITHIN_S:g} s",
            "no name server answers: check the DNS settings and the network of this machine",
        ) from None
    except (socket.gaierror, UnicodeError):
        raise Unreachable(
            f"{hostname} cannot be resolved",
            "check the spelling of the account; a private endpoint needs its private DNS zone",
        ) from None


def connect(address: str, port: int) -> Connected:
    """Open a connection, and close it, or raise `Unreachable`. It takes about one round trip."""
    began_s = perf_counter()
    try:
        with socket.create_connection((address, port), timeout=_CONNECT_WITHIN_S):
            return Connected(address, perf_counter() - began_s)
    except TimeoutError:
        raise Unreachable(
            f"no answer from {address} port {port} within {_CONNECT_WITHIN_S:g} s",
            "packets are dropped: allow this machine in every firewall on the way and in the "
            "networking rules of the account, or open the port",
        ) from None
    except ConnectionRefusedError:
        raise Unreachable(
            f"{address} port {port} refuses connections",
            "nothing listens there: start the server, or correct the port in -H",
        ) from None
    except OSError as error:
        raise Unreachable(
            f"{address} port {port} cannot be reached: {error.strerror or error}",
            "check the network and the routes of this machine",
        ) from None


def shake_hands(
    address: str,
    port: int,
    hostname: str,
    context: ssl.SSLContext,
) -> Handshake:
    """Two TLS handshakes, the second with the session of the first, or `Unreachable`."""
    try:
        # A server that sends a byte at a time keeps to the limit of each read.
        return bounded(lambda: _shake_hands(address, port, hostname, context), _HANDSHAKE_WITHIN_S)
    except ssl.SSLCertVerificationError as error:
        presented = _presented(address, port, hostname)
        raise Unreachable(
            f"the certificate{presented} is not trusted: {error.verify_message}",
            f"for a private certificate authority set {' or '.join(CA_VARIABLES)}; a proxy that "
            "opens TLS has one",
        ) from None
    except ssl.SSLError as error:
        raise Unreachable(
            f"the TLS handshake failed ({error.reason})", "does the port expect plain http?"
        ) from None
    except TimeoutError:
        raise Unreachable(
            f"the TLS handshake took longer than {_HANDSHAKE_WITHIN_S:g} s",
            "does the port expect plain http? A firewall may also hold the handshake",
        ) from None
    except OSError as error:
        raise Unreachable(
            f"the connection broke during the TLS handshake: {error.strerror or error}",
            "a firewall or proxy on the way may close TLS connections to this host",
        ) from None


def _shake_hands(address: str, port: int, hostname: str, context: ssl.SSLContext) -> Handshake:
    raw = socket.create_connection((address, port), timeout=_HANDSHAKE_WITHIN_S)
    began_s = perf_counter()
    with context.wrap_socket(raw, server_hostname=hostname) as first:
        seconds = perf_counter() - began_s
        first.settimeout(_TICKET_WITHIN_S)
        with contextlib.suppress(OSError):
            first.recv(1)
        certificate = x509.load_der_x509_certificate(first.getpeercert(True) or b"")
        version, cipher = first.version() or "TLS", (first.cipher() or ("unknown",))[0]
        session = first.session
    raw = socket.create_connection((address, port), timeout=_HANDSHAKE_WITHIN_S)
    began_s = perf_counter()
    with context.wrap_socket(raw, server_hostname=hostname, session=session) as again:
        resumed_s = perf_counter() - began_s if again.session_reused else None
    return Handshake(
        version=version,
        cipher=cipher,
        subject=_common_name(certificate.subject),
        issuer=_common_name(certificate.issuer),
        expires=certificate.not_valid_after_utc,
        seconds=seconds,
        resumed_s=resumed_s,
    )


def _presented(address: str, port: int, hostname: str) -> str:
    """Subject and issuer of a certificate that is not trusted, as a part of a sentence."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(OSError, ValueError):
        raw = socket.create_connection((address, port), timeout=_HANDSHAKE_WITHIN_S)
        with context.wrap_socket(raw, server_hostname=hostname) as presented:
            certificate = x509.load_der_x509_certificate(presented.getpeercert(True) or b"")
            of, by = _common_name(certificate.subject), _common_name(certificate.issuer)
            return (
                f" of {of}, issued by {by}, valid until {certificate.not_valid_after_utc:%Y-%m-%d},"
            )
    return ""


def _common_name(name: x509.Name) -> str:
    for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME):
        for attribute in name.get_attributes_for_oid(oid):
            return str(attribute.value)
    return name.rfc4514_string() or "nobody"
