"""``harness watch``: measures an application of the user, in any language."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import secrets
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.commands.common import ONE_OBJECT, duration, parsed_all, variable_name, whole_number
from harness.commands.servers import require_consent
from harness.gateway import limits
from harness.gateway.addresses import NO_UPSTREAM, address_of, check_upstream, on_this_machine
from harness.measure.verdict.conditions import Condition, parse_condition
from harness.model.errors import SetupError
from harness.model.hosts import is_loopback
from harness.model.services import EMBEDDED
from harness.model.services.service import Service
from harness.options import add_output_options, aliases_from, traced_properties
from harness.profile.build.workload import conditions_of
from harness.profile.profile_loader import resolve
from harness.profile.settings.parts import EndpointSettings
from harness.report.export.result import run_output
from harness.report.export.run_folder import check_folder
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from harness.watch import watch
from harness.watch.watch import write_line, write_page
from harness.watch.watched_run import WatchOptions, WatchPlan

_NO_LIMITS = "none"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,80}")
_MOST_TRANSACTIONS = 10**15
_MOST_PROCESSES = 64
_EXAMPLES = """\
examples:
  harness watch -- node server.js              your application, on an embedded Azurite
  harness watch --limits published -- python app.py
                                               the same, throttled as Azure throttles
  harness watch --condition 'throttled_ratio < 1%' -- npm test
                                               exit code 1 if the condition fails
  harness watch --upstream https://ACCOUNT.table.core.windows.net --remote-ok ACCOUNT -- ./app
                                               a real account, billed
  harness watch --proxy -- ./app               an application that takes account and key
  harness watch                                no command: shows what to set, until Ctrl-C

The command finds the gateway in AZURE_STORAGE_CONNECTION_STRING and AZURE_TABLES_ENDPOINT, for
the other services of its account in variables such as AZURE_STORAGE_QUEUE_ENDPOINT.
{connection_string} and {endpoint} in its arguments are replaced. Signals and the exit code of the
command are passed through; lines of the watch go to standard error.
"""


class Watch:
    """Runs an application against the metering gateway, and reports its requests.

    Every request to the account is counted, by the rule of the targets where there are some:
    entities/s of each partition, throttling that the SDK hides by retrying, latencies. The
    outputs are those of a run: summary, report, record, CSV, JUnit, Prometheus.
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.usage = "harness watch [options] [-- COMMAND ...]"
        parser.epilog = _EXAMPLES
        parser.add_argument("command", nargs="*", metavar="COMMAND", help="program and arguments")
        group = parser.add_argument_group("endpoint")
        group.add_argument(
            "--upstream",
            metavar="URL",
            help="endpoint behind the gateway; without it an Azurite is started",
        )
        group.add_argument(
            "--remote-ok",
            metavar="ACCOUNT",
            help="confirm that ACCOUNT, the account of the upstream, may be billed",
        )
        group.add_argument(
            "--billable-transactions",
            metavar="N",
            type=whole_number(_MOST_TRANSACTIONS),
            help="the watch ends after N requests; further ones are refused (403), not passed on",
        )
        group.add_argument(
            "--limits",
            metavar="NAME|FILE",
            default=_NO_LIMITS,
            help="throttle by these limits: published, demo, ramping, cosmos, cosmos-demo, or a "
            "TOML file (default: %(default)s)",
        )
        group.add_argument(
            "--listen",
            metavar="HOST:PORT",
            default="127.0.0.1:0",
            help="address of the gateway, for commands on other machines too; port 0 takes a free "
            "one (default: %(default)s)",
        )
        group.add_argument(
            "--tls",
            action="store_true",
            help="listen with TLS: SDKs send bearer tokens over https only. The command is told of "
            "the authority (SSL_CERT_FILE, REQUESTS_CA_BUNDLE, NODE_EXTRA_CA_CERTS)",
        )
        group.add_argument(
            "--proxy",
            action="store_true",
            help="for applications that make the host of account and key: the gateway is the proxy "
            "of the command (HTTPS_PROXY, HTTP_PROXY), intercepts the hosts of the account's "
            "services with an authority of its own, and passes other hosts on untouched",
        )
        group.add_argument(
            "--env",
            metavar="NAME",
            type=variable_name,
            action="append",
            default=[],
            help="one more variable that holds the connection string; can be repeated",
        )
        group.add_argument(
            "--keep-env",
            metavar="NAME",
            type=variable_name,
            action="append",
            default=[],
            help="leave a variable as it is, even if it leads to another endpoint; can be repeated",
        )
        group.add_argument(
            "--processes",
            metavar="N",
            type=whole_number(_MOST_PROCESSES),
            default=1,
            help="gateway processes that share the port (default: %(default)s)",
        )
        group = parser.add_argument_group("measurement")
        group.add_argument("--name", default="watch", help="name in all outputs (%(default)s)")
        group.add_argument(
            "--duration", metavar="TIME", type=duration, help="end after this time: 90s, 5m, 1h"
        )
        group.add_argument(
            "--wait-for-children",
            action="store_true",
            help="go on until every process that the command started has ended, daemons too",
        )
        group.add_argument(
            "--warm-up",
            metavar="TIME",
            type=duration,
            default=0.0,
            help="time before the measured window (default: 0)",
        )
        group.add_argument(
            "--condition",
            metavar="TEXT",
            action="append",
            default=[],
            help="pass condition, such as 'throttled_ratio < 1%%'; exit code 1 if it fails; can "
            "be repeated",
        )
        group.add_argument(
            "--profile",
            metavar="NAME|FILE",
            help="take the pass conditions of this profile, and its [endpoint]: what is "
            "provisioned, or raised targets",
        )
        group = parser.add_argument_group("output")
        group.add_argument(
            "--trace",
            metavar="FOLDER",
            type=Path,
            help="record every operation, without contents, in this new folder: `harness trace`",
        )

        def add(option: str, *, help: str, **named: Any) -> None:
            """Add an option of runs, in the style of this help."""
            group.add_argument(option, help=help[0].lower() + help[1:].removesuffix("."), **named)

        add_output_options(add)
        group.add_argument(
            "--page-port",
            metavar="PORT",
            type=int,
            default=0,
            help="port of the live page on this machine; 0 takes a free one, -1 serves none",
        )
        group.add_argument(
            "--metrics-port",
            metavar="PORT",
            type=int,
            default=0,
            help="port for Prometheus metrics; 0 turns them off (default: %(default)s)",
        )
        group.add_argument(
            "--json",
            action="store_true",
            help=f"{ONE_OBJECT.format('watch')}; output of the command goes to standard error",
        )

    def run(self, args: argparse.Namespace) -> int:
        options = _options(args)
        watching = watch.Watch(options, os.environ, write_line)
        record, path, code = watching.run()
        page = Page.of_terminal(sys.stderr)
        write_line("")
        write_page(summary(record, page))
        if path.is_file():
            write_line(f"\nRecord: {path}\nReport: {path.with_name('report.html')}")
            write_line(f"Practices: harness check --record {path.parent}")
        if watching.said_of_trace:
            write_line(watching.said_of_trace)
        if record.watched is not None and record.watched.ended:
            write_line(f"Command: {record.watched.ended}")
        write_line(f"Exit code: {code}")
        if args.json:
            print(run_output(record, str(path), code).to_json(), end="")
        return code


