"""The report of a record, what a run says while it goes on, and how figures are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.measure.ledger import Ledger
from harness.measure.record import EstimatePart, LatencyPart, RunRecord
from harness.measure.snapshot import Snapshot
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Attempt, Outcome, Result, Scope
from harness.model.target import PUBLISHED
from harness.report.drawing import FULL, PLAIN, bar, chart, columns
from harness.report.live import live_line, progress_line, step
from harness.report.terminal import summary
from harness.report.words import (
    counted,
    data_size,
    duration,
    milliseconds,
    number,
    partition_name,
    percent,
    printable,
    shortened,
)

KEPT = Path(__file__).parent.parent / "golden" / "run-v1.json"
RECORD = RunRecord.from_json(KEPT.read_text(encoding="utf-8"))
PARTITION = RECORD.partitions[0]
ANSI = re.compile("\x1b\\[[0-9;]*m")
LATENCY = LatencyPart(count=1, mean=1.0, p50=1.0, p90=1.0, p99=1.0, max=1.0)
STRANGE_KEYS = st.text(st.characters(codec=None), max_size=60)


def changed(**parts: Any) -> RunRecord:
    """The kept record with other parts."""
    return RECORD.model_copy(update=parts)


def text(record: RunRecord, width: int = 100) -> str:
    return summary(record, width=width, colour=False)


def spread(*keys: str, **parts: Any) -> RunRecord:
    """The kept record with a partition for each key."""
    return changed(
        partitions=tuple(PARTITION.model_copy(update={"key": key, **parts}) for key in keys)
    )


def line_with(report: str, part: str) -> str:
    """The first line that holds ``part``."""
    return next(line for line in report.splitlines() if part in line)


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
        "44,263 attempts for 40,414 operations, 1.095 each",
        "throttled: 3,840 (8.7%), for the partition 3,771, for the account 69",
        "61.4 MiB sent, 16.9 MiB received",
        "44,283 transactions",
        "CPU 43% of a core, 48% at most",
        "response: n/a (closed loop)",
        "limited by the partition",
        "VERDICT: THROTTLED",
    ],
)
def test_a_report_says(expected: str) -> None:
    """What was stressed, with what, how it was answered, and what that means is all there."""
    assert expected in text(RECORD)


def test_partition_row_has_rates_target_and_each_throttling_apart() -> None:
    """Mean, best second, best ten seconds, share of the target, 503, 500, 429, p50 and p99."""
    attempts = PARTITION.attempts_by_status | {
        "500 InternalError": 7,
        "500 OperationTimedOut": 5,
        "429 TooManyRequests": 3,
        "503 ServerBusy account": 2,
        "503 ServerBusy partition": 40,
    }
    attempts.pop("500 OperationTimedOut partition", None)
    attempts.pop("500 OperationTimedOut account", None)
    row = line_with(text(spread("p0", attempts_by_status=attempts)), "p0 ")
    assert row.split() == [
        "p0", "1,692", "1,894", "1,738", "████████▌░", "85%", "42", "5", "3", "4.77", "606",
    ]  # fmt: skip


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
    assert line_with(report, "throttled_ratio < 1%").split() == [
        "✗", "FAILS", "throttled_ratio", "<", "1%", "measured", "8.7%",
    ]  # fmt: skip
    assert line_with(report, "✓ holds").endswith("measured 1,692")
    assert line_with(report, "p99(service) < 100ms").endswith("measured 606 ms")


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
    assert line_with(report, "? not known").endswith("nothing was measured for it")
    assert line_with(report, "future(metric) ~ 3").endswith("measured 2.5")


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
    assert "partitions beyond the 1 that are told apart" in report


def test_estimated_partitions_show_their_bounds() -> None:
    """A key that was told apart late is marked, with the bounds of what it has."""
    bounds = EstimatePart(at_least=1200, at_most=1350)
    report = text(spread("late", exact=False, since=1.0, estimate=bounds))
    assert "late ~" in report
    assert "in the whole run it has 1,200 to 1,350 entities" in report


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
        ({"complete": False}, "a worker's last report is missing"),
        ({"outcomes": {"defect": 3}}, "3 operations ended in a way the harness does not know"),
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
    coloured = summary(RECORD, width=80, colour=True)
    assert "\x1b[" in coloured
    assert "\x1b" not in text(RECORD, 80)
    bare = "\n".join(line.rstrip() for line in ANSI.sub("", coloured).splitlines())
    assert bare == text(RECORD, 80)


strange_parts = st.lists(STRANGE_KEYS, max_size=14, unique=True)


@settings(max_examples=40, deadline=None)
@given(strange_parts, st.integers(80, 160), st.booleans(), STRANGE_KEYS)
def test_whatever_the_keys_are_no_line_is_too_wide(
    keys: list[str], width: int, ascii_only: bool, sentence: str
) -> None:
    """Any keys and names fit, keep their figures whole, and send nothing to the terminal."""
    record = spread(*keys).model_copy(
        update={
            "verdict": RECORD.verdict.model_copy(update={"sentence": sentence}),
            "profile": {"name": sentence, "question": sentence},
        }
    )
    report = summary(record, width=width, colour=False, ascii_only=ascii_only)
    assert all(cell_len(line) <= width for line in report.splitlines())
    assert report.isascii() or not ascii_only
    assert report.replace("\n", "").isprintable()
    figures = [line for line in report.splitlines() if re.search(r" 4\.77 +606$", line)]
    assert len(figures) == min(10, len(keys))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 3000), st.integers(80, 200))
def test_chart_fits_any_length_of_a_run(length: int, width: int) -> None:
    """A run of a second and one of an hour both have a chart that fits."""
    point = RECORD.series[0]
    series = tuple(point.model_copy(update={"t": point.t + n}) for n in range(min(length, 1200)))
    report = text(changed(series=series), width)
    assert all(cell_len(line) <= width for line in report.splitlines())
    assert ("entities/s over time" in report) is (length > 0)


START = 1_700_000_000


def snapshot_of(*attempts: Attempt) -> Snapshot:
    """A snapshot of ten operations of 100 entities, one a second, each with these attempts."""
    ledger = Ledger()
    ledger.open_window(START, START + 10)
    for second in range(10):
        ledger.add(
            Result(
                operation=Operation(kind=Kind.UPSERT_MERGE, partition_key="p0", row_key="r"),
                outcome=Outcome.SUCCESS,
                sent_s=START + second,
                done_s=START + second + 0.004,
                attempts=attempts,
                entities=1000,
            )
        )
    return ledger.snapshot(start=START, end=START + 10, latencies=False)


BUSY = Attempt(
    status=503, sent_s=START, latency_s=0.1, error_code="ServerBusy", scope=Scope.PARTITION
)
OK = Attempt(status=204, sent_s=START, latency_s=0.004)


def test_live_line_says_how_the_run_goes() -> None:
    """One line: time, rate of the wanted one, hottest partition, throttling, latency, load."""
    line = live_line(
        snapshot_of(BUSY, OK),
        earlier=snapshot_of(OK),
        elapsed_s=75.4,
        users=20,
        workers=2,
        in_flight=18,
        cpu_percent=45.2,
        wanted_per_s=1500.0,
        targets=PUBLISHED,
    )
    assert line == (
        " 1:15 | 1,000 of 1,500 entities/s | hottest p0 1,000/s, 50% of target | throttled +10 | "
        "p50 4.00 p99 4.00 ms | 18 in flight of 20 users | 2 workers, CPU 45%"
    )


def test_live_line_without_cap_target_or_latency() -> None:
    """What is not known yet is left out."""
    line = live_line(
        Ledger().snapshot(start=0, end=0),
        earlier=None,
        elapsed_s=0.0,
        users=1,
        workers=1,
        in_flight=0,
        cpu_percent=0.0,
        wanted_per_s=None,
        targets=None,
    )
    assert line == (
        " 0:00 | 0 entities/s | throttled +0 | 0 in flight of 1 user | 1 worker, CPU 0%"
    )


@pytest.mark.parametrize(
    ("done", "elapsed_s", "expected"),
    [
        (0, 0.0, "0%  0 of 2,000  0/s"),
        (500, 0.5, "25%  500 of 2,000  1,000/s  0:01 left"),
        (2000, 62.0, "100%  2,000 of 2,000  32/s  done in 1:02"),
    ],
)
def test_progress_line(done: int, elapsed_s: float, expected: str) -> None:
    """Progress shows share, count, rate and time left."""
    assert expected in progress_line(done, 2000, elapsed_s)


@given(st.integers(0, 10**7), st.floats(0, 10**5), st.booleans())
def test_progress_lines_are_of_one_width(done: int, elapsed_s: float, ascii_only: bool) -> None:
    """A line covers the one it is written over, whatever it says."""
    line = progress_line(done, 10**7, elapsed_s, ascii_only=ascii_only)
    assert len(line) == 79
    assert line.isascii() or not ascii_only


def test_nothing_to_load_is_done() -> None:
    """Loading of no entities is complete at once."""
    assert "100%" in progress_line(0, 0, 0.0)


def test_steps_are_those_of_the_documented_procedure() -> None:
    """The four steps are numbered and named, with what is special to the run."""
    assert step(1, "stress1") == "[1/4] Create a test table: stress1"
    assert [step(n)[:6] for n in (1, 2, 3, 4)] == ["[1/4] ", "[2/4] ", "[3/4] ", "[4/4] "]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (number(0), "0"),
        (number(3.04), "3.0"),
        (number(99.94), "99.9"),
        (number(99.96), "100"),
        (number(1204.4), "1,204"),
        (milliseconds(0.417), "0.42"),
        (milliseconds(45.31), "45.3"),
        (milliseconds(1204.4), "1,204"),
        (percent(0), "0%"),
        (percent(0.000001), "0.01%"),
        (percent(0.0042), "0.42%"),
        (percent(0.066), "6.6%"),
        (percent(0.6), "60%"),
        (percent(0.9999), "99.9%"),
        (percent(1), "100%"),
        (percent(1.2), "120%"),
        (data_size(512), "512 B"),
        (data_size(3500), "3.4 KiB"),
        (data_size(5 * 1024**4), "5,120.0 GiB"),
        (duration(42.9), "0:42"),
        (duration(3727), "1:02:07"),
        (counted(1, "user"), "1 user"),
        (counted(2, "process", "processes"), "2 processes"),
        (partition_name(WHOLE_TABLE), "(table)"),
        (partition_name(""), "(empty)"),
        (printable("a\x1b[31m\u202e\ud83e"), "a\\u001b[31m\\u202e\\ud83e"),
        (printable("é🦊", ascii_only=True), "\\xe9\\U0001f98a"),
        (shortened("partition", 9, "…"), "partition"),
        (shortened("partition", 5, "…"), "pa…on"),
        (shortened("日本語日本語", 7, "…"), "日…本語"),
    ],
)
def test_figures_and_names_are_written_alike(shown: str, expected: str) -> None:
    """Each kind of figure has one way to be written."""
    assert shown == expected


@given(st.text(max_size=30), st.integers(1, 40))
def test_shortened_text_fits(content: str, width: int) -> None:
    """A shortened text never takes more columns than there are."""
    assert cell_len(shortened(content, width, "…")) <= max(width, 1)


@given(st.floats(0, 5), st.integers(1, 40), st.sampled_from([FULL, PLAIN]))
def test_bars_are_of_their_width_and_grow(share: float, width: int, glyphs: Any) -> None:
    """A bar has its width; it is empty for nothing alone and full from the whole on."""
    drawn = bar(share, width, glyphs)
    assert len(drawn) == width
    assert (drawn == glyphs.empty * width) is (share == 0)
    assert drawn == glyphs.eighths[-1] * width or share < 1


@given(st.lists(st.floats(0, 1e6), max_size=50), st.integers(1, 4), st.sampled_from([FULL, PLAIN]))
def test_charts_show_every_value_above_zero(values: list[float], height: int, glyphs: Any) -> None:
    """The highest value reaches the top, 0 is blank, and anything above 0 is seen."""
    lines = chart(values, height, glyphs)
    assert len(lines) == height
    assert {len(line) for line in lines} == {len(values)}
    assert [shown != " " for shown in lines[-1]] == [value > 0 for value in values]
    if any(values):
        assert lines[0][values.index(max(values))] == glyphs.levels[-1]


@given(st.integers(0, 5000), st.integers(1, 300))
def test_columns_cover_every_point_in_order(count: int, width: int) -> None:
    """Every point is in a column, in order, and there are no more columns than fit."""
    groups = columns(count, width)
    assert len(groups) <= width
    assert all(groups)
    assert sorted({place for group in groups for place in group}) == list(range(count))
