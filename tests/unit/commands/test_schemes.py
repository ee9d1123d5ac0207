"""What profiles can name, explained: `harness schemes`, and the JSON Schema of profiles."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from harness.cli import main
from harness.profile.profile_loader import resolve, shipped_directory, shipped_names
from harness.workload.keys.pickers import PICKERS
from harness.workload.keys.row_keys import ROW_KEYS
from harness.workload.keys.schemes import SCHEMES
from harness.workload.scenarios.registry import SCENARIOS

KNOWN = [*SCHEMES, *PICKERS, *ROW_KEYS, *SCENARIOS]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_everything_that_can_be_named_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Schemes, distributions, row keys and scenarios stand in one list, each explained."""
    lines = said(capsys, "schemes").splitlines()
    for name in KNOWN:
        (line,) = [line for line in lines if line.split(maxsplit=1)[:1] == [name]]
        assert len(line.split()) > 2


@pytest.mark.parametrize("name", KNOWN)
def test_one_of_them_is_shown_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is explained in the words of its code, without markup, and has examples."""
    out = said(capsys, "schemes", name)
    head, *_ = out.splitlines()
    assert head.endswith(f"= {name!r}")
    assert "`" not in out
    assert "Args:" not in out
    assert len([line for line in out.splitlines() if line.startswith("  ")]) >= 5


def keys_of(out: str, title: str) -> list[tuple[str, ...]]:
    lines = out.splitlines()
    start = lines.index(title) + 1
    return [tuple(line.split()) for line in lines[start : start + 5]]


@pytest.mark.parametrize("name", SCHEMES)
def test_loaded_examples_are_in_key_order(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Five loaded keys stand as the table sorts them."""
    keys = keys_of(said(capsys, "schemes", name), "five loaded keys, in key order:")
    assert len(set(keys)) == 5
    assert keys == sorted(keys)


@pytest.fixture
def schema(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The schema of profiles."""
    content: dict[str, Any] = json.loads(said(capsys, "profiles", "--schema"))
    return content


def strangers(content: dict[str, Any], part: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    """Settings that a schema does not know, where it takes no others."""
    if "$ref" in part:
        part = whole["$defs"][part["$ref"].rpartition("/")[2]]
    known = part.get("properties", {})
    found = [name for name in content if name not in known and not part["additionalProperties"]]
    for name, value in content.items():
        if isinstance(value, dict) and "additionalProperties" in str(known.get(name)):
            found += strangers(value, known[name], whole)
        elif isinstance(value, dict) and "$ref" in known.get(name, {}):
            found += [f"{name}.{other}" for other in strangers(value, known[name], whole)]
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
    # Which default it is depends on the scheme: a sentence says it, and no figure contradicts.
    rows = schema["$defs"]["Keys"]["properties"]["rows_per_partition"]
    assert "default" not in rows
    assert "Default: 1000, or 1 " in rows["description"]
    assert schema["required"] == []
    keys = schema["$defs"]["Keys"]["properties"]
    assert keys["scheme"]["enum"] == list(SCHEMES)
    assert keys["distribution"]["enum"] == list(PICKERS)
    assert strangers({"load": {"user": 1}, "keyz": {}}, schema, schema) == ["keyz", "load.user"]
