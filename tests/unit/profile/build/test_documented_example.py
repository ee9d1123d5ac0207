"""The example of a user's own scenario in docs/scenario.md: it is this file, and it runs."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from harness.model.outcome import Outcome
from harness.profile.build.scenarios import try_out
from harness.profile.build.workload import source_of
from harness.profile.profile_loader import resolve
from tests.support.memory_tables import MemoryTables

ROOT = Path(__file__).parents[4]
EXAMPLES = ROOT / "tests" / "examples"


@pytest.mark.parametrize("file", ["my_app.py", "my_app.toml"])
def test_the_document_shows_the_example(file: str) -> None:
    """What is tested is what is shown, to the letter."""
    text = (EXAMPLES / file).read_text(encoding="utf-8")
    assert text in (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")


def test_the_example_runs() -> None:
    """Its profile is right wherever it is run from, and all that two workers send succeeds."""
    profile = resolve(str(EXAMPLES / "my_app.toml")).profile
    workers = [
        (source_of(profile, run_id="run1", worker=worker), random.Random(worker))
        for worker in (0, 1)
    ]
    try_out(workers[0][0], profile)
    tables = MemoryTables()
    outcomes = {tables.execute(operation).outcome for operation in workers[0][0].loading()}
    names = set()
    for source, rng in itertools.islice(itertools.cycle(workers), 400):
        for result in tables.perform(source.next_task(rng)):
            outcomes.add(result.outcome)
            names.add(result.operation.label)
    assert outcomes == {Outcome.SUCCESS}
    assert names == {"point_query", "list_branch", "add_book", "read_new_book"}
