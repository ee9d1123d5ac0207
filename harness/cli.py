"""The command line ``harness ...``. A subcommand is a class in `harness.commands`."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Protocol

from harness import __version__
from harness.model.errors import SetupError
from harness.startup import BAD_SETUP, interrupts_held

POSIX = os.name == "posix"


class Command(Protocol):
    """A subcommand. Its docstring is the description in its help."""

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommand's options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work, and return the exit code.

        Raises:
            SetupError: bad input; it is printed, and the exit code is `BAD_SETUP`.
        """


# The class of each subcommand, imported when it is used, and its help.
COMMANDS = {
    "run": ("run.Run", "run a stress test: put load on an endpoint, and judge the result"),
    "init": ("init.Init", "write a folder of your own: for this machine, Azure, Kubernetes or CI"),
    "watch": ("watch.Watch", "run your own application, and report what it does to its tables"),
    "trace": ("trace.TraceCommand", "show or convert recorded traffic, or a log of Azure Storage"),
    "whatif": ("whatif.WhatIf", "calculate what recorded traffic would meet under other keys"),
    "profiles": (
        "profiles.Profiles",
        "list the shipped profiles with their questions, or print one",
    ),
    "schemes": ("schemes.Schemes", "list or explain key schemes, distributions, scenarios"),
    "check": ("profiles.Check", "compare a profile with the documented practices"),
    "plan": ("profiles.PlanRun", "show what a run would do and cost, without sending anything"),
    "doctor": ("doctor.Doctor", "check an endpoint and this machine before a run"),
    "compare": ("records.Compare", "compare runs; with --fail-if, exit with 1 on a regression"),
    "report": ("records.Report", "render the HTML report of a run from its record"),
    "azurite install": ("servers.AzuriteInstall", "install Azurite into this Python environment"),
    "azurite start": ("servers.AzuriteStart", "run Azurite in the foreground until Ctrl-C"),
    "gateway": (
        "servers.Gateway",
        "run a gateway that applies the published limits to any endpoint",
    ),
    "sweep": ("sweep.Sweep", "list tables that killed runs left behind, and delete tables by name"),
}
_GROUPS = {"azurite": "install or run the embedded table endpoint"}
_POSIX_ONLY = ("run", "watch", "doctor", "azurite install", "azurite start", "gateway")
"""These use signals, file locks and child processes as only POSIX has them."""

_EPILOG = """\
examples:
  harness azurite install                     once, into this Python environment
  harness run single-partition                stress one partition of the embedded Azurite
  harness run key-spread --ui                 the same with Locust's web UI
  harness doctor                              check this machine and an endpoint before a run
  harness watch -- node server.js             measure your own application
  harness trace app.trace                     show its recorded traffic, or a log of Azure
  harness whatif app.trace --keys mine.toml   the same traffic under keys that you think of
  harness run key-spread -H https://ACCOUNT.table.core.windows.net \\
      --remote-ok ACCOUNT -u 50 -t 5m         stress an account

Credentials come from the environment: AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT
with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN. `--auth-mode login` uses a login of Entra ID.
"""


def parsed(given: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments; ``run`` is the method of the subcommand that takes them.

    Raises:
        SetupError: the subcommand needs POSIX, and this is Windows.
        SystemExit: the help was printed, or the arguments are invalid.
    """
    name = next((name for name in COMMANDS if list(given[: len(name.split())]) == name.split()), "")
    if not name:
        _overview().parse_args(given)
        raise SetupError("name a command first")
    if name in _POSIX_ONLY and not POSIX:
        raise SetupError("runs, Azurite and the gateway need Linux or macOS; on Windows use WSL 2")
    module, _, made = COMMANDS[name][0].partition(".")
    with interrupts_held():
        imported = importlib.import_module(f"harness.commands.{module}")
    command: Command = getattr(imported, made)()
    rest = list(given[len(name.split()) :])
    if name == "run" and not {"-h", "--help"}.intersection(rest):
        # Locust parses the options of a run.
        return argparse.Namespace(run=command.run, given=rest)
    parser = argparse.ArgumentParser(prog=f"harness {name}", description=command.__doc__)
    command.options(parser)
    parser.set_defaults(run=command.run)
    return parser.parse_args(rest)


def _overview() -> argparse.ArgumentParser:
    """The parser that shows all commands, and accepts none."""
    top = argparse.ArgumentParser(
        prog="harness",
        description="Stress-tests Azure Table endpoints and compares the rates with the published "
        "targets.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    levels = {"": top.add_subparsers(required=True, metavar="COMMAND")}
    for name, (_, text) in COMMANDS.items():
        group, _, last = name.rpartition(" ")
        if group not in levels:
            made = levels[""].add_parser(group, help=_GROUPS[group], description=_GROUPS[group])
            levels[group] = made.add_subparsers(required=True, metavar="COMMAND")
        levels[group].add_parser(last, help=text)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        args = parsed(sys.argv[1:] if arguments is None else arguments)
        code: int = args.run(args)
        sys.stdout.flush()
    except SetupError as error:
        print(f"harness: {error}", file=sys.stderr)
        return BAD_SETUP
    except KeyboardInterrupt:
        print("harness: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except OSError as error:
        # Commands report errors of the files that they open; what is left is standard output.
        print(f"harness: the output cannot be written ({error.strerror})", file=sys.stderr)
        return BAD_SETUP
    return code
