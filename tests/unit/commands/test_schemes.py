"""What profiles can name, explained: `harness schemes`, and the JSON Schema of profiles."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from harness.profile.designs import Documented
from harness.profile.profile_loader import parse, resolve, shipped_directory, shipped_names
from harness.workload.keys.pickers import PICKERS
from harness.workload.keys.template import FUNCTIONS
from harness.workload.scenarios.registry import SCENARIOS
from tests.support.command import Command
from tests.support.keys import DOCUMENTED, NAMES

KNOWN = [*NAMES, *PICKERS, *SCENARIOS]


def test_everything_that_can_be_named_is_listed(command: Command) -> None:
    """Functions, designs, distributions and scenarios stand in one list, each explained."""
    lines = command("schemes").splitlines()
    for name in (*KNOWN, *FUNCTIONS):
        (line,) = [line for line in lines if line.startswith(f"  {name} ")]
        assert len(line.split()) > 2


@pytest.mark.parametrize("name", KNOWN)
def test_one_of_them_is_shown_with_examples(name: str, command: Command) -> None:
    """Each is explained in plain words, without markup, and has examples."""
    out = command("schemes", name)
    head, *_ = out.splitlines()
    assert head.endswith(f"= {name!r}") or head.startswith(f"{name}: ")
    assert "`" not in out
    assert "Args:" not in out
    assert len([line for line in out.splitlines() if line.startswith("  ")]) >= 5


def keys_of(out: str, title: str) -> list[tuple[str, ...]]:
    lines = out.splitlines()
    start = lines.index(title) + 1
    return [tuple(line.split()) for line in lines[start : start + 5]]


@pytest.mark.parametrize("documented", DOCUMENTED.values(), ids=NAMES)
def test_a_documented_design_is_shown_as_a_profile_has_it(
    documented: Documented, command: Command
) -> None:
    """What stands between source and examples can be put into a profile, and asks its question."""
    out = command("schemes", documented.name)
    toml = out[out.index("[") :].split("\n\nfive loaded keys")[0]
    profile = parse({"question": documented.question, **tomllib.loads(toml)}, source="a test")
    assert profile.keys.partition_key == documented.settings["keys"]["partition_key"]
    assert documented.question.endswith("?")
    assert documented.question in out
    assert " ".join(documented.source.split()) in " ".join(out.split())


@pytest.mark.parametrize("name", NAMES)
def test_loaded_examples_are_in_key_order(name: str, command: Command) -> None:
    """Five loaded keys stand as the table sorts them."""
    keys = keys_of(command("schemes", name), "five loaded keys, in key order:")
    assert len(set(keys)) == 5
    assert keys == sorted(keys)


def test_what_is_not_there_is_a_sentence(command: Command) -> None:
    """An unknown name is exit code 2, and those there are."""
    assert "append-only" in command.refused("schemes", "rainbow")


@pytest.fixture
def schema(command: Command) -> dict[str, Any]:
    """The schema of profiles."""
    content: dict[str, Any] = json.loads(command("schema", "profile"))
    return content


def strangers(content: dict[str, Any], part: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    """Settings that a schema does not know, where it takes no others."""
    for one in (part, *part.get("anyOf", ())):
        if "$ref" in one:
            part = whole["$defs"][one["$ref"].rpartition("/")[2]]
    known, others = part.get("properties", {}), part["additionalProperties"]
    found = [name for name in content if name not in known and not others]
    for name, value in content.items():
        of_name = known.get(name, others)
        if isinstance(value, dict) and isinstance(of_name, dict):
            found += [f"{name}.{other}" for other in strangers(value, of_name, whole)]
    return found


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_profile_is_what_the_schema_knows(name: str, schema: dict[str, Any]) -> None:
    """Every setting of a shipped profile stands in the schema, and the profile is right."""
    text = (shipped_directory() / f"{name}.toml").read_text(encoding="utf-8")
    assert strangers(tomllib.loads(text), schema, schema) == []
    assert resolve(name).name == name


def test_the_schema_says_what_editors_need(schema: dict[str, Any]) -> None:
    """It has a dialect, knows every name there is, and wants nothing that a comment can say."""
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    # Which default it is depends on the fields: a sentence says it, and no figure contradicts.
    rows = schema["$defs"]["Keys"]["properties"]["rows_per_partition"]
    assert rows["default"] is None
    assert "Default: 1000, or fewer" in rows["description"]
    assert schema["required"] == []
    field = schema["$defs"]["FieldSettings"]["properties"]
    assert set(field["distribution"]["anyOf"][0]["enum"]) == set(PICKERS)
    assert "from" in field
    wrong = {"load": {"user": 1}, "keyz": {}, "fields": {"a": {"valuess": 1}}}
    assert strangers(wrong, schema, schema) == ["keyz", "load.user", "fields.a.valuess"]
