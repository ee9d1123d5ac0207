"""The charts of a report: each figure says what the record holds, in its unit, at its time."""

from __future__ import annotations

from typing import Any

import pytest

from harness.measure.record.enforced import EnforcedPart, MovePart
from harness.measure.record.findings import GapPart
from harness.measure.record.over_time import LatencyCoursePart
from harness.measure.record.record import RunRecord
from harness.model.outcome import THROTTLING_STATUSES
from harness.report.web.charts import charts
from harness.report.web.frame import ColourGrid
from harness.report.web.heat_maps import percentiles
from harness.report.web.tables import page_css
from tests.support.records import altered, course, enforcing, kept, move, with_courses, with_heat

RECORD = kept()
START = RECORD.series[0].t


def heat(record: RunRecord, name: str = "chart-heat") -> ColourGrid:
    """The heat map of a chart."""
    found = charts(record)[name].heat
    assert found is not None
    return found


def bands(record: RunRecord, name: str = "chart-main") -> dict[str, list[tuple[float, float]]]:
    """The times that are marked in a chart, by what they mark."""
    found: dict[str, list[tuple[float, float]]] = {}
    for band in charts(record)[name].bands:
        found.setdefault(band.tone, []).append((band.start_s, band.end_s))
    return found


def through(record: RunRecord, *moves: MovePart, partition: float = 250.0) -> RunRecord:
    """``record`` of a run through a gateway with these limits and moves."""
    return altered(record, enforced=enforcing(*moves, partition=partition))


def at_rate(rate: float) -> RunRecord:
    """The kept record with a series of one rate."""
    series = tuple(altered(point, entities=rate) for point in RECORD.series)
    return altered(RECORD, series=series)


@pytest.mark.parametrize(
    ("rows", "q", "expected"),
    [
        pytest.param([[4], [0], [1]], 50, [1.0], id="the median is among the fast"),
        pytest.param([[4], [0], [1]], 80, [1.0], id="exactly at the edge"),
        pytest.param([[4], [0], [1]], 81, [1.585], id="just above it"),
        pytest.param([[4], [0], [1]], 100, [1.585], id="the slowest"),
        pytest.param([[1], [0], [0]], 0, [1.0], id="the fastest"),
        pytest.param([[0, 1], [0, 0], [0, 99]], 99, [None, 1.585], id="an empty column"),
    ],
)
def test_percentiles_over_time(rows: list[list[int]], q: float, expected: list[Any]) -> None:
    """A percentile is the upper bound of the row in which its rank falls, column by column."""
    assert percentiles(course(START, rows), q) == expected


def test_every_chart_says_what_it_shows() -> None:
    """Each has a title, one time, and units beside the pointer; the main one is not repeated."""
    waits = tuple(altered(point, retrying=3.0) for point in RECORD.series)
    record = with_heat(
        with_courses(altered(RECORD, series=waits)),
        ["a"],
        lambda row, column: 5,
        lambda row, column: 1,
    )
    made = charts(record)
    assert set(made) == {
        *("chart-main", "chart-throttling", "chart-waiting", "chart-backlog", "chart-generator"),
        *("chart-heat", "chart-refused", "chart-service", "chart-response"),
    }
    for chart in made.values():
        assert chart.title
        assert chart.span == (0.0, sum(point.width_s for point in RECORD.series))
        assert all(line.name and line.unit for line in chart.lines)


def test_the_main_chart_shows_the_verdict() -> None:
    """CPU where the generator was the limit, else the rate; of a search always the rate."""
    limited = altered(RECORD.verdict, result="client_limited", limited_by="generator")
    searched = with_courses(altered(kept("run-v1-search.json"), verdict=limited))
    made = charts(altered(searched, search=None))
    assert made["chart-main"].title.startswith("CPU")
    assert "chart-generator" not in made
    assert "chart-rate" in made
    assert charts(searched)["chart-main"].title.startswith("Entities/s")


def test_a_latency_that_failed_is_the_main_chart() -> None:
    """With the bound of the condition as a line."""
    within = altered(RECORD.verdict, result="within_target", limited_by="load")
    failed = altered(
        RECORD.conditions[0], text="p99(service) < 3ms", passed=False, value=5.0, unit="ms"
    )
    changes = {"verdict": within, "conditions": (failed,), "exit_code": 1}
    record = with_courses(RECORD.model_copy(update=changes))
    made = charts(record)
    assert made["chart-main"].title == "Service latency in ms"
    assert [level.value for level in made["chart-main"].levels] == [3.0]
    assert "chart-rate" in made


