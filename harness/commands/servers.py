"""``harness azurite`` and ``harness gateway``: servers in the foreground, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import ssl
import sys
import tempfile
from pathlib import Path
from typing import get_args

from harness.endpoint.address import address_of, kind_and_account
from harness.endpoint.azurite import process as azurite
from harness.endpoint.endpoint import as_kind, emulator_endpoint
from harness.gateway import limits
from harness.gateway.addresses import COUNTERS_PATH, check_upstream, on_this_machine
from harness.gateway.addresses import address_of as listen_address
from harness.gateway.request_log import RequestLog
from harness.gateway.server import run, serve
from harness.model.errors import SetupError, printable_lines
from harness.model.services import EMBEDDED, service_of
from harness.model.services.service import Server, Service

_ENDING = (signal.SIGINT, signal.SIGTERM)
_GATEWAY_PORT = 10102


class AzuriteInstall:
    """Installs the pinned Azurite into this Python environment, with npm of the bundled Node.

    Nothing outside of the environment changes. If it is installed already, nothing happens.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        """This command has no options."""

    def run(self, args: argparse.Namespace) -> int:
        end_by_signal()
        azurite.install(print)
        return 0


class AzuriteStart:
    """Runs a server of Azurite that keeps its data in memory, for several runs to share.

    Without --server it serves tables. A run without -H starts its own Azurite and does not need
    this.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        servers = get_args(Server)
        ports = [f"{service_of(one, emulated=True).port} for {one}s" for one in servers]
        parser.add_argument(
            "--server",
            choices=servers,
            default="table",
            help="the server to run, for sessions that send to it (default: %(default)s)",
        )
        parser.add_argument(
            "--port",
            type=int,
            help=f"port to listen on; 0 takes a free one (default: {', '.join(ports)})",
        )
        parser.add_argument("--cert", type=Path, help="certificate (PEM); serves https")
        parser.add_argument("--key", type=Path, help="private key of the certificate (PEM)")
        parser.add_argument("--log", type=Path, help="file for Azurite's output")

    def run(self, args: argparse.Namespace) -> int:
        if (args.cert is None) != (args.key is None):
            raise SetupError("--cert and --key must be given together")
        end_by_signal()
        kind = service_of(args.server, emulated=True)
        try:
            with azurite.start_azurite(
                port=kind.port if args.port is None else args.port,
                cert=args.cert,
                key=args.key,
                log_path=args.log,
                service=args.server,
            ) as process:
                address = process.endpoint.url.rsplit("/", 1)[0]
                print(f"Azurite {azurite.VERSION} listens at {address} (Ctrl-C ends it)")
                print(f"account {process.endpoint.account}, with its published development key:")
                session = f" --session {kind.session}" if kind.session else ""
                print(f"  harness run PROFILE -H {address}{session}    (no credentials needed)")
                sys.stdout.flush()
                process.wait()
        except KeyboardInterrupt:
            return 0
        raise SetupError("Azurite exited unexpectedly; use --log FILE to keep its output")


class Gateway:
    """Runs a proxy that throttles requests to tables or queues by configurable limits.

    With the published limits it answers 503 above 2,000 entities/s of a partition, 2,000 messages/s
    of a queue or 20,000 of the account, and while a hot partition is moved to another server; with
    the limits cosmos it charges request units, and answers 429. `harness run PROFILE --throttling
    published` starts one for a single run. `harness docs gateway` describes the limits.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--upstream",
            default=f"http://127.0.0.1:{EMBEDDED.port}",
            metavar="URL|none",
            help="endpoint behind the gateway; none stores nothing (default: %(default)s)",
        )
        parser.add_argument(
            "--listen",
            default=f"127.0.0.1:{_GATEWAY_PORT}",
            metavar="HOST:PORT",
            help="address to listen on; port 0 takes a free one (default: %(default)s)",
        )
        parser.add_argument(
            "--limits",
            default="published",
            metavar="NAME|FILE",
            help="limits: published, demo, ramping, none, cosmos, cosmos-demo, or a TOML file "
            "(default: %(default)s)",
        )
        parser.add_argument(
            "--remote-ok",
            metavar="ACCOUNT",
            help="confirm that ACCOUNT, the account of the upstream, may be billed",
        )
        parser.add_argument(
            "--tls",
            action="store_true",
            help="listen with TLS; a certificate for this machine is created at startup",
        )
        parser.add_argument(
            "--tls-cert",
            metavar="FILE",
            type=Path,
            help="listen with TLS, with this certificate (PEM)",
        )
        parser.add_argument(
            "--tls-key",
            metavar="FILE",
            type=Path,
            help="key of --tls-cert (PEM; default: in the same file)",
        )
        parser.add_argument(
            "--log",
            metavar="FILE",
            type=Path,
            help="append a line for each request to FILE, in the form of Azure's resource logs; "
            "harness verify and harness trace read it",
        )

    def run(self, args: argparse.Namespace) -> int:
        held = limits.load_limits(limits.limits_path(args.limits))
        check_upstream(args.upstream)
        if not on_this_machine(args.upstream):
            require_consent(args.upstream, args.remote_ok)

        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="table-gateway-"))
            tls, authority = _certificate(args, Path(folder))
            log = None if args.log is None else RequestLog(args.log, _complain)
            if log is not None:
                stack.callback(log.close)

            def ready(url: str) -> None:
                print(f"gateway {url} -> {args.upstream}, limits: {args.limits}")
                service = held.service()
                if service is not None and service.charges:
                    stand_in = as_kind(emulator_endpoint(url), service)
                    print(f"endpoint: {stand_in.url} (SDKs take localhost for Cosmos DB)")
                print(f"statistics: {url}{COUNTERS_PATH} (Ctrl-C ends it)")
                if authority is not None:
                    print(f"authority to trust: {authority}, until the gateway ends")
                sys.stdout.flush()

            async def listen() -> None:
                stop, loop = asyncio.Event(), asyncio.get_running_loop()
                for number in _ENDING:
                    loop.add_signal_handler(number, stop.set)
                try:
                    await serve(
                        upstream=args.upstream,
                        listen=args.listen,
                        limits=held,
                        ready=ready,
                        stop=stop,
                        tls=tls,
                        meter=log,
                    )
                finally:
                    # A closed loop would still take the signals, and nothing would end the process.
                    for number in _ENDING:
                        loop.remove_signal_handler(number)

            run(listen())
        return 0


