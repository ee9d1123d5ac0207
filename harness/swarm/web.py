"""Locust's web UI: a start is checked before it begins, and its errors go back to the form.

From the form neither the host nor the consent to load it can be changed, and only names of shipped
profiles are taken.
"""

from __future__ import annotations

from collections.abc import Callable

from flask import Response, jsonify, request
from locust.env import Environment
from locust.util.timespan import parse_timespan
from locust.web import WebUI

from harness.model.errors import SetupError

_VIEW = "locust.swarm"
FORM_FIELDS = frozenset(
    ("user_count", "spawn_rate", "run_time", "profile", "host", "user_classes", "shape_class")
)
"""What a start form may set. Everything else was decided on the command line."""


def wrap_start(
    environment: Environment,
    web_ui: WebUI,
    *,
    running: Callable[[], str | None],
    unready: Callable[[], str | None],
    prepare: Callable[[str, int | None, int | None, float | None], None],
) -> None:
    """Check a start from the form before Locust begins it.

    Args:
        environment: Locust's.
        web_ui: The page whose form it is.
        running: The profile of the run that goes on, or None; then a form only changes the number
            of users.
        unready: Why nothing can be started or changed now, or None where it can.
        prepare: Takes the profile's name, the run time in seconds, the number of users and how
            many of them come in a second, None where the form has none; raises `SetupError`
            where the run cannot be.
    """
    start = web_ui.app.view_functions[_VIEW]

    def checked_start() -> Response:
        host = environment.host
        goes_on = running()
        problem = unready() or _form_problem(host)
        if problem is None and goes_on is not None:
            problem = _other_profile(goes_on)
        elif problem is None:
            try:
                prepare(
                    request.form.get("profile", ""),
                    _run_time_s(),
                    request.form.get("user_count", type=int),
                    request.form.get("spawn_rate", type=float),
                )
            except SetupError as error:
                problem = str(error)
        if problem is not None:
            return jsonify({"success": False, "message": problem, "host": host})
        response: Response = start()
        environment.host = host
        # The harness keeps the time itself: from the end of loading and settling on.
        web_ui._cancel_run_time_timer()
        return response

    web_ui.app.view_functions[_VIEW] = web_ui.auth_required_if_enabled(checked_start)


def _form_problem(host: str | None) -> str | None:
    unknown = sorted(set(request.form) - FORM_FIELDS)
    if unknown:
        return f"{', '.join(unknown)} cannot be set from the form; restart Locust with the option"
    posted = request.form.get("host", "")
    if posted and posted.rstrip("/") != (host or "").rstrip("/"):
        return (
            f"the host is {host} and cannot be changed from the form; restart Locust with -H to "
            "stress another"
        )
    users = request.form.get("user_count", "1")
    if not users.strip().isdecimal():
        return f"the number of users {users!r} is not a whole number"
    if int(users) < 1:
        return "a run needs at least one user"
    return None


def _other_profile(running: str) -> str | None:
    """Why no run of the form's profile begins while one of ``running`` goes on."""
    if request.form.get("profile", "") in ("", running):
        return None
    return f"a run of {running} goes on; stop it before another one begins"


def _run_time_s() -> int | None:
    text = request.form.get("run_time", "")
    if not text:
        return None
    try:
        return int(parse_timespan(text))
    except ValueError:
        raise SetupError(
            f"the run time {text!r} is not of the form 20, 20s, 3m, 2h or 1h20m"
        ) from None
