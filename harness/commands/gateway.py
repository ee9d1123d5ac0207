"""``harness gateway``: runs the throttling gateway in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from harness.commands.azurite import DEFAULT_PORT as AZURITE_PORT
from harness.commands.command import require_posix
from harness.endpoint.address import address_of, kind_and_account
from harness.gateway import limits
from harness.gateway.loop import run
from harness.gateway.pages import TRUTH_PATH
from harness.gateway.server import check_upstream, on_this_machine, serve
from harness.model.errors import SetupError

_PORT = 10102


class Gateway:
    name = "gateway"
    help = "put a gateway before a table endpoint that throttles by the published limits"
    description = (
        "A proxy between any client and a table endpoint. It answers 503 above 2,000 entities/s "
        "of a partition or 20,000 of the account, and while a hot partition is moved to another "
        "server. To start one for a single run, use `harness run PROFILE --throttling published`. "
        "docs/gateway.md describes the limits."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--upstream",
            default=f"http://127.0.0.1:{AZURITE_PORT}",
            metavar="URL|none",
            help="endpoint behind the gateway; none stores nothing (default: %(default)s)",
        )
        parser.add_argument(
            "--listen",
            default=f"127.0.0.1:{_PORT}",
            metavar="HOST:PORT",
            help="address to listen on; port 0 takes a free one (default: %(default)s)",
        )
        parser.add_argument(
            "--limits",
            default="published",
            metavar="NAME|FILE",
            help="limits: published, demo, ramping, none, or a TOML file (default: %(default)s)",
        )
        parser.add_argument(
            "--remote-ok",
            metavar="ACCOUNT",
            help="confirm that ACCOUNT, the account of the upstream, may be billed",
        )

    def run(self, args: argparse.Namespace) -> int:
        require_posix()
        held = limits.load_limits(limits.limits_path(args.limits))
        check_upstream(args.upstream)
        if not on_this_machine(args.upstream):
            _, account = kind_and_account(address_of(args.upstream, "--upstream"), "--upstream")
            if not account or args.remote_ok != account:
                raise SetupError(
                    f"{args.upstream} is not on this machine, and every request that is passed on "
                    f"is billed. To confirm, add --remote-ok {account or 'ACCOUNT'}"
                )

        def ready(url: str) -> None:
            print(f"gateway {url} -> {args.upstream}, limits: {args.limits}")
            print(f"statistics: {url}{TRUTH_PATH} (Ctrl-C ends it)")
            sys.stdout.flush()

        async def listen() -> None:
            stop = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            await serve(
                upstream=args.upstream, listen=args.listen, limits=held, ready=ready, stop=stop
            )

        run(listen())
        return 0
