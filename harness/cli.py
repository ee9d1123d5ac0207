"""The command line ``harness ...``: one class in `COMMANDS` for each subcommand."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from harness import __version__, startup
from harness.commands.azurite import AzuriteInstall, AzuriteStart
from harness.commands.check import Check
from harness.commands.command import BAD_SETUP, Command
from harness.commands.compare import Compare
from harness.commands.gateway import Gateway
from harness.commands.plan import PlanRun
from harness.commands.profiles import Profiles
from harness.commands.report import Report
from harness.commands.run import Run
from harness.commands.schemes import Schemes
from harness.commands.sweep import Sweep
from harness.model.errors import SetupError

COMMANDS: tuple[Command, ...] = (
    Run(),
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

_GROUPS = {"azurite": "install or run the embedded table endpoint"}

_EPILOG = """\
examples:
  harness azurite install                     once, into this Python environment
  harness run single-partition                stress one partition of the embedded Azurite
  harness run key-spread --ui                 the same with Locust's web UI
  harness run key-spread -H https://ACCOUNT.table.core.windows.net \\
      --remote-ok ACCOUNT -u 50 -t 5m         stress an account

Credentials come from the environment: AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT
with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN.
"""


def parser(commands: Sequence[Command] = COMMANDS) -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="harness",
        description="Stress-tests Azure Table endpoints and holds the rates against the published "
        "targets.",
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
        own = levels[group].add_parser(
            name,
            help=command.help,
            description=command.description,
        )
        command.options(own)
        own.set_defaults(run=command.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand, and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == [Run.name] and not {"-h", "--help"}.intersection(given):
        # Locust parses the options of a run.
        args = argparse.Namespace(run=Run().run, given=given[1:])
    else:
        args = parser().parse_args(given)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except SetupError as error:
        print(f"harness: {error}", file=sys.stderr)
        return BAD_SETUP
    except KeyboardInterrupt:
        print("harness: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except OSError as error:
        # Commands report errors of the files that they open; what is left is standard output.
        startup.discard(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return 128 + signal.SIGPIPE
        print(f"harness: the output cannot be written ({error.strerror})", file=sys.stderr)
        return BAD_SETUP
    return code


if __name__ == "__main__":
    sys.exit(main())
