"""Scenarios of one's own: mistakes in them are found before a run, and named with their line."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from harness.model.errors import SetupError
from harness.profile.build.scenarios import try_out
from harness.profile.build.workload import source_of
from harness.profile.checks.observed import observe
from harness.profile.profile_loader import parse
from harness.profile.settings.schema import Profile

HEAD = """\
from harness.workload.scenarios import Scenario


class Own(Scenario):
    actions = {"act": 1}

"""
ONE_ROW = """\
    def loading(self):
        return self.batched([self.insert("p", "r", {})])

"""
HUNDRED_ROWS = '[self.insert("p", str(row), {}) for row in range(100)]'
TOO_LARGE = f"""\
    def act(self, rng):
        return self.transaction({HUNDRED_ROWS})
"""
WITHOUT_END = f"""\
    def loading(self):
        while True:
            yield self.transaction({HUNDRED_ROWS})

    def act(self, rng):
        return self.get("p", "1")
"""
FAILS_LATE = f"""\
    def loading(self):
        for number in range(300):
            yield self.transaction({HUNDRED_ROWS})
        self.nothing()

    def act(self, rng):
        return self.get("p", "1")
"""


def own(folder: Path, methods: str, **parts: Any) -> Profile:
    """A profile with a scenario that has these methods from line 7 on."""
    file = folder / "own.py"
    file.write_text(HEAD + methods, encoding="utf-8")
    return parse({"question": "Why?", "scenario": f"{file}:Own", **parts}, source="a test")


@pytest.mark.parametrize(
    ("methods", "size_bytes", "problem"),
    [
        (TOO_LARGE, 90_000, r"own\.py:8: in act: .* over the 4 MiB"),
        (WITHOUT_END, 900, "more than 2,000,000 entities"),
        (FAILS_LATE, 900, r"own\.py:10: .* has no attribute 'nothing'"),
    ],
    ids=["transaction over 4 MiB", "loads without end", "fails late in loading"],
)
def test_a_mistake_is_found_before_a_run(
    tmp_path: Path, methods: str, size_bytes: int, problem: str
) -> None:
    """Sizes are counted and rows loaded to their end, up to a limit, without sending anything."""
    profile = own(tmp_path, methods, entity={"size_bytes": size_bytes})
    with pytest.raises(SetupError, match=problem):
        observe(profile)


@pytest.mark.parametrize(
    ("key", "problem"),
    [("p", None), (r"p\ud800", "half a surrogate pair"), ("p/q", "forbidden")],
)
def test_a_scenario_that_reads_what_can_be_no_key_is_refused(
    tmp_path: Path, key: str, problem: str | None
) -> None:
    """A PartitionKey is looked at also where nothing is written; a whole table has none."""
    action = f"""\
    def act(self, rng):
        yield self.get("{key}", "r")
        yield self.query(None)
"""
    profile = own(tmp_path, ONE_ROW + action)
    source = source_of(profile, run_id="r" * 25, worker=0)
    with pytest.raises(SetupError, match=problem) if problem else contextlib.nullcontext():
        try_out(source, profile)


@pytest.mark.parametrize(
    ("action", "base"), [("write", "OperationFactory"), ("loading", "Scenario"), ("setting", "S")]
)
def test_an_action_with_the_name_of_something_inherited_is_refused(
    tmp_path: Path, action: str, base: str
) -> None:
    """The base class would call the action in place of its own method: it needs another name."""
    file = tmp_path / "own.py"
    method = f"    def {action}(self, rng):\n        return self.insert('p', 'r', {{}})\n"
    file.write_text(HEAD.replace('"act"', f'"{action}"') + method, encoding="utf-8")
    profile = parse({"question": "Why?", "scenario": f"{file}:Own"}, source="a test")
    with pytest.raises(SetupError, match=rf"own\.py:7: .*{action}.* from {base}.*'do_{action}'"):
        source_of(profile, run_id="r" * 25, worker=0)


@pytest.mark.parametrize(
    ("body", "line", "problem"),
    [
        ("pass", 10, "Own.act returned None; an action returns one operation or yields several"),
        ("return [self.get('p', 'r')]", 10, "Own.act returned [Operation("),
        ("yield None", 11, "yielded None instead of an operation"),
        ("yield self.edit('p', 'r', {})", 11, "instead of an operation; write `yield from`"),
        ("return self.nothing()", 11, "has no attribute 'nothing'"),
        ("result = yield self.get('p', 'r'); result.nothing", 11, "has no attribute 'nothing'"),
        ("yield from ()", None, "1,000 tasks in a row yielded no operation"),
    ],
)
def test_a_mistake_in_an_action_is_one_sentence_with_its_line(
    tmp_path: Path, body: str, line: int | None, problem: str
) -> None:
    """Whether a method returns or yields: the sentence names the file, and the line at fault."""
    profile = own(tmp_path, f"{ONE_ROW}    def act(self, rng):\n        {body}\n")
    with pytest.raises(SetupError) as refused:
        try_out(source_of(profile, run_id="r" * 25, worker=0), profile)
    said = str(refused.value)
    assert problem in said
    assert "\n" not in said
    assert line is None or f"{tmp_path / 'own.py'}:{line}:" in said
