"""What Locust's start form offers to choose from: profiles with their questions, and throttling.

A form names a profile by its label, the name with its question. Only the name counts.
"""

from __future__ import annotations

from flask import Response, request
from locust.web import WebUI

from harness.gateway.limits import shipped_limits
from harness.model.errors import SetupError
from harness.profile.profile_loader import NamedProfile, shipped_questions

THROTTLING = "throttling"
"""The form's field, and what Locust calls the option."""
NO_THROTTLING = "off"
_QUESTION = " — "
_FROM_FILE = "as started"
_OPENED = """\
<style>
form .MuiAccordion-root .MuiCollapse-root {
  height: auto !important; min-height: 0 !important; visibility: visible !important;
}
form .MuiAccordionSummary-expandIconWrapper { display: none }
</style></head>"""
"""Both folded parts of the form are open: profile and throttling are what a run is about."""
_INDEX = "locust.index"


def label_of(name: str, question: str) -> str:
    return f"{name}{_QUESTION}{question}"


def profile_in(label: str) -> str:
    """The name of a profile in its label; a name alone stays as it is."""
    return label.partition(_QUESTION)[0].strip()


def labels() -> list[str]:
    """The labels of the shipped profiles."""
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
    """Show the choices in the form.

    Args:
        chosen: The profile of the command line, a name or a file; ``named`` is that profile.
        throttling: The limits of the command line.
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
            web_ui.template_args["extra_options"] = {
                THROTTLING: {
                    "default_value": default,
                    "choices": limits,
                    "help_text": "limits of a gateway before Azurite; off: none, or those of "
                    "cosmos for a profile of Cosmos DB",
                }
            }

    def with_parts_open(response: Response) -> Response:
        if request.endpoint == _INDEX and response.status_code == 200:
            page = response.get_data(as_text=True)
            response.set_data(page.replace("</head>", _OPENED, 1))
        return response

    vars(web_ui)["update_template_args"] = update_with_choices
    web_ui.app.after_request(with_parts_open)
