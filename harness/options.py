"""The options that the harness adds to a run, in groups, as the help shows them.

They are declared once, for Locust's command line and for the help of ``harness run``.
"""

from __future__ import annotations

import argparse
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from harness.measure.counts.redaction import Aliases
from harness.model.auth_mode import AUTH_MODE, AUTH_MODES, KEY_MODE, VARIABLES_HELP
from harness.model.entity import MOST_PROPERTIES
from harness.model.errors import SetupError, cut
from harness.model.sessions import SESSIONS
from harness.profile.settings.parts import Session

_SESSION = Session.model_fields["kind"]
METRICS_PORT = 9646
"""The default of ``--metrics-port``, if no other run has taken it."""
PREFIX = "STRESS_"
"""The prefix of the environment variables of all options."""
PROFILE = f"{PREFIX}PROFILE"
"""The variable of ``--profile``, an option of Locust that has none."""
REDACT_SECRET = f"{PREFIX}REDACT_SECRET"
"""Environment variable with a secret that gives the same aliases in every run."""
WEB_PASSWORD = f"{PREFIX}WEB_PASSWORD"
"""Environment variable with the password of the web UI with ``--web-login``."""
_SECRET_BYTES = 32
_VARIABLES = (
    "Every option can also be set by the environment variable in brackets (--profile by "
    f"{PROFILE}; an option that can be repeated takes [A, B]) or in locust.conf; the command line "
    "comes first, locust.conf last. An empty variable counts as not set."
)
_PROPERTY = re.compile(r"[^\W\d]\w{0,254}")
_SWARM_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Joined(argparse.Action):
    """Joins the values of a repeated option with commas, as if one value named several."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        earlier = getattr(namespace, self.dest, None)
        setattr(namespace, self.dest, f"{earlier},{values}" if earlier else values)


def add_run_options(parser: argparse.ArgumentParser, *, locust: bool) -> None:
    """Add the options, in groups, which Locust does not show in its web form.

    Locust's own parser (``locust``) takes values from environment variables and from
    ``locust.conf`` too.
    """
    prefix = "Table stress harness: " if locust else ""

    def add(option: str, *, env_var: str | None = None, **named: Any) -> None:
        """Add an option to the last group, with its environment variable."""
        variable = env_var or PREFIX + option.removeprefix("--").replace("-", "_").upper()
        named["help"] = f"{named['help']} [{variable}]"
        if locust:
            named["env_var"] = variable
        group.add_argument(option, **named)

    group = parser.add_argument_group(
        f"{prefix}what is sent",
        "--profile NAME|FILE chooses the profile. The number of users (-u), the spawn rate (-r) "
        "and the run time (-t) come from the profile unless they are given here. -t is the time "
        "under load; for a search it is the time limit. Profiles with stages set their own time "
        f"and refuse -t. {_VARIABLES}",
    )
    add(
        "--set",
        dest="overrides",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help="Override one value of the profile, such as load.users=20. Can be repeated.",
    )
    add(
        "--session",
        choices=tuple(SESSIONS),
        help=f"HTTP client. {_SESSION.description} Default: the profile's.",
    )
    add(
        "--repeat",
        type=int,
        metavar="N",
        default=1,
        help="Run the profile N times in a row, each with its own table, and keep all runs in one "
        "folder for `harness compare`. Headless only. Default: %(default)s.",
    )

    group = parser.add_argument_group(
        f"{prefix}endpoint",
        "-H URL is the endpoint. Without it the run starts an embedded Azurite, whatever "
        f"credentials are set. Keys come from the environment only: {VARIABLES_HELP}. "
        "-H can be repeated: the partitions are spread over the accounts, and the variables of "
        "each end in its name, such as AZURE_STORAGE_KEY_MYACCOUNT. With "
        "--auth-mode login the run uses a login of Microsoft Entra ID in place of keys.",
    )
    add(
        "--auth-mode",
        env_var=AUTH_MODE,
        choices=AUTH_MODES,
        help="key: the keys or SAS in the environment. login: the login in the environment "
        "(AZURE_CLIENT_ID and others), of a workload or managed identity, or of Azure CLI "
        "(`az login`); it needs https and a role for data of the service, such as Storage Table "
        "Data Contributor, and ignores keys. Each worker needs its own. Default: key.",
    )
    add(
        "--remote-ok",
        metavar="ACCOUNT",
        action=Joined,
        help="Confirm that ACCOUNT, the account in the host name, may be loaded and billed. "
        "Required for every host that is not this machine; several accounts are separated by "
        "commas. Can be repeated. With a login, a host that is not Azure's is named itself.",
    )
    add(
        "--table",
        metavar="NAME",
        help="Use this existing, empty table and delete only the run's own entities at the end. "
        "Default: the run creates a table and deletes it.",
    )
    add(
        "--throttling",
        metavar="NAME|FILE",
        help="Put a gateway in front of the embedded Azurite, to throttle by these limits: "
        "published, demo, ramping, none, cosmos or cosmos-demo (a stand-in for Azure Cosmos DB), "
        "or a file. Default: no throttling, or cosmos if the profile sets "
        "endpoint.provisioned_ru_per_s.",
    )

    group = parser.add_argument_group(f"{prefix}output")
    add(
        "--quiet",
        action="store_true",
        help="Print only the result: whether the conditions hold, the verdict, the record and the "
        "exit code. Errors, the possible cost of a run, and what it left behind are still shown.",
    )
    add(
        "--summary",
        choices=("compact", "full", "json"),
        default="compact",
        help="What to print at the end: the result with the hottest partitions; every figure of "
        "the record and Locust's own tables, which `harness report --text RUN` prints later; or "
        "one JSON object, alone on standard output: `harness schema run`. Default: %(default)s.",
    )
    add(
        "--stream",
        metavar="FILE",
        help="Write a JSON object a line to this file for each second of the load, about three "
        "seconds later: `harness schema stream`. Further runs get a number, as with --trace.",
    )
    add(
        "--trace",
        metavar="FOLDER",
        help="Record every operation, without contents, in this new folder on the master; further "
        "runs of the same process get a number before the ending. `harness trace` shows it.",
    )
    add_output_options(add)
    add(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="Port for Prometheus metrics; 0 turns them off. Default: "
        f"{METRICS_PORT}, or the next free port.",
    )
    add(
        "--metrics-linger",
        type=float,
        metavar="SECONDS",
        default=0.0,
        help="Keep serving metrics for this time after a headless run, so that Prometheus scrapes "
        "the last state. Default: %(default)s.",
    )

    group = parser.add_argument_group(f"{prefix}web UI and workers")
    add(
        "--web-allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="Accept requests to the web UI under this host name too, for example behind a reverse "
        "proxy. Several names are separated by commas; can be repeated. The address of "
        "--web-host, localhost and loopback addresses are always accepted; with --web-host "
        "0.0.0.0 every IP address is.",
        env_var="LOCUST_WEB_ALLOWED_HOST",
    )
    add(
        "--swarm",
        metavar="NAME",
        type=swarm_name,
        help="Accept only workers that were started with the same name. Default: none; with "
        "--processes a random name, so that no other worker can join.",
    )


def add_output_options(add: Callable[..., object]) -> None:
    """Add the options that runs and watches have in common, each by a call of ``add``."""
    add(
        "--trace-properties",
        metavar="NAMES",
        action=Joined,
        help="With --trace: record the values of these properties too, of written entities and of "
        "filters that compare them by eq; separated by commas. Can be repeated. Default: none.",
    )
    add(
        "--out",
        metavar="DIR",
        default="out",
        help="Folder for the results; each run gets its own folder in it. Default: %(default)s.",
    )
    add(
        "--redact-keys",
        action="store_true",
        help="Replace PartitionKeys, which can be personal data, with aliases in all output. "
        "Aliases differ from run to run unless STRESS_REDACT_SECRET in the environment holds a "
        "secret.",
    )
    add(
        "--keep-prefixes",
        action="store_true",
        help="With --redact-keys: replace each word of a key separately, so that keys with a "
        "common beginning, such as a date, have aliases with a common beginning.",
    )
    add(
        "--metrics-host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="Address on which metrics are served. Default: %(default)s.",
    )
    add(
        "--metrics-push",
        metavar="URL",
        help="Push the last state to this Prometheus Pushgateway at the end.",
    )
    add(
        "--otlp",
        metavar="URL",
        help="Send the metrics to this OpenTelemetry receiver too, by OTLP over HTTP, every 5 s "
        "and at the end. Needs the extra otlp.",
    )


def add_endpoint_options(
    parser: argparse.ArgumentParser, host: str, billed: str = "", *, required: bool = True
) -> None:
    """Add the options of commands that send a few requests to an endpoint.

    ``host`` is the help of ``--host``; that of ``--remote-ok`` ends with what is ``billed``.
    """
    parser.add_argument("-H", "--host", required=required, metavar="URL", action=Joined, help=host)
    parser.add_argument(
        "--remote-ok",
        metavar="ACCOUNT",
        action=Joined,
        help=f"confirm that ACCOUNT, the account in the host name, may be billed{billed}",
    )
    parser.add_argument(
        "--auth-mode",
        choices=AUTH_MODES,
        help="key: the keys or SAS in the environment; login: a login of Microsoft Entra ID "
        f"(default: {AUTH_MODE}, else {KEY_MODE})",
    )


def swarm_name(text: str) -> str:
    """Validate the value of ``--swarm``; an `argparse.ArgumentTypeError` if it is invalid."""
    if _SWARM_NAME.fullmatch(text) is None:
        raise argparse.ArgumentTypeError("a name has 1 to 64 letters, digits, dots, - or _")
    return text


def traced_properties(options: argparse.Namespace) -> tuple[str, ...]:
    """The properties that ``--trace-properties`` names; a `SetupError` if they are invalid."""
    given = options.trace_properties or ""
    names = tuple(filter(None, (name.strip() for name in given.split(","))))
    if names and options.trace is None:
        raise SetupError("--trace-properties needs --trace, which records them")
    for name in names:
        if name in ("PartitionKey", "RowKey") or _PROPERTY.fullmatch(name) is None:
            raise SetupError(
                f"--trace-properties {cut(name)}: a property has a name of letters, digits and _, "
                "and is not a key"
            )
    if len(names) > MOST_PROPERTIES or len({name.lower() for name in names}) < len(names):
        raise SetupError(
            f"--trace-properties names at most {MOST_PROPERTIES} properties, each once; capital "
            "letters make no difference"
        )
    return names


def aliases_from(environ: Mapping[str, str], options: argparse.Namespace) -> Aliases | None:
    """The aliases that ``--redact-keys`` asks for; None if keys are shown.

    They are made with the secret in the environment, or a random one. A `SetupError` says that keys
    would be shown although an option says what their aliases keep.
    """
    if not options.redact_keys:
        if options.keep_prefixes:
            raise SetupError("--keep-prefixes needs --redact-keys: without it keys are shown")
        return None
    secret = environ.get(REDACT_SECRET)
    return Aliases(
        secret.encode() if secret else secrets.token_bytes(_SECRET_BYTES),
        prefixes=options.keep_prefixes,
    )
