"""Applications of which it is known what their keys should be are told so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.measure.record.advice import AdviceRecord, TableAdvicePart
from harness.model.figures import percent
from harness.trace.advise.advise import Question, advise
from harness.trace.sources import opened
from tests.support.known_keys import KNOWN, LIMITS, KnownApplication, record_known

DOCUMENT = Path(__file__).parents[4] / "docs" / "advise.md"
MARKS = {
    **dict.fromkeys(("hot row", "even load"), ()),
    **dict.fromkeys(
        ("hot tenant", "readings by device", "time too fine", "one of three"),
        (pytest.mark.long, pytest.mark.thorough),
    ),
}


def advised(application: KnownApplication, folder: Path) -> AdviceRecord:
    record_known(application, folder / "app.parquet")
    question = Question(limits=LIMITS, limits_name="a fiftieth", rate=application.rate)
    with opened(folder / "app.parquet", rows=True) as trace:
        return advise(trace, question, folder, name=application.name)


@pytest.mark.parametrize(
    "application",
    [pytest.param(one, id=one.name, marks=MARKS.get(one.name, pytest.mark.long)) for one in KNOWN],
)
def test_the_known_keys_are_recommended(application: KnownApplication, tmp_path: Path) -> None:
    """Or keys that are as good; or none, where none helps or today's are fine.

    Bounds: 1,500 operations; five seconds of one core each.
    """
    found = advised(application, tmp_path)
    table, *others = found.tables
    assert table.answer is application.answer, table.headline
    keys = [proposal.partition_key for proposal in table.proposals[:1]] or table.stays_bad
    assert not application.keys or any(one in keys[0] for one in application.keys), keys
    assert all("Never near a limit" in other.headline for other in others)
    documented(application, table)


def documented(application: KnownApplication, table: TableAdvicePart) -> None:
    """The table in docs/advise.md says the same; ``UPDATE_GOLDEN=1`` writes it anew."""
    assert table.found is not None
    advice = table.proposals[0].idea if table.proposals else table.headline.rstrip(".")
    shown = table.found.schemes[: 1 + len(table.proposals[:1])]
    throttled = ", ".join(percent(part.once.ratio) for part in shown)
    row = f"| {application.name} | {application.known} | {advice} | {throttled} |"
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    place = next(n for n, one in enumerate(lines) if one.startswith(f"| {application.name} |"))
    if os.environ.get("UPDATE_GOLDEN") == "1":
        lines[place] = row
        DOCUMENT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert lines[place] == row
