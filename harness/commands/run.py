"""``harness run``: a run with the shipped locustfile, started from any folder."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from harness.model.errors import SetupError
from harness.model.files import shipped

_LOCUST = """\
import sys
from harness import startup

startup.begin()


def run():
    from locust.main import main

    sys.argv[0] = "harness run"
    return main()


sys.exit(startup.with_one_object(run) if {as_json} else run())
"""
"""Locust in a process of its own, because it patches the standard library before all imports."""
_AS_JSON = "--summary=json"


class Run:
    """Puts the load of a profile on a table endpoint, and reports what was served and throttled.

    It is `locust --headless --profile PROFILE` with the shipped locustfile, and takes every option
    of Locust too (`locust --help`). `harness profiles` lists the profiles; `harness plan PROFILE`
    shows what a run would do and cost.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        # Imported only for the help: a run does not need them, and the import takes a second.
        from harness.commands.common import ONE_OBJECT
        from harness.options import add_run_options

        parser.usage = "harness run PROFILE [options of the harness and of Locust]"
        parser.add_argument("profile", metavar="PROFILE", help="a shipped profile, or a TOML file")
        parser.add_argument(
            "--ui", action="store_true", help="open Locust's web UI instead of starting at once"
        )
        parser.add_argument(
            "--json",
            action="store_true",
            help=ONE_OBJECT.format("run"),
        )
        group = parser.add_argument_group("most used options of Locust")
        group.add_argument(
            "-H", "--host", metavar="URL", help="endpoint; can be repeated; see below"
        )
        group.add_argument("-u", "--users", metavar="N", help="number of users")
        group.add_argument("-r", "--spawn-rate", metavar="N", help="users started per second")
        group.add_argument("-t", "--run-time", metavar="TIME", help="such as 90s, 5m, 1h30m")
        group.add_argument("--processes", metavar="N", help="worker processes; -1: one per core")
        group.add_argument(
            "--master", action="store_true", help="coordinate workers on other machines"
        )
        group.add_argument(
            "--worker", action="store_true", help="run as a worker of a master; takes no PROFILE"
        )
        group.add_argument("-f", "--locustfile", metavar="FILE", help="user classes of your own")
        add_run_options(parser, locust=False)

    def run(self, args: argparse.Namespace) -> int:
        """Replace this process by Locust; ``args.given`` is what was typed after ``run``."""
        given = locust_arguments(args.given)
        script = _LOCUST.format(as_json=_AS_JSON in given and "--worker" not in given)
        command = [sys.executable, "-P", "-c", script, *given]
        sys.stdout.flush()
        # A Ctrl-C waits for `startup.begin`: while Python starts, it would print a traceback.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.execv(command[0], command)


def locust_arguments(given: Sequence[str]) -> list[str]:
    """The arguments of Locust for those of ``harness run``.

    Without a profile and a locustfile of the user's own it is a `SetupError`.
    """
    rest = list(given)
    made = []
    names = {argument.partition("=")[0] for argument in rest}
    own = any(name == "--locustfile" or name.startswith("-f") for name in names)
    if not own:
        made += ["-f", str(shipped("locustfile.py"))]
    if rest and not rest[0].startswith("-"):
        made += ["--profile", rest.pop(0)]
    elif not own and "--worker" not in names:
        raise SetupError(
            "name a profile first, such as `harness run single-partition`; `harness profiles` "
            "lists them"
        )
    if "--json" in rest:
        # Locust has an option of this name, for the figures that it collects itself.
        rest[rest.index("--json")] = _AS_JSON
    if "--ui" in names:
        rest.remove("--ui")
    elif "--worker" not in names:
        made.append("--headless")
    return made + rest
