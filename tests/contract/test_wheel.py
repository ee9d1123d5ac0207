"""A wheel works from any folder: it holds everything that a checkout has beside the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness.profile.profile_loader import shipped_names

ROOT = Path(__file__).parents[2]
SOURCES = ("harness", "profiles", "limits")
FILES = ("pyproject.toml", "setup.py", "LICENSE", "README.md", "locustfile.py", "locust_plugins.py")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a wheel of the working copy was unpacked into."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in SOURCES:
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    for name in FILES:
        shutil.copy(ROOT / name, source)
    build = "from setuptools import build_meta; import sys; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", build, str(folder)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def run(unpacked: Path, folder: Path, *command: str) -> str:
    """What a command says, whose packages come from the wheel."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_is_what_is_tried(unpacked: Path, tmp_path: Path) -> None:
    """The package comes from the wheel, with its type information and nothing of the tests."""
    where = run(unpacked, tmp_path, "-c", "import harness; print(harness.__file__)")
    assert Path(where.strip()).is_relative_to(unpacked)
    assert (unpacked / "harness" / "py.typed").is_file()
    names = {path.name for path in unpacked.iterdir() if path.suffix != ".dist-info"}
    assert names == {"harness", "locust_plugins.py"}


def test_the_wheel_has_every_shipped_file(unpacked: Path, tmp_path: Path) -> None:
    """Profiles and limits are those of the top-level folders."""
    for folder in ("profiles", "limits"):
        packed = (unpacked / "harness" / "shipped" / folder).glob("*.toml")
        assert {file.name for file in packed} == {
            file.name for file in (ROOT / folder).glob("*.toml")
        }
    listed = run(unpacked, tmp_path, "-m", "harness", "profiles")
    assert len(listed.splitlines()) == len(shipped_names())
    asked = "from harness.gateway.limits import limits_path; print(limits_path('demo'))"
    assert Path(run(unpacked, tmp_path, "-c", asked).strip()).is_relative_to(unpacked)


def test_a_run_starts_from_any_folder(unpacked: Path, tmp_path: Path) -> None:
    """`harness run` gives Locust the shipped locustfile, which finds its user classes."""
    said = run(unpacked, tmp_path, "-m", "harness", "run", "single-partition", "--list")
    assert "ProfileUser" in said


@pytest.mark.parametrize("named", [True, False])
def test_the_help_of_locust_shows_the_options(unpacked: Path, tmp_path: Path, named: bool) -> None:
    """With a locustfile that uses the harness, named or the folder's own; else not."""
    alone = run(unpacked, tmp_path, "-m", "locust", "--help")
    assert "--remote-ok" not in alone
    file = tmp_path / ("mine.py" if named else "locustfile.py")
    shutil.copy(ROOT / "locustfile.py", file)
    said = run(unpacked, tmp_path, "-m", "locust", *(["-f", file.name] if named else []), "--help")
    for option in ("--set", "--remote-ok", "--swarm", "--web-allowed-host"):
        assert f"\n  {option} " in said
    assert alone.splitlines()[-1] == said.splitlines()[-1]
