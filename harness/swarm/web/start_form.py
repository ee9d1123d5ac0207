"""The start form of Locust's web UI: what it offers, and the check of a start, which gives errors.

The form can change neither the host nor the consent to load it, and takes only shipped profiles.
It names a profile by its label, the name with its question. Only the name counts.
"""

from __future__ import annotations

from collections.abc import Callable

from flask import Response, jsonify, request
from locust.env import Environment
from locust.util.timespan import parse_timespan
from locust.web import WebUI

from harness.endpoint.accounts import Accounts
from harness.gateway.limits import shipped_limits
from harness.model.errors import SetupError, echoed
from harness.model.figures import counted
from harness.profile.profile_loader import NamedProfile, shipped_questions
from harness.swarm.command_line import RunRequest
from harness.swarm.master.conductor import Conductor

THROTTLING = "simulated throttling"
"""The form's field; Locust shows its name."""
NO_THROTTLING = "off"
_QUESTION = " — "
_FROM_FILE = "as started"
STYLE = """
form .MuiAccordion-root .MuiCollapse-root {
  height: auto !important; min-height: 0 !important; visibility: visible !important;
}
form .MuiAccordionSummary-expandIconWrapper { display: none }
form input[name=host] { opacity: 0.6; cursor: default }
"""
"""Both folded parts of the form are open: profile and throttling are what a run is about."""
SCRIPT = """
new MutationObserver(() => {
  const host = document.querySelector("form input[name=host]");
  if (host) Object.assign(host, { readOnly: true, title: "Restart Locust with -H for another" });
}).observe(document, { childList: true, subtree: true });
"""
"""The host of the form cannot be edited; Locust's page makes the form anew for each run."""
_VIEW = "locust.swarm"
_STOP_VIEW = "locust.stop"
_MOST_DIGITS = 18
FORM_FIELDS = frozenset(
    (
        *("user_count", "spawn_rate", "run_time", "profile", THROTTLING),
        *("host", "user_classes", "shape_class"),
    )
)
"""Fields that a start form may set. Everything else comes from the command line."""


def label_of(name: str, question: str) -> str:
    return f"{name}{_QUESTION}{question}"


def profile_in(label: str) -> str:
    """The name of a profile in its label; a name alone stays as it is."""
    return label.partition(_QUESTION)[0].strip()


def labels() -> list[str]:
    return [label_of(name, question) for name, question in shipped_questions().items()]


def throttling_in(form: str, started_with: str | None) -> str | None:
    """The limits that a form asks for; those of the command line where it names none.

    A `SetupError` refuses what is not shipped: a form must not name files of this machine.
    """
    if form in ("", _FROM_FILE):
        return started_with
    if form == NO_THROTTLING:
        return None
    if form not in (names := shipped_limits()):
        raise SetupError(f"only shipped limits can be chosen here: {', '.join(names)}")
    return form


def offer(
    web_ui: WebUI, chosen: str, named: NamedProfile, *, throttling: str | None, embedded: bool
) -> None:
    """Show the choices in the form, and what the command line has chosen.

    Args:
        chosen: The value of ``--profile``, a name or a file; ``named`` is that profile.
        embedded: Whether the embedded Azurite is the endpoint: a gateway stands only before that.
    """
    environment = web_ui.environment
    environment.profile = label_of(chosen, named.profile.question)
    update = web_ui.update_template_args
    limits = [NO_THROTTLING, *shipped_limits()]
    default = throttling or NO_THROTTLING
    if default not in limits:
        # A file can be named on the command line only.
        default = _FROM_FILE
        limits.insert(0, default)

    def update_with_choices() -> None:
        update()
        web_ui.template_args["all_profiles"] = labels()
        if embedded:
            options = {THROTTLING: {"default_value": default, "choices": limits}}
            web_ui.template_args["extra_options"] = options

    vars(web_ui)["update_template_args"] = update_with_choices


