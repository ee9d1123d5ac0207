"""The metrics of how far a run has come, of its load, and of ranges of keys."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.heatmap import HeatMap
from harness.measure.record.over_time import HeatPart, KeyRangePart
from harness.metrics.exposition import OVER_S, Exposed, range_rates
from tests.support.metrics_page import (
    BUSY,
    COURSE,
    LOAD,
    OK,
    START,
    WHOLE,
    Series,
    exposed,
    labelled,
    rendered,
    result,
    series,
    value,
)


def page_of(shown: Exposed) -> Series:
    return series(rendered(lambda: shown))


def test_phase_is_one_of_all_phases() -> None:
    """The phase that the run is in is 1, the others are there and 0."""
    assert labelled(page_of(WHOLE), "aztables_run_phase") == {
        ("ramping", "run1"): 0,
        ("measuring", "run1"): 0,
        ("done", "run1"): 1,
    }


def test_times_of_a_run_that_goes_on() -> None:
    """Before the end there is a planned window, and neither an end nor a verdict."""
    page = page_of(exposed(result("p0")))
    assert value(page, "aztables_run_started_timestamp_seconds", run="run1") == START - 5.5
    assert value(page, "aztables_measured_window_start_timestamp_seconds", run="run1") == START
    assert value(page, "aztables_measured_window_end_timestamp_seconds", run="run1") == START + 10
    assert labelled(page, "aztables_run_ended_timestamp_seconds") == {}
    assert labelled(page, "aztables_verdict_info") == {}


def test_no_window_before_it_opens() -> None:
    """While users come there are no times of a window."""
    page = page_of(exposed(result("p0"), course=dataclasses.replace(COURSE, window=None)))
    assert labelled(page, "aztables_measured_window_start_timestamp_seconds") == {}
    assert labelled(page, "aztables_measured_window_end_timestamp_seconds") == {}


def test_the_verdict_at_the_end() -> None:
    """After the end: when it was, the window as it was, and what was found, showably."""
    page = page_of(WHOLE)
    assert value(page, "aztables_run_ended_timestamp_seconds", run="run1") == START + 8.25
    assert value(page, "aztables_measured_window_end_timestamp_seconds", run="run1") == START + 8
    assert labelled(page, "aztables_verdict_info") == {
        ("partition", "run1", "Throttled: partition 'p\\u00000'", "throttled"): 1
    }


def test_what_is_offered_waits_and_costs() -> None:
    """The load's state is shown as it is."""
    page = page_of(WHOLE)
    shown = {
        "aztables_offered_entities_per_second": 150,
        "aztables_operations_waiting": 12,
        "aztables_operations_in_flight": 7,
        "aztables_operations_dropped_total": 3,
        "aztables_billable_transactions_total": 940,
        "aztables_billable_transactions_limit": 1000,
        "aztables_billable_transactions_left": 60,
    }
    assert {name: value(page, name, run="run1") for name in shown} == shown


def test_a_closed_load_without_a_budget_has_neither() -> None:
    """Nothing is offered, nothing waits and nothing is limited; what was counted is there at 0."""
    page = page_of(exposed(result("p0")))
    for name in (
        "offered_entities_per_second",
        "operations_waiting",
        "billable_transactions_limit",
        "billable_transactions_left",
    ):
        assert labelled(page, f"aztables_{name}") == {}
    assert value(page, "aztables_operations_dropped_total", run="run1") == 0
    assert value(page, "aztables_billable_transactions_total", run="run1") == 0


def test_an_overrun_budget_leaves_nothing() -> None:
    """What is left is never below zero."""
    load = dataclasses.replace(LOAD, billable_transactions=1003)
    page = page_of(exposed(result("p0"), load=load))
    assert value(page, "aztables_billable_transactions_left", run="run1") == 0


def test_exact_percentiles_of_all_operations() -> None:
    """Over all names of operations, of each latency that there is, with count and sum."""
    results = [result("p0", service_s=(n + 1) / 1000, name=f"op{n % 2}") for n in range(100)]
    page = page_of(exposed(*results, result("p0", service_s=0.1, due_s=START - 1.0)))
    name = "aztables_latency_seconds"
    service = {"run": "run1", "latency": "service"}
    for share, seconds in (("0.5", 0.051), ("0.9", 0.091), ("0.99", 0.1)):
        assert value(page, name, quantile=share, **service) == pytest.approx(seconds, rel=0.002)
    assert value(page, f"{name}_count", **service) == 101
    assert value(page, f"{name}_sum", **service) == pytest.approx(5.15, rel=0.001)
    response = {"run": "run1", "latency": "response"}
    assert value(page, name, quantile="0.5", **response) == pytest.approx(1.1, rel=0.002)
    assert value(page, f"{name}_count", **response) == 1


