"""The course of a run as its record holds it."""

from __future__ import annotations

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.record.over_time import (
    HeatPart,
    KeyRangePart,
    LatencyCoursePart,
    counts_of,
    row_of,
)


@given(st.lists(st.integers(0, 10**9)))
def test_a_row_of_counts_survives_its_text(counts: list[int]) -> None:
    """What was written is what is read."""
    assert counts_of(row_of(counts)) == counts


@pytest.mark.parametrize("row", ["1 2", "1 2 3 4", "1 two 3", "1 -2 3", "1 2.5 3", ""])
def test_a_damaged_row_is_no_record(row: str) -> None:
    """A row without a count for each column is refused when read, not when drawn."""
    whole = KeyRangePart(first="a", last="b", entities="1 2 3", throttled="0 0 0")
    HeatPart(start=0, width_s=1, columns=3, ranges=(whole,))
    with pytest.raises(pydantic.ValidationError, match="a row of 3 counts"):
        HeatPart(
            start=0, width_s=1, columns=3, ranges=(whole.model_copy(update={"throttled": row}),)
        )
    with pytest.raises(pydantic.ValidationError, match="a row of 3 counts"):
        LatencyCoursePart(start=0, width_s=1, columns=3, bounds_ms=(1.0,), rows=(row,))


def test_each_row_of_latencies_has_a_bound() -> None:
    """Otherwise nobody knows what was so slow."""
    with pytest.raises(pydantic.ValidationError, match="1 rows have 2 bounds"):
        LatencyCoursePart(start=0, width_s=1, columns=1, bounds_ms=(1.0, 2.0), rows=("1",))
