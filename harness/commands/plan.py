"""``harness plan``: what a run would do and cost, without sending anything."""

from __future__ import annotations

import argparse
import re

from harness.commands.command import profile_of, profile_options, terminal_page
from harness.model.errors import SetupError, echoed
from harness.model.target import EndpointKind
from harness.profile.build.plan import plan_of
from harness.report.terminal.plan import plan_text

_KINDS = (EndpointKind.STORAGE, EndpointKind.AZURITE)
_TIME = re.compile(r"(?:(\d{1,12})h)?(?:(\d{1,12})m)?(?:(\d{1,12})s?)?")


class PlanRun:
    name = "plan"
    help = "show what a run would do and cost, without sending anything"
    description = (
        "Shows the tables, loaded entities, duration, operations by kind, billable transactions "
        "and bytes of a run, reads and writes apart. Nothing is sent, and no credentials are "
        "needed."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        profile_options(parser)
        parser.add_argument("-u", "--users", type=int, metavar="N", help="number of users")
        parser.add_argument(
            "-t",
            "--run-time",
            metavar="T",
            help="run time: 90, 90s, 5m, 1h30m; for a search, its time limit",
        )
        parser.add_argument(
            "--host-kind",
            choices=[str(kind) for kind in _KINDS],
            default=str(EndpointKind.STORAGE),
            help="endpoint: an account, or the embedded emulator (default: %(default)s)",
        )

    def run(self, args: argparse.Namespace) -> int:
        overrides = []
        if args.users is not None:
            overrides.append(f"load.users={args.users}")
        run_time_s = None if args.run_time is None else _seconds(args.run_time)
        named = profile_of(args, tuple(overrides), run_time_s)
        plan = plan_of(named.profile, EndpointKind(args.host_kind))
        print(plan_text(named.name, named.profile.question, plan, terminal_page()))
        return 0


def _seconds(text: str) -> int:
    """The seconds of a duration in Locust's notation."""
    found = _TIME.fullmatch(text)
    if found is None or not text:
        raise SetupError(f"-t {echoed(text)} is not a duration; write 90, 90s, 5m or 1h30m")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds
