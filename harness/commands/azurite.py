"""``harness azurite ...``: the embedded table endpoint, installed and run by hand."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from harness.endpoint import azurite
from harness.model.errors import SetupError

DEFAULT_PORT = 10002
"""Where Azurite and every client of it look for tables, if nothing else is said."""


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
            "--port", type=int, default=DEFAULT_PORT, help="0 takes a free one (%(default)s)"
        )
        parser.add_argument("--cert", type=Path, help="certificate in PEM: serve https")
        parser.add_argument("--key", type=Path, help="private key of the certificate")
        parser.add_argument("--log", type=Path, help="file for Azurite's own output")

    def run(self, args: argparse.Namespace) -> int:
        """Start, say where, wait for a signal or its end."""
        if (args.cert is None) != (args.key is None):
            raise SetupError("--cert and --key belong together")
        # A shell that starts it in the background lets it ignore SIGINT.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
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


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