def test_the_hottest_partition_has_a_line_beside_the_limit_of_each() -> None:
    """Where the heat map has a row of it alone."""
    two = tuple(altered(RECORD.partitions[0], key=key) for key in "ab")
    record = altered(through(at_rate(300.0)), partitions=two)
    record = with_heat(record, ["a", "b"], lambda row, column: 240)
    chart = charts(record)["chart-main"]
    [hot] = [line for line in chart.lines if "hottest" in line.name]
    assert set(hot.ys) == {240.0}
    assert lines(record) == {
        250.0: "limit in force 250 (each partition)",
        2500.0: "limit in force 2,500 (account)",
    }


def test_a_heat_map_shows_rates() -> None:
    """Its cells are counts over their width; what took nothing is empty."""
    record = with_heat(RECORD, ["a", "b"], lambda row, column: row * 4 * (column % 2))
    assert record.heat is not None
    wide = altered(record.heat, width_s=2, columns=len(RECORD.series) // 2)
    rows = tuple(
        altered(row, entities=row.entities[: wide.columns], written=()) for row in wide.ranges
    )
    shown = heat(altered(record, heat=altered(wide, ranges=rows)))
    assert set(shown.cells[0]) == {None}
    assert list(shown.cells[1][:4]) == [None, 2.0, None, 2.0]
    assert (shown.start_s, shown.width_s, shown.most) == (0.0, 2, 2.0)


def test_a_burst_does_not_take_the_colours_of_the_rest() -> None:
    """A scan at night is as dark as it gets; a hot key, which stays, keeps a colour of its own."""
    scan = with_heat(RECORD, ["a", "b"], lambda row, column: 900 if column == 7 else 5 + row)
    assert heat(scan).most == 6.0
    hot = with_heat(RECORD, ["a", "b"], lambda row, column: 900 if row else 5)
    assert heat(hot).most == 900.0


def test_a_column_that_was_cut_is_not_too_low() -> None:
    """A column that the run covers in part is divided by that part."""
    record = with_heat(RECORD, ["a"], lambda row, column: 12, columns=1)
    assert record.heat is not None
    early = altered(record.heat, start=START - 4, width_s=8)
    assert heat(altered(record, heat=early)).cells == [[3.0]]


def test_throttling_is_shown_where_it_was() -> None:
    """Without throttled attempts there is neither a chart nor a heat map of them."""
    calm = tuple(
        altered(point, throttled=0.0, throttled_by_status=dict.fromkeys(THROTTLING_STATUSES, 0.0))
        for point in RECORD.series
    )
    record = with_heat(altered(RECORD, series=calm), ["a"], lambda row, column: column)
    assert set(charts(record)) == {"chart-main", "chart-heat"}
    assert {"503 ServerBusy", "500 OperationTimedOut"} == {
        line.name for line in charts(RECORD)["chart-throttling"].lines
    }
    [share] = [line for line in charts(RECORD)["chart-main"].lines if line.share]
    assert 0 < max(value for value in share.ys if value is not None) <= 100


def test_every_throttling_status_has_a_colour() -> None:
    """The chart numbers them, and the style sheet has as many tones, or more."""
    tones = [f".tone-throttled-{place}" for place in range(len(THROTTLING_STATUSES))]
    assert all(tone in page_css() for tone in tones)


def test_a_latency_heat_map_has_its_percentiles() -> None:
    """Rows lie between their bounds, and the lines are the percentiles of each column."""
    part: LatencyCoursePart = course(START, [[1, 0], [98, 0], [1, 7]])
    record = altered(RECORD, service_over_time=part)
    grid, shown = heat(record, "chart-service"), charts(record)["chart-service"].lines
    assert len(grid.edges) == 4
    assert grid.edges[1:] == [1.0, 1.259, 1.585]
    assert grid.cells[1] == [98.0, None]
    assert [line.name for line in shown] == ["p50", "p90", "p99"]
    assert shown[0].ys == [1.259, 1.585]
    assert shown[2].ys == [1.259, 1.585]


def lines(record: RunRecord) -> dict[float, str]:
    """The limits of the chart of the rate: their values and texts."""
    return {level.value: level.text for level in charts(record)["chart-main"].levels}


def test_enforced_limits_take_the_place_of_targets() -> None:
    """Whether they are lines or named at the edge follows from how near the load came."""
    record = through(at_rate(300.0))
    assert lines(record) == {
        250.0: "limit in force 250 (partition)",
        2500.0: "limit in force 2,500 (account)",
    }
    assert [level.reach for level in charts(record)["chart-main"].levels] == [0.2, 0.4]


def test_the_limit_of_a_partition_is_for_one_partition() -> None:
    """Where several partitions share the load it is no line for the sum."""
    two = tuple(altered(RECORD.partitions[0], key=key) for key in "ab")
    assert list(lines(altered(at_rate(9000.0), partitions=two))) == [20000.0]
    record = altered(through(at_rate(1100.0)), partitions=two)
    assert lines(record) == {2500.0: "limit in force 2,500 (account)"}


def test_moves_are_marked_on_the_charts_over_time() -> None:
    """A move is a band from the first to the last second without the partition, and its text."""
    record = through(RECORD, move("p0", 3.5, 2.0))
    for name in ("chart-main", "chart-throttling"):
        assert bands(record, name)["moved"] == [(3.5, 5.5)]
    [text] = [band.text for band in charts(record)["chart-main"].bands if band.tone == "moved"]
    assert text == "p0 moved: 2 s offline"


def test_an_outage_is_told_from_the_move_that_caused_it() -> None:
    """Each has a mark of its own."""
    gaps = tuple(GapPart(start_s=second, length_s=3, recovered_s=None) for second in (4, 9))
    throttling = altered(RECORD.throttling, gaps=gaps)
    record = altered(through(RECORD, move("p0", 3.5, 2.0)), throttling=throttling)
    assert bands(record)["stopped"] == [(4.0, 7.0), (9.0, 12.0)]


def test_the_cpu_of_others_is_beside_that_of_the_run() -> None:
    """A verdict that names other processes is seen in its chart; unknown CPU is no line."""
    used = {"cpu_percent": 12.0, "machine_percent": 99.0}
    for others, names in ((80.0, 3), (None, 2)):
        points = tuple(altered(point, **used, others_percent=others) for point in RECORD.series)
        chart = charts(altered(RECORD, series=points))["chart-generator"]
        assert len(chart.lines) == names
        assert ("other processes" in chart.lines[-1].name) is (others is not None)
        assert set(chart.lines[-1].ys) == {others or 99.0}


def test_a_move_outside_of_the_load_is_not_marked() -> None:
    """A move is cut at both ends of the time under load, and left out where nothing remains."""
    seconds = sum(point.width_s for point in RECORD.series)
    record = through(
        RECORD, move("a", -5.0, 2.0), move("b", -1.0, 2.0), move("c", seconds + 1.0, 2.0)
    )
    assert bands(record)["moved"] == [(0.0, 1.0)]


def test_moves_are_marked_in_the_heat_maps() -> None:
    """The mark is in the row that has the partition, alone or within a range of keys."""
    record = with_heat(RECORD, ["a", "b", "z"], lambda row, column: 4, lambda row, column: 1)
    assert record.heat is not None
    wide = altered(record.heat.ranges[1], last="m")
    ranges = (record.heat.ranges[0], wide, record.heat.ranges[2])
    record = altered(record, heat={"ranges": ranges})
    moved = through(record, move("a", 1.0, 2.0), move("f", 4.0, 2.0), move("nowhere", 6.0, 2.0))
    for name in ("chart-heat", "chart-refused"):
        marks = charts(moved)[name].marks
        assert [(mark.row, mark.start_s, mark.end_s) for mark in marks] == [
            (0, 1.0, 3.0),
            (1, 4.0, 6.0),
        ]
        assert marks[1].text == "partition 'f' moved, unavailable 2 s"
        assert charts(record)[name].marks == []
    redacted = charts(altered(moved, redacted=True))["chart-heat"].marks
    assert [mark.row for mark in redacted] == [0], "aliases are not in the order of their keys"


def test_a_gateway_without_moves_marks_none() -> None:
    """Limits alone add neither bands nor marks."""
    record = with_heat(RECORD, ["a"], lambda row, column: 1)
    made = charts(through(record))
    assert made["chart-heat"] == charts(record)["chart-heat"]
    assert made["chart-throttling"] == charts(record)["chart-throttling"]


def test_a_gateway_that_limits_nothing_has_no_line() -> None:
    """Its settings name a limit that no endpoint reaches."""
    unlimited = EnforcedPart(partition_per_s=1e9, account_per_s=1e9, server_per_s=1e9)
    plain = altered(RECORD, enforced=None)
    assert lines(altered(RECORD, enforced=unlimited)) == lines(plain)