def heat(width_s: int, *entities: int) -> HeatPart:
    """One range with so many entities in its columns, and as many throttled attempts."""
    row = KeyRangePart(first="p0", last="p9", entities=entities, throttled=entities)
    return HeatPart(start=START, width_s=width_s, columns=len(entities), ranges=(row,))


@pytest.mark.parametrize(
    ("width_s", "entities", "until", "expected"),
    [
        pytest.param(1, (9, 1, 2, 3, 4, 5, 700), 6, 3.0, id="five seconds, none of the last"),
        pytest.param(1, (4, 6, 100), 2, 5.0, id="the first seconds: as many as there are"),
        pytest.param(2, (100, 2, 4, 6, 50), 9, 2.0, id="three columns of 2 s are at least 5 s"),
        pytest.param(8, (100, 16, 99), 20, 2.0, id="one column that is wider"),
        pytest.param(1, (5, 5, 5, 5, 5), 8, 2.0, id="nothing was counted lately"),
        pytest.param(1, (5, 5, 5, 5, 5), 90, 0.0, id="it is over"),
        pytest.param(4, (5,), 3, None, id="no column is whole"),
        pytest.param(1, (5,), -9, None, id="a clock that goes behind"),
    ],
)
def test_a_range_is_the_mean_of_its_last_whole_columns(
    width_s: int, entities: tuple[int, ...], until: int, expected: float | None
) -> None:
    """Columns of five seconds or more, the one that is still filling left out."""
    rates = range_rates(heat(width_s, *entities), START + until)
    assert [rate.entities_per_s for rate in rates] == ([] if expected is None else [expected])
    assert [rate.throttled_per_s for rate in rates] == ([] if expected is None else [expected])


def test_key_ranges_are_on_the_page() -> None:
    """A range is named by its first key as partitions are; the folded rest is in ranges too."""
    keys = ["", "(other)", "T/p", "a"]
    shown = exposed(
        *(result(key, entities=10 * (n + 1)) for n, key in enumerate(keys)),
        result("a", attempts=(BUSY, BUSY, OK), entities=0),
        cap=2,
        counted_until_s=START + 1,
    )
    page = page_of(shown)
    assert labelled(page, "aztables_key_range_entities_per_second") == {
        ("(empty)", "run1"): 10,
        ("/(other)", "run1"): 20,
        ("T/p", "run1"): 30,
        ("a", "run1"): 40,
    }
    throttled = labelled(page, "aztables_key_range_throttled_attempts_per_second")
    assert {range_: count for (range_, _), count in throttled.items() if count} == {"a": 2}


def test_without_load_there_are_no_ranges() -> None:
    """Before the first operation no range of keys is known."""
    page = page_of(exposed())
    assert labelled(page, "aztables_key_range_entities_per_second") == {}


@given(
    st.lists(
        st.tuples(st.text("abc", max_size=3), st.integers(0, 40), st.integers(1, 99)),
        min_size=1,
        max_size=60,
    ),
    st.integers(0, 50),
)
def test_ranges_add_up_to_what_was_counted(counted: list[tuple[str, int, int]], until: int) -> None:
    """However keys are gathered, all rates together are the rate of the same seconds."""
    made = HeatMap()
    for key, second, entities in counted:
        made.add(key, START + second, entities)
    view = made.view()
    assert view is not None
    rates = range_rates(view, START + until)
    first = view.start - START
    begin = max(first, until - OVER_S)
    inside = sum(count for _, second, count in counted if begin <= second < until)
    total = sum(rate.entities_per_s for rate in rates)
    assert total * max(1, until - begin) == pytest.approx(inside)


def test_promtool_finds_nothing_in_a_whole_page() -> None:
    """Prometheus' own linter has nothing to say about names, texts and units of all families."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: `make test-deps` installs it")
    page = rendered(lambda: WHOLE)
    silent = [
        line.split()[2]
        for line in page.splitlines()
        if line.startswith("# TYPE") and f"\n{line.split()[2]}" not in page
    ]
    # A histogram's own name stands in no sample; queries are the only families without one.
    assert silent == ["aztables_entities_returned_total", "aztables_entities_scanned_total"]
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=page + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
