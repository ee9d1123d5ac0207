"""``harness check``: compares a profile with the documented practices, without sending anything."""

from __future__ import annotations

import argparse

from harness.commands.command import profile_of, profile_options, terminal_page
from harness.profile.checks.checklist import findings_of, of_severity
from harness.profile.checks.observed import observe
from harness.profile.checks.practice import Severity
from harness.report.terminal.checklist import check_json, check_text

_OFFENDED = 1


class Check:
    name = "check"
    help = "compare a profile with the documented practices, and predict where its load falls"
    description = (
        "Compares a profile with the performance checklist and the key design practices, without "
        "sending anything. Each finding names the document and the section, and both documents "
        "where they disagree. The prediction says which share of the load goes to the hottest "
        "partition and range of keys, and at which total rate that partition reaches its target. "
        "Exit codes: 0; 1 with --strict if a practice is violated; 2 for bad input."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        profile_options(parser)
        parser.add_argument(
            "--strict", action="store_true", help="exit with 1 if a practice is violated"
        )
        parser.add_argument(
            "--format",
            choices=("text", "json"),
            default="text",
            help="output format (default: %(default)s)",
        )

    def run(self, args: argparse.Namespace) -> int:
        named = profile_of(args)
        seen = observe(named.profile)
        findings = findings_of(seen)
        about = (named.name, named.profile.question, seen.prediction, findings)
        print(check_json(*about) if args.format == "json" else check_text(*about, terminal_page()))
        offended = of_severity(findings, Severity.OFFENDS)
        return _OFFENDED if args.strict and offended else 0
