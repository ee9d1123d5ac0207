"""`harness init`: what it writes, and what it does not touch."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from harness import __version__
from harness.cli import main
from harness.commands.init import AUTH_MODES, IN_REPOSITORY, PLACES, rendered
from harness.profile.profile_loader import shipped_directory
from tests.support.command import Command

ADDRESS = "git+https://git.example/tables@0123abcd"


def written(folder: Path) -> dict[str, str]:
    """The files of a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("auth_mode", AUTH_MODES)
@pytest.mark.parametrize("place", PLACES)
def test_each_place_gets_a_whole_folder(place: str, auth_mode: str) -> None:
    """A locustfile of three lines, a profile, the requirement, and a README of every file."""
    files = rendered(place, "key-spread", "mytables", auth_mode, ADDRESS)
    within = "stress/" if place in IN_REPOSITORY else ""
    locustfile = files[f"{within}locustfile.py"]
    assert len(locustfile.splitlines()) == 3
    ast.parse(locustfile)
    assert files[f"{within}profile.toml"] == (shipped_directory() / "key-spread.toml").read_text(
        encoding="utf-8"
    )
    assert files[f"{within}requirements.txt"] == f"table-stress-harness @ {ADDRESS}\n"
    readme = files[f"{within}README.md"]
    for name in files:
        assert f"`{name.removeprefix(within)}`" in readme or "README" in name or "ignore" in name
    for name, text in files.items():
        assert not re.search(r"\[\[|\[%|\bACCOUNT\b", text), name
        assert text.endswith("\n")
    # A credential has no place in files; a login needs none.
    text = "\n".join(files.values())
    assert ("AZURE_STORAGE_AUTH_MODE" in text) is (auth_mode == "login")
    assert not re.search(r"AccountKey=|sig=|AZURE_STORAGE_(?:KEY|SAS_TOKEN): *[A-Za-z0-9+/]", text)


def test_the_folder_is_written_and_the_next_step_said(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file is listed, and what to type next; without an account a word stands for it."""
    monkeypatch.chdir(tmp_path)
    said = command("init", "a new one")
    files = written(tmp_path / "a new one")
    assert files == rendered("local", "single-partition", "ACCOUNT", "login")
    assert all(f"\n  {name}\n" in said for name in files)
    assert "\n  cd 'a new one'\n  harness run ./profile.toml\n" in said
    assert "replace ACCOUNT" in said
    assert "--package WHEEL" in said


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ("examples", ["hot-tenant/hot-tenant.parquet", "append-only-log/by-sensor.toml"]),
        ("grafana", ["docker-compose.yml", "dashboards/rules.yml", "dashboards/provisioning"]),
    ],
)
def test_what_is_copied_is_whole(
    place: str, named: list[str], tmp_path: Path, command: Command
) -> None:
    """The README explains each file or its folder, and none is there twice."""
    said = command("init", "--for", place, tmp_path)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert all((tmp_path / name).exists() for name in named)
    for path in tmp_path.rglob("*.*"):
        explained = path.name in readme or path.name == "README.md" or path.is_dir()
        assert explained or path.parent.name in readme, path
        assert path.is_dir() or f"  {path.relative_to(tmp_path).as_posix()}\n" in said
    assert "same names" in command.refused("init", "--for", place, tmp_path)


@pytest.mark.parametrize("place", PLACES)
def test_a_wheel_goes_where_it_is_installed(place: str, tmp_path: Path) -> None:
    """It is copied beside the requirements, which name it."""
    wheel = tmp_path / f"table_stress_harness-{__version__}-py3-none-any.whl"
    wheel.write_bytes(b"\0\xff")
    folder = tmp_path / "made"
    assert main(["init", "--for", place, "--package", str(wheel), str(folder)]) == 0
    [copied] = folder.rglob("*.whl")
    assert copied.read_bytes() == b"\0\xff"
    assert (copied.parent / "requirements.txt").read_text() == f"./{wheel.name}\n"


@pytest.mark.parametrize("package", ["table-stress-harness", "missing.whl", "x.tar.gz"])
def test_what_cannot_be_installed_is_refused(
    package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name on a package index is refused, because anybody may have taken it."""
    assert main(["init", "--package", package, str(tmp_path / "made")]) == 2
    assert "--package" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_a_repository_keeps_its_own_files(tmp_path: Path) -> None:
    """The workflow goes where the platform looks for it, everything else into a folder."""
    (tmp_path / "README.md").write_text("Ours.\n")
    command = ["init", "--account", "mytables", str(tmp_path), "--for"]
    assert main([*command, "github-actions"]) == 0
    names = set(written(tmp_path))
    assert {name for name in names if not name.startswith("stress/")} == {
        ".github/workflows/table-stress.yml",
        "README.md",
    }
    assert (tmp_path / "README.md").read_text() == "Ours.\n"


def test_files_of_the_same_name_are_kept(tmp_path: Path, command: Command) -> None:
    """Nothing is written beside them; --force replaces them, but not what a link leads to."""
    theirs = tmp_path / "theirs.toml"
    theirs.write_text("theirs")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "profile.toml").symlink_to(theirs)
    (folder / "notes.txt").write_text("mine")
    assert "files of the same names: profile.toml. Nothing was written" in command.refused(
        "init", folder
    )
    assert len(list(folder.iterdir())) == 2
    command("init", "--force", folder)
    assert not (folder / "profile.toml").is_symlink()
    assert (theirs.read_text(), (folder / "notes.txt").read_text()) == ("theirs", "mine")


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, command: Command) -> None:
    """A file in its place is one sentence, not a traceback."""
    (tmp_path / "file").write_text("")
    assert "cannot be written: Not a directory" in command.refused(
        "init", tmp_path / "file" / "new"
    )