class Consent:
    """Limits of the web UI for an account that is billed; on this machine there are none.

    Consent is given on the command line, for the load that Locust announces there. The form cannot
    exceed it. ``chosen`` is the value of ``--profile``, and ``named`` that profile.
    """

    def __init__(self, chosen: str, named: NamedProfile, accounts: Accounts) -> None:
        self._chosen = chosen
        self._named = named
        self._accounts = accounts
        self._who = f"{accounts.described[0].upper()}{accounts.described[1:]}"

    def announcement(self) -> str | None:
        """Return what runs from the page may do; None if they are not billed."""
        if not self._accounts.remote:
            return None
        profile = self._named.profile
        limit = profile.limits.billable_transactions
        if limit is None:
            return self._without_budget()
        each = " in each account" if len(self._accounts) > 1 else ""
        budget = f"{counted(limit, 'billable transaction')}{each}"
        return (
            f"{self._who}: each run from the page is one of "
            f"{self._named.name} with {counted(profile.load.users, 'user')} at most, takes "
            f"{profile.load_model.window_s:,} s at most, and may make up to {budget} "
            "(limits.billable_transactions)"
        )

    def problem(self, values: RunRequest, *, starts: bool) -> str | None:
        """Why a start, or a change of a run, exceeds the consent; None if it does not."""
        if not self._accounts.remote:
            return None
        profile = self._named.profile
        if starts and profile.limits.billable_transactions is None:
            return self._without_budget()
        if values.profile not in ("", self._chosen):
            return f"{self._given_for(f'the profile {self._chosen}')} another --profile"
        for most, value, unit, option in (
            (profile.load.users, values.users, "users", "-u"),
            (profile.load.spawn_rate_per_s, values.spawn_rate_per_s, "new users a second", "-r"),
            (profile.load_model.window_s, values.run_time_s, "seconds", "-t"),
        ):
            # `not <=` in place of `>`, so that NaN is refused.
            if value is not None and not value <= most:
                return f"{self._given_for(f'{most:,.10g} {unit} at most')} {option}"
        return None

    def _without_budget(self) -> str:
        return (
            f"{self._who}: no run can be started from the page, because "
            f"{self._named.name} has no budget of billable transactions; restart Locust with "
            "--set limits.billable_transactions=N"
        )

    def _given_for(self, what: str) -> str:
        return (
            f"the consent to load the {self._accounts.described} was given for {what}; for "
            "more, restart Locust with"
        )


def wrap_start(
    environment: Environment,
    web_ui: WebUI,
    conductor: Conductor,
    consent: Consent,
    prepare: Callable[[RunRequest], None],
) -> None:
    """Check a start from the form before Locust begins it; in a run it changes only the users.

    ``prepare`` prepares a run, and raises a `SetupError` if the run is not possible.
    """
    start = web_ui.app.view_functions[_VIEW]
    # Browsers may still show the address that another gateway had.
    hosts = {environment.host}

    def problem_of_start(host: str | None) -> str | None:
        run = conductor.run
        running = run.plan.profile_name if run is not None and conductor.busy else None
        problem = conductor.unready or _form_problem(host, hosts)
        if problem is not None:
            return problem
        if running is not None and profile_in(request.form.get("profile", "")) not in ("", running):
            return f"a run of {running} goes on; stop it before another one begins"
        try:
            values = _form_values(environment.parsed_options.throttling)
            problem = consent.problem(values, starts=running is None)
            if problem is None and running is None:
                prepare(values)
        except SetupError as error:
            return str(error)
        return problem

    def checked_start() -> Response:
        host = environment.host
        if (problem := problem_of_start(host)) is not None:
            return jsonify({"success": False, "message": problem, "host": host})
        # The gateway that was chosen has an address of its own.
        host = environment.host
        hosts.add(host)
        response: Response = start()
        environment.host = host
        # The harness has a timer of its own, without loading and settling.
        web_ui._cancel_run_time_timer()
        return response

    web_ui.app.view_functions[_VIEW] = web_ui.auth_required_if_enabled(checked_start)


def wrap_stop(web_ui: WebUI, stop_preparing: Callable[[], None]) -> None:
    """Let Stop also end a start that is still being checked: Locust has no run to stop yet."""
    stop = web_ui.app.view_functions[_STOP_VIEW]

    def stop_all() -> Response:
        stop_preparing()
        response: Response = stop()
        return response

    web_ui.app.view_functions[_STOP_VIEW] = web_ui.auth_required_if_enabled(stop_all)


def _form_problem(host: str | None, hosts: set[str | None]) -> str | None:
    unknown = sorted(set(request.form) - FORM_FIELDS)
    if unknown:
        return f"{', '.join(unknown)} cannot be set from the form; restart Locust with the option"
    posted = request.form.get("host", "")
    if posted and posted.rstrip("/") not in {(one or "").rstrip("/") for one in hosts}:
        return (
            f"the host is {host} and cannot be changed from the form; restart Locust with -H to "
            "stress another"
        )
    users = request.form.get("user_count", "1")
    if not users.strip().isdecimal() or len(users) > _MOST_DIGITS:
        return f"the number of users {echoed(users)} is not a whole number"
    if int(users) < 1:
        return "a run needs at least one user"
    return None


def _form_values(throttling: str | None) -> RunRequest:
    form = request.form
    return RunRequest(
        profile=profile_in(form.get("profile", "")),
        throttling=throttling_in(form.get(THROTTLING, ""), throttling),
        run_time_s=_run_time_s(),
        users=form.get("user_count", type=int),
        spawn_rate_per_s=form.get("spawn_rate", type=float),
    )


def _run_time_s() -> int | None:
    text = request.form.get("run_time", "")
    if not text:
        return None
    try:
        return int(parse_timespan(text))
    except (ValueError, OverflowError):
        raise SetupError(
            f"the run time {echoed(text)} is not of the form 20, 20s, 3m, 2h or 1h20m"
        ) from None
