"""The same-origin check of the web UI, for all routes, Locust's included.

A request must name this listener (Host), and no other web page may have sent it (Origin,
Sec-Fetch-Site). A request without Origin and Sec-Fetch-Site is not from a browser or only reads:
every browser since 2020 sends Origin with requests that can change something, and no GET route of
Locust changes anything. No response allows another origin to read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from locust.web import WebUI
from werkzeug.wrappers import Response

from harness.model.errors import SetupError
from harness.model.hosts import OwnHosts, host_of

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

STRANGE_HOST = (
    "The Host of this request is not a name of this page. If it should be, restart Locust with "
    "--web-allowed-host NAME.\n"
)
FOREIGN_ORIGIN = (
    "Another web page made this request. If a reverse proxy changed its Host on the way, let the "
    "proxy pass the Host on.\n"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class SameOrigin:
    """WSGI middleware that refuses requests of other pages, and those to hosts not in ``hosts``."""

    def __init__(self, application: WSGIApplication, hosts: OwnHosts) -> None:
        self._application = application
        self._hosts = hosts

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        application = self._application
        if not self._hosts.allow(environ.get("HTTP_HOST", "")):
            application = Response(STRANGE_HOST, 403)
        elif _foreign(environ):
            application = Response(FOREIGN_ORIGIN, 403)

        def start(status, headers, exc_info=None):  # type: ignore[no-untyped-def]
            # Locust's own headers allow every origin to read.
            kept = [
                (name, value)
                for name, value in headers
                if not name.lower().startswith("access-control-")
            ]
            # Another page must not show this one in a frame (clickjacking).
            kept.append(("X-Frame-Options", "SAMEORIGIN"))
            return start_response(status, kept, exc_info)

        return application(environ, start)


def own_hosts(listening: str, named: Iterable[str]) -> OwnHosts:
    """Return the accepted hosts of the web UI; a `SetupError` names a value that is not a host.

    ``listening`` is Locust's ``--web-host``; each of ``named`` has one or several names.
    """
    names = (name.strip() for text in named for name in text.split(","))
    try:
        return OwnHosts(listening, filter(None, names))
    except ValueError as error:
        raise SetupError(f"--web-allowed-host: {str(error)!r} is not a host") from None


def stand_before(web_ui: WebUI, hosts: OwnHosts) -> None:
    """Put `SameOrigin` before the application of the web UI."""
    web_ui.app.wsgi_app = SameOrigin(web_ui.app.wsgi_app, hosts)


def _foreign(environ: WSGIEnvironment) -> bool:
    """Whether another web page sent the request. Following a link to this page is allowed."""
    origin = environ.get("HTTP_ORIGIN")
    if origin is not None and not _same(origin, environ["HTTP_HOST"]):
        return True
    if environ.get("HTTP_SEC_FETCH_SITE", "none") in ("same-origin", "none"):
        return False
    followed = (
        environ.get("HTTP_SEC_FETCH_MODE") == "navigate"
        and environ.get("HTTP_SEC_FETCH_DEST") == "document"
    )
    return not (followed and environ["REQUEST_METHOD"] in ("GET", "HEAD"))


def _same(origin: str, host: str) -> bool:
    """Whether an Origin belongs to a Host, which omits the default port of the scheme."""
    try:
        page, asked = urlsplit(origin), urlsplit(f"//{host}")
        default = _DEFAULT_PORTS.get(page.scheme)
        ports = (page.port or default, asked.port or default)
    except ValueError:
        return False
    return default is not None and ports[0] == ports[1] and host_of(page.netloc) == host_of(host)
