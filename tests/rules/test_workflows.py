"""What CI is told to do can be done: in the workflows, and in the document about CI."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from harness.cli import COMMANDS, main
from harness.profile.designs import question_of
from harness.profile.profile_loader import parse, resolve, shipped_names
from harness.report.compare.regressions import parse_regression

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DOCUMENT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

_RUN = re.compile(r"^ +(?:- )?run: (\S.*)$", re.MULTILINE)
_USES = re.compile(r"^ +(?:- )?uses: (\S+)", re.MULTILINE)
_PINNED = re.compile(r"uses: [a-z/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", re.MULTILINE)
"""The one action that is not the platform's own: publishing without a secret."""
_JOB = re.compile(r"^  [a-z][a-z-]*:\n    runs-on: ", re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """The commands of a workflow's steps, taken apart. A step is one command."""
    found = [shlex.split(line) for line in _RUN.findall(text)]
    assert not any(words[0] in ("|", ">") for words in found), "a step is one command"
    return found


def test_there_are_workflows() -> None:
    """Changes are tested, and a short stress test keeps its outputs."""
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml", "stress.yml"]
    check, release, stress = (path.read_text(encoding="utf-8") for path in WORKFLOWS)
    assert commands(check) == [
        *([".ci/run"], ["make", "test-unpatched"]),
        *(["make", "gallery", "docs"], ["make", "venv", "azurite"]),
        shlex.split(".venv/bin/harness run single-partition -t 10s --set conditions=[]"),
        ["make", "coverage"],
    ]
    assert commands(release) == [["make", "release-check"], ["scripts/image"]]
    # Not by make, which turns every exit code but 0 into 2.
    install, run = commands(stress)
    assert install == ["make", "venv", "azurite"]
    assert run[:3] == [".venv/bin/harness", "run", "$PROFILE"]
    assert re.search(r"upload-artifact@.+\n +with:\n(?: +.*\n)* +path: out/", stress)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_of_a_workflow_exists(path: Path) -> None:
    """A step is a script of the repository, a command of `harness`, or makes targets there are."""
    for words in commands(path.read_text(encoding="utf-8")):
        if words[0] == ".venv/bin/harness":
            assert words[1] in COMMANDS
            continue
        if words[0] != "make":
            assert os.access(ROOT / words[0], os.X_OK), words
            continue
        for word in words[1:]:
            name, is_variable, _ = word.partition("=")
            if is_variable:
                assert re.search(rf"^{name} \?=", MAKEFILE, re.MULTILINE), word
            else:
                assert re.search(rf"^{name}:", MAKEFILE, re.MULTILINE), word
        subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_bounded_and_may_change_nothing(path: Path) -> None:
    """Every job has a time-out, actions are pinned by commit, and the token reads alone."""
    text = path.read_text(encoding="utf-8")
    jobs = len(_JOB.findall(text))
    assert jobs >= 1
    assert len(re.findall(r"^    timeout-minutes: \d+$", text, re.MULTILINE)) == jobs
    assert "permissions:\n  contents: read\n\n" in text
    uses = _USES.findall(text)
    assert uses
    assert len(_PINNED.findall(text)) == len(uses)
    assert "\t" not in text
    assert "http" not in text
    # What somebody typed into a form is never a part of a command.
    assert not any("${{" in word for words in commands(text) for word in words)


def test_the_profile_of_the_stress_job_exists() -> None:
    """The default of the form is a shipped profile."""
    text = (ROOT / ".github" / "workflows" / "stress.yml").read_text(encoding="utf-8")
    names = {*re.findall(r"default: (\S+)", text), *re.findall(r"\|\| '([^']+)'", text)}
    assert len(names) == 1
    assert names <= set(shipped_names())


def test_the_profile_of_the_document_is_one() -> None:
    """The conditions that the document shows are conditions, and its profile is valid."""
    (text,) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
    profile = parse({"question": question_of(text), **tomllib.loads(text)}, source="docs/ci.md")
    assert len(profile.conditions) >= 10


def test_the_regressions_of_the_document_are_some() -> None:
    """What the document gives to --fail-if can be parsed."""
    texts = re.findall(r'--fail-if "([^"]+)"', DOCUMENT)
    assert len(texts) == 3
    for text in texts:
        parse_regression(text)


def test_the_document_names_every_output() -> None:
    """The table of the document has a row for every file that a run leaves."""
    rows = re.findall(r"^\| `([a-z.]+)` \|", DOCUMENT, re.MULTILINE)
    assert rows == [
        *("run.json", "summary.md", "junit.xml", "latencies.hlog", "partitions.csv"),
        "report.html",
        "errors.jsonl",
    ]


def test_the_job_of_the_document_runs_what_harness_init_writes(tmp_path: Path) -> None:
    """Its YAML is whole; the files that it names are those of the folder, and so are commands."""
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    workflow = yaml.safe_load(text)
    (job,) = workflow["jobs"].values()
    folder = tmp_path / job["defaults"]["run"]["working-directory"]
    assert main(["init", str(folder)]) == 0
    runs = [shlex.split(step["run"]) for step in job["steps"] if "run" in step]
    assert [words[:2] for words in runs] == [
        ["pip", "install"],
        ["harness", "azurite"],
        ["harness", "run"],
    ]
    named = [word for words in runs for word in words if (folder / word).is_file()]
    assert named == ["requirements.txt", "profile.toml"]
    resolve(str(folder / "profile.toml"), [runs[2][runs[2].index("--set") + 1]])
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    ours = (ROOT / ".github" / "workflows" / "stress.yml").read_text(encoding="utf-8")
    assert set(used) == set(_USES.findall(ours))
    assert workflow["permissions"] == {"contents": "read"}
    assert job["timeout-minutes"]
