"""The command line: its subcommands, and what `harness compare` makes of files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cli import COMMANDS
from tests.support.command import Command
from tests.support.records import KEPT

CONTENT: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))


def keep(folder: Path, *, rate: float = 1692.3, **parts: Any) -> Path:
    """The folder of a run at that rate."""
    content = json.loads(json.dumps(CONTENT)) | parts
    content["account"]["entities_per_s"]["mean"] = rate
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, command: Command) -> None:
    """Each subcommand has help that ends in exit code 0."""
    help_text = command(*name.split(), "--help")
    assert f"usage: harness {name}" in help_text
    assert len(help_text.split("\n\n")[1].split()) > 5


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--help"], 0, [f"\n    {name.split()[0]}" for name in COMMANDS]),
        (["--version"], 0, ["harness 0."]),
        (["version"], 0, ["harness 0."]),
        (["help"], 0, [f"\n    {name.split()[0]}" for name in COMMANDS]),
        (["help", "trace"], 0, ["usage: harness trace"]),
        (["azurite", "--help"], 0, ["\n    install ", "\n    start "]),
        ([], 2, [f"\n    {name.split()[0]}" for name in COMMANDS]),
        (["azurite"], 2, ["COMMAND"]),
        (["imaginary"], 2, ["invalid choice: 'imaginary'"]),
        (["profile"], 2, ["there is no command 'profile'; did you mean profiles?"]),
        (
            ["replay", "app.parquet"],
            2,
            ["replay is a profile, which runs with: harness run replay"],
        ),
        (["azurite", "stop"], 2, ["invalid choice: 'stop'"]),
    ],
)
def test_without_a_command_there_is_help_or_an_error(
    arguments: list[str], code: int, said: list[str], command: Command
) -> None:
    """The help lists all commands, as does the error about a command that does not exist."""
    text = command(*arguments, code=code)
    assert all(part in (command.err if code else text) for part in said)


@pytest.mark.parametrize("module", ["harness", "harness.cli"])
def test_either_module_is_the_command_line(module: str) -> None:
    """Who runs the module of the commands gets the same, and no silence."""
    done = subprocess.run(
        [sys.executable, "-m", module, "imaginary"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "invalid choice: 'imaginary'" in done.stderr


def test_a_command_imports_only_what_it_needs() -> None:
    """The help and the start of a run load neither the profile's libraries nor the endpoint's."""
    heavy = {"pydantic", "azure", "rich", "gevent", "uvloop"}
    script = (
        "import sys; from harness import cli; from harness.commands import run; "
        "cli._overview().format_help(); run.locust_arguments(['upsert']); "
        f"sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_is_a_file_or_a_folder(tmp_path: Path, command: Command) -> None:
    """A run.json, the folder of a run and a folder of repeats can be compared."""
    keep(tmp_path / "one")
    for number, rate in enumerate((1990.0, 2000.0, 2010.0)):
        keep(tmp_path / "repeats" / str(number), rate=rate)
    runs = (KEPT, tmp_path / "one", tmp_path / "repeats")
    read = json.loads(command("compare", *runs, "--json"))
    assert [len(subject["runs"]) for subject in read["subjects"]] == [1, 1, 3]
    assert read["subjects"][2]["measures"]["entities_per_s"]["mean"] == 2000.0


def test_a_regression_is_an_exit_code(tmp_path: Path, command: Command) -> None:
    """1 where the last is worse than the bound, 0 where it is not, 3 where nobody can tell."""
    slow = keep(tmp_path / "slow", rate=1000.0)
    doubtful = keep(tmp_path / "doubtful", rate=1000.0, complete=False)
    bound = ("--fail-if", "entities_per_s < 95%")
    assert "REGRESSION" in command("compare", KEPT, slow, *bound, code=1)
    command("compare", slow, KEPT, *bound)
    command("compare", KEPT, doubtful, *bound, code=3)


def test_a_folder_of_repeats_alone_shows_them(tmp_path: Path, command: Command) -> None:
    """Each has a line, also in Markdown and JSON a column; a regression needs a second folder."""
    for number, rate in enumerate((1990.0, 2000.0, 2010.0)):
        keep(tmp_path / str(number), rate=rate, run_id=f"run-{number}")
    lines = re.findall(r"^run-(\d) +([0-9,]+)", command("compare", tmp_path), re.MULTILINE)
    assert lines == [("0", "1,990"), ("1", "2,000"), ("2", "2,010")]
    assert "1,990 to 2,010" in command("compare", tmp_path, "--format", "markdown")
    regression = ("--fail-if", "entities_per_s < 95%")
    assert "name a second" in command.refused("compare", tmp_path, *regression)


def test_a_folder_of_different_runs_is_no_repeats(tmp_path: Path, command: Command) -> None:
    """Runs of other settings have no spread, and the first that differs is named; seeds differ."""
    settings = json.loads(json.dumps(CONTENT["profile"]))
    settings["keys"]["rows_per_partition"] = 7
    for folder, profile in (("out", settings), ("seeds", {**CONTENT["profile"], "seed": 99})):
        keep(tmp_path / folder / "1")
        keep(tmp_path / folder / "2", run_id="other", profile=profile)
    why = command.refused("compare", KEPT, tmp_path / "out")
    assert "differ in keys.rows_per_partition: 1000 and 7. Name the runs" in why
    command("compare", KEPT, tmp_path / "seeds")
