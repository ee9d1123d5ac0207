"""What a subcommand is, and what subcommands share: profiles, records of runs, the terminal.

An error for the user is a `harness.model.errors.SetupError`: the message goes to standard error,
and the exit code is `BAD_SETUP`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Protocol

from harness.measure.record.record import RecordError, RunRecord
from harness.model.errors import SetupError, cut
from harness.profile.profile_loader import NamedProfile, resolve, shipped_directory
from harness.report.terminal.page import Page

BAD_SETUP = 2
"""Exit code for bad input: nothing was done."""
RECORD = "run.json"
POSIX = os.name == "posix"
_LEAST_WIDTH, _MOST_WIDTH = 60, 110


class Command(Protocol):
    """A subcommand. Its name may have two words, such as ``azurite start``."""

    name: str
    help: str
    description: str

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommand's options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work, and return the exit code."""


def require_posix() -> None:
    """Refuse a command that uses signals, file locks and child processes as only POSIX has them.

    Raises:
        SetupError: this is Windows.
    """
    if not POSIX:
        raise SetupError("runs, Azurite and the gateway need Linux or macOS; on Windows use WSL 2")


def profile_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a profile and override its values."""
    parser.add_argument("profile", metavar="PROFILE", help="a shipped profile, or a TOML file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        dest="overrides",
        help="override one value, such as keys.partitions=20; can be repeated",
    )


def profile_of(
    args: argparse.Namespace, overrides: tuple[str, ...] = (), run_time_s: int | None = None
) -> NamedProfile:
    """The profile that the options choose.

    Args:
        args: What `profile_options` parsed.
        overrides: Further values in the form of ``--set``.
        run_time_s: The run time of ``-t``; None takes the profile's.

    Raises:
        SetupError: there is no such profile, or it is invalid; the message lists every mistake.
    """
    return resolve(
        args.profile,
        (*args.overrides, *overrides),
        run_time_s=run_time_s,
        directory=shipped_directory(),
    )


def record_files(path: Path) -> list[Path]:
    """The records at ``path``: a record, the folder of a run, or a folder of several runs.

    Raises:
        SetupError: ``path`` is a folder without any record.
    """
    if not os.path.isdir(path):
        return [path]
    if os.path.isfile(path / RECORD):
        return [path / RECORD]
    files = sorted(path.glob(f"*/{RECORD}"))
    if not files:
        raise SetupError(f"there is no {RECORD} in {path} or in a folder in it")
    return files


def read_record(path: Path) -> RunRecord:
    """The record in a file.

    Raises:
        SetupError: the file cannot be read, or holds no record.
    """
    try:
        return RunRecord.from_json(path.read_bytes())
    except OSError as error:
        raise SetupError(f"{cut(str(path))} cannot be read ({error.strerror or error})") from error
    except RecordError as error:
        raise SetupError(f"{cut(str(path))}: {error}") from error


def terminal_page(most_width: int = _MOST_WIDTH) -> Page:
    """The width of standard output, up to ``most_width`` columns, its colours and characters."""
    return Page(
        width=min(max(shutil.get_terminal_size((100, 24)).columns, _LEAST_WIDTH), most_width),
        colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
        ascii_only=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8",
    )
