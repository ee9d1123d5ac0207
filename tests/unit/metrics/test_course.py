"""The metrics of how far a run has come, of its load, and of ranges of keys."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.counts.heatmap import HeatMap
from harness.measure.record.over_time import HeatPart, KeyRangePart
from harness.metrics.exposition import OVER_S
from tests.support.metrics_page import START, WHOLE, rendered


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
    rates = heat(width_s, *entities).rates(START + until, OVER_S)
    assert [rate.entities_per_s for rate in rates] == ([] if expected is None else [expected])
    assert [rate.throttled_per_s for rate in rates] == ([] if expected is None else [expected])


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
        made.add_second(START + second, {key: entities})
    view = made.view()
    assert view is not None
    rates = view.rates(START + until, OVER_S)
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
