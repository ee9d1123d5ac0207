"""Who may use the web UI: the login with ``--web-login``, and the same-origin check of all routes.

The login is one password, from the environment. A locustfile may set up a login of its own instead,
as Locust documents it.

A request must name this listener (Host), and no other web page may have sent it (Origin,
Sec-Fetch-Site). A request without Origin and Sec-Fetch-Site is not from a browser or only reads:
every browser since 2020 sends Origin with requests that can change something, and no GET route of
Locust changes anything. No response allows another origin to read it.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import gevent
from flask import redirect, request, session, url_for
from flask_login import UserMixin, login_user
from locust.web import WebUI
from werkzeug.wrappers import Response

from harness.endpoint.address import DEFAULT_PORTS
from harness.model.errors import SetupError
from harness.model.hosts import OwnHosts, host_of
from harness.options import WEB_PASSWORD

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

NO_LOGIN = (
    f"--web-login needs a password: set {WEB_PASSWORD} in the environment, or set up a login of "
    "Locust in your locustfile"
)
_WRONG = "That is not the password."
_DELAY_S = 1.0
"""A wrong password is answered this late, so that guessing takes long."""
_SECRET_BYTES = 32
STRANGE_HOST = (
    "The Host of this request is not a name of this page. If it should be, restart Locust with "
    "--web-allowed-host NAME.\n"
)
FOREIGN_ORIGIN = (
    "Another web page made this request. If a reverse proxy changed its Host on the way, let the "
    "proxy pass the Host on.\n"
)


class _Operator(UserMixin):
    """The only user: anyone with the password."""

    id = "operator"


def add_login(web_ui: WebUI, base_path: str) -> None:
    """Ask for the password on every page, if there is one; a session ends with the process."""
    password = os.environ.get(WEB_PASSWORD)
    if not web_ui.web_login or not password:
        return
    app = web_ui.app
    app.secret_key = secrets.token_bytes(_SECRET_BYTES)
    app.config["SESSION_COOKIE_SAMESITE"] = "Strict"
    web_ui.login_manager.user_loader(lambda name: _Operator() if name == _Operator.id else None)
    path = f"{base_path.rstrip('/')}/stress/login"
    web_ui.auth_args = {
        "custom_form": {
            "inputs": [{"label": "Password", "name": "password", "is_secret": True}],
            "callback_url": path,
            "submit_button_text": "Log in",
        }
    }

    def log_in() -> Response:
        given = request.form.get("password", "")
        if hmac.compare_digest(given.encode(), password.encode()):
            login_user(_Operator())
            session["auth_error"] = None
            return redirect(url_for("locust.index"))
        gevent.sleep(_DELAY_S)
        session["auth_error"] = _WRONG
        return redirect(url_for("locust.login"))

    app.add_url_rule(path, "stress_login", log_in, methods=["POST"])


def lacks_login(web_ui: WebUI) -> bool:
    """Whether nobody can log in: no password is set, and the locustfile has no login."""
    return web_ui.web_login and web_ui.login_manager._user_callback is None


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
        default = DEFAULT_PORTS.get(page.scheme)
        ports = (page.port or default, asked.port or default)
    except ValueError:
        return False
    return default is not None and ports[0] == ports[1] and host_of(page.netloc) == host_of(host)
