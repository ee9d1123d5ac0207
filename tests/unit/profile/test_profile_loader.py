"""How a profile is found, read and overridden."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import SetupError
from harness.profile.profile_loader import resolve


def test_an_override_changes_one_value() -> None:
    """--set changes the value at its path, with TOML's types, and quotes can be left out."""
    named = resolve(
        "single-partition",
        [
            "load.users=7",
            "fields.key.distribution=zipfian",
            "retry.delays_s=[1.0, 2.0]",
            "fields.key.values=2",
            "keys.partition_key={key}",
            "keys.rows_per_partition=[30, 40]",
            "search.start_per_s=50",
            "search.hold_s=5",
        ],
    )
    profile = named.profile
    assert profile.load.users == 7
    assert profile.fields["key"].distribution == "zipfian"
    assert profile.retry.delays_s == (1.0, 2.0)
    assert profile.design.rows.total == 70
    assert profile.search is not None
    assert (profile.search.start_per_s, profile.search.hold_s) == (50, 5)


def test_an_override_gives_stages() -> None:
    """--set takes a list of stages as TOML writes it in one line, and names what is wrong in it."""
    stages = "stage=[{for_s = 5, to_users = 3}, {for_s = 2.5, to_users = 9, jump = true}]"
    profile = resolve("single-partition", [stages]).profile
    assert [(stage.for_s, stage.to, stage.jump) for stage in profile.stage] == [
        (5, 3, False),
        (2.5, 9, True),
    ]
    with pytest.raises(SetupError, match=r"stage\.0\.for_s: must be more than 0 \(it is -5\)"):
        resolve("single-partition", ["stage=[{for_s = -5, to_users = 3}]"])


@pytest.mark.parametrize("override", ["load.users", "=3", "load..users=3", "seed.x=1"])
def test_a_malformed_override_is_named(override: str) -> None:
    """A --set that is no path and value is refused with its own text."""
    with pytest.raises(SetupError, match="--set"):
        resolve("single-partition", [override])


def test_an_unknown_profile_names_those_there_are() -> None:
    """Who misspells a profile is told the names."""
    with pytest.raises(SetupError, match=r"did you mean single-partition"):
        resolve("singel-partition")


def test_a_path_is_taken_only_where_paths_are(tmp_path: Path) -> None:
    """A profile file is taken from the command line and refused from the form."""
    file = tmp_path / "mine.toml"
    file.write_text('# Mine?\nuser_class = "Mine"\n', encoding="utf-8")
    assert resolve(str(file)).profile.question == "Mine?"
    with pytest.raises(SetupError, match="only shipped profiles"):
        resolve(str(file), paths=False)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder, a file that its system lets nobody read, and bytes that are no text."""
    folder, no_text = tmp_path / "folder.toml", tmp_path / "no-text.toml"
    folder.mkdir()
    no_text.write_bytes(b"# question\n\xff\xfe = 1\n")
    found = {folder: "folder.toml", Path("/proc/self/mem"): "be read", no_text: "UTF-8"}
    for path, said in found.items():
        with pytest.raises(SetupError, match=said):
            resolve(str(path))


def test_invalid_toml_is_reported_with_its_line(tmp_path: Path) -> None:
    """A syntax error is a sentence with its line."""
    file = tmp_path / "mine.toml"
    file.write_text("question = \n", encoding="utf-8")
    with pytest.raises(SetupError, match=r"invalid TOML.*line 1"):
        resolve(str(file))
