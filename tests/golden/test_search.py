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
from tests.support.searches import Model, searched

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


SEARCHED: dict[str, Model] = {
    "What is refused above a rate is the limit": Model(limit_per_s=990.0),
    "What is refused at every rate is none": Model(refused=0.05),
    "So are slow answers, where the rate was held": Model(slow_from_per_s=990.0),
    "At its capacity an emulator answers ever later": Model(capacity_per_s=990.0),
    "What few users cannot make says nothing about the endpoint": Model(users_per_s=990.0),
    "Nor does what the generator cannot make": Model(ceiling_per_s=990.0),
    "Which comes before throttling": Model(ceiling_per_s=990.0, limit_per_s=980.0),
    "Nobody knows what is above the highest rate": Model(),
    "The first rate is throttled": Model(limit_per_s=50.0),
    "The generator cannot make the first rate": Model(ceiling_per_s=50.0),
    "The first rate is answered late": Model(slow_from_per_s=50.0),
    "The first rate is not served": Model(capacity_per_s=50.0),
}


def test_what_a_search_found() -> None:
    """The lowest step that failed says what the limit is, and whose; a lower bound is called so."""
    lines: list[str] = []
    for name, model in SEARCHED.items():
        found = searched(model)
        assert found.confirmed == (found.rate_per_s is not None)
        assert found.confirmed or not found.at_least
        assert found.confirmed or len(found.steps) <= 2 or model.refused
        bound = ", at least" if found.at_least else ""
        lines += [f"# {name}", f"limited by: {found.limited_by}{bound}", found.sentence, ""]
    check("searches.txt", "\n".join(lines))
