"""The checklist of a run in the terminal."""

from __future__ import annotations

import pytest

from harness.profile.checks.recorded import seen_in
from harness.report.terminal.checklist import Checked, check_text
from harness.report.terminal.page import Page
from tests.support.records import altered, kept

RECORD = kept()


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"forbidden": 9}, "no entity was counted: nothing succeeded"),
        ({"forbidden": 9, "success": 1}, "no entity was counted\n"),
    ],
)
def test_a_run_without_entities_has_no_hottest_partition(
    outcomes: dict[str, int], said: str
) -> None:
    """It has no first limit either: a share of nothing would be 0%."""
    counts = altered(RECORD.counts, entities=0)
    parts = tuple(altered(part, entities=0) for part in RECORD.partitions)
    record = altered(RECORD, counts=counts, partitions=parts, outcomes=outcomes)
    checked = Checked(name="run", question="", seen=seen_in(record))
    shares = check_text(checked, [], Page(width=100)).partition("0 applicable")[0]
    assert said in shares
    assert "hottest" not in shares
    assert "first limit" not in shares
