"""A wheel works from any folder: it holds everything that a checkout has beside the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness.endpoint.azurite.process import AzuriteProcess
from harness.measure.record.record import RunRecord
from harness.profile.profile_loader import shipped_names

ROOT = Path(__file__).parents[2]
SOURCES = ("harness", "profiles", "limits", "docs", "examples", "dashboards")
FILES = (
    *("pyproject.toml", "setup.py", "LICENSE", "README.md", "CHANGELOG.md"),
    *("locustfile.py", "locust_plugins.py"),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the working copy."""
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
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path) -> Path:
    """The folder that the wheel was unpacked into."""
    folder = wheel.parent / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


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
    assert {line.split()[0] for line in listed.splitlines() if line[:1] == " "} == set(
        shipped_names()
    )
    templates = Path("harness", "templates")
    assert {path.relative_to(unpacked) for path in (unpacked / templates).rglob("*")} == {
        path.relative_to(ROOT) for path in (ROOT / templates).rglob("*")
    }
    asked = "from harness.gateway.limits import limits_path; print(limits_path('demo'))"
    assert Path(run(unpacked, tmp_path, "-c", asked).strip()).is_relative_to(unpacked)


def test_a_run_starts_from_any_folder(unpacked: Path, tmp_path: Path) -> None:
    """`harness run` gives Locust the shipped locustfile, which finds its user classes."""
    said = run(unpacked, tmp_path, "-m", "harness", "run", "single-partition", "--list")
    assert "ProfileUser" in said


def test_the_help_of_locust_shows_the_options(unpacked: Path, tmp_path: Path) -> None:
    """With a locustfile that uses the harness, named or the folder's own; else not."""
    alone = run(unpacked, tmp_path, "-m", "locust", "--help")
    assert "--remote-ok" not in alone
    for name, named in (("mine.py", ("-f", "mine.py")), ("locustfile.py", ())):
        shutil.copy(ROOT / "locustfile.py", tmp_path / name)
        said = run(unpacked, tmp_path, "-m", "locust", *named, "--help")
        for option in ("--set", "--remote-ok", "--swarm", "--web-allowed-host"):
            assert f"\n  {option} " in said
        assert alone.splitlines()[-1] == said.splitlines()[-1]


_PIP_READS = ("PIP_", "SSL_", "HTTP", "NO_PROXY", "http", "https", "no_proxy", "REQUESTS_")


@pytest.fixture(scope="module")
def empty(wheel: Path) -> Path:
    """The programs of an empty environment, where the requirements of a new folder are installed.

    Dependencies are the pinned ones.
    """
    environment = wheel.parent / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    folder = wheel.parent / "first"
    programs = environment / "bin"
    command = [sys.executable, "-m", "harness", "init", "--package", str(wheel), str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    command = [str(programs / "pip"), "install", "--quiet"]
    command += ["-c", str(ROOT / "requirements.txt"), "-r", "requirements.txt"]
    kept = {name: value for name, value in os.environ.items() if name.startswith(_PIP_READS)}
    subprocess.run(command, cwd=folder, env={**kept, "PATH": "/usr/bin:/bin"}, check=True)
    return programs


def place_variables(empty: Path, azurite: AzuriteProcess, home: Path) -> dict[str, str]:
    """An environment as a place makes it, with a short run."""
    return {
        "PATH": f"{empty}:/usr/bin:/bin",
        "HOME": str(home),
        "LOCUST_HOST": f"http://{azurite.endpoint.host}",
        "LOCUST_USERS": "3",
        "LOCUST_SPAWN_RATE": "10",
        "LOCUST_RUN_TIME": "5",
        "STRESS_SET": "[keys.rows_per_partition=100, conditions=[], load.settle_s=0]",
        "STRESS_METRICS_PORT": "0",
    }


def ended(
    empty: Path, command: str, *arguments: str, folder: Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """A command of the environment, after its end."""
    return subprocess.run(
        [str(empty / command), *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.long
@pytest.mark.azurite
@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("local", ["harness", "run", "./profile.toml"]),
        ("local", ["locust", "-f", "locustfile.py", "--headless"]),
        ("azure-load-testing", ["locust"]),
    ],
)
def test_a_new_folder_runs_in_an_empty_environment(
    empty: Path, azurite: AzuriteProcess, tmp_path: Path, place: str, command: list[str]
) -> None:
    """Unchanged, with the variables that a place sets (12 s each, installing before: minutes)."""
    environ = place_variables(empty, azurite, tmp_path)
    made = ended(empty, "harness", "init", "--for", place, "mine", folder=tmp_path, env=environ)
    assert made.returncode == 0, made.stderr
    folder = tmp_path / "mine"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = ended(empty, *command, folder=folder, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (folder / "out").glob("*/run.json")
    record = RunRecord.from_json(file.read_bytes())
    assert record.complete
    assert record.users == 3
    # What the run names to type next can be typed in this folder.
    (told,) = (line for line in done.stdout.splitlines() if line.startswith("All figures: "))
    again = ended(empty, *told.split()[2:], folder=folder, env=environ)
    assert again.returncode == 0, again.stderr
    assert record.run_id in again.stdout
    assert record.counts.sent > 0
    left = {path.name for path in folder.iterdir()} - set(before)
    assert left <= {"out", "__pycache__"}
    assert all((folder / name).read_bytes() == content for name, content in before.items())


# Everything is read-only, but the folder that is named first. Mounts end with the process.
_READ_ONLY = """\
mount --bind "$1" "$1" && mount -o remount,ro,bind / || exit 99
cd "$1" && shift && exec "$@"
"""
_NO_MOUNTS = 99


@pytest.mark.long
@pytest.mark.azurite
def test_a_run_writes_to_its_results_alone(
    empty: Path, azurite: AzuriteProcess, tmp_path: Path
) -> None:
    """As in a container with a read-only file system (12 s)."""
    out = tmp_path / "out"
    out.mkdir()
    environ = place_variables(empty, azurite, tmp_path) | {"TMPDIR": str(out)}
    command = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    command += ["sh", "-c", _READ_ONLY, "sh", str(out), str(empty / "harness")]
    done = subprocess.run(
        [*command, "run", "single-partition", "--out", str(out)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode in (1, _NO_MOUNTS) and "mount" in done.stderr + done.stdout:
        pytest.skip("allowed: this machine makes no mounts of its own")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in out.iterdir()] == [next(out.glob("2*")).name]
