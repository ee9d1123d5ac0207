"""Which Host headers a listener of the harness accepts.

A foreign web page can point a name of its own to this machine (DNS rebinding). To the browser, the
listener then has the origin of that page; only the Host header still holds the foreign name. An
address in the header cannot be redirected in this way.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

STRANGE_HOST = "The Host of this request is not a name of this page.\n"
"""The answer of a page that changes nothing to a request with a foreign Host header."""

_EVERY_ADDRESS = frozenset(("", "*", "0.0.0.0", "::"))
_NAME = r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*"
_HOST = re.compile(rf"(?:\[([0-9a-f:.]+)\]|({_NAME})\.?)(?::[0-9]{{0,5}})?")


def host_of(header: str) -> str | None:
    """The host of a Host header (HOST or HOST:PORT), normalized; None where it is invalid.

    Names are in lower case without a dot at the end, addresses in their shortest form without
    brackets.
    """
    found = _HOST.fullmatch(header.strip().lower())
    if found is None:
        return None
    inside, name = found.groups()
    address = _address(inside or name)
    return name if address is None else str(address)


def is_loopback(host: str) -> bool:
    """True for localhost, 127.0.0.0/8 and ::1: requests to them do not leave the machine."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def is_every_address(host: str) -> bool:
    """True for what a listener at all addresses of the machine is given, such as 0.0.0.0."""
    return host in _EVERY_ADDRESS


class OwnHosts:
    """The hosts that requests to one listener may name.

    These are the address or name that it listens at, every loopback address, localhost, and
    ``named``, such as a reverse proxy. A listener at every address (empty or ``*``) accepts every
    address, because it may be reached through a published port of another machine.

    Raises:
        ValueError: one of ``named`` is not a host; the text of the error is that name.
    """

    def __init__(self, listening: str, named: Iterable[str] = ()) -> None:
        self._every_address = is_every_address(listening)
        # An IPv6 address to listen at has no brackets, so it is not a Host header.
        address = _address(listening)
        own = host_of(listening) if address is None else str(address)
        self._hosts = set() if self._every_address or own is None else {own}
        for text in named:
            host = host_of(text)
            if host is None:
                raise ValueError(text)
            self._hosts.add(host)

    def allow(self, header: str) -> bool:
        """Whether a request with this Host header is meant for the listener."""
        host = host_of(header)
        if host is None:
            return False
        if host in self._hosts or is_loopback(host):
            return True
        return self._every_address and _address(host) is not None


def readers_of(listening: str) -> Callable[[str], bool]:
    """Which Host headers may read a page that changes nothing.

    On loopback, the listener's own hosts. Elsewhere every host: scrapers reach the page under names
    that are not known here.
    """
    return OwnHosts(listening).allow if is_loopback(listening) else lambda header: True


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
