"""Bars and charts of a terminal's page."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from harness.report.terminal.page import FULL, PLAIN, Page, bar, chart, chart_columns


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
    groups = chart_columns(count, width)
    assert len(groups) <= width
    assert all(groups)
    assert sorted({place for group in groups for place in group}) == list(range(count))


@pytest.mark.parametrize("colour", [False, True])
def test_no_part_of_a_page_acts_upon_the_terminal(*, colour: bool) -> None:
    """What is not made printable before becomes so as the page is rendered; its colours stay."""
    page = Page(width=60, colour=colour)
    shown = page.render(Text("a\x1b[2Jb\x9b", "red"), "two\nlines")
    assert "a\\u001b[2Jb\\u009b" in shown
    assert shown.replace("\x1b[0m", "").replace("\x1b[31m", "").count("\x1b") == 0
    assert ("\x1b[31m" in shown) is colour
    assert shown.splitlines()[1:] == ["two", "lines"]
