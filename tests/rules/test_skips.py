"""In CI a skipped test is a failure, because there everything is to be had."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


LACKING, ALLOWED = "no promtool: run make test-deps", "allowed: no such thing on this system"
TEST = "import pytest\ndef test_it(): pytest.skip({!r})\n"
MODULE = "import pytest\npytest.skip({!r}, allow_module_level=True)\n"


@pytest.mark.parametrize(("ci", "wrong"), [("true", {"test_lacks", "module_lacks"}), ("", set())])
def test_a_skip_fails_in_ci_unless_it_is_allowed(tmp_path: Path, ci: str, wrong: set[str]) -> None:
    """With CI=true only a skip whose reason is marked allowed passes, test or module."""
    for name, text in (("test", TEST), ("module", MODULE)):
        for ending, reason in (("lacks", LACKING), ("allowed", ALLOWED)):
            file = tmp_path / f"test_{name}_{ending}.py"
            file.write_text(text.format(reason), encoding="utf-8")
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    options += ["--continue-on-collection-errors", "-rfEs", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(re.findall(r"^(?:FAILED|ERROR) \S*/test_(\w+)\.py", done.stdout, re.M)) == wrong
    assert len(re.findall(r"^SKIPPED ", done.stdout, re.M)) == 4 - len(wrong), done.stdout
    assert bool(done.returncode) is bool(wrong)
