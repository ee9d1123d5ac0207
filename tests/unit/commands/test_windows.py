"""What Windows lacks is missed by nothing but the commands that need it."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """\
import signal, sys
sys.modules["fcntl"] = None
del signal.SIGHUP
from harness import cli
cli.POSIX = False
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("profiles", 0),
        ("schemes", 0),
        ("plan upsert", 0),
        ("check upsert", 0),
        ("run upsert", 2),
        ("azurite install", 2),
        ("azurite start", 2),
        ("gateway --upstream none", 2),
    ],
)
def test_commands_work_or_say_that_they_do_not(arguments: str, code: int) -> None:
    """Without file locks and SIGHUP only the commands that run, install or serve are refused."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert ("use WSL 2" in done.stderr) == bool(code)
