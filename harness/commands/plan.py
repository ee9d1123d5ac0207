"""``harness plan``: what a run would do and cost, sending nothing."""

from __future__ import annotations

import argparse
import re

from harness.commands.showing import profile_of, profile_options, terminal_page
from harness.model.errors import SetupError
from harness.model.target import EndpointKind
from harness.profile.planning import plan_of
from harness.report.planned import plan_text

_KINDS = (EndpointKind.STORAGE, EndpointKind.AZURITE)
_TIME = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


class PlanRun:
    """Say what a run would do."""

    name = "plan"
    help = "what a run would do and cost, sending nothing"
    description = (
        "Says what a run of a profile would do: tables, loaded entities, duration, operations by "
        "kind, billable transactions and bytes, reads and writes apart. Nothing is sent, and no "
        "credentials are needed."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Which profile, with what a run's own options change."""
        profile_options(parser)
        parser.add_argument("-u", "--users", type=int, metavar="N", help="as of locust")
        parser.add_argument(
            "-t",
            "--run-time",
            metavar="T",
            help="as of locust: 90, 90s, 5m, 1h30m; the most that a search may take",
        )
        parser.add_argument(
            "--host-kind",
            choices=[str(kind) for kind in _KINDS],
            default=str(EndpointKind.STORAGE),
            help="who would answer: an account, or the embedded emulator (%(default)s)",
        )

    def run(self, args: argparse.Namespace) -> int:
        """Work it out; say it."""
        overrides = []
        if args.users is not None:
            overrides.append(f"load.users={args.users}")
        run_time_s = None if args.run_time is None else _seconds(args.run_time)
        named = profile_of(args, tuple(overrides), run_time_s)
        plan = plan_of(named.profile, EndpointKind(args.host_kind))
        print(plan_text(named.name, named.profile.question, plan, terminal_page()))
        return 0


def _seconds(text: str) -> int:
    """A length of time as Locust takes it.

    Raises:
        SetupError: it is none.
    """
    found = _TIME.fullmatch(text)
    if found is None or not text:
        raise SetupError(f"-t {text!r} is no length of time; write 90, 90s, 5m or 1h30m")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds
