"""The outputs of a kept search must not change by accident: of a run with all that one can show.

`UPDATE_GOLDEN=1 pytest tests/golden` writes them anew. The record was kept by a run, through the
gateway, that searched, was throttled, lost its partition for some seconds, and was audited. It is
never written anew.
"""

from __future__ import annotations

import pytest

from harness.report.export.markdown import markdown
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from tests.support.golden import check
from tests.support.records import kept

RECORD = kept("run-v1-search.json")


def test_the_record_has_all_that_is_to_be_shown() -> None:
    """A search with steps that passed and failed, a gap, an audit, a prediction, and advice."""
    assert RECORD.search is not None
    assert {step.failed for step in RECORD.search.steps} > {None, "throttled"}
    assert RECORD.throttling.gaps
    assert RECORD.audit is not None
    assert RECORD.prediction is not None
    assert RECORD.verdict.evidence
    assert RECORD.verdict.advice


@pytest.mark.parametrize("width", [80, 120])
def test_summary_of_the_kept_search(width: int) -> None:
    """The report of a kept search is the same text, year after year."""
    check(f"search-{width}.txt", summary(RECORD, Page(width=width)) + "\n")


def test_summary_of_the_kept_search_in_ascii() -> None:
    """Where nothing but ASCII can be shown the report says the same."""
    text = summary(RECORD, Page(width=80, ascii_only=True))
    assert text.isascii()
    check("search-ascii.txt", text + "\n")


def test_summary_of_the_kept_search_for_a_ci_page() -> None:
    """The Markdown of a kept search is the same text."""
    check("search.md", markdown(RECORD))
