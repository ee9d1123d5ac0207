"""The charts of a report: each figure says what the record holds, in its unit, at its time."""

from __future__ import annotations

from typing import Any

import pytest

from harness.measure.record.enforced import EnforcedPart, MovePart
from harness.measure.record.findings import GapPart
from harness.measure.record.measured import LatencyCoursePart
from harness.measure.record.record import RunRecord
from harness.model.outcome import THROTTLING_STATUSES
from harness.report.web.charts import charts
from harness.report.web.frame import aligned
from harness.report.web.heat_maps import percentiles
from tests.support.records import altered, course, enforcing, kept, move, with_courses, with_heat

RECORD = kept()
MOVED_BAND = "18,165,148"
START = RECORD.series[0].t


def heat(record: RunRecord, name: str = "chart-heat") -> dict[str, Any]:
    """The heat map of a figure."""
    trace: dict[str, Any] = charts(record)[name]["data"][0]
    return trace


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
    """Each has a title, and texts beside the pointer; the main one is not repeated."""
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
    for figure in made.values():
        assert figure["title"]
        assert all("%{x" in trace["hovertemplate"] for trace in figure["data"])


def test_all_charts_have_the_same_room_for_their_plots() -> None:
    """With or without names of keys, and with or without a scale of colours."""
    record = with_heat(with_courses(RECORD), ["a" * 40], lambda row, column: 5)
    margins = [figure["layout"]["margin"] for figure in aligned(charts(record)).values()]
    assert len(margins) > 4
    assert len({(margin["l"], margin["r"]) for margin in margins}) == 1
    plain = aligned({"chart-main": charts(RECORD)["chart-main"]})
    assert plain["chart-main"]["layout"]["margin"]["l"] < margins[0]["l"]


def test_the_main_chart_shows_the_verdict() -> None:
    """CPU where the generator was the limit, else the rate; of a search always the rate."""
    limited = altered(RECORD.verdict, result="client_limited", limited_by="generator")
    searched = with_courses(altered(kept("run-v1-search.json"), verdict=limited))
    made = charts(altered(searched, search=None))
    assert made["chart-main"]["title"].startswith("CPU")
    assert "chart-generator" not in made
    assert "chart-rate" in made
    assert charts(searched)["chart-main"]["title"].startswith("Entities/s")


def test_a_latency_that_failed_is_the_main_chart() -> None:
    """With the bound of the condition as a line."""
    within = altered(RECORD.verdict, result="within_target", limited_by="load")
    failed = altered(
        RECORD.conditions[0], text="p99(service) < 3ms", passed=False, value=5.0, unit="ms"
    )
    changes = {"verdict": within, "conditions": (failed,), "exit_code": 1}
    record = with_courses(RECORD.model_copy(update=changes))
    made = charts(record)
    assert made["chart-main"]["title"] == "Service latency in ms"
    bounds = [one["y0"] for one in made["chart-main"]["layout"]["shapes"] if one["type"] == "line"]
    assert bounds == [3.0]
    assert "chart-rate" in made


def test_the_hottest_partition_has_a_line_beside_the_limit_of_each() -> None:
    """Where the heat map has a row of it alone."""
    two = tuple(altered(RECORD.partitions[0], key=key) for key in "ab")
    record = altered(through(at_rate(300.0)), partitions=two)
    record = with_heat(record, ["a", "b"], lambda row, column: 240)
    chart = charts(record)["chart-main"]
    [hot] = [trace for trace in chart["data"] if "hottest" in trace["name"]]
    assert set(hot["y"]) == {240.0}
    assert lines(record) == {250.0: "limit in force 250 (each partition)"}


