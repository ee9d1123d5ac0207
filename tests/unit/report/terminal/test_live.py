"""What a run says while it goes on: its four steps, its loading, and a line every few seconds."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.report.terminal.live import live_line, progress_line
from harness.report.terminal.page import FULL, PLAIN
from tests.support.summary_parts import HOTTEST, OPEN


@given(st.text(st.characters(codec=None), max_size=2000), st.booleans())
def test_live_line_is_one_line_whatever_the_key_is(key: str, ascii_only: bool) -> None:
    """A long or strange key keeps its line short, and sends nothing to the terminal."""
    line = live_line(
        dataclasses.replace(OPEN, hottest=HOTTEST._replace(key=key)), ascii_only=ascii_only
    )
    assert line.isprintable()
    assert line.isascii() or not ascii_only
    assert cell_len(line) < 160


@given(st.integers(0, 10**7), st.floats(0, 10**5), st.booleans())
def test_progress_lines_are_of_one_width(done: int, elapsed_s: float, ascii_only: bool) -> None:
    """A line covers the one it is written over, whatever it says."""
    line = progress_line(done, 10**7, elapsed_s, glyphs=PLAIN if ascii_only else FULL)
    assert len(line) == 79
    assert line.isascii() or not ascii_only
