"""The command line ``harness ...``. A subcommand is a class in `harness.commands`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from typing import NoReturn, Protocol

from harness import __version__
from harness.model.auth_mode import VARIABLES_HELP
from harness.model.errors import SetupError, did_you_mean, echoed, printable_lines
from harness.model.files import shipped
from harness.startup import BAD_SETUP, failure_json, interrupts_held

POSIX = os.name == "posix"


class Command(Protocol):
    """A subcommand. Its docstring is the description in its help."""

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommand's options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work, and return the exit code: `BAD_SETUP` after a `SetupError`."""


# Module, class and help of each subcommand. A module is imported when its command is used.
COMMANDS = {
    "run": ("run.Run", "run a stress test: put load on an endpoint, and judge the result"),
    "init": ("init.Init", "write a folder of your own: for this machine, Azure, Kubernetes or CI"),
    "watch": ("watch.Watch", "run your application; report its use of tables, queues and blobs"),
    "trace": ("trace.TraceCommand", "show or convert recorded traffic, or a log of Azure Storage"),
    "whatif": ("whatif.WhatIf", "calculate the load of recorded traffic under other keys"),
    "advise": ("advise.Advise", "say which PartitionKey recorded traffic needs"),
    "profiles": (
        "profiles.Profiles",
        "list the shipped profiles with their questions, or print one",
    ),
    "schemes": ("schemes.Schemes", "explain the templates of keys; list documented key designs"),
    "keys": ("keys.SaveKeys", "save the keys of a table that exists, for the fields of a profile"),
    "check": ("profiles.Check", "compare a profile, a run or keys with documented practices"),
    "plan": ("profiles.PlanRun", "show what a run would do and cost, without sending anything"),
    "doctor": ("doctor.Doctor", "check an endpoint and this machine before a run"),
    "compare": ("records.Compare", "compare runs; with --fail-if, exit with 1 on a regression"),
    "report": ("records.Report", "render the HTML report of a run from its record"),
    "verify": ("verify.Verify", "compare a run with the log that the service wrote of it"),
    "azurite install": ("servers.AzuriteInstall", "install Azurite into this Python environment"),
    "azurite start": ("servers.AzuriteStart", "run Azurite in the foreground until Ctrl-C"),
    "gateway": (
        "servers.Gateway",
        "run a gateway that throttles an endpoint by the published limits",
    ),
    "docs": ("docs.Docs", "show a page of the documentation, or find words in it"),
    "completion": ("completion.Completion", "print the completion of these commands for a shell"),
    "schema": ("schema.ShowSchema", "print the JSON Schema of what a command prints with --json"),
    "sweep": ("sweep.Sweep", "list what killed runs left behind, and delete it by name"),
}
_GROUPS = {"azurite": "install or run the embedded Azurite"}
_POSIX_ONLY = ("run", "watch", "doctor", "azurite install", "azurite start", "gateway")
"""These commands need the signals, file locks and child processes of POSIX."""

_EPILOG = f"""\
examples:
  harness azurite install                       once, into this Python environment
  harness run single-partition                  stress one partition of the embedded Azurite
  harness run key-spread --ui                   the same with Locust's web UI
  harness doctor                                check this machine and an endpoint before a run
  harness watch -- node server.js               measure your own application
  harness trace app.parquet                     show recorded traffic, or a log of Azure
  harness whatif app.parquet --keys mine.toml   the same traffic under other keys
  harness advise app.parquet --rate 20          which PartitionKey it needs at 20 times the traffic
  harness run key-spread -H https://ACCOUNT.table.core.windows.net \\
      --remote-ok ACCOUNT -u 50 -t 5m           stress an account

Credentials come from the environment: {VARIABLES_HELP}.
`--auth-mode login` uses a login of Entra ID.
"""


