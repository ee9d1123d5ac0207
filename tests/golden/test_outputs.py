"""Outputs that other programs read must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes them anew.
"""

from __future__ import annotations

import pytest

from harness.measure.counts.latency import LatencyHistogram
from harness.measure.record.record import RunRecord
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.profile.checks.recorded import seen_in
from harness.profile.practices.checklist import findings_of
from harness.report.compare.comparison import Comparison, compare
from harness.report.compare.differences import Subject
from harness.report.compare.outputs import comparison_json, comparison_markdown, side_by_side
from harness.report.compare.regressions import parse_regression
from harness.report.export.junit import junit
from harness.report.export.markdown import markdown
from harness.report.export.run_folder import hlog, partitions_csv
from harness.report.terminal.checklist import Checked, check_text, facts_of
from harness.report.terminal.page import Page
from tests.support.behaviour import attempt, insert, measured, query, result, write
from tests.support.golden import check
from tests.support.records import altered, kept

RECORD = kept()


def test_summary_for_a_ci_page() -> None:
    """The Markdown of a kept record is the same text, year after year."""
    check("summary.md", markdown(RECORD))


def test_junit() -> None:
    """So is its test suite."""
    check("junit.xml", junit(RECORD))


def test_partitions() -> None:
    """So is its table of partitions."""
    check("partitions.csv", partitions_csv(RECORD))


def test_latencies() -> None:
    """So is the log of two histograms, but for what compression makes of their content."""
    fast, slow = LatencyHistogram(3), LatencyHistogram(3)
    for place in range(1, 101):
        fast.record([place / 1000])
        slow.record([place / 100])
    start, end = RECORD.window_start, RECORD.window_start + RECORD.measured_s
    text = hlog(start, end, [("point_query.service", fast), ("point_query.response", slow)])
    lines = [line.partition("HISTF")[0] for line in text.splitlines()]
    check("latencies.txt", "\n".join(lines) + "\n")


def rate(share: float) -> RunRecord:
    """The kept record at another rate."""
    part, partition = RECORD.account, RECORD.partitions[0]
    rates = altered(
        part.entities_per_s, mean=part.entities_per_s.mean * share, best_1s=1894.0 * share
    )
    return altered(
        RECORD,
        run_id=f"20251009T09{int(share * 100) % 60:02d}00Z-1f2e3d4c",
        account=altered(part, entities_per_s=rates, ratio=rates.mean / 20_000),
        partitions=(altered(partition, entities_per_s=rates, ratio=rates.mean / 2_000),),
    )


def comparison() -> Comparison:
    """One run, its repeats at another rate, and a run that was client-limited."""
    doubtful = altered(RECORD.verdict, result="client_limited")
    subjects = [
        Subject(source="out/a", records=(RECORD,)),
        Subject(source="out/b", records=(rate(1.2), rate(1.22), rate(1.24))),
        Subject(
            source="out/c/run.json",
            records=(altered(rate(0.8), verdict=doubtful, throttled_ratio=0.0),),
        ),
    ]
    return compare(subjects, [parse_regression("entities_per_s < 95%")])


@pytest.mark.parametrize("width", [80, 120])
def test_comparison(width: int) -> None:
    """Runs side by side are the same text."""
    page = Page(width=width, colour=False, ascii_only=width == 80)
    check(f"compare-{width}.txt", side_by_side(comparison(), page) + "\n")


def test_comparison_for_a_ci_page() -> None:
    """Runs side by side are the same Markdown."""
    check("compare.md", comparison_markdown(comparison()))


def test_comparison_for_programs() -> None:
    """Runs side by side are the same JSON."""
    check("compare.json", comparison_json(comparison()))


def application() -> RunRecord:
    """A record of an application that breaks several practices."""
    results = []
    for n in range(1500):
        at_s = n / 100
        log = insert(f"log-{n // 10:06d}", f"r{n}", table="Logs")
        results.append(result(log, at_s=at_s, entities=1))
        if n % 3 == 0:
            read = Operation(
                kind=Kind.POINT_QUERY, partition_key="u1", row_key=f"r{n}", table="Users"
            )
            merge = write(Kind.UPDATE_MERGE, "u1", f"r{n}", table="Users")
            results += [
                result(read, at_s=at_s, entities=1),
                result(merge, at_s=at_s + 0.02, entities=1),
            ]
        if n % 15 == 0:
            scan = query(WHOLE_TABLE, filter="Level eq 'error'", table="Logs")
            answer = {"entities": 900, "entities_returned": 9, "bytes_received": 20_000}
            results.append(result(scan, attempt(at_s, 200), **answer))
        if n % 50 == 0:
            busy = [attempt(at_s + 0.03 * place, 503, code="ServerBusy") for place in range(2)]
            order = insert(f"o{n * 7919 % 9973}", "r", table="Orders")
            results.append(result(order, *busy, attempt(at_s + 0.09), entities=1))
    return measured(results)


@pytest.mark.parametrize("width", [80, 120])
def test_a_record_held_against_the_practices(width: int) -> None:
    """What an application did, with the figures, the sections, and what the record lacks."""
    record = application()
    checked = Checked(name=record.run_id, question="", seen=seen_in(record), facts=facts_of(record))
    page = Page(width=width, colour=False, ascii_only=False)
    findings = findings_of(checked.seen)
    check(f"check-record-{width}.txt", check_text(checked, findings, page) + "\n")
