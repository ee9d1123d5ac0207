"""What the command line and the start form of the web UI ask for.

Once the options are parsed, and before Locust forks workers or opens a port, the process joins its
swarm and checks every port.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from typing import Any

from locust.argument_parser import LocustArgumentParser, timespan
from locust.env import Environment

from harness.model.errors import SetupError, echoed
from harness.options import PREFIX, PROFILE, Joined, add_run_options
from harness.profile.profile_loader import DEFAULT_PROFILE, NamedProfile, resolve
from harness.startup import BAD_SETUP, complain
from harness.swarm.membership import join_swarm
from harness.swarm.ports import HeldPorts
from harness.swarm.worker.users import TableUser, WorkloadUser


class CommandLine:
    """The command line of one process.

    Attributes:
        forks: True in a master that forks its workers, and in these workers.
        auth_mode: The option of this process; None where it was not given.
        ports: Those of this process, held until its servers listen.
    """

    def __init__(self) -> None:
        self.ports = HeldPorts()
        self.forks = False
        self.auth_mode: str | None = None
        self._parsed = False

    def on_parser(self, parser: LocustArgumentParser, **_: Any) -> None:
        """Add the options, and check them as soon as they are parsed."""
        add_options(parser)
        parse = parser.parse_args

        def parse_args(*args: Any, **named: Any) -> argparse.Namespace:
            options: argparse.Namespace = parse(*args, **{"env_vars": _variables(), **named})
            # The web UI parses the options again, to show them.
            if not self._parsed:
                self._parsed = True
                self._check(options)
            return options

        # Locust fires no event between parsing and forking.
        vars(parser)["parse_args"] = parse_args

    def _check(self, options: argparse.Namespace) -> None:
        self.auth_mode = options.auth_mode
        join_swarm(options, self.ports)
        listing = options.list_commands or options.show_task_ratio or options.show_task_ratio_json
        if options.worker or listing:
            return
        self.forks = bool(options.processes)
        if self.forks and hasattr(os, "register_at_fork"):
            # A port that a worker holds too is not free when the master lets go of it.
            os.register_at_fork(after_in_child=self.ports.close)
        try:
            moved = self.ports.settle(options)
        except SetupError as error:
            complain(str(error))
            sys.exit(BAD_SETUP)
        for sentence in () if options.quiet else moved:
            print(sentence, flush=True)


def add_options(parser: LocustArgumentParser) -> None:
    """Set the harness's defaults and add its options; the web form can set none of them."""
    # Listeners stay on this machine unless told otherwise, users are rebalanced when workers come
    # and go, and Locust's log does not bury what the harness prints.
    parser.set_defaults(
        web_host="127.0.0.1",
        master_bind_host="127.0.0.1",
        enable_rebalancing=True,
        loglevel="WARNING",
    )
    for action in parser._actions:
        if action.type is timespan:
            action.type = _timespan
        if action.dest == "profile":
            action.env_var = PROFILE
        if action.dest == "host":
            # Locust takes one host. Its action keeps its place in the help and its variable.
            action.__class__ = Joined
            action.metavar = "URL"
            action.help = "Endpoint of the account. Can be repeated for several accounts."
    add_run_options(parser, locust=True)


def _variables() -> dict[str, str]:
    """The environment without empty variables of the harness: container files pass such on."""
    return {
        name: value for name, value in os.environ.items() if value or not name.startswith(PREFIX)
    }


def _timespan(text: str) -> int:
    """Locust's `timespan`; a duration that overflows is an error of the option."""
    try:
        seconds: int = timespan(text)
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{echoed(text)} is too long") from None
    return seconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The run that the command line or the start form asks for; None takes the profile's value.

    Attributes:
        profile: Name of a profile. A file is accepted only where ``--profile`` names it. In the
            form, empty is the profile of the command line.
        throttling: Shipped limits of the embedded gateway, or the file of the command line.
        run_time_s: Length of the measured window, or of a whole search.
    """

    profile: str
    throttling: str | None
    run_time_s: int | None
    users: int | None
    spawn_rate_per_s: float | None


def profile_of_command_line(environment: Environment) -> NamedProfile:
    """The profile of the command line, which fills in missing options of Locust."""
    options = environment.parsed_options
    if options.class_picker:
        raise SetupError("--class-picker is not supported: the profile names the user class")
    options.profile = options.profile or DEFAULT_PROFILE
    request = RunRequest(
        profile=options.profile,
        throttling=options.throttling,
        run_time_s=None if options.run_time is None else int(options.run_time),
        users=options.num_users,
        spawn_rate_per_s=options.spawn_rate,
    )
    named = profile_of(environment, request, started_with=options.profile)
    load = named.profile.load
    if options.num_users is None:
        options.num_users = load.users
    if options.spawn_rate is None:
        options.spawn_rate = load.spawn_rate_per_s
    if options.headless or options.autostart:
        # Locust's timer would include loading and settling.
        options.run_time = None
        options.only_summary = True
    return named


def profile_of(environment: Environment, request: RunRequest, *, started_with: str) -> NamedProfile:
    """Return the profile with the requested values, and choose its user class.

    ``started_with`` is the profile of the command line. A `SetupError` names what is wrong.
    """
    name = request.profile or started_with
    overrides = list(environment.parsed_options.overrides)
    if request.users is not None:
        overrides.append(f"load.users={request.users}")
    if request.spawn_rate_per_s is not None:
        overrides.append(f"load.spawn_rate_per_s={float(request.spawn_rate_per_s)}")
    named = resolve(name, overrides, run_time_s=request.run_time_s, paths=name == started_with)
    _choose_user_class(environment, named)
    return named


def own_class_of(environment: Environment) -> tuple[str, bool]:
    """The user classes of the user's own that will run, and whether any class needs loading.

    The name is empty if only shipped classes run.
    """
    classes = environment.user_classes
    own = [cls.__name__ for cls in classes if not issubclass(cls, WorkloadUser)]
    return ", ".join(own), any(getattr(cls, "loads", False) for cls in classes)


def _choose_user_class(environment: Environment, named: NamedProfile) -> None:
    """Run one user class only: that of the command line, else that of the profile."""
    if environment.parsed_options.user_classes:
        return
    available = {
        cls.__name__: cls
        for cls in (environment.available_user_classes or {}).values()
        if issubclass(cls, TableUser)
    }
    wanted = named.profile.user_class
    if wanted in available:
        environment.user_classes = [available[wanted]]
    elif len(available) == 1:
        environment.user_classes = list(available.values())
    else:
        existing = ", ".join(sorted(available)) or "none"
        raise SetupError(
            f"profile {named.name} needs the user class {wanted}; the locustfile has {existing}"
        )