def test_a_heat_map_shows_rates() -> None:
    """Its cells are counts over their width; what took nothing is empty."""
    record = with_heat(RECORD, ["a", "b"], lambda row, column: row * 4 * (column % 2))
    assert record.heat is not None
    wide = altered(record.heat, width_s=2, columns=len(RECORD.series) // 2)
    rows = tuple(altered(row, entities=row.entities[: wide.columns]) for row in wide.ranges)
    trace = heat(altered(record, heat=altered(wide, ranges=rows)))
    assert set(trace["z"][0]) == {None}
    assert trace["z"][1][:4] == [None, 2.0, None, 2.0]
    assert trace["x"][:2] == [START * 1000, (START + 2) * 1000]
    assert len(trace["x"]) == len(trace["z"][0]) + 1
    assert trace["zmin"] == 0
    assert trace["zmax"] == 2.0


def test_a_column_that_was_cut_is_not_too_low() -> None:
    """A column that the run covers in part is divided by that part."""
    record = with_heat(RECORD, ["a"], lambda row, column: 12, columns=1)
    assert record.heat is not None
    early = altered(record.heat, start=START - 4, width_s=8)
    assert heat(altered(record, heat=early))["z"] == [[3.0]]


def test_rows_with_the_same_name_stay_apart() -> None:
    """Long keys that are shortened to the same name are rows of their own."""
    keys = [f"{'k' * 40}{place}{'z' * 40}" for place in range(3)]
    trace = heat(with_heat(RECORD, keys, lambda row, column: row + 1))
    assert len(set(trace["y"])) == 3


def test_throttling_is_shown_where_it_was() -> None:
    """Without throttled attempts there is neither a chart nor a heat map of them."""
    calm = tuple(
        altered(point, throttled=0.0, throttled_by_status=dict.fromkeys(THROTTLING_STATUSES, 0.0))
        for point in RECORD.series
    )
    record = with_heat(altered(RECORD, series=calm), ["a"], lambda row, column: column)
    assert set(charts(record)) == {"chart-main", "chart-heat"}
    assert {"503 ServerBusy", "500 OperationTimedOut"} == {
        trace["name"] for trace in charts(RECORD)["chart-throttling"]["data"]
    }


@pytest.mark.parametrize(
    ("rate", "lines", "note"),
    [
        (
            300.0,
            [],
            "targets 20,000 (account) and 2,000 (partition) are above the range of this chart",
        ),
        (500.0, [2000.0], "target 20,000 (account) is above the range of this chart"),
        (1500.0, [2000.0], "target 20,000 (account) is above the range of this chart"),
        (9000.0, [20000.0, 2000.0], ""),
    ],
)
def test_a_far_target_does_not_squash_the_chart(rate: float, lines: list[float], note: str) -> None:
    """A target is a line where the load came near it, and a sentence where it did not."""
    chart = charts(at_rate(rate))["chart-main"]
    shapes = chart["layout"]["shapes"]
    assert sorted(s["y0"] for s in shapes if s["type"] == "line") == sorted(lines)
    assert sorted(chart["note"].split()) == sorted(note.split())


def test_the_line_of_a_partition_is_for_one_partition() -> None:
    """Where several partitions share the load their target is no line for the sum."""
    two = tuple(altered(RECORD.partitions[0], key=key) for key in "ab")
    layout = charts(altered(at_rate(9000.0), partitions=two))["chart-main"]["layout"]
    assert [s["y0"] for s in layout["shapes"] if s["type"] == "line"] == [20000.0]


def test_the_measured_window_is_shaded() -> None:
    """From its opening to its end, in the time of the axis."""
    [shade] = [
        shape
        for shape in charts(RECORD)["chart-main"]["layout"]["shapes"]
        if shape["type"] == "rect"
    ]
    assert shade["x0"] == RECORD.window_start * 1000
    assert shade["x1"] == (RECORD.window_start + RECORD.measured_s) * 1000


def test_a_latency_heat_map_has_its_percentiles() -> None:
    """Rows lie between their bounds, and the lines are the percentiles of each column."""
    part: LatencyCoursePart = course(START, [[1, 0], [98, 0], [1, 7]])
    record = altered(RECORD, service_over_time=part)
    grid, *lines = charts(record)["chart-service"]["data"]
    assert len(grid["y"]) == 4
    assert grid["y"][1:] == [1.0, 1.259, 1.585]
    assert grid["text"][1] == [98.0, 0.0]
    assert [line["name"] for line in lines] == ["p50", "p90", "p99"]
    assert lines[0]["y"] == [1.259, 1.585]
    assert lines[2]["y"] == [1.259, 1.585]


def lines(record: RunRecord) -> dict[float, str]:
    """The lines across the chart of the rate: their values and texts."""
    shapes = charts(record)["chart-main"]["layout"]["shapes"]
    return {s["y0"]: s["label"]["text"] for s in shapes if s["type"] == "line"}


def words(record: RunRecord) -> str:
    """What stands above the chart of the rate."""
    text: str = charts(record)["chart-main"]["note"]
    return text


def test_enforced_limits_take_the_place_of_targets() -> None:
    """They are drawn where the load came near, and said above the chart where it did not."""
    record = through(at_rate(300.0))
    assert lines(record) == {250.0: "limit in force 250 (partition)"}
    assert words(record) == "limit in force 2,500 (account) is above the range of this chart"
    assert lines(through(at_rate(1100.0))) == {
        250.0: "limit in force 250 (partition)",
        2500.0: "limit in force 2,500 (account)",
    }


def test_the_enforced_limit_of_a_partition_is_for_one_partition() -> None:
    """Where several partitions share the load only the limit of the account is shown."""
    two = tuple(altered(RECORD.partitions[0], key=key) for key in "ab")
    record = altered(through(at_rate(1100.0)), partitions=two)
    assert lines(record) == {2500.0: "limit in force 2,500 (account)"}


def test_moves_are_marked_on_the_charts_over_time() -> None:
    """A move is a band from the first to the last second without the partition, and its text."""
    for name in ("chart-main", "chart-throttling"):
        layout = charts(through(RECORD, move("p0", 3.5, 2.0)))[name]["layout"]
        bands = [s for s in layout["shapes"] if s["type"] == "rect"]
        [band] = [one for one in bands if MOVED_BAND in one["fillcolor"]]
        assert (band["x0"], band["x1"]) == (START * 1000 + 3500, START * 1000 + 5500)
        texts = [text["text"] for text in layout["annotations"]]
        assert texts == (["p0 moved: 2 s offline"] if name == "chart-main" else [])


def test_an_outage_is_told_from_the_move_that_caused_it() -> None:
    """A strip at the bottom, which a band as high as the chart does not mix with; in the legend."""
    gaps = tuple(GapPart(start_s=second, length_s=3, recovered_s=None) for second in (4, 9))
    throttling = altered(RECORD.throttling, gaps=gaps)
    record = altered(through(RECORD, move("p0", 3.5, 2.0)), throttling=throttling)
    for name, named in (("chart-main", ["nothing succeeded"]), ("chart-throttling", [])):
        layout = charts(record)[name]["layout"]
        strips = [one for one in layout["shapes"] if one["type"] == "rect" and one["y1"] < 1]
        assert [one["x0"] for one in strips] == [START * 1000 + 4000, START * 1000 + 9000]
        assert {(one["y0"], one["y1"] < 0.1) for one in strips} == {(0, True)}
        assert [one["name"] for one in strips if one.get("showlegend")] == named
        assert layout["showlegend"]


def test_the_cpu_of_others_is_beside_that_of_the_run() -> None:
    """A verdict that names other processes is seen in its chart; unknown CPU is no line."""
    used = {"cpu_percent": 12.0, "machine_percent": 99.0}
    for others, names in ((80.0, 3), (None, 2)):
        points = tuple(altered(point, **used, others_percent=others) for point in RECORD.series)
        chart = charts(altered(RECORD, series=points))["chart-generator"]
        assert len(chart["data"]) == names
        assert ("other processes" in chart["data"][-1]["name"]) is (others is not None)
        assert set(chart["data"][-1]["y"]) == {others or 99.0}


def test_texts_of_moves_do_not_overlap() -> None:
    """Of many moves all have a band, and as many as have room have a text."""
    record = through(RECORD, *(move(f"p{second}", second, 0.5) for second in range(9)))
    layout = charts(record)["chart-main"]["layout"]
    assert sum(MOVED_BAND in s.get("fillcolor", "") for s in layout["shapes"]) == 9
    texts = layout["annotations"]
    assert 0 < len(texts) < 9
    assert len({text["yshift"] for text in texts}) > 1


def test_the_text_of_a_move_does_not_cover_that_of_the_measured_window() -> None:
    """Which stands at the top of the chart, at the end of the window."""
    end = RECORD.window_start + RECORD.measured_s - START
    for second, line in ((end - 2.0, 1), (end / 4, 0)):
        layout = charts(through(RECORD, move("p0", second, 2.0)))["chart-main"]["layout"]
        [text] = layout["annotations"]
        assert (text["yshift"] < 0) == bool(line)


def test_a_move_outside_of_the_load_is_not_marked() -> None:
    """A move is cut at both ends of the time under load, and left out where nothing remains."""
    seconds = sum(point.width_s for point in RECORD.series)
    record = through(
        RECORD, move("a", -5.0, 2.0), move("b", -1.0, 2.0), move("c", seconds + 1.0, 2.0)
    )
    layout = charts(record)["chart-main"]["layout"]
    [text] = layout["annotations"]
    assert text["text"].startswith("b moved")
    assert text["x"] == START * 1000


def test_moves_are_marked_in_the_heat_maps() -> None:
    """The mark is in the row that has the partition, alone or within a range of keys."""
    record = with_heat(RECORD, ["a", "b", "z"], lambda row, column: 4, lambda row, column: 1)
    assert record.heat is not None
    wide = altered(record.heat.ranges[1], last="m")
    ranges = (record.heat.ranges[0], wide, record.heat.ranges[2])
    record = altered(record, heat={"ranges": ranges})
    moved = through(record, move("a", 1.0, 2.0), move("f", 4.0, 2.0), move("nowhere", 6.0, 2.0))
    for name in ("chart-heat", "chart-refused"):
        _, marks = charts(moved)[name]["data"]
        assert marks["x"] == [
            *(START * 1000 + 1000, START * 1000 + 3000, None),
            *(START * 1000 + 4000, START * 1000 + 6000, None),
        ]
        assert marks["y"] == ["a", "a", None, "b to m", "b to m", None]
        assert marks["text"][3] == "partition 'f' moved, unavailable 2 s"
        assert len(charts(record)[name]["data"]) == 1
    redacted = altered(moved, redacted=True)
    _, marks = charts(redacted)["chart-heat"]["data"]
    assert marks["y"] == ["a", "a", None], "aliases are not in the order of their keys"


def test_a_key_of_a_move_does_not_act() -> None:
    """Neither tags nor templates of plotly.js in a key have an effect, nor do control signs."""
    key = "<b>%{y}\u202e&amp;"
    record = through(with_heat(RECORD, [key], lambda row, column: 1), move(key, 3.0, 2.0))
    made = charts(record)
    [text] = made["chart-main"]["layout"]["annotations"]
    _, marks = made["chart-heat"]["data"]
    shown = "partition '&lt;b&gt;%{y}\\u202e&amp;amp;' moved, unavailable 2 s"
    assert marks["text"][0] == shown
    assert text["text"].startswith("&lt;b&gt;")
    assert "<" not in text["text"]
    assert marks["y"][0] == made["chart-heat"]["data"][0]["y"][0]
    assert "%{y}" not in marks["hovertemplate"]


def test_a_gateway_without_moves_marks_none() -> None:
    """Limits alone add neither bands nor texts nor marks."""
    record = with_heat(RECORD, ["a"], lambda row, column: 1)
    made = charts(through(record))
    assert made["chart-heat"] == charts(record)["chart-heat"]
    assert made["chart-throttling"] == charts(record)["chart-throttling"]
    assert made["chart-main"]["layout"]["annotations"] == []


def test_a_gateway_that_limits_nothing_has_no_line() -> None:
    """Its settings name a limit that no endpoint reaches."""
    unlimited = EnforcedPart(partition_per_s=1e9, account_per_s=1e9, server_per_s=1e9)
    plain = altered(RECORD, enforced=None)
    assert lines(altered(RECORD, enforced=unlimited)) == lines(plain)
