"""The options for the address of the gateway and for the endpoint behind it, and its own pages."""

from __future__ import annotations

import contextlib
from urllib.parse import urlsplit

from harness.model.errors import SetupError, echoed
from harness.model.hosts import is_loopback

NO_UPSTREAM = "none"
COUNTERS_PATH = "/-/truth"
METRICS_PATH = "/-/metrics"


def check_upstream(upstream: str) -> None:
    """Check the URL of the endpoint behind; a `SetupError` does not repeat it: it may be secret."""
    if upstream == NO_UPSTREAM:
        return
    with contextlib.suppress(ValueError):
        parts = urlsplit(upstream)
        extra = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not extra:
            return
    raise SetupError(
        "--upstream is a scheme, a host and a port, such as http://127.0.0.1:10002, or none; the "
        "account is in the path of the client's requests"
    )


def on_this_machine(upstream: str) -> bool:
    return upstream == NO_UPSTREAM or is_loopback(urlsplit(upstream).hostname or "")


def address_of(listen: str) -> tuple[str, int]:
    """Split HOST:PORT; a `SetupError` if the text has another form."""
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
        raise SetupError(f"--listen {echoed(listen)} is not of the form 127.0.0.1:10102")
    return host, int(port)
