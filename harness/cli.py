"""``harness ...``: what is not a Locust run.

A subcommand is one class in `COMMANDS`: its name, its help, its options, and what it does. A
sentence for the user is a `SetupError`: it goes to standard error, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Protocol

from harness import __version__
from harness.endpoint import azurite
from harness.endpoint.address import address_of, kind_and_account
from harness.endpoint.connection import consent_problem, endpoint_from
from harness.endpoint.probe import check
from harness.endpoint.tables import delete_table, leftovers
from harness.gateway import limits
from harness.gateway.proxy import TRUTH_PATH
from harness.gateway.server import check_upstream, on_this_machine, serve
from harness.model.errors import SetupError
from harness.profile.load import resolve, shipped_directory, shipped_names

BAD_SETUP = 2
_AZURITE_PORT = 10002
_GATEWAY_PORT = 10102


class Command(Protocol):
    """A subcommand. Its name may have two words, such as ``azurite start``."""

    name: str
    help: str
    description: str

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommand's own options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""


class AzuriteInstall:
    """Install the embedded Azurite."""

    name = "azurite install"
    help = f"install Azurite {azurite.VERSION} into this Python environment"
    description = (
        "Installs the pinned Azurite, with the Node that the environment holds, into the Python "
        "environment. Nothing outside of it is changed; a second call does nothing."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """None."""

    def run(self, args: argparse.Namespace) -> int:
        """Install, telling what happens."""
        azurite.install(print)
        return 0


class AzuriteStart:
    """Run Azurite in the foreground."""

    name = "azurite start"
    help = "run Azurite in the foreground until Ctrl-C"
    description = (
        "Runs an Azurite that keeps its data in memory, so that several runs can use the same "
        "one. A run without -H starts one of its own and needs no such thing."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Port, certificate, log."""
        parser.add_argument(
            "--port", type=int, default=_AZURITE_PORT, help="0 takes a free one (%(default)s)"
        )
        parser.add_argument("--cert", type=Path, help="certificate in PEM: serve https")
        parser.add_argument("--key", type=Path, help="private key of the certificate")
        parser.add_argument("--log", type=Path, help="file for Azurite's own output")

    def run(self, args: argparse.Namespace) -> int:
        """Start, say where, wait for a signal or its end."""
        if (args.cert is None) != (args.key is None):
            raise SetupError("--cert and --key belong together")
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            with azurite.start_azurite(
                port=args.port, cert=args.cert, key=args.key, log_path=args.log
            ) as process:
                address = process.endpoint.url.rsplit("/", 1)[0]
                print(f"Azurite {azurite.VERSION} listens at {address} (Ctrl-C ends it)")
                print(f"account {process.endpoint.account}, with its published development key:")
                print(f"  locust -H {address} ... needs no variables of the environment")
                sys.stdout.flush()
                process.wait()
        except KeyboardInterrupt:
            return 0
        raise SetupError("Azurite ended by itself; --log FILE keeps what it says")


