"""``harness azurite ...``: installs the embedded Azurite, or runs it in the foreground."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from harness.commands.command import require_posix
from harness.model.errors import SetupError

DEFAULT_PORT = 10002
"""Azurite's own default port for tables."""


class AzuriteInstall:
    name = "azurite install"
    help = "install the pinned Azurite into this Python environment"
    description = (
        "Installs the pinned Azurite into this Python environment, with npm of the bundled Node. "
        "Nothing outside of the environment changes. If it is installed already, nothing happens."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """There are none."""

    def run(self, args: argparse.Namespace) -> int:
        require_posix()
        from harness.endpoint import azurite

        _end_by_signal()
        azurite.install(print)
        return 0


class AzuriteStart:
    name = "azurite start"
    help = "run Azurite in the foreground until Ctrl-C"
    description = (
        "Runs an Azurite that keeps its data in memory, for several runs to share. A run without "
        "-H starts its own Azurite and does not need this."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--port",
            type=int,
            default=DEFAULT_PORT,
            help="port to listen on; 0 takes a free one (default: %(default)s)",
        )
        parser.add_argument("--cert", type=Path, help="certificate (PEM); serves https")
        parser.add_argument("--key", type=Path, help="private key of the certificate (PEM)")
        parser.add_argument("--log", type=Path, help="file for Azurite's output")

    def run(self, args: argparse.Namespace) -> int:
        require_posix()
        from harness.endpoint import azurite

        if (args.cert is None) != (args.key is None):
            raise SetupError("--cert and --key need each other")
        _end_by_signal()
        try:
            with azurite.start_azurite(
                port=args.port, cert=args.cert, key=args.key, log_path=args.log
            ) as process:
                address = process.endpoint.url.rsplit("/", 1)[0]
                print(f"Azurite {azurite.VERSION} listens at {address} (Ctrl-C ends it)")
                print(f"account {process.endpoint.account}, with its published development key:")
                print(f"  harness run PROFILE -H {address}    (no credentials needed)")
                sys.stdout.flush()
                process.wait()
        except KeyboardInterrupt:
            return 0
        raise SetupError("Azurite exited unexpectedly; use --log FILE to keep its output")


def _end_by_signal() -> None:
    """Turn every signal that ends the process into a KeyboardInterrupt."""
    # A shell that starts the process in the background makes it ignore SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
