"""Which Host headers are those of a listener of ours.

A foreign web page can lead a name of its own to this machine (DNS rebinding); for the browser it
is then of the same origin as whatever listens here. The Host header still holds the foreign name,
so that a listener that answers to its own names alone is safe. An address in place of a name cannot
be led elsewhere.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

STRANGE_HOST = "The Host of this request is not a name of this page.\n"
"""What a page that changes nothing says to a request that is not meant for it."""

_EVERY_ADDRESS = frozenset(("", "*", "0.0.0.0", "::"))
_NAME = r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*"
_HOST = re.compile(rf"(?:\[([0-9a-f:.]+)\]|({_NAME})\.?)(?::[0-9]{{0,5}})?")


def host_of(header: str) -> str | None:
    """The host of a Host header (HOST or HOST:PORT) in one spelling, or None where it is none.

    A name is in lower case and has no dot at its end; an address is in its shortest form and has
    no brackets.
    """
    found = _HOST.fullmatch(header.strip().lower())
    if found is None:
        return None
    inside, name = found.groups()
    address = _address(inside or name)
    if address is not None:
        return str(address)
    return name


def is_loopback(host: str) -> bool:
    """True for localhost, 127.0.0.0/8 and ::1: what is sent there does not leave the machine."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


class OwnHosts:
    """The hosts by which one listener may be asked.

    These are the address it listens at, every loopback address, localhost, and ``named``. A
    listener at all addresses of a machine may be asked by any address: one that is reached through
    a published port does not know the addresses before it.

    Args:
        listening: Address or name it listens at; empty or * is every address.
        named: Further names, of a reverse proxy for example.

    Raises:
        ValueError: one of ``named`` is no host name; its text is the first one.
    """

    def __init__(self, listening: str, named: Iterable[str] = ()) -> None:
        self._every_address = listening in _EVERY_ADDRESS
        self._hosts = set()
        # An IPv6 address to listen at has no brackets, and is no Host header.
        own = _address(listening)
        if own is not None:
            self._hosts.add(str(own))
        elif not self._every_address and (name := host_of(listening)) is not None:
            self._hosts.add(name)
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
    """Which Host headers may read a page that changes nothing, listening at ``listening``.

    On loopback its own hosts alone. A page that was opened to other machines is read by scrapers
    under names that nobody told it.
    """
    return OwnHosts(listening).allow if is_loopback(listening) else lambda header: True


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
