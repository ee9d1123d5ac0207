"""``harness profiles``, ``check`` and ``plan``: what a profile says, without sending anything."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.commands.common import ONE_OBJECT, Progress, duration
from harness.commands.records import read_record, record_files
from harness.endpoint.address import address_of, kind_and_account
from harness.endpoint.sessions import require_sendable
from harness.measure.record.findings import RecordPart
from harness.model.errors import SetupError
from harness.model.services import (
    SERVICES,
    server_of_session,
    service_named,
    service_of,
    service_of_session,
    service_provisioned,
)
from harness.model.services.service import Service
from harness.profile.build.plan import plan_of
from harness.profile.build.workload import read_trace, settings_problem
from harness.profile.checks.key_lists import read_keys
from harness.profile.checks.observed import Observed, observe
from harness.profile.checks.recorded import seen_in
from harness.profile.designs import GROUPS, group_of, question_of
from harness.profile.practices.checklist import findings_of, of_severity
from harness.profile.practices.practice import Severity
from harness.profile.profile_loader import (
    NamedProfile,
    resolve,
    shipped_directory,
    shipped_names,
    unknown_profile,
)
from harness.profile.settings.schema import Profile
from harness.report.export.output import CommandOutput
from harness.report.terminal.checklist import Checked, check_json, check_text, facts_of
from harness.report.terminal.page import Page
from harness.report.terminal.plan import plan_json, plan_text
from harness.trace.replay.preparation import Preparation

_MOST_WIDTH = 110
_VIOLATED = 1
_KINDS = [str(kind) for kind in SERVICES if kind.selectable]


class Profiles:
    """A profile is a TOML file that sets what is sent, to which keys, how fast and for how long.

    `harness run NAME` runs it. To write your own, save a shipped one with `harness profiles NAME >
    mine.toml`, change it, and start it with `harness run mine.toml`.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", metavar="NAME", help="print the file of this profile"
        )
        parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format("profiles"))

    def run(self, args: argparse.Namespace) -> int:
        if args.name is not None and args.name not in shipped_names():
            raise unknown_profile(args.name)
        names = shipped_names() if args.name is None else [args.name]
        parts = tuple(map(_profile_part, names))
        if args.json:
            print(ProfilesOutput(profiles=parts).to_json(), end="")
        elif args.name is None:
            print(_listed(parts))
        else:
            print(parts[0].toml, end="")
        return 0


class ProfilePart(RecordPart):
    """A shipped profile: the question that it answers, and its file."""

    name: str
    group: str
    question: str
    toml: str


class ProfilesOutput(CommandOutput):
    """The shipped profiles, or the one that was named."""

    profiles: tuple[ProfilePart, ...]


def _profile_part(name: str) -> ProfilePart:
    text = (shipped_directory() / f"{name}.toml").read_text(encoding="utf-8")
    return ProfilePart(name=name, group=group_of(text), question=question_of(text), toml=text)


def _listed(profiles: Sequence[ProfilePart]) -> str:
    """The profiles with their questions, by group."""
    width = max(len(part.name) for part in profiles)
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for part in profiles:
        groups[part.group].append(f"  {part.name:{width}}  {part.question}")
    return "\n\n".join("\n".join([group, *lines]) for group, lines in groups.items())


