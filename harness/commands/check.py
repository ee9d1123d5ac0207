"""``harness check``: a profile held against the documented practices, before anything is sent."""

from __future__ import annotations

import argparse

from harness.commands.showing import profile_of, profile_options, terminal_page
from harness.profile.checklist import findings_of, of_severity
from harness.profile.checks.practice import Severity
from harness.profile.observed import observe
from harness.report.advice import check_json, check_text

_OFFENDED = 1


class Check:
    """Hold a profile against the practices."""

    name = "check"
    help = "which documented practices a profile offends, and where its load will fall"
    description = (
        "Walks the performance checklist and the key design practices over a profile, without "
        "sending anything, and says which it offends and why, with the document and the section; "
        "where documents disagree, both. It predicts which share of the load falls on the "
        "hottest partition and range of keys, and at which rate that partition reaches its target. "
        "docs/checklist.md has a line for each row of the checklist. Exit code 2: bad input."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Which profile, and how to say it."""
        profile_options(parser)
        parser.add_argument(
            "--strict", action="store_true", help="exit code 1 where a practice is offended"
        )
        parser.add_argument(
            "--format", choices=("text", "json"), default="text", help="(%(default)s)"
        )

    def run(self, args: argparse.Namespace) -> int:
        """Look at what would be sent; say what was seen."""
        named = profile_of(args)
        seen = observe(named.profile)
        findings = findings_of(seen)
        about = (named.name, named.profile.question, seen.prediction, findings)
        print(check_json(*about) if args.format == "json" else check_text(*about, terminal_page()))
        offended = of_severity(findings, Severity.OFFENDS)
        return _OFFENDED if args.strict and offended else 0
