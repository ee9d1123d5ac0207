"""The harness's own options of the `locust` command, beside Locust's."""

from __future__ import annotations

from locust.argument_parser import LocustArgumentParser

from harness.endpoint.sessions import SESSION_KINDS
from harness.swarm.redacting import REDACT_SECRET


def add_options(parser: LocustArgumentParser) -> None:
    """Add the harness's options; none of them can be set from the web form."""
    # Every listener stays on this machine unless told otherwise; a worker that is lost or joins
    # is followed; Locust's own log does not bury what the harness says.
    parser.set_defaults(
        web_host="127.0.0.1",
        master_bind_host="127.0.0.1",
        enable_rebalancing=True,
        loglevel="WARNING",
    )
    group = parser.add_argument_group(
        "Table stress harness",
        "Credentials come from the environment alone: AZURE_STORAGE_CONNECTION_STRING, or "
        "AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN. Without -H the "
        "run goes to an Azurite that is started for it, whatever the environment holds. "
        "--profile NAME chooses what is sent; `harness profiles` lists them. -u, -r and -t are "
        "taken from the profile where they are not given; -t is the time under load, of a search "
        "the most it may take (search.most_s). Stages say how long they take, and -t is refused.",
    )

    # What is added to a group is not shown in the web form.
    group.add_argument(
        "--set",
        dest="overrides",
        metavar="load.users=20",
        action="append",
        default=[],
        help="Override one value of the profile. Can be given more than once.",
    )
    group.add_argument(
        "--session",
        choices=SESSION_KINDS,
        default=None,
        help="How requests are sent: sdk (azure-data-tables on a fast transport, every retry "
        "visible), wire (the same requests without it, so that one core makes many more) or "
        "sdk-default (azure-data-tables as it comes). Default: the profile's.",
    )
    group.add_argument(
        "--remote-ok",
        metavar="ACCOUNT",
        default=None,
        help="Consent to load, and to be charged for, the account that -H names. Needed for "
        "every host that is not this machine.",
    )
    group.add_argument(
        "--throttling",
        metavar="NAME|FILE",
        default=None,
        help="Start a gateway before the embedded Azurite, which refuses what these limits would: "
        "published, demo, or a file. Default: nothing throttles.",
    )
    group.add_argument(
        "--table",
        metavar="NAME",
        default=None,
        help="Use this existing, empty table, and delete only the run's own entities at the end. "
        "Default: a table is made and deleted.",
    )
    group.add_argument(
        "--repeat",
        type=int,
        metavar="N",
        default=1,
        help="Run the profile N times, one after the other, each with a table of its own, and "
        "keep the runs in one folder for `harness compare`. Headless only. Default: %(default)s.",
    )
    group.add_argument(
        "--out",
        metavar="DIR",
        default="out",
        help="Where a run leaves its folder. Default: %(default)s.",
    )
    group.add_argument(
        "--redact-keys",
        action="store_true",
        help="Show aliases instead of PartitionKeys, which can be personal data, in everything "
        f"that a run says, serves or leaves. They are new in every run, unless {REDACT_SECRET} "
        "in the environment holds a secret, the same for runs to compare.",
    )
    group.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        default=9646,
        help="Prometheus metrics are served here; 0 serves none. Default: %(default)s.",
    )
    group.add_argument(
        "--metrics-host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="Address to serve metrics on. Default: %(default)s.",
    )
    group.add_argument(
        "--metrics-linger",
        type=float,
        metavar="SECONDS",
        default=0.0,
        help="After a headless run, keep serving metrics so long, so that the last state is "
        "scraped. Default: %(default)s.",
    )
    group.add_argument(
        "--metrics-push",
        metavar="URL",
        default=None,
        help="Push the last state to this Prometheus Pushgateway when the run has ended.",
    )
