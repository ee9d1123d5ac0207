"""What commands print with ``--json``: one object alone, as its schema says, also on failure."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.cli import COMMANDS
from harness.commands.schema import PRINTED, schema_of
from harness.measure.record.record_builder import iso_instant
from harness.startup import failure_json
from tests.support.command import Command
from tests.support.records import KEPT, kept

EXAMPLES = Path(__file__).parents[3] / "examples" / "hot-tenant"
TRACE, SCHEME = EXAMPLES / "hot-tenant.parquet", EXAMPLES / "buckets.toml"
PROGRAM = """
import sys
from harness import startup
def main():
    print("what a library prints")
    {}
sys.exit(startup.with_one_object(main))
"""


def one_object(text: str, name: str) -> dict[str, Any]:
    """The object that is all of ``text``, and keeps to the schema of that name."""
    read: dict[str, Any] = json.loads(text)
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(read, schema)
    return read


@pytest.mark.parametrize(
    "line",
    [
        "check key-spread",
        "check single-partition --host-kind cosmos",
        f"check --record {KEPT}",
        f"check --keys {TRACE}",
        "plan key-spread",
        "plan find-limit --host-kind cosmos",
        "profiles",
        "profiles upsert",
        "schemes",
        "schemes blog",
        f"compare {KEPT} {KEPT} --fail-if 'entities_per_s < 95%'",
        f"trace {TRACE}",
        f"whatif {TRACE} --keys {SCHEME}",
        f"advise {TRACE} --rate 20",
    ],
)
def test_one_object_that_keeps_to_its_schema(line: str, command: Command) -> None:
    """Each command that needs no endpoint; the version of the object is in it."""
    name, *rest = shlex.split(line)
    assert one_object(command(name, *rest, "--json"), name)["schema_version"]


def test_a_trace_that_was_converted_is_an_object(tmp_path: Path, command: Command) -> None:
    """It names the file, and what it holds."""
    said = one_object(command("trace", TRACE, "--to", tmp_path / "new.csv", "--json"), "trace")
    assert said["operations"] > 0


def test_a_trend_is_an_object(tmp_path: Path, command: Command) -> None:
    """A value of each run, in their order."""
    for number in range(3):
        started = iso_instant(1_790_000_000 + number)
        record = kept().model_copy(update={"run_id": f"run-{number}", "started_at": started})
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "run.json").write_text(record.to_json(), encoding="utf-8")
    runs = sorted(tmp_path.iterdir())
    (trend,) = one_object(command("compare", "--trend", *runs, "--json"), "compare")["trends"]
    assert trend["runs"] == ["run-0", "run-1", "run-2"]
    assert len(trend["measures"]["entities_per_s"]) == 3


@pytest.mark.parametrize(
    "line",
    [
        *("check nothing", "compare nothing nobody", "plan nothing", "profiles nothing"),
        *("schemes nothing", "trace nothing", "whatif nothing", "advise nothing", "run"),
        *("doctor -H nothing", "sweep -H nothing", "watch --limits nothing", "plan"),
    ],
)
def test_a_failure_is_an_object_too(line: str, command: Command) -> None:
    """The sentence on standard error and the exit code."""
    name = line.split()[0]
    said = one_object(command(*line.split(), "--json", code=2), name)
    assert said["exit_code"] == 2
    assert said["error"] in command.err


def test_every_command_with_an_object_has_a_schema() -> None:
    """Those that print or write something else have no such option."""
    others = {"init", "keys", "report", "gateway", "completion", "schema", "docs"}
    named = {name for name in COMMANDS if not name.startswith("azurite")}
    assert set(PRINTED) == named - others


def test_json_of_a_watched_command_is_its_own(command: Command) -> None:
    """What follows -- is not for the watch: its failure is a sentence alone."""
    assert command("watch", "--limits", "nothing", "--", "app", "--json", code=2) == ""


@pytest.mark.parametrize(
    ("does", "code", "printed"),
    [
        ("startup.tell_program('{}')", 0, "{}"),
        ("startup.tell_program('{}'); sys.exit(3)", 3, "{}"),
        ("startup.complain('no'); sys.exit(2)", 2, failure_json("no", 2)),
        ("sys.exit(1)", 1, failure_json("no result; standard error has more", 1)),
    ],
)
def test_standard_output_of_a_run_has_the_object_alone(does: str, code: int, printed: str) -> None:
    """Whatever libraries and users' classes print goes to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(does)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, printed)
    assert "what a library prints" in done.stderr


def test_a_record_keeps_to_its_schema() -> None:
    """That of ``run.json``, as this version writes it."""
    jsonschema.validate(json.loads(kept().to_json()), schema_of("record"))
