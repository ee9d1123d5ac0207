"""By which Host headers a listener may be asked."""

from __future__ import annotations

import pytest

from harness.model.hosts import OwnHosts, host_of, readers_of

STRANGE = (
    *("evil.example", "evil.example:8089", "", "localhost.evil.example", "127.0.0.1.evil.example"),
    *("localhost evil.example", "localhost,evil.example", "evil.example#localhost", "@localhost"),
    *("user@localhost", "localhost/", "http://localhost", "127.1", "[127.0.0.1", "[localhost]"),
    *("127.0.0.1:port", "xn--localhost", "2130706433", "[fe80::1%eth0]", "\u212a"),
)
OWN = (
    *("localhost", "LOCALHOST", "localhost.", "localhost:8089", "127.0.0.1", "127.0.0.1:1"),
    *("127.8.9.10", "[::1]", "[::1]:8089", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:80"),
)


@pytest.mark.parametrize("header", OWN)
@pytest.mark.parametrize("listening", ["127.0.0.1", "", "0.0.0.0", "192.0.2.7", "stress.test"])
def test_loopback_is_a_name_of_every_listener(listening: str, header: str) -> None:
    """A tunnel or a published port leads from there to any address."""
    assert OwnHosts(listening).allow(header)


@pytest.mark.parametrize("header", STRANGE)
@pytest.mark.parametrize("listening", ["127.0.0.1", "", "*", "0.0.0.0", "::", "::1", "stress.test"])
def test_a_foreign_name_is_refused_whatever_it_is_led_to(listening: str, header: str) -> None:
    """Names of others, and what is no host at all."""
    assert not OwnHosts(listening).allow(header)


@pytest.mark.parametrize(
    ("listening", "header", "allowed"),
    [
        ("192.0.2.7", "192.0.2.7:8089", True),
        ("192.0.2.7", "192.0.2.8:8089", False),
        ("127.0.0.1", "192.0.2.7:8089", False),
        ("2001:db8::1", "[2001:DB8:0::1]:8089", True),
        ("0.0.0.0", "192.0.2.7:8089", True),
        ("*", "[2001:db8::1]", True),
        ("stress.test", "Stress.Test.:8089", True),
    ],
)
def test_the_address_that_it_listens_at(listening: str, header: str, allowed: bool) -> None:
    """In any spelling; at all addresses of the machine, any address, for none can be led here."""
    assert OwnHosts(listening).allow(header) is allowed


def test_further_names_are_added() -> None:
    """A reverse proxy has a name that the listener does not know; a port goes with it."""
    hosts = OwnHosts("127.0.0.1", ["load.example.", "[2001:db8::1]:443", "master"])
    for header in ("LOAD.example:80", "[2001:db8::1]", "master:8089", "localhost"):
        assert hosts.allow(header)
    assert not hosts.allow("sub.load.example")
    with pytest.raises(ValueError, match="https://load"):
        OwnHosts("127.0.0.1", ["https://load.example"])


def test_a_page_for_readers_checks_the_host_on_loopback_alone() -> None:
    """Elsewhere it was opened to scrapers, whose names for it are not known."""
    assert not readers_of("127.0.0.1")("evil.example")
    assert readers_of("127.0.0.1")("localhost:9646")
    assert readers_of("0.0.0.0")("master:9646")


def test_hosts_have_one_spelling() -> None:
    """Names in lower case without a dot at the end, addresses short and without brackets."""
    assert host_of("Stress.TEST.:80") == "stress.test"
    assert host_of("[2001:DB8:0::1]:80") == host_of("[2001:db8::1]") == "2001:db8::1"
    assert host_of("[::ffff:10.0.0.1]") == "10.0.0.1"