def require_consent(upstream: str, remote_ok: str | None) -> tuple[Service, str]:
    """Kind and account of a remote endpoint; a `SetupError` unless ``remote_ok`` names it."""
    kind, account = kind_and_account(address_of(upstream, "--upstream"), "--upstream")
    if not account or remote_ok != account:
        raise SetupError(
            f"{upstream} is not on this machine, and every request that is passed on "
            f"is billed. To confirm, add --remote-ok {account or 'ACCOUNT'}"
        )
    return kind, account


def _complain(sentence: str) -> None:
    print(printable_lines(f"--log: {sentence}"), file=sys.stderr, flush=True)


def _certificate(
    args: argparse.Namespace, folder: Path
) -> tuple[ssl.SSLContext | None, Path | None]:
    """Return the context to listen with, and the file of an authority that was made."""
    if args.tls and args.tls_cert is not None:
        raise SetupError("--tls creates a certificate: leave out --tls, or --tls-cert")
    if args.tls_key is not None and args.tls_cert is None:
        raise SetupError("--tls-key needs --tls-cert")
    if not args.tls and args.tls_cert is None:
        return None, None
    # Only a gateway with TLS needs the library.
    from harness.gateway.tls import given_certificate, made_certificate

    if args.tls_cert is not None:
        return given_certificate(args.tls_cert, args.tls_key), None
    return made_certificate(folder, listen_address(args.listen)[0])


def end_by_signal() -> None:
    """Turn every signal that ends the process into a KeyboardInterrupt."""
    # A shell that starts the process in the background makes it ignore SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, signal.default_int_handler)
