"""What subcommands share: which profile they are about, and the page they write on."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from harness.profile.load import NamedProfile, resolve, shipped_directory
from harness.report.page import Page

_LEAST_WIDTH, _MOST_WIDTH = 60, 110


def profile_options(parser: argparse.ArgumentParser) -> None:
    """Which profile, with which values overridden."""
    parser.add_argument("profile", metavar="PROFILE", help="a shipped one's name, or a file's path")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        dest="overrides",
        help="override a value, such as keys.partitions=20; may be repeated",
    )


def profile_of(
    args: argparse.Namespace, overrides: tuple[str, ...] = (), run_time_s: int | None = None
) -> NamedProfile:
    """The profile that the options name.

    Args:
        args: What `profile_options` parsed.
        overrides: Further values, as of ``--set``.
        run_time_s: As of ``-t``; None is the profile's.

    Raises:
        SetupError: there is none, or it is wrong; every mistake is named.
    """
    return resolve(
        args.profile,
        (*args.overrides, *overrides),
        run_time_s=run_time_s,
        directory=shipped_directory(),
    )


def terminal_page(most_width: int = _MOST_WIDTH) -> Page:
    """Standard output as it is: its width, whether it shows colours and more than ASCII.

    Args:
        most_width: Columns that are used at most.
    """
    return Page(
        width=min(max(shutil.get_terminal_size((100, 24)).columns, _LEAST_WIDTH), most_width),
        colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
        ascii_only=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8",
    )
