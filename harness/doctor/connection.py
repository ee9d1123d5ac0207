"""The way to an endpoint, examined step by step: its name, a connection, the TLS handshake."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult

from harness.doctor.checks import CheckResult, failed, judged, not_tried
from harness.endpoint.admin.reachability import (
    Connected,
    Unreachable,
    addresses_of,
    connect,
    shake_hands,
)
from harness.endpoint.http.pool import trust_context
from harness.model.errors import SetupError
from harness.model.figures import listed, milliseconds
from harness.model.hosts import is_loopback

NOT_REACHED = "the endpoint is not reached"
_MOST_ADDRESSES = 4
_EXPIRES_WITHIN_DAYS = 14
_PROXIES = ("HTTPS_PROXY", "https_proxy")


def connection_checks(address: SplitResult, environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Each check as soon as it is done. All of them passed if requests can be sent."""
    hostname = address.hostname or ""
    port = address.port or (443 if address.scheme == "https" else 80)
    connected: Connected | None = None
    try:
        addresses = [hostname] if _is_address(hostname) else addresses_of(hostname, port)
    except Unreachable as error:
        yield failed("name", str(error), error.advice)
        yield not_tried("connection", NOT_REACHED)
    else:
        yield _name(hostname, addresses)
        found, connected = _connection(addresses, port, environ)
        yield found
    if address.scheme == "https":
        if connected is None:
            yield not_tried("TLS", NOT_REACHED)
        else:
            yield _tls(connected, port, hostname, environ)


def _name(hostname: str, addresses: list[str]) -> CheckResult:
    if addresses == [hostname]:
        return CheckResult(name="name", text=f"{hostname} is an address")
    shown = listed(addresses[:_MOST_ADDRESSES])
    more = len(addresses) - _MOST_ADDRESSES
    text = f"{hostname} is {shown}{f' and {more} more' if more > 0 else ''}"
    private = not is_loopback(hostname) and all(is_loopback(address) for address in addresses)
    advice = "the name leads to this machine: check the hosts file" if private else ""
    return judged("name", text, advice, {"addresses": addresses})


def _connection(
    addresses: list[str], port: int, environ: Mapping[str, str]
) -> tuple[CheckResult, Connected | None]:
    failures: list[Unreachable] = []
    for address in addresses[:_MOST_ADDRESSES]:
        try:
            connected = connect(address, port)
        except Unreachable as error:
            failures.append(error)
            continue
        took = f"{milliseconds(connected.seconds * 1000)} ms to {address} port {port}"
        figures = {"address": address, "ms": round(connected.seconds * 1000, 3)}
        if not failures:
            return CheckResult(name="connection", text=took, figures=figures), connected
        advice = "every new connection of a run tries that address first and waits: "
        text = f"{took}, but {'; '.join(map(str, failures))}"
        return judged("connection", text, f"{advice}{failures[0].advice}", figures), connected
    advice = failures[0].advice
    if any(map(environ.get, _PROXIES)):
        advice += ". A proxy is named in the environment, which the harness does not use"
    return failed("connection", "; ".join(map(str, failures)), advice), None


def _tls(connected: Connected, port: int, hostname: str, environ: Mapping[str, str]) -> CheckResult:
    try:
        context = trust_context(environ)
        made = shake_hands(connected.address, port, hostname, context)
    except Unreachable as error:
        return failed("TLS", str(error), error.advice)
    except SetupError as error:
        return failed("TLS", str(error))
    days = (made.expires - dt.datetime.now(dt.UTC)).total_seconds() / 86400
    resumed = "sessions are not resumed"
    if made.resumed_s is not None:
        resumed = f"{milliseconds(made.resumed_s * 1000)} ms with a resumed session"
    soon = days < _EXPIRES_WITHIN_DAYS
    return judged(
        "TLS",
        f"{made.version}, {made.cipher}; certificate of {made.subject}, issued by "
        f"{made.issuer}, valid for {days:,.0f} days; "
        f"{milliseconds(made.seconds * 1000)} ms, {resumed}",
        "renew the certificate soon" if soon else "",
        {
            "version": made.version,
            "cipher": made.cipher,
            "subject": made.subject,
            "issuer": made.issuer,
            "expires": made.expires.isoformat(),
            "ms": round(made.seconds * 1000, 3),
            "resumed_ms": None if made.resumed_s is None else round(made.resumed_s * 1000, 3),
        },
    )


def _is_address(hostname: str) -> bool:
    try:
        ipaddress.ip_address(hostname)
    except ValueError:
        return False
    return True