class Check:
    """Compares a profile, a run, or keys, with the performance checklist and key design practices.

    Nothing is sent. Each finding names the document and the section, or both documents if they
    disagree. For a profile, the operations that it would send are compared. A prediction gives the
    share of the load of the hottest partition and of the hottest range of keys, and the total rate
    at which the hottest partition reaches its target. For Cosmos DB the prediction is in request
    units, and includes the hottest physical partition. With --record, the operations that a run did
    send are compared; records of `harness watch` have the most details. With --keys, keys alone are
    compared: a CSV file with the columns PartitionKey and RowKey, a list of PartitionKeys, one a
    line, or recorded traffic. Exit codes: 1 with --strict
    if a practice is violated, 2 for bad input, else 0.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        _profile_options(parser, optional=True)
        _kind_option(parser)
        parser.add_argument(
            "--record",
            metavar="RUN",
            type=Path,
            help="compare what this run sent, instead of a profile: a run.json, or its folder",
        )
        parser.add_argument(
            "--keys",
            metavar="FILE",
            help="compare the keys in this file, instead of a profile; - is standard input",
        )
        parser.add_argument(
            "--strict", action="store_true", help="exit with 1 if a practice is violated"
        )
        parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format("check"))

    def run(self, args: argparse.Namespace) -> int:
        if args.keys is not None:
            checked = _checked_keys(args)
        else:
            checked = _checked_run(args) if args.record is not None else _checked_profile(args)
        findings = findings_of(checked.seen)
        if args.json:
            print(check_json(checked, findings), end="")
        else:
            print(check_text(checked, findings, Page.of_terminal(sys.stdout, _MOST_WIDTH)))
        return _VIOLATED if args.strict and of_severity(findings, Severity.OFFENDS) else 0


def _checked_profile(args: argparse.Namespace) -> Checked:
    if args.profile is None:
        raise SetupError("name a profile, a run with --record, or a file of keys with --keys")
    named, preparation = read_trace(
        resolve(args.profile, args.overrides), Progress("reading the trace")
    )
    kind = _kind_of(args, named.profile)
    seen = _observed(named, kind, preparation).seen()
    return Checked(name=named.name, question=named.profile.question, seen=seen)


def _observed(named: NamedProfile, kind: Service, preparation: Preparation | None) -> Observed:
    """What a run of the profile would send; a `SetupError` if its session cannot."""
    observed = observe(named.profile, kind=kind, preparation=preparation)
    session = named.profile.session.kind
    problem = settings_problem(named.profile, service_of_session(session))
    require_sendable(named.name, session, problem, (sent.example for sent in observed.sent))
    return observed


def _checked_keys(args: argparse.Namespace) -> Checked:
    if args.profile or args.record or args.overrides or args.host_kind:
        raise SetupError(
            "--keys compares keys alone: leave PROFILE, --record, --set and --host-kind out"
        )
    path = None if args.keys == "-" else Path(args.keys)
    keys = read_keys(path, sys.stdin.buffer, Progress("reading the keys"))
    return Checked(name=keys.source, question="", seen=keys.seen(), keys=keys)


def _checked_run(args: argparse.Namespace) -> Checked:
    if args.profile is not None or args.overrides or args.host_kind is not None:
        raise SetupError(
            "--record compares what a run sent, to the endpoint that it had: leave PROFILE, --set "
            "and --host-kind out"
        )
    files = record_files(args.record)
    if len(files) > 1:
        raise SetupError(f"{args.record} holds {len(files)} runs: name one of them")
    record = read_record(files[0])
    question = record.profile.get("question")
    return Checked(
        name=record.run_id,
        question=question if isinstance(question, str) else "",
        seen=seen_in(record),
        facts=facts_of(record),
    )


class PlanRun:
    """Shows the tables, loaded entities, duration, operations, cost and bytes of a run.

    The cost is in billable transactions; reads and writes are listed separately. Nothing is sent,
    and no credentials are needed.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        _profile_options(parser)
        parser.add_argument("-u", "--users", type=int, metavar="N", help="number of users")
        parser.add_argument(
            "-t",
            "--run-time",
            metavar="T",
            type=duration,
            help="run time: 90, 90s, 5m, 1h30m; for a search, its time limit",
        )
        _kind_option(parser)
        parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format("plan"))

    def run(self, args: argparse.Namespace) -> int:
        if args.users is not None:
            args.overrides.append(f"load.users={args.users}")
        named = resolve(args.profile, args.overrides, run_time_s=args.run_time)
        named, preparation = read_trace(named, Progress("reading the trace"))
        kind = _kind_of(args, named.profile)
        observed = _observed(named, kind, preparation)
        plan = plan_of(named.profile, kind, observed)
        said = named.name, named.profile.question, plan
        if args.json:
            print(plan_json(*said), end="")
        else:
            print(plan_text(*said, Page.of_terminal(sys.stdout, _MOST_WIDTH)))
        return 0


def _profile_options(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    parser.add_argument(
        "profile",
        nargs="?" if optional else None,
        metavar="PROFILE",
        help="a shipped profile, or a TOML file",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        dest="overrides",
        help="override one value, such as load.users=20; can be repeated",
    )


def _kind_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host-kind",
        choices=_KINDS,
        help="the endpoint: an account of Azure Storage or of Cosmos DB, or an emulator of one "
        "(default: that of the profile's hosts; cosmos where the profile has [endpoint]; else "
        "storage)",
    )


def _kind_of(args: argparse.Namespace, profile: Profile) -> Service:
    """The kind that was given, or the one that the profile implies."""
    server = server_of_session(profile.session.kind)
    if args.host_kind is not None:
        kind = service_named(args.host_kind)
        return kind if kind.server == server else service_of(server, emulated=kind.emulated)
    if profile.hosts:
        address = address_of(profile.hosts[0], "hosts", server)
        kind, _ = kind_and_account(address, "hosts", server)
        if not kind.emulated:
            return kind
    in_units = profile.endpoint.provisioned_ru_per_s is not None
    only = service_of_session(profile.session.kind, emulated=False)
    return only or service_provisioned(in_units=in_units)
