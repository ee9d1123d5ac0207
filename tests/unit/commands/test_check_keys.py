"""``harness check --keys``: the verdict, the tokens and the findings about keys alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import Command


@pytest.fixture
def keys(tmp_path: Path) -> str:
    """Dates and unpadded numbers."""
    path = tmp_path / "keys.csv"
    rows = [f"log-2024-05-{n % 28 + 1:02},race{n}__Full" for n in range(80)]
    path.write_text("\n".join(["PartitionKey,RowKey", *rows, "short"]), encoding="utf-8")
    return str(path)


def test_the_verdict_comes_first(keys: str, command: Command) -> None:
    """Then tokens as a table, findings with their sources, and exit code 1 with --strict."""
    lines = command("check", "--keys", keys, "--strict", code=1).splitlines()
    assert lines[:2] == ["keys.csv", "Violated: append-only, date-key. To consider: zero-padding."]
    said = "\n".join(lines)
    for part in (
        "log-{yyyy-MM-dd}",
        "date: yyyy-MM-dd       ascending         28  2024-05-01, 2024-05-15, 2024-05-28",
        "race{1 to 2 digits}__Full",
        "Left out: line 82 has 1 of 2 columns.",
        "Performance and scalability checklist for Table storage",
    ):
        assert " ".join(part.split()) in " ".join(said.split())


def test_the_same_as_json(keys: str, command: Command) -> None:
    """Findings have the form of other checks, and tokens are beside them."""
    content = json.loads(command("check", "--keys", keys, "--json"))
    assert content["offended"] == ["append-only", "date-key"]
    (table,) = content["keys"]["tables"]
    (layout,) = table["partition_key"]["layouts"]
    assert layout["template"] == "log-{yyyy-MM-dd}"
    assert [token["kind"] for token in layout["tokens"]] == ["constant", "date"]


def test_keys_go_without_a_profile(keys: str, command: Command) -> None:
    """Anything else to compare is refused with exit code 2."""
    assert "leave PROFILE" in command.refused("check", "single-partition", "--keys", keys)
