"""The outputs of a kept search and of a run in request units must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes them anew. The record of the search was kept by a run,
through the gateway, that searched, was throttled, lost its partition for some seconds, and was
audited. The records are never written anew.
"""

from __future__ import annotations

import pytest

from harness.measure.record.record import RunRecord
from harness.report.export.markdown import markdown
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from tests.support.golden import changes, check
from tests.support.records import altered, kept

RECORD = kept("run-v1-search.json")
COSMOS = kept("run-v1-cosmos.json")
RECORDS = {"search": RECORD, "cosmos": COSMOS}


def without_throughput(record: RunRecord) -> RunRecord:
    """The same run as if nobody had said what is provisioned."""
    assert record.request_units is not None

    def at_most(part: object) -> object:
        return part.held_against(10_000.0)  # type: ignore[attr-defined]

    return altered(
        record,
        request_units=record.request_units.held_against(None),
        partitions=tuple(
            altered(part, request_units=at_most(part.request_units)) for part in record.partitions
        ),
    )


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
@pytest.mark.parametrize("name", RECORDS)
def test_summary_of_a_kept_record(name: str, width: int) -> None:
    """The report of a kept record is the same text, year after year."""
    check(f"{name}-{width}.txt", summary(RECORDS[name], Page(width=width)) + "\n")


def test_summary_of_the_kept_search_in_ascii() -> None:
    """Where nothing but ASCII can be shown the report says the same."""
    text = summary(RECORD, Page(width=80, ascii_only=True))
    assert text.isascii()
    check("search-ascii.txt", text + "\n")


@pytest.mark.parametrize("name", RECORDS)
def test_summary_of_a_kept_record_for_a_ci_page(name: str) -> None:
    """The Markdown of a kept record is the same text."""
    check(f"{name}.md", markdown(RECORDS[name]))


def test_request_units_without_what_is_provisioned() -> None:
    """The 10,000 RU/s of a partition hold for everybody; the account has no target."""
    texts = [summary(one, Page(width=80)) for one in (COSMOS, without_throughput(COSMOS))]
    check("cosmos-unprovisioned.txt", changes(texts[0], {"Nobody said what it is.": texts[1]}))
