"""``harness profiles``, ``check`` and ``plan``: what a profile says, without sending anything."""

from __future__ import annotations

import argparse
import json
import re
import sys

from harness.model.errors import SetupError, echoed
from harness.model.target import EndpointKind
from harness.profile.build.plan import plan_of
from harness.profile.checks.checklist import findings_of, of_severity
from harness.profile.checks.observed import observe
from harness.profile.checks.practice import Severity
from harness.profile.profile_loader import NamedProfile, resolve, shipped_directory, shipped_names
from harness.profile.settings.schema import Profile
from harness.report.terminal.checklist import check_json, check_text
from harness.report.terminal.page import Page
from harness.report.terminal.plan import plan_text

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MOST_WIDTH = 110
_VIOLATED = 1
_KINDS = [str(EndpointKind.STORAGE), str(EndpointKind.AZURITE)]
_TIME = re.compile(r"(?:(\d{1,12})h)?(?:(\d{1,12})m)?(?:(\d{1,12})s?)?")


class Profiles:
    """A profile is a TOML file that sets what is sent, to which keys, how fast and for how long.

    `harness run NAME` runs it. To write your own, save a shipped one with `harness profiles NAME >
    mine.toml`, change it, and start it with `harness run mine.toml`.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", metavar="NAME", help="print the file of this profile"
        )
        parser.add_argument(
            "--schema",
            action="store_true",
            help="print a JSON Schema of profiles, for completion in editors",
        )

    def run(self, args: argparse.Namespace) -> int:
        names = shipped_names()
        if args.schema:
            if args.name is not None:
                raise SetupError("--schema describes all profiles: leave NAME out")
            schema = Profile.model_json_schema()
            # The question is usually the comment in the first line.
            schema["required"] = [name for name in schema["required"] if name != "question"]
            print(json.dumps({"$schema": _DIALECT, **schema}, indent=1))
        elif args.name is None:
            width = max(len(name) for name in names)
            for name in names:
                question = resolve(name).profile.question
                print(f"{name:{width}}  {question}")
        elif args.name in names:
            print((shipped_directory() / f"{args.name}.toml").read_text(encoding="utf-8"), end="")
        else:
            raise SetupError(
                f"there is no profile {echoed(args.name)}; the profiles are: {', '.join(names)}"
            )
        return 0


class Check:
    """Compares a profile with the performance checklist and the key design practices.

    Nothing is sent. Each finding names the document and the section; where documents disagree, it
    names both. The prediction gives the share of the load of the hottest partition and of the
    hottest range of keys, and the total rate at which the hottest partition reaches its target.
    Exit codes: 1 with --strict if a practice is violated, 2 for bad input, else 0.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        _profile_options(parser)
        parser.add_argument(
            "--strict", action="store_true", help="exit with 1 if a practice is violated"
        )
        parser.add_argument(
            "--format",
            choices=("text", "json"),
            default="text",
            help="output format (default: %(default)s)",
        )

    def run(self, args: argparse.Namespace) -> int:
        named = _profile_of(args)
        seen = observe(named.profile)
        findings = findings_of(seen)
        about = (named.name, named.profile.question, seen.prediction, findings)
        page = Page.of_terminal(sys.stdout, _MOST_WIDTH)
        print(check_json(*about) if args.format == "json" else check_text(*about, page))
        return _VIOLATED if args.strict and of_severity(findings, Severity.OFFENDS) else 0


class PlanRun:
    """Shows the tables, loaded entities, duration, operations, billable transactions and bytes.

    Reads and writes are shown apart. Nothing is sent, and no credentials are needed.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        _profile_options(parser)
        parser.add_argument("-u", "--users", type=int, metavar="N", help="number of users")
        parser.add_argument(
            "-t",
            "--run-time",
            metavar="T",
            help="run time: 90, 90s, 5m, 1h30m; for a search, its time limit",
        )
        parser.add_argument(
            "--host-kind",
            choices=_KINDS,
            default=_KINDS[0],
            help="endpoint: an account, or the embedded emulator (default: %(default)s)",
        )

    def run(self, args: argparse.Namespace) -> int:
        if args.users is not None:
            args.overrides.append(f"load.users={args.users}")
        named = _profile_of(args, None if args.run_time is None else _seconds(args.run_time))
        plan = plan_of(named.profile, EndpointKind(args.host_kind))
        page = Page.of_terminal(sys.stdout, _MOST_WIDTH)
        print(plan_text(named.name, named.profile.question, plan, page))
        return 0


def _profile_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="a shipped profile, or a TOML file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        dest="overrides",
        help="override one value, such as keys.partitions=20; can be repeated",
    )


def _profile_of(args: argparse.Namespace, run_time_s: int | None = None) -> NamedProfile:
    return resolve(args.profile, args.overrides, run_time_s=run_time_s)


def _seconds(text: str) -> int:
    """The seconds of a duration in Locust's notation."""
    found = _TIME.fullmatch(text)
    if found is None or not text:
        raise SetupError(f"-t {echoed(text)} is not a duration; write 90, 90s, 5m or 1h30m")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds
