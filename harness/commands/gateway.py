"""``harness gateway``: the throttling stand-in, run by hand."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from harness.commands.azurite import DEFAULT_PORT as AZURITE_PORT
from harness.endpoint.address import address_of, kind_and_account
from harness.gateway import limits
from harness.gateway.proxy import TRUTH_PATH
from harness.gateway.server import check_upstream, on_this_machine, serve
from harness.model.errors import SetupError

_PORT = 10102


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
            default=f"http://127.0.0.1:{AZURITE_PORT}",
            metavar="URL|none",
            help="the endpoint behind it; with none nothing is stored (%(default)s)",
        )
        parser.add_argument(
            "--listen",
            default=f"127.0.0.1:{_PORT}",
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
