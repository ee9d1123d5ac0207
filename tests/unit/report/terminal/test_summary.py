"""The report of a record, and how figures are written."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.measure.record.enforced import EnforcedPart, MovePart
from harness.measure.record.findings import (
    AdvicePart,
    AuditPart,
    GapPart,
    PointersPart,
    PredictionPart,
    SearchPart,
    StepPart,
    ThrottlingPart,
)
from harness.measure.record.measured import EstimatePart, LatencyPart
from harness.measure.record.record import RunRecord
from harness.report.export.markdown import markdown
from harness.report.load import scheduled_words
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from tests.support.records import kept, line_with, with_partitions

RECORD = kept()
PARTITION = RECORD.partitions[0]
ANSI = re.compile("\x1b\\[[0-9;]*m")
LATENCY = LatencyPart(count=1, mean=1.0, p50=1.0, p90=1.0, p99=1.0, max=1.0)
STRANGE_KEYS = st.text(st.characters(codec=None), max_size=60)


def changed(**parts: Any) -> RunRecord:
    """The kept record with other parts."""
    return RECORD.model_copy(update=parts)


def text(record: RunRecord, width: int = 100) -> str:
    return summary(record, Page(width=width))


def spread(*keys: str, **parts: Any) -> RunRecord:
    """The kept record with a partition for each key."""
    return with_partitions(RECORD, keys, **parts)


def test_a_run_without_a_request_has_no_empty_tables() -> None:
    """What the user reads is the verdict and its reason."""
    counts = RECORD.counts.model_copy(update={"attempts": 0})
    shown = text(changed(counts=counts))
    assert "VERDICT" in shown
    assert "0 attempts" not in shown
    assert "partitions ──" not in shown


@pytest.mark.parametrize(
    "expected",
    [
        "How many entities a second does ONE partition serve",
        "Azure Table storage",
        "contoso.table.core.windows.net, table stress",
        "20 users in 1 process",
        "1,024 B stored, about 682 B on the wire; 2,000 loaded in 1.8 s",
        "40 s of 48 s under load, ended by run time",
        "session sdk",
        "44,263 attempts for 40,414 operations (1.095 per operation)",
        "throttled: 3,840 (8.7%), 3,771 by a partition limit, 69 by an account limit",
        "61.4 MiB sent, 16.9 MiB received",
        "44,283 transactions",
        "CPU 43% of one core on average, peak 48%",
        "from the first attempt to the complete answer, retries included",
        "limited by the partition",
        "VERDICT: THROTTLED",
    ],
)
def test_a_report_says(expected: str) -> None:
    """What was stressed, with what, how it was answered, and what that means is all there."""
    assert expected in text(RECORD)


def test_partition_row_has_rates_target_and_each_throttling_apart() -> None:
    """Rates, share of the target, each throttling status, other answers, p50 and p99."""
    attempts = PARTITION.attempts_by_status | {
        "500 InternalError": 7,
        "500 OperationTimedOut": 5,
        "429 TooManyRequests": 3,
        "504 partition": 6,
        "404 ResourceNotFound": 11,
        "503 ServerBusy account": 2,
        "503 ServerBusy partition": 40,
    }
    attempts.pop("500 OperationTimedOut partition", None)
    attempts.pop("500 OperationTimedOut account", None)
    record = spread("p0", attempts_by_status=attempts)
    report = text(record.model_copy(update={"attempts_by_status": attempts}))
    head = line_with(report, "partition  ").split()
    assert head[-7:] == ["503", "500", "504", "429", "other", "ms", "ms"]
    # 500 InternalError 7, 404 11, connection_reset 13: none of them is throttling.
    assert line_with(report, "p0 ").split()[-7:] == ["42", "5", "6", "3", "31", "4.77", "606"]


def test_attempts_per_operation_tell_the_partition_whose_refusals_retries_hid() -> None:
    """The column is there where a run had retries and its record knows the operations."""
    attempts = {"204": 100, "503 ServerBusy partition": 50}
    record = spread("p0", "p1", operations=100, attempts_by_status=attempts)
    report = text(record)
    assert "attempts" in line_with(report, "best ").split()
    assert line_with(report, "p0 ").split()[-3] == "1.500"
    assert "per op " not in text(spread("p0", attempts_by_status=attempts))


def test_only_statuses_that_occurred_have_a_column() -> None:
    """503 is always there, so that its absence is seen; others where the run had them."""
    attempts = {"204": 100}
    record = spread("p0", attempts_by_status=attempts)
    report = text(record.model_copy(update={"attempts_by_status": attempts}))
    head, row = line_with(report, "partition  "), line_with(report, "p0 ")
    assert head.split()[-3:] == ["503", "ms", "ms"]
    assert row.split()[:5] == ["p0", "1,692", "1,894", "1,738", "████████▌░"]


def test_account_shows_both_units_and_reads_and_writes_apart() -> None:
    """Entities/s and transactions/s both stand beside 20,000; GET and PUT are apart."""
    report = text(RECORD)
    assert line_with(report, "entities/s      1,692").endswith("8.5% of 20,000")
    assert "5.0% of 20,000" in line_with(report, "transactions/s")
    assert line_with(report, "GET (reads)").split()[-1] == "452"
    assert line_with(report, "PUT (writes)").split()[-1] == "1,240"


def test_conditions_show_verdict_and_value_in_their_unit() -> None:
    """A condition shows whether it holds, and its value as a share, a rate or milliseconds."""
    report = text(RECORD)
    assert line_with(report, "FAILS  throttled_ratio < 1%").split() == [
        "✗", "FAILS", "throttled_ratio", "<", "1%", "measured", "8.7%",
    ]  # fmt: skip
    assert line_with(report, "✓ holds").endswith("measured 1,692")
    assert line_with(report, "FAILS  p99(service) < 100ms").endswith("measured 606 ms")


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        ("share", 0.087, "measured 8.7%"),
        ("entities/s", 1692.2, "measured 1,692"),
        ("ms", 606.2, "measured 606 ms"),
        ("count", 3.0, "measured 3"),
        ("bananas", 2.5, "measured 2.5"),
    ],
)
def test_the_value_of_a_condition_has_the_unit_of_the_record(
    unit: str, value: float, expected: str
) -> None:
    """The record says in what a condition is counted; a unit of a later version does no harm."""
    one = RECORD.conditions[0].model_copy(update={"text": "x", "unit": unit, "value": value})
    assert line_with(text(changed(conditions=(one,))), "  x  ").endswith(f"  x  {expected}")


def test_a_condition_says_why_it_is_not_known() -> None:
    """The note of a condition stands where its value would, or behind it."""
    one = RECORD.conditions[0]
    unknown = {"value": None, "passed": None, "note": "the run was not audited"}
    report = text(changed(conditions=(one.model_copy(update=unknown),)))
    assert line_with(report, "? not known").endswith("the run was not audited")
    partly = one.model_copy(update={"note": "a part of it is missing"})
    assert "measured 8.7% (a part of it is missing)" in text(changed(conditions=(partly,)))


def test_unknown_conditions_are_shown_as_they_are() -> None:
    """A condition without a value, and one of another version, neither fail nor break a report."""
    one = RECORD.conditions[0]
    report = text(
        changed(
            conditions=(
                one.model_copy(update={"value": None, "passed": None}),
                one.model_copy(update={"text": "future(metric) ~ 3", "value": 2.5}),
            )
        )
    )
    assert line_with(report, "? not known").endswith("not measured")
    assert line_with(report, "  future(metric) ~ 3  ").endswith("measured 2.5")


def test_no_more_than_ten_partitions_are_listed() -> None:
    """The hottest ten are listed; the others are one row, with the sum of their rates."""
    report = text(spread(*(f"key{n:02d}" for n in range(13))))
    assert "key09" in report
    assert "key10" not in report
    assert line_with(report, "and 3 more").split()[3] == "5,077"


def test_folded_partitions_are_named() -> None:
    """What is not told apart has a row of its own, without a target, and a line that explains."""
    report = text(changed(partitions_folded=PARTITION.model_copy(update={"key": "(other)"})))
    assert line_with(report, "all others").split()[2] == "1,692"
    assert "the sum of the partitions beyond the 1 that are counted separately" in report


def test_estimated_partitions_show_their_bounds() -> None:
    """A key that was told apart late is marked, with the bounds of what it has."""
    bounds = EstimatePart(at_least=1200, at_most=1350)
    report = " ".join(text(spread("late", exact=False, since=1.0, estimate=bounds)).split())
    assert "late ~" in report
    assert "The whole run has 1,200 to 1,350 entities of this partition." in report


def test_partition_names_that_begin_alike_stay_distinct() -> None:
    """Long keys are cut in the middle, so that their ends can be told apart."""
    keys = [f"{'tenant-' * 20}{n:03d}" for n in range(10)]
    report = text(spread(*keys), width=80)
    assert all(f"{n:03d} " in report for n in range(10))


def test_cosmos_has_no_target() -> None:
    """For Cosmos DB neither 2,000 nor 20,000 is named: it counts request units."""
    record = spread("p0", target=None, ratio=None).model_copy(
        update={
            "endpoint": RECORD.endpoint.model_copy(update={"kind": "cosmos"}),
            "account": RECORD.account.model_copy(update={"target": None, "ratio": None}),
            "profile": {},
        }
    )
    report = text(record)
    assert "no target (request units)" in report
    assert "of 2,000" not in report
    assert "of 20,000" not in report


@pytest.mark.parametrize(("size", "marked"), [(1024, False), (1000, False), (4096, True)])
def test_other_sizes_are_marked_indicative(size: int, marked: bool) -> None:
    """A comparison with entities of another size than 1 KiB is marked."""
    entity = RECORD.entity.model_copy(update={"stored_bytes": size})
    assert ("Indicative only" in text(changed(entity=entity))) is marked


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"invariants": ("due 10 is not sent 9",)}, "due 10 is not sent 9"),
        ({"complete": False}, "the last report of a worker is missing"),
        ({"outcomes": {"defect": 3}}, "3 operations failed because of a defect in the harness"),
    ],
)
def test_what_makes_figures_wrong_is_loud(change: dict[str, Any], expected: str) -> None:
    """A broken law, a missing report or a defect frames the report, above and below."""
    report = text(changed(**change))
    assert report.count("DO NOT RELY ON THESE FIGURES") == 2
    assert report.count(expected) == 2
    assert "DO NOT RELY" not in text(RECORD)


def test_response_latency_is_shown_where_there_is_one() -> None:
    """In an open model each kind has a second line with its response latency."""
    operations = tuple(
        part.model_copy(update={"response_ms": LATENCY}) for part in RECORD.operations
    )
    report = text(changed(operations=operations, response_ms=LATENCY))
    assert len(re.findall(r"^ +response +1\.00", report, re.M)) == len(operations) + 1
    assert "n/a (closed loop)" not in report


def test_outcomes_other_than_success_are_listed_by_kind() -> None:
    """Every outcome but plain success is named with its kinds, success after ambiguity too."""
    first, second, *rest = RECORD.operations
    operations = (
        first.model_copy(update={"outcomes": {"success": 9, "not_found": 2}}),
        second.model_copy(update={"outcomes": {"success_after_ambiguity": 1, "not_found": 1}}),
        *(part.model_copy(update={"outcomes": {"success": 1}}) for part in rest),
    )
    report = text(changed(operations=operations))
    assert line_with(report, "not_found").split() == [
        "not_found", "3", first.kind, "2,", second.kind, "1",
    ]  # fmt: skip
    assert line_with(report, "success_after_ambiguity").split()[1:] == ["1", second.kind, "1"]


def test_nothing_measured_is_shown_as_such() -> None:
    """A run that was stopped before it measured anything has a report, too."""
    rates = RECORD.account.entities_per_s.model_copy(
        update={"mean": 0.0, "best_1s": 0.0, "best_10s": 0.0}
    )
    record = changed(
        partitions=(),
        operations=(),
        series=(),
        attempts_by_status={},
        conditions=(),
        service_ms=None,
        measured_s=0,
        counts=RECORD.counts.model_copy(update={"attempts": 0, "operations": 0}),
        account=RECORD.account.model_copy(update={"entities_per_s": rates}),
    )
    assert "VERDICT" in text(record)


def test_colour_changes_nothing_but_colour() -> None:
    """Without its colours the coloured report is the plain one."""
    coloured = summary(RECORD, Page(width=80, colour=True))
    assert "\x1b[" in coloured
    assert "\x1b" not in text(RECORD, 80)
    bare = "\n".join(line.rstrip() for line in ANSI.sub("", coloured).splitlines())
    assert bare == text(RECORD, 80)


EXPECTED = PredictionPart(
    hottest="p0",
    hottest_share=0.6,
    ranges=(("p0", "p4"), ("p5", "p9")),
    hottest_range=1,
    hottest_range_share=0.4,
    over_partitions_share=0.0,
)


def test_predicted_shares_stand_beside_measured_ones() -> None:
    """What the mix and the keys let expect is held against what was measured."""
    one, other = (PARTITION.model_copy(update={"key": key}) for key in ("p0", "p7"))
    record = changed(partitions=(one, other), prediction=EXPECTED)
    report = " ".join(text(record).split())
    assert "partition p0 60% predicted 100% measured" in report
    assert "keys p5 to p9 40% predicted 100% measured" in report
    assert "- partition p0: 60% predicted, 100% measured" in markdown(record)
    untouched = changed(prediction=EXPECTED.model_copy(update={"hottest": "p8"}))
    assert "partition p8 60% predicted not known" in " ".join(text(untouched).split())
    assert "predicted" not in text(RECORD)
    assert "predicted" not in markdown(RECORD)


def with_reasons() -> RunRecord:
    """The kept record with evidence and advice."""
    advice = AdvicePart(text="use a finer PartitionKey", document="The checklist", section="Keys")
    parts = {"evidence": ("3,840 attempts were throttled.", "CPU was 43%."), "advice": (advice,)}
    return changed(verdict=RECORD.verdict.model_copy(update=parts))


@pytest.mark.parametrize("width", [60, 66, 72])
def test_a_narrow_terminal_leaves_out_columns_and_cuts_no_figure(width: int) -> None:
    """What is left out is named; names are shortened, figures are whole and bars take one line."""
    part = RECORD.operations[0].model_copy(update={"kind": "upsert_merge", "count": 1_234_567})
    slow = LatencyPart(count=9, mean=1.0, p50=1234.0, p90=2345.0, p99=3456.0, max=45678.0)
    parts = tuple(
        part.model_copy(update={"kind": name, "service_ms": slow}) for name in ("insert", "delete")
    )
    record = RECORD.model_copy(update={"operations": parts})
    shown = text(record, width=width)
    assert "1,234,567" in shown
    assert "45,678" in shown or "Not shown, because the terminal is narrow: p90, max" in shown
    below = shown.partition("partitions")[2].partition("conditions")[0]
    for line in below.splitlines():
        assert "…" not in line.split("  ", 1)[-1], line
    [row] = [line for line in below.splitlines() if line.startswith("200")]
    assert row.rstrip()[-1] in "█▏▎▍▌▋▊▉░"
    wide = text(record, width=100)
    assert "Not shown" not in wide


def test_a_verdict_has_its_reasons_and_advice_below() -> None:
    """Below the verdict stand what was seen and what the documents advise, with its place."""
    report = text(with_reasons())
    places = [
        report.index(part)
        for part in (
            "VERDICT: THROTTLED",
            "why ─",
            "3,840 attempts were throttled.",
            "CPU was 43%.",
            "what the documents advise ─",
            "Use a finer PartitionKey.",
            'The checklist, "Keys"',
        )
    ]
    assert places == sorted(places)


def test_without_reasons_the_verdict_is_the_last() -> None:
    """A record that has none, as those of earlier versions, ends with the verdict."""
    report = text(RECORD)
    assert "why ─" not in report
    assert "documents advise" not in report
    assert report.splitlines()[-1].startswith("╰─ limited by the partition ─")


GAPS = (
    GapPart(start_s=21, length_s=3, recovered_s=5),
    GapPart(start_s=30, length_s=1, recovered_s=2),
    GapPart(start_s=40, length_s=4, recovered_s=None),
)
MOVED = ThrottlingPart(
    first_s=12, seconds=19, stretches=4, longest_s=5, gap_count=len(GAPS), gaps=GAPS
)


def test_throttling_has_its_first_time_its_longest_stretch_and_its_gaps() -> None:
    """When it came, how long it took, what was gone, and how long until it was back."""
    report = " ".join(text(changed(throttling=MOVED)).split())
    assert "began 12 s after the load began" in report
    assert "requests were throttled for 19 s, in 4 periods, the longest 5 s" in report
    assert "outage no operation succeeded for 3 s, from second 21 of the load" in report
    assert "90% of the earlier rate was back after 5 s" in report
    assert "no operation succeeded for 4 s, from second 40 of the load" in report
    assert "the earlier rate was not reached again" in report
    # A second may be one operation that failed.
    assert "second 30 of" not in report
    assert "throttling ─" not in text(RECORD)


def test_gaps_are_drawn_below_the_chart() -> None:
    """The seconds of a gap are marked where they are in the course of the run."""
    report = text(changed(throttling=MOVED), 140)
    series = report[report.index("entities/s over time") :].splitlines()
    marks = next(line for line in series if line.strip().startswith("outage "))[10:]
    columns_of_a_second = len(series[4][10:]) // len(RECORD.series)
    marked = {place // columns_of_a_second for place, mark in enumerate(marks) if mark == "█"}
    assert marked == {21, 22, 23, 40, 41, 42, 43}
    assert " outage " not in text(RECORD)


def test_no_more_than_five_gaps_are_listed() -> None:
    """A run that stutters all the time has a report that can be read."""
    gaps = tuple(GapPart(start_s=3 * n, length_s=2, recovered_s=None) for n in range(9))
    report = text(changed(throttling=MOVED.model_copy(update={"gaps": gaps})))
    assert report.count("no operation succeeded for") == 5
    assert "and 4 more outages" in report


STEP = StepPart(
    rate_per_s=200.0,
    achieved_per_s=199.8,
    throttled_ratio=0.0,
    p99_ms=12.34,
    hold_s=10.0,
    confirming=False,
    billable_transactions=1000,
    failed=None,
)
STEPS = (
    STEP,
    STEP.model_copy(
        update={
            "rate_per_s": 400.0,
            "achieved_per_s": 300.0,
            "throttled_ratio": 0.3,
            "p99_ms": None,
            "failed": "throttled",
        }
    ),
    STEP.model_copy(update={"failed": "not-held"}),
    STEP.model_copy(update={"failed": "latency"}),
    STEP.model_copy(update={"failed": "client-limited"}),
    STEP.model_copy(update={"failed": "of a later version"}),
    STEP.model_copy(update={"confirming": True, "hold_s": 30.0}),
)
SEARCH = SearchPart(
    rate_per_s=199.8,
    at_least=False,
    confirmed=True,
    limited_by="throttled",
    sentence="Highest sustainable rate: 200.",
    steps=STEPS,
)


@pytest.mark.parametrize("width", [80, 120])
def test_a_search_shows_every_step(width: int) -> None:
    """Each step has its rates, throttling, p99, its price, and whether it passed or why not."""
    report = text(changed(search=SEARCH), width)
    rows = [line.split() for line in report.splitlines() if re.match(r" [1-7] [✓✗] ", line)]
    assert rows[0] == [
        "1", "✓", "passed", "200", "200", "████░░░░", "0%", "12.3", "10", "s", "1,000",
    ]  # fmt: skip
    assert rows[1] == [
        "2", "✗", "throttled", "400", "300", "██████░░", "30%", "n/a", "10", "s", "1,000",
    ]  # fmt: skip
    results = [" ".join(row[2 : row.index("200")]) for row in rows[2:]]
    assert results == ["not held", "too slow", "generator", "of a…sion", "confirmed"]
    assert rows[-1][-3:] == ["30", "s", "1,000"]
    flowing = " ".join(report.split())
    assert (
        "200 entities/s, confirmed; higher rates are throttled; 7 steps, 7,000 billable "
        "transactions." in flowing
    )


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"at_least": True, "limited_by": "maximum"}, "At least 200 entities/s, confirmed; the"),
        ({"limited_by": "client-limited"}, "the generator was the limit"),
        ({"confirmed": False, "limited_by": "unfinished"}, "not confirmed; the search did not end"),
        ({"rate_per_s": None, "confirmed": False}, "No sustainable rate was found; 7 steps"),
    ],
)
def test_a_search_says_what_it_found(parts: dict[str, Any], expected: str) -> None:
    """The rate, whether it is only a lower bound, whether it lasted, and what limits it."""
    record = changed(search=SEARCH.model_copy(update=parts))
    assert expected in " ".join(text(record).split())
    assert expected in markdown(record)


def test_a_search_that_took_no_step_has_a_report() -> None:
    """A run that is stopped before its first step ended is shown, too."""
    record = changed(search=SEARCH.model_copy(update={"steps": (), "rate_per_s": None}))
    assert "No sustainable rate was found; 0 steps" in text(record)
    assert "No sustainable rate was found; 0 steps" in markdown(record)


AUDIT = AuditPart(
    written=2000,
    rows=2000,
    acknowledged=2100,
    kept=2098,
    lost=2,
    covered=0,
    unacknowledged=7,
    applied=4,
    not_applied=3,
    undecided=0,
    examples=("p0 r1", "p0\nr2"),
)


def test_an_audit_says_what_was_lost() -> None:
    """Of the acknowledged writes, those that are not there; of the others, what became of them."""
    report = " ".join(text(changed(audit=AUDIT)).split())
    assert "checked all 2,000 written rows lost 2 of 2,100 acknowledged writes" in report
    assert (
        "not acknowledged 7 writes: 4 applied, 3 not applied examples p0 r1 p0\\u000ar2" in report
    )
    assert "audit ─" not in text(RECORD)


def test_an_audit_says_what_it_did_not_see() -> None:
    """A sample, rows that could not be read, and writes that later ones cover are named."""
    partly = {
        "rows": 500,
        "exact": False,
        "covered": 8,
        "unread": 1,
        "given_up": 2,
        "cut_short": "the budget was used up",
        "undecided": 1,
    }
    report = " ".join(text(changed(audit=AUDIT.model_copy(update=partly)), 140).split())
    assert "checked 500 of about 2,000 written rows" in report
    assert (
        "not checked 1 row could not be read; 2 rows had too many writes to track; the budget was "
        "used up" in report
    )
    assert (
        "lost 2 of 2,100 acknowledged writes; later writes replaced 8 of the acknowledged ones"
        in report
    )
    assert "3 not applied, 1 unknown" in report


def test_scans_tell_scanned_from_returned() -> None:
    """A query that scans 5,000 and returns 50 shows both, and whether the count is exact."""
    scan = {"kind": "all", "type": "query", "entities": 5000, "entities_returned": 50}
    one = RECORD.operations[0].model_copy(update=scan)
    report = " ".join(text(changed(operations=(one,))).split())
    assert "all 5,000 50 1.0% exact" in report
    other = one.model_copy(update={"entities_estimated": 5000, "uncertain": one.count})
    report = " ".join(text(changed(operations=(other,))).split())
    assert "all at least 5,000 50 1.0% estimated" in report


def test_index_tables_that_fell_out_of_step_are_shown() -> None:
    """Rows that name a row that is not there are counted, and rows that none names."""
    index = PointersPart(table="ByTag", to="", rows=1200, dangling=3, unnamed=1)
    report = " ".join(text(changed(pointers=(index,)), 120).split())
    assert "ByTag 1,200 rows, of which 3 refer to a missing row of the first table" in report
    assert "1 row of the first table has no reference" in report


@pytest.mark.parametrize(
    ("kind", "load", "expected"),
    [
        ("storage", {"max_entities_per_s": 2000, "emulator_max_entities_per_s": 500}, "2,000"),
        ("azurite", {"max_entities_per_s": 2000, "emulator_max_entities_per_s": 500}, "500"),
        ("azurite", {"max_entities_per_s": 300, "emulator_max_entities_per_s": 500}, "300"),
        ("azurite", {"max_entities_per_s": None, "emulator_max_entities_per_s": 500}, "500"),
        ("storage", {"max_entities_per_s": None, "emulator_max_entities_per_s": 500}, None),
        ("of a later version", {"max_entities_per_s": float("inf")}, None),
    ],
)
def test_the_cap_of_a_closed_loop_is_named(
    kind: str, load: dict[str, Any], expected: str | None
) -> None:
    """The cap that held: an emulator has one of its own."""
    endpoint = RECORD.endpoint.model_copy(update={"kind": kind})
    line = line_with(text(changed(profile={"load": load}, endpoint=endpoint)), "│ load ")
    caps = re.findall(r"at most (.+) entities/s in total", line)
    assert caps == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ({}, None),
        ({"load": {"entities_per_s": None, "max_entities_per_s": 500}}, None),
        (
            {"load": {"entities_per_s": 2000, "arrivals": "poisson"}},
            "2,000 entities/s on a schedule (poisson arrivals)",
        ),
        (
            {"load": {"operations_per_s": 50, "arrivals": "constant"}},
            "50.0 operations/s on a schedule (constant arrivals)",
        ),
        (
            {
                "stage": [
                    {"to_entities_per_s": rate, "to_operations_per_s": None}
                    for rate in (100, 3000, 500)
                ]
            },
            "3 stages of up to 3,000 entities/s on a schedule",
        ),
        ({"stage": [{"to_entities_per_s": None, "to_operations_per_s": None}]}, None),
        (
            {"search": {"start_per_s": 200, "max_per_s": 20000}},
            "in steps from 200 to 20,000 entities/s",
        ),
    ],
)
def test_a_schedule_is_named(profile: dict[str, Any], expected: str | None) -> None:
    """A rate, stages or a search are named with their rates; a closed loop has no schedule."""
    assert scheduled_words(profile) == expected
    if expected is not None:
        assert expected in " ".join(text(changed(profile=profile)).split())


@pytest.mark.parametrize(
    "expected",
    [
        '### What the documents advise\n\n- Use a finer PartitionKey. (The checklist, "Keys")',
        "### Why\n\n- 3,840 attempts were throttled.\n- CPU was 43%.",
        "| 2 | throttled | 400 | 300 | 30% | n/a | 10 s | 1,000 |",
        "| began | 12 s after the load began |",
        "| outage | no operation succeeded for 3 s, from second 21 of the load",
        "| lost | 2 of 2,100 acknowledged writes |",
        "| examples | p0 r1 |",
    ],
)
def test_the_page_of_a_job_has_the_same_parts(expected: str) -> None:
    """The Markdown has reasons, advice, search, throttling and audit, in the same words."""
    parts = {"search": SEARCH, "throttling": MOVED, "audit": AUDIT}
    assert expected in markdown(with_reasons().model_copy(update=parts))


strange_parts = st.lists(STRANGE_KEYS, max_size=14, unique=True)


@settings(max_examples=40, deadline=None)
@given(strange_parts, st.integers(80, 160), st.booleans(), STRANGE_KEYS)
def test_whatever_the_keys_are_no_line_is_too_wide(
    keys: list[str], width: int, ascii_only: bool, sentence: str
) -> None:
    """Any keys and names fit, keep their figures whole, and send nothing to the terminal."""
    record = spread(*keys).model_copy(
        update={
            "verdict": RECORD.verdict.model_copy(
                update={
                    "sentence": sentence,
                    "evidence": (sentence,),
                    "advice": (AdvicePart(text=sentence, document=sentence, section=sentence),),
                }
            ),
            "profile": {"name": sentence, "question": sentence},
            "conditions": (
                RECORD.conditions[0].model_copy(update={"text": sentence * 9, "note": sentence}),
            ),
            "operations": tuple(
                part.model_copy(update={"kind": f"{sentence}{part.kind}", "type": "query"})
                for part in RECORD.operations
            ),
            "prediction": EXPECTED.model_copy(update={"hottest": sentence}),
            "throttling": MOVED,
            "search": SEARCH,
            "audit": AUDIT.model_copy(update={"examples": (sentence,)}),
            "pointers": (PointersPart(table=sentence, to="", rows=1, dangling=1, unnamed=1),),
        }
    )
    report = summary(record, Page(width=width, ascii_only=ascii_only))
    assert all(cell_len(line) <= width for line in report.splitlines())
    assert report.isascii() or not ascii_only
    assert report.replace("\n", "").isprintable()
    lines = report.splitlines()
    assert len([line for line in lines if re.search(r" 4\.77 +606$", line)]) == min(10, len(keys))
    # The figures of the operations are whole, too.
    assert any(re.search(r" 4\.45 +11\.4 +602 +1,744$", line) for line in lines)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 3000), st.integers(80, 200))
def test_chart_fits_any_length_of_a_run(length: int, width: int) -> None:
    """A run of a second and one of an hour both have a chart that fits."""
    point = RECORD.series[0]
    series = tuple(point.model_copy(update={"t": point.t + n}) for n in range(min(length, 1200)))
    report = text(changed(series=series), width)
    assert all(cell_len(line) <= width for line in report.splitlines())
    assert ("entities/s over time" in report) is (length > 0)


@pytest.mark.parametrize("output", [text, markdown], ids=["terminal", "markdown"])
def test_the_limits_of_a_gateway_and_its_moves_are_named(
    output: Callable[[RunRecord], str],
) -> None:
    """One line has the enforced limits; each move has its partition, its time and its length."""
    moves = tuple(
        MovePart(start_s=16.6 + place, offline_s=3.0, key=f"p{place}", from_server=0, to_server=1)
        for place in range(7)
    )
    part = EnforcedPart(
        partition_per_s=250.0, account_per_s=2500.0, server_per_s=500.0, moves=moves
    )
    endpoint = RECORD.endpoint.model_copy(update={"kind": "gateway"})
    shown = " ".join(output(changed(enforced=part, endpoint=endpoint)).split())
    assert (
        "The gateway allows 250 entities/s per partition, 2,500 per account and 500 per server. "
        "The published targets are 2,000 per partition and 20,000 per account."
    ) in shown
    # Shares are of the limit that throttled, so that a small share never stands beside THROTTLED.
    assert "of 250" in shown
    assert "of 2,500" in shown
    assert "of 2,000" not in shown
    assert "per second | of the target" not in shown
    assert "partition 'p0' moved, unavailable 3 s, from second 17 of the load" in shown
    assert "'p5'" not in shown
    assert "and 2 more moves" in shown
    without = " ".join(output(changed(endpoint=endpoint)).split())
    assert "which may differ from these targets." in without
    assert "moved" not in without


@pytest.mark.parametrize("output", [text, markdown], ids=["terminal", "markdown"])
def test_a_window_of_a_second_has_one_best_second(output: Callable[[RunRecord], str]) -> None:
    """No second column or row of the same name."""
    assert output(RECORD).count("best") == 4
    assert output(changed(measured_s=1)).count("best") == 2
