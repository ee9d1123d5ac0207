"""The login of the web UI with ``--web-login``: one password, from the environment.

A locustfile may set up a login of its own instead, as Locust documents it.
"""

from __future__ import annotations

import hmac
import os
import secrets

import gevent
from flask import redirect, request, session, url_for
from flask_login import UserMixin, login_user
from locust.web import WebUI
from werkzeug.wrappers import Response

from harness.options import WEB_PASSWORD

NO_LOGIN = (
    f"--web-login needs a password: set {WEB_PASSWORD} in the environment, or set up a login of "
    "Locust in your locustfile"
)
_WRONG = "That is not the password."
_DELAY_S = 1.0
"""A wrong password is answered this late, so that guessing takes long."""
_SECRET_BYTES = 32


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
