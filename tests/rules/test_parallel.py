"""The processes that share the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import parallel

_CONFTEST = """\
from tests.parallel import run_shared

def pytest_runtestloop(session):
    return run_shared(session) or None
"""
_ONCE = """\
from pathlib import Path

def test_good(): pass

def test_failing_once():
    file = Path(__file__).with_suffix(".ran")
    ran = file.exists()
    file.touch()
    assert ran
"""
_APART = """\
from pathlib import Path
import pytest

def note(name):
    with Path(__file__).with_suffix(".ran").open("a") as file:
        file.write(f"{name} ")

def test_first(): note("first")
@pytest.mark.apart
@pytest.mark.parametrize("one", ["a/b", "c"])
def test_apart(one): note(one)
def test_last(): note("last")
"""
_ALWAYS = "def test_failing(): assert False\n"


def _share(folder: Path, *groups: str, **tests: str) -> subprocess.CompletedProcess[str]:
    """Let two processes share the tests of some files, in groups of arguments."""
    (folder / "tests").mkdir()
    shutil.copy(parallel.__file__, folder / "tests")
    (folder / "tests" / "conftest.py").write_text(_CONFTEST)
    for name, content in tests.items():
        (folder / "tests" / f"test_{name}.py").write_text(content)
    return subprocess.run(
        [sys.executable, "-m", "tests.parallel", "-j", "2", "--", *(groups or ("tests",))],
        cwd=folder,
        # Without the plugins that are installed, whose imports take seconds.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_test_that_passes_alone_is_named(tmp_path: Path) -> None:
    """It does not fail the whole, and is not passed over in silence."""
    ran = _share(tmp_path, once=_ONCE, other="def test_good(): pass\n")
    assert ran.returncode == 0, ran.stdout
    last = ran.stdout.splitlines()[-1]
    assert last.startswith("passed alone")
    assert "test_once.py::test_failing_once" in last
    assert "test_good" not in last


@pytest.mark.parametrize("again", [_ALWAYS, "import nothing_of_this_name\n"])
def test_a_test_that_fails_alone_too_fails_the_whole(tmp_path: Path, again: str) -> None:
    """So does a file that cannot be collected, which is not tried again."""
    ran = _share(tmp_path, once=_ONCE, again=again)
    assert ran.returncode != 0, ran.stdout
    assert "passed alone" not in ran.stdout


def test_every_test_of_a_file_runs_once_with_some_of_them_apart(tmp_path: Path) -> None:
    """A test in the middle of its file may be claimed by another process, and none is left out."""
    ran = _share(tmp_path, apart=_APART, other="def test_good(): pass\n")
    assert ran.returncode == 0, ran.stdout
    noted = (tmp_path / "tests" / "test_apart.ran").read_text().split()
    assert sorted(noted) == ["a/b", "c", "first", "last"]


_TOGETHER = """\
import os, time
from pathlib import Path
import pytest

@pytest.mark.apart
@pytest.mark.parametrize("one", range(3))
def test_one(one):
    folder = Path(__file__).parent
    mine = folder / f"running-{os.getpid()}-{one}"
    mine.touch()
    time.sleep(0.3)
    with (folder / "ran").open("a") as file:
        file.write(f"{len(list(folder.glob('running-*')))} ")
    mine.unlink()
"""


def test_groups_take_turns(tmp_path: Path) -> None:
    """Tests of two groups run at once, each test once, and never more than there are jobs."""
    files = ("tests/test_first.py", "--", "tests/test_second.py")
    ran = _share(tmp_path, *files, first=_TOGETHER, second=_TOGETHER)
    assert ran.returncode == 0, ran.stdout
    running = list(map(int, (tmp_path / "tests" / "ran").read_text().split()))
    assert len(running) == 6
    assert max(running) == 2


def test_a_group_has_variables_of_its_own(tmp_path: Path) -> None:
    """Also when a test that failed beside others runs again, alone."""
    test = "import os\ndef test_variable(): assert os.environ.get('SAID') == {!r}\n"
    once = _ONCE.replace("ran = ", 'assert os.environ["SAID"] == "x=y"\n    ran = ', 1)
    files = ("SAID=x=y", "tests/test_once.py", "--", "tests/test_none.py")
    ran = _share(tmp_path, *files, once=f"import os\n{once}", none=test.format(None))
    assert ran.returncode == 0, ran.stdout
    assert "passed alone" in ran.stdout


def test_a_failure_in_any_group_fails_the_whole(tmp_path: Path) -> None:
    """Also where the other group passes."""
    files = ("tests/test_failing.py", "--", "tests/test_good.py")
    ran = _share(tmp_path, *files, failing=_ALWAYS, good="def test_good(): pass\n")
    assert ran.returncode == 1, ran.stdout
