"""``harness ...``: what is not a Locust run.

A subcommand is one class in `COMMANDS`, from a module in `harness/commands`: its name, its help,
its options, and what it does. A sentence for the user is a `SetupError`: it goes to standard error,
and the exit code is 2.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from harness import __version__
from harness.commands.azurite import AzuriteInstall, AzuriteStart
from harness.commands.check import Check
from harness.commands.command import BAD_SETUP, Command
from harness.commands.compare import Compare
from harness.commands.gateway import Gateway
from harness.commands.plan import PlanRun
from harness.commands.profiles import Profiles
from harness.commands.report import Report
from harness.commands.schemes import Schemes
from harness.commands.sweep import Sweep
from harness.model.errors import SetupError

COMMANDS: tuple[Command, ...] = (
    Profiles(),
    Schemes(),
    Check(),
    PlanRun(),
    Compare(),
    Report(),
    AzuriteInstall(),
    AzuriteStart(),
    Gateway(),
    Sweep(),
)

_GROUPS = {"azurite": "the embedded table endpoint"}

_EPILOG = """\
A run itself is Locust's command line:

  locust --headless --profile single-partition
  locust --headless --profile key-spread -H https://ACCOUNT.table.core.windows.net \\
         --remote-ok ACCOUNT -u 50 -t 5m

Credentials come from the environment: AZURE_STORAGE_CONNECTION_STRING, or
AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN.
"""


def parser(commands: Sequence[Command] = COMMANDS) -> argparse.ArgumentParser:
    """The command line made of ``commands``."""
    top = argparse.ArgumentParser(
        prog="harness",
        description="What belongs to a stress test of a table endpoint, but is not the run.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    levels = {"": top.add_subparsers(required=True, metavar="COMMAND")}
    for command in commands:
        group, _, name = command.name.rpartition(" ")
        if group not in levels:
            made = levels[""].add_parser(group, help=_GROUPS[group], description=_GROUPS[group])
            levels[group] = made.add_subparsers(required=True, metavar="COMMAND")
        own = levels[group].add_parser(name, help=command.help, description=command.description)
        command.options(own)
        own.set_defaults(run=command.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand that the arguments name; the exit code."""
    args = parser().parse_args(arguments)
    try:
        code: int = args.run(args)
    except SetupError as error:
        print(f"harness: {error}", file=sys.stderr)
        return BAD_SETUP
    except KeyboardInterrupt:
        print("harness: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    return code


if __name__ == "__main__":
    sys.exit(main())
