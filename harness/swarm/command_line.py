"""Locust's command line: the options of the harness, and the checks before anything starts.

Once the options are parsed, and before Locust forks workers or opens a port, the process joins its
swarm and checks every port.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
from collections.abc import Iterator
from typing import Any

from gevent.monkey import get_original
from locust.argument_parser import LocustArgumentParser, timespan

from harness.model.errors import SetupError, echoed
from harness.options import add_run_options
from harness.startup import BAD_SETUP, complain
from harness.swarm.membership import join_swarm


def add_options(parser: LocustArgumentParser) -> None:
    """Set the harness's defaults and add its options; the web form can set none of them."""
    # Listeners stay on this machine unless told otherwise, users are rebalanced when workers come
    # and go, and Locust's log does not bury what the harness prints.
    parser.set_defaults(
        web_host="127.0.0.1",
        master_bind_host="127.0.0.1",
        enable_rebalancing=True,
        loglevel="WARNING",
    )
    for action in parser._actions:
        if action.type is timespan:
            action.type = _timespan
    add_run_options(parser, locust=True, title="Table stress harness: {}")


def _timespan(text: str) -> int:
    """Locust's `timespan`, with an error in place of an OverflowError for a million years."""
    try:
        seconds: int = timespan(text)
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{echoed(text)} is too long a time") from None
    return seconds


class CommandLine:
    """The command line of one Locust process.

    Attributes:
        forks: True in a master that forks its workers, and in these workers.
    """

    def __init__(self) -> None:
        self.forks = False
        self._parsed = False

    def on_parser(self, parser: LocustArgumentParser, **_: Any) -> None:
        """Add the options, and check them as soon as they are parsed."""
        add_options(parser)
        parse = parser.parse_args

        def parse_args(*args: Any, **named: Any) -> argparse.Namespace:
            options: argparse.Namespace = parse(*args, **named)
            # The web UI parses the options again, to show them.
            if not self._parsed:
                self._parsed = True
                self._check(options)
            return options

        # Locust fires no event between parsing and forking.
        vars(parser)["parse_args"] = parse_args

    def _check(self, options: argparse.Namespace) -> None:
        join_swarm(options)
        listing = options.list_commands or options.show_task_ratio or options.show_task_ratio_json
        if options.worker or listing:
            return
        self.forks = bool(options.processes)
        try:
            check_ports(options)
        except SetupError as error:
            complain(str(error))
            sys.exit(BAD_SETUP)


def check_ports(options: argparse.Namespace) -> None:
    """Check that every port in the options is free.

    Raises:
        SetupError: a port is in use, or the process may not listen there.
    """
    with contextlib.ExitStack() as held:
        for what, host, port, option in _listeners(options):
            try:
                held.enter_context(_listen(host, port))
            except socket.gaierror:
                # Locust also takes the name of a network interface.
                continue
            except (OSError, OverflowError) as error:
                reason = getattr(error, "strerror", None) or error
                raise SetupError(
                    f"{what} cannot listen on {host or '*'}:{port} ({reason}); stop the process "
                    f"that listens there, or choose another port with {option}"
                ) from error


def _listeners(options: argparse.Namespace) -> Iterator[tuple[str, str, int, str]]:
    """Name, address and port of every listener, and the option that sets the port."""
    if options.processes:
        where = options.master_bind_host, options.master_bind_port
        yield "the master", *where, "--master-bind-port and --master-port"
    elif options.master:
        where = options.master_bind_host, options.master_bind_port
        yield "the master", *where, "--master-bind-port"
    if options.headful or not options.headless:
        yield "the web UI", options.web_host, options.web_port, "--web-port"
    if options.metrics_port:
        yield "the metrics page", options.metrics_host, options.metrics_port, "--metrics-port"


def _listen(host: str, port: int) -> Any:
    """Return a listening socket.

    It is an unpatched one: gevent's socket would start an event loop before Locust forks.
    """
    address = None if host in ("", "*") else host
    [(family, kind, _, _, place), *_] = get_original("socket", "getaddrinfo")(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listener = get_original("socket", "socket")(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener
