"""The completion of the command line, as a real bash gives it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.cli import COMMANDS, main
from harness.profile.profile_loader import shipped_names
from tests.support.command import Command

TYPED = (
    ("",),
    ("pro",),
    ("run", "single"),
    ("run", "min"),
    ("run", "single-partition", "--throttl"),
    ("run", "single-partition", "--session", ""),
    ("azurite", ""),
    ("compare", "--format", ""),
)
ASK = """
name=$(complete -p harness | sed 's/.*-F \\([^ ]*\\).*/\\1/')
ask() {
  COMP_WORDS=(harness "$@"); COMP_CWORD=$#; COMPREPLY=()
  "$name" harness "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
  echo "${COMPREPLY[*]}"
}
"""


def test_a_shell_completes_what_was_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands, profiles, files of profiles, options, and the values that an option takes."""
    assert main(["completion", "bash"]) == 0
    (tmp_path / "mine.toml").touch()
    asked = "\n".join("ask " + " ".join(f"'{word}'" for word in words) for words in TYPED)
    done = subprocess.run(
        ["bash", "--norc"],
        input=f"{capsys.readouterr().out}\n{ASK}\n{asked}\n",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    found = dict(zip(TYPED, done.stdout.splitlines(), strict=True))
    assert set(found["",].split()) == {name.split()[0] for name in COMMANDS}
    assert found["pro",] == "profiles"
    assert found["run", "single"] == "single-partition"
    assert found["run", "min"] == "mine.toml"
    assert found[TYPED[4]] == "--throttling"
    assert found[TYPED[5]] == "sdk wire sdk-default blob queue"
    assert found["azurite", ""] == "install start"
    assert found[TYPED[7]] == "text markdown"


def test_zsh_gets_a_script_of_its_own(command: Command) -> None:
    """It begins as zsh wants it, and names the profiles."""
    script = command("completion", "zsh")
    assert script.startswith("#compdef harness")
    assert f"({' '.join(shipped_names())})" in script