def parsed(given: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments; ``run`` is the method of the subcommand that takes them.

    Raises:
        SetupError: the subcommand needs POSIX, and this is Windows.
        SystemExit: the help was printed, or the arguments are invalid.
    """
    if list(given[:1]) == ["help"]:
        given = [*given[1:], "--help"]
    elif list(given) == ["version"]:
        given = ["--version"]
    if not given:
        _overview().print_help(sys.stderr)
        raise SystemExit(BAD_SETUP)
    name = next((name for name in COMMANDS if list(given[: len(name.split())]) == name.split()), "")
    if not name:
        if given[0] in {path.stem for path in shipped("profiles").glob("*.toml")}:
            raise SetupError(f"{given[0]} is a profile, which runs with: harness run {given[0]}")
        known = {word for command in COMMANDS for word in command.split()[:1]}
        if given and given[0] not in known and (near := did_you_mean(given[0], known)):
            raise SetupError(f"there is no command {echoed(given[0])}{near}")
        _overview().parse_args(given)
        raise SetupError("name a command first")
    if name in _POSIX_ONLY and not POSIX:
        raise SetupError("runs, Azurite and the gateway need Linux or macOS; on Windows use WSL 2")
    chosen = command(name)
    rest = list(given[len(name.split()) :])
    if name == "run" and not {"-h", "--help"}.intersection(rest):
        # Locust parses the options of a run.
        return argparse.Namespace(run=chosen.run, given=rest)
    parser = _Parser(
        prog=f"harness {name}", description=chosen.__doc__, formatter_class=_Paragraphs
    )
    chosen.options(parser)
    parser.set_defaults(run=chosen.run, whole=partial(_overview, with_options=True))
    return parser.parse_args(rest)


def command(name: str) -> Command:
    """The subcommand of that name; its module is imported only now."""
    module, _, class_name = COMMANDS[name][0].partition(".")
    with interrupts_held():
        imported = importlib.import_module(f"harness.commands.{module}")
    made: Command = getattr(imported, class_name)()
    return made


class _Parser(argparse.ArgumentParser):
    """Its errors are those of all bad input."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise SetupError(message)


class _Paragraphs(argparse.HelpFormatter):
    """Wraps each paragraph of a text; one with indented lines, such as an example, stays."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(
            paragraph if "\n " in f"\n{paragraph}" else fill(paragraph, width, indent)
            for paragraph in inspect.cleandoc(text).split("\n\n")
        )


def _overview(*, with_options: bool = False) -> argparse.ArgumentParser:
    """The parser that shows all commands; ``with_options`` it imports all of them."""
    top = _Parser(
        prog="harness",
        description="Stress-tests Azure Table endpoints and compares the rates with the published "
        "targets.",
        epilog=_EPILOG,
        formatter_class=_Paragraphs,
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    levels = {"": top.add_subparsers(required=True, metavar="COMMAND")}
    for name, (_, text) in COMMANDS.items():
        group, _, last = name.rpartition(" ")
        if group not in levels:
            made = levels[""].add_parser(group, help=_GROUPS[group], description=_GROUPS[group])
            levels[group] = made.add_subparsers(required=True, metavar="COMMAND")
        parser = levels[group].add_parser(last, help=text)
        if with_options:
            command(name).options(parser)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    # What follows -- is the command of a watch.
    as_json = "--json" in (given[: given.index("--")] if "--" in given else given)

    def fail(sentence: str, exit_code: int) -> int:
        print(f"harness: {printable_lines(sentence)}", file=sys.stderr)
        if as_json:
            with contextlib.suppress(OSError):
                print(failure_json(sentence, exit_code), end="", flush=True)
        return exit_code

    try:
        args = parsed(given)
        code: int = args.run(args)
        sys.stdout.flush()
    except SetupError as error:
        return fail(str(error), BAD_SETUP)
    except KeyboardInterrupt:
        return fail("interrupted", 128 + signal.SIGINT)
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except OSError as error:
        # Commands report errors of the files that they open, so this one is about standard output.
        print(f"harness: the output cannot be written ({error.strerror})", file=sys.stderr)
        return BAD_SETUP
    return code


if __name__ == "__main__":
    sys.exit(main())
