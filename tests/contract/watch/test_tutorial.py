"""The tutorial's commands, run as they stand there, lead to its recommendation."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.watch.conftest import ROOT

pytestmark = [pytest.mark.azurite, pytest.mark.long]

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
COMMANDS = [line.strip() for line in TUTORIAL.splitlines() if line.startswith("    harness ")]
_MEASURED = re.compile(r"^(\S.*?) +([0-9.]+)% +([0-9.]+)% +[0-9.]+% +[0-9.]+%$", re.MULTILINE)
PATIENCE_S = 400.0


def test_the_commands_lead_to_a_verified_recommendation(tmp_path: Path) -> None:
    """Four commands; under the recommended keys less is throttled, calculated and measured.

    Bounds: a minute of recording, a calculation and two replays: four minutes.
    """
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert len(COMMANDS) == 4
    said = []
    for command in COMMANDS:
        words = [sys.executable if one == "python" else one for one in shlex.split(command)[1:]]
        ended = subprocess.run(
            [sys.executable, "-m", "harness", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        said.append(ended.stdout)
    assert re.search(r"^PartitionKey \{partition_key\}_\{number\}: ", said[2], re.MULTILINE)
    today, proposed = (
        [float(share) for share in shares] for _, *shares in _MEASURED.findall(said[-1])
    )
    assert all(after < before for before, after in zip(today, proposed, strict=True)), said[-1]
