"""``harness doctor``: checks an endpoint and this machine before a run."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys

from rich.text import Text

from harness.commands.common import ONE_OBJECT
from harness.commands.servers import end_by_signal
from harness.doctor.checks import (
    CheckResult,
    Status,
    check_text,
    exit_code,
    failed,
    summary_text,
    together,
)
from harness.doctor.endpoint import EXPECTED_TRANSACTIONS, MOST_TRANSACTIONS, Examination
from harness.doctor.generator import SESSIONS, capacity_checks, generate
from harness.doctor.machine import load_part, machine_checks, watch_idle
from harness.endpoint.accounts import listed
from harness.endpoint.azurite.process import start_azurite
from harness.model.auth_mode import in_mode
from harness.model.errors import SetupError
from harness.model.sessions import TABLE_SESSIONS
from harness.options import add_endpoint_options
from harness.report.export.output import CommandOutput
from harness.report.terminal.page import Page

_MOST_WIDTH = 120


class Doctor:
    """Checks an endpoint and this machine before a run, in about 15 seconds.

    Each check is one line with a figure; a check that fails says what to do. The last ones say how
    much load this machine can generate, and how many processes or machines the targets need.

    The permissions are tried on a new table, which is deleted afterwards. Without -H the embedded
    Azurite is checked. Exit codes: 0 nothing failed, 1 a check failed and a run cannot work, 2 bad
    input, 3 nothing failed, but checks were not tried (a remote host without --remote-ok).
    """

    def options(self, parser: argparse.ArgumentParser) -> None:
        add_endpoint_options(
            parser,
            "the endpoint; can be repeated for several accounts (default: an embedded Azurite)",
            f": about {EXPECTED_TRANSACTIONS} transactions. Without it a remote host gets no "
            "request",
            required=False,
        )
        parser.add_argument(
            "--session",
            choices=TABLE_SESSIONS,
            help="the only session to measure, which also tries the permissions (default: "
            f"{' and '.join(SESSIONS)}; permissions with {SESSIONS[0]})",
        )
        parser.add_argument(
            "--no-capacity",
            action="store_true",
            help="do not measure what this machine can generate, which takes most of the time",
        )
        parser.add_argument("--json", action="store_true", help=ONE_OBJECT.format("doctor"))

    def run(self, args: argparse.Namespace) -> int:
        end_by_signal()
        report = _Report(as_json=args.json)
        examinations = _examinations(args, report)
        idle = watch_idle()
        with contextlib.ExitStack() as stack:
            for examination in examinations or _embedded(args, report, stack):
                report.section(f"endpoint {examination.host}", examination.account)
                if examination.remote and not examination.consent_missing:
                    report.note(
                        f"about {EXPECTED_TRANSACTIONS} billable transactions of the account "
                        f"{examination.account}, at most {MOST_TRANSACTIONS}"
                    )
                for check in examination.checks():
                    report.take(check)
                report.transactions += examination.budget.spent if examination.remote else 0
        report.section("this machine")
        for check in machine_checks(idle):
            report.take(check)
        if not args.no_capacity:
            report.section("what this machine can generate")
            sessions = SESSIONS if args.session is None else (args.session,)
            try:
                made = list(generate(sessions, load_part(idle), report.progress))
            except SetupError as error:
                report.take(failed("capacity", str(error)))
            else:
                kinds = [one.endpoint.kind for one in examinations if one.endpoint is not None]
                charged = bool(kinds) and all(kind.charges for kind in kinds)
                for check in capacity_checks(made, charged=charged):
                    report.take(check)
                report.note(
                    "measured against a server that only answers, in CPU time of the workers: "
                    "on all cores is that of a machine which does nothing else. Targets leave a "
                    "fifth of each core free. Other mixes differ; the record of a run has its own."
                )
        return report.end()


def _examinations(args: argparse.Namespace, report: _Report) -> list[Examination]:
    """The examinations of all endpoints on the command line; no request is sent yet."""
    hosts = listed(args.host)
    return [
        Examination(
            host,
            remote_ok=args.remote_ok,
            session=args.session or SESSIONS[0],
            alone=len(hosts) == 1,
            environ=in_mode(os.environ, args.auth_mode),
            say=report.progress,
        )
        for host in hosts
    ]


def _embedded(
    args: argparse.Namespace, report: _Report, stack: contextlib.ExitStack
) -> list[Examination]:
    """The examination of an Azurite, which is started here and stopped by ``stack``."""
    report.progress("starting Azurite")
    azurite = stack.enter_context(start_azurite())
    session = args.session or SESSIONS[0]
    return [
        Examination(
            azurite.endpoint.url, embedded=azurite.endpoint, session=session, say=report.progress
        )
    ]


class DoctorOutput(CommandOutput):
    """All checks; ``exit_code`` is 1 where a run cannot work, and 3 where checks were not tried."""

    checks: tuple[CheckResult, ...]
    billable_transactions: int
    exit_code: int


class _Report:
    """Prints each check as it is done, or all of them as JSON at the end."""

    def __init__(self, *, as_json: bool) -> None:
        self.transactions = 0
        self._json = as_json
        self._page = Page.of_terminal(sys.stdout, _MOST_WIDTH)
        self._checks: list[CheckResult] = []
        self._section = ""
        self._progress = ""
        self._untried: list[CheckResult] = []

    def section(self, title: str, account: str = "") -> None:
        self._section = title
        if not self._json:
            named = f"{title}{account and f', account {account}'}"
            self._print(self._page.render(self._page.section(named)))

    def note(self, text: str) -> None:
        if not self._json:
            self._print(self._page.render(Text(text, "dim")))

    def take(self, check: CheckResult) -> None:
        self._checks.append(dataclasses.replace(check, section=self._section))
        if self._json:
            return
        # Checks that were not tried for the same reason share one line.
        if self._untried and check.text != self._untried[0].text:
            self._print_untried()
        if check.status is Status.NOT_TRIED:
            self._untried.append(check)
        else:
            self._print(check_text(check, self._page))

    def _print_untried(self) -> None:
        if self._untried:
            text = check_text(together(self._untried), self._page)
            self._untried = []
            self._print(text)

    def progress(self, doing: str) -> None:
        """Show a step that takes long, in a line that the next output overwrites."""
        if sys.stderr.isatty():
            blank = " " * len(self._progress)
            self._progress = f"  {doing} ..." if doing.strip() else ""
            print(f"\r{blank}\r{self._progress}", end="", file=sys.stderr, flush=True)

    def end(self) -> int:
        code = exit_code(self._checks)
        if self._json:
            output = DoctorOutput(
                checks=tuple(self._checks),
                billable_transactions=self.transactions,
                exit_code=code,
            )
            print(output.to_json(), end="")
        else:
            self._print(f"\n{summary_text(self._checks, self.transactions, code)}")
        return code

    def _print(self, text: str) -> None:
        self._print_untried()
        self.progress("")
        print(text, flush=True)
