"""The report of a record, and how figures are written."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.measure.record.findings import AdvicePart, PointersPart
from harness.measure.record.measured import LatencyPart
from harness.measure.record.record import RunRecord
from harness.model.figures import number
from harness.model.services.service import ENTITIES
from harness.profile.load.registry import recorded_load
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from tests.support.examples import examples
from tests.support.records import altered, kept, with_partitions
from tests.support.summary_parts import AUDIT, EXPECTED, MOVED, SEARCH

RECORD = kept()
ANSI = re.compile("\x1b\\[[0-9;]*m")
STRANGE_KEYS = st.text(st.characters(codec=None), max_size=60)


def changed(**parts: Any) -> RunRecord:
    """The kept record with other parts."""
    return RECORD.model_copy(update=parts)


def text(record: RunRecord, width: int = 100) -> str:
    return summary(record, Page(width=width))


def spread(*keys: str, **parts: Any) -> RunRecord:
    """The kept record with a partition for each key."""
    return with_partitions(RECORD, keys, **parts)


def test_colour_changes_nothing_but_colour() -> None:
    """Without its colours the coloured report is the plain one."""
    coloured = summary(RECORD, Page(width=80, colour=True))
    assert "\x1b[" in coloured
    assert "\x1b" not in text(RECORD, 80)
    bare = "\n".join(line.rstrip() for line in ANSI.sub("", coloured).splitlines())
    assert bare == text(RECORD, 80)


@pytest.mark.parametrize("throttled", [0, 1_234])
def test_operations_show_their_throttled_attempts_if_any_has_some(throttled: int) -> None:
    """Also their sum, below two kinds of operations."""
    query, write = RECORD.operations[0], altered(RECORD.operations[0], kind="upsert_merge")
    parts = altered(query, kind="query", throttled=throttled), altered(write, throttled=0)
    shown = text(altered(RECORD, operations=parts))
    table = shown.partition("operations ──")[2].partition("──\n")[2].partition("Service latency")[0]
    assert ("throttled" in table) == (throttled > 0)
    assert table.count("1,234") == (2 if throttled else 0)


@pytest.mark.parametrize("width", [60, 66, 72])
def test_a_narrow_terminal_leaves_out_columns_and_cuts_no_figure(width: int) -> None:
    """What is left out is named; names are shortened, figures are whole and bars take one line."""
    part = altered(RECORD.operations[0], kind="upsert_merge", count=1_234_567)
    slow = LatencyPart(count=9, mean=1.0, p50=1234.0, p90=2345.0, p99=3456.0, max=45678.0)
    parts = tuple(altered(part, kind=name, service_ms=slow) for name in ("insert", "delete"))
    record = altered(RECORD, operations=parts)
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


def test_gaps_are_drawn_below_the_chart() -> None:
    """The seconds of a gap are marked where they are in the course of the run."""
    report = text(changed(throttling=MOVED), 140)
    series = report[report.index("entities/s over time") :].splitlines()
    marks = next(line for line in series if line.strip().startswith("outage "))[10:]
    columns_of_a_second = len(series[4][10:]) // len(RECORD.series)
    marked = {place // columns_of_a_second for place, mark in enumerate(marks) if mark == "█"}
    assert marked == {21, 22, 23, 40, 41, 42, 43}
    assert " outage " not in text(RECORD)


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
    assert recorded_load(profile).words(ENTITIES) == expected
    if expected is not None:
        assert expected in " ".join(text(changed(profile=profile)).split())


strange_parts = st.lists(STRANGE_KEYS, max_size=14, unique=True)


@examples(40)
@given(strange_parts, st.integers(80, 160), st.booleans(), STRANGE_KEYS)
def test_whatever_the_keys_are_no_line_is_too_wide(
    keys: list[str], width: int, ascii_only: bool, sentence: str
) -> None:
    """Any keys and names fit, keep their figures whole, and send nothing to the terminal."""
    record = altered(
        spread(*keys),
        verdict=altered(
            RECORD.verdict,
            sentence=sentence,
            evidence=(sentence,),
            advice=(AdvicePart(text=sentence, document=sentence, section=sentence),),
        ),
        profile={"name": sentence, "question": sentence},
        conditions=(altered(RECORD.conditions[0], text=sentence * 9, note=sentence),),
        operations=tuple(
            altered(part, kind=f"{sentence}{part.kind}", type="query") for part in RECORD.operations
        ),
        prediction=altered(EXPECTED, hottest=sentence),
        throttling=MOVED,
        search=SEARCH,
        audit=altered(AUDIT, examples=(sentence,)),
        pointers=(PointersPart(table=sentence, to="", rows=1, dangling=1, unnamed=1),),
    )
    report = summary(record, Page(width=width, ascii_only=ascii_only))
    assert all(cell_len(line) <= width for line in report.splitlines())
    assert report.isascii() or not ascii_only
    assert report.replace("\n", "").isprintable()
    lines = report.splitlines()
    assert len([line for line in lines if re.search(r" 4\.77 +606$", line)]) == min(10, len(keys))
    # The figures of the operations are whole, too.
    assert any(re.search(r" 4\.45 +11\.4 +602 +1,744$", line) for line in lines)


@examples(30)
@given(st.integers(0, 3000), st.integers(80, 200))
def test_chart_fits_any_length_of_a_run(length: int, width: int) -> None:
    """A run of a second and one of an hour both have a chart that fits."""
    point = RECORD.series[0]
    series = tuple(altered(point, t=point.t + n) for n in range(min(length, 1200)))
    report = text(changed(series=series), width)
    assert all(cell_len(line) <= width for line in report.splitlines())
    assert ("entities/s over time" in report) is (length > 0)


def test_failures_of_loading_are_said_with_count_and_kind() -> None:
    """Nothing of the load shows what happened before it."""
    throttled = {"503 ServerBusy partition": 8, "504 partition": 1}
    answers = {"201": 4990, **throttled, "connection_reset": 3}
    loading = altered(RECORD.loading, attempts=5002, attempts_by_status=answers)
    said = " ".join(re.sub("[│ \n]+", " ", text(changed(loading=loading))).split())
    assert (
        f"{loading.entities:,} loaded in {number(loading.seconds)} s; of 5,002 attempts, 9 were "
        "throttled (503 ServerBusy partition, 504 partition) and 3 failed (connection_reset)"
    ) in said
    assert " attempts, " not in text(RECORD)
