"""What a subcommand is.

A sentence for the user is a `harness.model.errors.SetupError`: it goes to standard error, and the
exit code is `BAD_SETUP`.
"""

from __future__ import annotations

import argparse
from typing import Protocol

BAD_SETUP = 2
"""Exit code for bad input: nothing was done."""


class Command(Protocol):
    """A subcommand. Its name may have two words, such as ``azurite start``."""

    name: str
    help: str
    description: str

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommand's own options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""
