"""In CI a skipped test is a failure, because there everything is to be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("ci", "reason", "code"),
    [
        ("true", "no promtool: run make test-deps", 1),
        ("true", "allowed: no such thing on this system", 0),
        ("", "no promtool: run make test-deps", 0),
    ],
)
@pytest.mark.parametrize("whole_module", [True, False])
def test_a_skip_fails_in_ci_unless_it_is_allowed(
    tmp_path: Path, ci: str, reason: str, code: int, whole_module: bool
) -> None:
    """With CI=true only a skip whose reason is marked allowed passes, test or module."""
    body = f"import pytest\npytest.skip({reason!r}, allow_module_level=True)"
    if not whole_module:
        body = f"import pytest\ndef test_it():\n    pytest.skip({reason!r})"
    file = tmp_path / "test_skipping.py"
    file.write_text(f"{body}\ndef test_runs(): pass\n", encoding="utf-8")
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path), *options, str(file)],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    # A module that is skipped whole leaves no test, which pytest tells by 5.
    expected = {(0, True): (0, 5), (1, True): (1, 2)}.get((code, whole_module), (code,))
    assert done.returncode in expected, done.stdout + done.stderr