def _options(args: argparse.Namespace) -> WatchOptions:
    """The checked options; a `SetupError` if one of them is invalid."""
    path = limits.limits_path(args.limits)
    held = limits.load_limits(path)
    throttles = args.limits != _NO_LIMITS
    if throttles and args.processes > 1:
        raise SetupError(
            "--limits needs one process, since a limit counts every request: leave out --processes"
        )
    if args.billable_transactions is not None and args.processes > 1:
        raise SetupError(
            "--billable-transactions needs one process, which counts every request: leave out "
            "--processes"
        )
    listen = address_of(args.listen)
    if args.proxy and (args.tls or not is_loopback(listen[0])):
        raise SetupError(
            "--proxy serves commands on this machine, over plain http: leave out --tls, and "
            "--listen at another address than 127.0.0.1"
        )
    if _NAME.fullmatch(args.name) is None:
        raise SetupError("--name has 1 to 80 letters, digits, dots, - or _")
    kind, described, host, account, remote = _endpoint(
        args, behind=held.service() if throttles else None
    )
    check_folder(args.out)
    known = resolve(args.profile).profile.endpoint if args.profile else EndpointSettings()
    now = dt.datetime.now(dt.UTC)
    plan = WatchPlan(
        run_id=f"{args.name}-{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}",
        name=args.name,
        command=Path(args.command[0]).name if args.command else "",
        kind=known.of(kind),
        described=described,
        host=host,
        processes=args.processes,
        warm_up_s=args.warm_up,
        budget=args.billable_transactions,
        conditions=_conditions(args),
        throughput=known.throughput if held.units is None else held.units.throughput,
        settings={
            "limits": args.limits,
            "processes": args.processes,
            "warm_up_s": args.warm_up,
            "duration_s": args.duration,
            "billable_transactions": args.billable_transactions,
        },
    )
    return WatchOptions(
        plan=plan,
        upstream=args.upstream,
        account=account,
        remote=remote,
        command=args.command,
        listen=listen,
        limits=path,
        tls=args.tls,
        proxy=args.proxy,
        env=args.env,
        keep_env=args.keep_env,
        wait_for_children=args.wait_for_children,
        duration_s=args.duration,
        out=args.out,
        page=("127.0.0.1", args.page_port),
        metrics=(args.metrics_host, args.metrics_port),
        push=args.metrics_push,
        otlp=args.otlp,
        aliases=aliases_from(os.environ, args),
        trace=args.trace,
        trace_properties=traced_properties(args),
        as_json=args.json,
    )


def _endpoint(
    args: argparse.Namespace, *, behind: Service | None
) -> tuple[Service, str, str, str, bool]:
    """Kind, name, host and account of the endpoint, ``behind`` limits or not; if it is remote."""
    kind, account, remote, host = EMBEDDED, "", False, "embedded Azurite"
    if args.upstream is not None:
        check_upstream(args.upstream)
        if args.upstream == NO_UPSTREAM:
            raise SetupError("--upstream is an endpoint that stores what the application writes")
        host = urlsplit(args.upstream).netloc
        remote = not on_this_machine(args.upstream)
        if remote:
            kind, account = require_consent(args.upstream, args.remote_ok)
    if behind is None:
        return kind, kind.described, host, account, remote
    if remote and behind.charges:
        raise SetupError(
            "--limits cosmos stands in for Azure Cosmos DB before an Azurite: leave out "
            "--upstream, or name an endpoint on this machine"
        )
    described = behind.described
    if remote:
        described = f"{kind.described} behind a gateway that enforces limits"
    return behind, described, host, account, remote


def _conditions(args: argparse.Namespace) -> tuple[Condition, ...]:
    of_profile = conditions_of(resolve(args.profile).profile) if args.profile else ()
    return (*of_profile, *parsed_all("--condition", args.condition, parse_condition))