class Profiles:
    """List the profiles, or show one."""

    name = "profiles"
    help = "list the profiles with the question each answers, or show one"
    description = (
        "A profile is a TOML file that says what is sent, to which keys, and for how long; "
        "`locust --profile NAME` runs it. To make one of your own, save a shipped one with "
        "`harness profiles NAME > mine.toml`, change it, and run `locust --profile mine.toml`."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Which one to show."""
        parser.add_argument("profile", nargs="?", metavar="NAME", help="show this profile's file")

    def run(self, args: argparse.Namespace) -> int:
        """List them all, or print the text of one."""
        directory = shipped_directory()
        names = shipped_names(directory)
        if args.profile is not None:
            if args.profile not in names:
                raise SetupError(
                    f"there is no profile {args.profile!r}; there are: {', '.join(names)}"
                )
            print((directory / f"{args.profile}.toml").read_text(encoding="utf-8"), end="")
            return 0
        width = max(len(name) for name in names)
        for name in names:
            question = resolve(name, directory=directory).profile.question
            print(f"{name:{width}}  {question}")
        return 0


class Sweep:
    """List and delete tables that runs left behind."""

    name = "sweep"
    help = "list the tables that killed runs left behind, and delete the named ones"
    description = (
        "A run deletes its table, also after Ctrl-C. One that was killed could not. This lists "
        "the tables whose name is of the harness's own form (stress, UTC time, 8 hex digits) and "
        "that are old enough to be nobody's running test. Only those can be deleted, by name."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Where, how old, and what to delete."""
        parser.add_argument("-H", "--host", required=True, metavar="URL", help="the endpoint")
        parser.add_argument(
            "--delete", nargs="+", default=[], metavar="NAME", help="delete these of the listed"
        )
        parser.add_argument(
            "--older-than-s",
            type=float,
            default=3600.0,
            metavar="S",
            help="leave younger tables alone (%(default)s)",
        )
        parser.add_argument(
            "--remote-ok",
            metavar="ACCOUNT",
            help="account in the host, said again: its requests are billed",
        )

    def run(self, args: argparse.Namespace) -> int:
        """List; delete what was named and is listed."""
        endpoint = endpoint_from(args.host, os.environ)
        problem = consent_problem(endpoint, args.remote_ok)
        if problem is not None:
            raise SetupError(problem)
        check(endpoint)
        now = dt.datetime.now(dt.UTC)
        found = leftovers(endpoint, now, args.older_than_s)
        names = {leftover.name for leftover in found}
        if strangers := [name for name in args.delete if name not in names]:
            raise SetupError(
                f"not a leftover older than {args.older_than_s:g} s: {', '.join(strangers)}. "
                "Nothing was deleted"
            )
        if not found:
            print(f"no leftovers older than {args.older_than_s:g} s at {endpoint.host}")
        for leftover in found:
            age_h = (now - leftover.made_at).total_seconds() / 3600
            if leftover.name in args.delete:
                delete_table(endpoint, leftover.name)
            state = "deleted" if leftover.name in args.delete else "kept"
            print(f"{leftover.name}  {age_h:8.1f} h old  {state}")
        return 0


class Gateway:
    """Run the throttling stand-in in the foreground."""

    name = "gateway"
    help = "throttle a table endpoint as the documents say the service does"
    description = (
        "Stands between any client and a table endpoint, and refuses what the published limits "
        "would: 503 over 2,000 entities/s of a partition or 20,000 of the account, and all while "
        "a hot partition is moved. A run starts one by itself: locust --throttling published."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Upstream, address, limits."""
        parser.add_argument(
            "--upstream",
            default=f"http://127.0.0.1:{_AZURITE_PORT}",
            metavar="URL|none",
            help="the endpoint behind it; with none nothing is stored (%(default)s)",
        )
        parser.add_argument(
            "--listen",
            default=f"127.0.0.1:{_GATEWAY_PORT}",
            metavar="HOST:PORT",
            help="port 0 takes a free one (%(default)s)",
        )
        parser.add_argument(
            "--limits",
            default="published",
            metavar="NAME|FILE",
            help="what it holds a client to (%(default)s; there is demo, or a file)",
        )
        parser.add_argument(
            "--remote-ok",
            metavar="ACCOUNT",
            help="account in the upstream's host, said again: what is passed on is billed",
        )

    def run(self, args: argparse.Namespace) -> int:
        """Listen, say where, until a signal comes."""
        held = limits.load_limits(limits.limits_path(args.limits))
        check_upstream(args.upstream)
        if not on_this_machine(args.upstream):
            _, account = kind_and_account(address_of(args.upstream))
            if not account or args.remote_ok != account:
                raise SetupError(
                    f"{args.upstream} is not on this machine: every request passed on to it is "
                    f"billed. If that is what you want, add --remote-ok {account or 'ACCOUNT'}"
                )

        def ready(url: str) -> None:
            print(f"{url} stands before {args.upstream} with the limits {args.limits}")
            print(f"what it passed and refused: {url}{TRUTH_PATH} (Ctrl-C ends it)")
            sys.stdout.flush()

        async def listen() -> None:
            stop = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            await serve(
                upstream=args.upstream, listen=args.listen, limits=held, ready=ready, stop=stop
            )

        asyncio.run(listen())
        return 0


COMMANDS: tuple[Command, ...] = (Profiles(), AzuriteInstall(), AzuriteStart(), Gateway(), Sweep())

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


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
