"""docs/checklist.md, docs/performance-checklist.md and the checks say the same."""

from __future__ import annotations

import collections
import itertools
import re
from pathlib import Path

import pytest

from harness.model.sessions import TABLE_SESSIONS
from harness.profile.practices.checklist import PRACTICES
from harness.profile.practices.practice import (
    ENTITY_LIMITS,
    MESSAGE_LIMITS,
    UNIT_LIMITS,
    Document,
    Practice,
)

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "checklist.md").read_text(encoding="utf-8")
CHECKLIST = (DOCS / "performance-checklist.md").read_text(encoding="utf-8")
CATEGORIES = {
    "Scalability targets": 3,
    "Networking": 3,
    "Direct Client Access": 1,
    "Batching": 1,
    ".NET configuration": 3,
    "Parallelism": 1,
    "Tools": 1,
    "Retries": 2,
    "Configuration": 2,
    "Tables and partitions": 1,
    "Hot partitions": 2,
    "Query scope": 1,
    "Query density": 1,
    "Limiting returned data": 2,
    "Denormalization": 1,
    "Insert, update, and delete": 4,
}
"""Rows of the performance checklist's own table."""
LETTERS = {
    Document.PARTITIONING: "P",
    Document.CHECKLIST: "C",
    Document.STRATEGIES: "S",
    Document.KEYS: "K",
    Document.BLOG: "B",
    Document.COSMOS: "DB",
    Document.COSMOS_FAQ: "FAQ",
    Document.UNITS: "RU",
    Document.DATA_MODEL: "M",
    **dict.fromkeys((Document.ACCOUNTS, Document.PROFILES, Document.SESSIONS, Document.WATCH), "H"),
}
NAME = re.compile(r"`([a-z-]+)`")


def rows_below(page: str, header: str) -> list[list[str]]:
    """Cells of the table with this header."""
    lines = page.split(f"{header}\n", 1)[1].splitlines()[1:]
    table = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


ROWS = rows_below(CHECKLIST, "| category | row, in short | measured by | advised by |")
CHECKS = rows_below(PAGE, "| check | practice | documents |")


def test_the_page_has_a_line_for_each_row_of_the_checklist() -> None:
    """As many lines of each category, in the document's order, as the checklist has: 29."""
    assert collections.Counter(row[0] for row in ROWS) == CATEGORIES
    assert list(dict.fromkeys(row[0] for row in ROWS)) == list(CATEGORIES)
    assert len(ROWS) == 29


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_a_row_is_measured_or_advised_or_says_why_not(row: list[str]) -> None:
    """No cell is empty; what is neither measured nor advised says so, and gives a reason."""
    assert all(row)
    assert len(row) == 4
    _, _, measured, advised = row
    if measured.startswith("not applicable") and not NAME.search(advised):
        assert measured.startswith("not applicable: ")


def test_every_check_stands_in_a_row_of_the_checklist_or_comes_from_another_document() -> None:
    """A check that the checklist asks for is named in its table; no row names one that is not."""
    named = {name for row in ROWS for name in NAME.findall(row[3])}
    # The checklist is about tables of Storage.
    others = (UNIT_LIMITS, MESSAGE_LIMITS | ENTITY_LIMITS)
    known = {practice.name for practice in PRACTICES if practice.applies not in others}
    assert named <= known
    assert named == known


def test_the_list_of_checks_is_that_of_the_code() -> None:
    """The same names with the same titles, in the same order."""
    listed = [(NAME.findall(row[0])[0], row[1]) for row in CHECKS]
    assert listed == [(practice.name, practice.title) for practice in PRACTICES]


@pytest.mark.parametrize(("row", "practice"), list(zip(CHECKS, PRACTICES, strict=True)))
def test_a_check_cites_what_the_page_says(row: list[str], practice: Practice) -> None:
    """The letters of the documents that ask for it, and in parentheses of those that do not."""

    def letters(otherwise: bool) -> list[str]:
        sources = [source for source in practice.sources if source.otherwise is otherwise]
        return sorted({LETTERS[source.document] for source in sources})

    asking, _, other = row[2].partition(" (")
    assert asking.split(", ") == letters(False)
    assert [letter for letter in other.rstrip(")").split(", ") if letter] == letters(True)


@pytest.mark.parametrize("document", Document, ids=lambda document: document.name)
def test_every_document_is_named_by_its_title(document: Document) -> None:
    """The page resolves each letter to the title that `harness check` cites."""
    assert document.value in " ".join(PAGE.split())


def test_the_page_names_every_session() -> None:
    """The row about client libraries names each way to send, so that none is forgotten."""
    (libraries,) = (row for row in ROWS if row[0] == "Tools")
    assert all(f"*{kind}*" in libraries[2] for kind in TABLE_SESSIONS)
