"""What Windows lacks is missed by nothing but the commands that need it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """\
import signal, sys
sys.modules["fcntl"] = None
del signal.SIGHUP
from harness import cli
cli.POSIX = False
print(*(cli.main(line.split()) for line in sys.argv[1:]), file=sys.stderr)
"""
WORK = ("profiles", "schemes", "plan upsert", "check upsert")
REFUSED = ("run upsert", "azurite install", "azurite start", "gateway --upstream none")


def test_commands_work_or_say_that_they_do_not() -> None:
    """Without file locks and SIGHUP only the commands that run, install or serve are refused."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *WORK, *REFUSED], capture_output=True, text=True, check=True
    )
    *said, codes = done.stderr.splitlines()
    assert codes.split() == ["0"] * len(WORK) + ["2"] * len(REFUSED)
    assert ["use WSL 2" in line for line in said] == [True] * len(REFUSED)
