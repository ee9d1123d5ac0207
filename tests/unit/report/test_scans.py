"""What the report says of queries, of index tables, and of partitions of several tables."""

from __future__ import annotations

from typing import Any

import pytest

from harness.measure.record.findings import PointersPart
from harness.model.operation import WHOLE_TABLE
from harness.report.columns import best_over
from harness.report.export.markdown import markdown
from harness.report.names import partition_name
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from harness.report.web.parts import parts
from tests.support.records import kept, line_with

RECORD = kept()


def text(**parts: Any) -> str:
    """The report of the kept record with other parts."""
    return summary(RECORD.model_copy(update=parts), Page(width=140))


def cells_with(report: str, part: str) -> str:
    """The first line that holds ``part``, with single spaces."""
    return " ".join(line_with(report, part).split())


@pytest.mark.parametrize(
    ("scanned", "returned", "estimated", "expected"),
    [
        (5000, 50, 0, "5,000 50 1.0% exact"),
        (5000, 0, 0, "5,000 0 0% exact"),
        (5050, 100, 50, "at least 5,050 100 2.0% estimated"),
    ],
)
def test_queries_show_what_they_walked_beside_what_they_brought(
    scanned: int, returned: int, estimated: int, expected: str
) -> None:
    """What was scanned by the counting rule stands beside what came, and says if it is sure."""
    first, *rest = RECORD.operations
    query = first.model_copy(
        update={
            "kind": "full_table_scan",
            "type": "query",
            "entities": scanned,
            "entities_returned": returned,
            "entities_estimated": estimated,
            "uncertain": first.count if estimated else 0,
        }
    )
    report = text(operations=(query, *rest))
    _, walked = report.split("entities scanned")
    assert cells_with(walked, "full_table_scan") == f"full_table_scan {expected}"


def test_only_queries_scan() -> None:
    """Writes and point queries have no such line, nor has a record of before."""
    assert "entities scanned" not in text()


def test_index_tables_say_what_does_not_fit_together() -> None:
    """Rows without their target, and targets without a row, are counted for each index table."""
    report = text(
        pointers=(
            PointersPart(table="PostsByTag", to="Posts", rows=1200, dangling=3, unnamed=1),
            PointersPart(table="Index", to="", rows=10, dangling=1, unnamed=0),
        )
    )
    assert cells_with(report, "PostsByTag") == (
        "PostsByTag 1,200 rows, of which 3 refer to a missing row of Posts; "
        "1 row of Posts has no reference"
    )
    assert cells_with(report, "the first table") == (
        "Index 10 rows, of which 1 refers to a missing row of the first table; "
        "0 rows of the first table have no reference"
    )


def test_without_index_tables_there_is_no_such_part() -> None:
    """A run of one table says nothing about index tables."""
    assert "index tables" not in text().lower()


def test_scans_over_partitions_are_named() -> None:
    """A row of a whole table is called so, behind the ending of its table."""
    keys = ("p0", WHOLE_TABLE, "Index//", "Index/p0")
    (partition,) = RECORD.partitions
    report = text(partitions=tuple(partition.model_copy(update={"key": key}) for key in keys))
    for name in ("p0", "(table)", "Index/(table)", "Index/p0"):
        assert any(line.split()[:1] == [name] for line in report.splitlines()), name
    assert "(table): queries over several partitions" in report
    assert "(table)" not in text()


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (WHOLE_TABLE, "(table)"),
        ("Index//", "Index/(table)"),
        ("Index/p", "Index/p"),
        ("", "(empty)"),
    ],
)
def test_partitions_are_called_alike_everywhere(key: str, name: str) -> None:
    """Every output calls a partition by its key, behind its table's ending if it has one."""
    assert partition_name(key) == name


@pytest.mark.parametrize(
    ("measured_s", "best"),
    [(0, "best 10 s"), (7, "best 7 s"), (10, "best 10 s"), (40, "best 10 s")],
)
def test_the_best_mean_says_over_how_long_it_was_taken(measured_s: int, best: str) -> None:
    """A window shorter than ten seconds has no best ten; every output says what it has."""
    record = RECORD.model_copy(update={"measured_s": measured_s})
    assert best_over(record) == best
    terminal = summary(record, Page(width=140))
    shown = parts(record, live=False)
    for output in (terminal, markdown(record), shown["account"]):
        assert best in output
        assert best == "best 10 s" or "best 10 s" not in output
    assert f">{best}</th>" in shown["partitions"]


def test_a_gateway_says_that_its_limits_are_others() -> None:
    """Whoever throttles at 250 entities/s explains nothing beside a target of 2,000."""
    gateway = RECORD.endpoint.model_copy(update={"kind": "gateway"})
    limits = "The gateway throttles by its own limits, which may differ from these targets"
    assert f"{limits}." in text(endpoint=gateway)
    storage = RECORD.endpoint.model_copy(update={"kind": "storage"})
    assert limits not in text(endpoint=storage)
