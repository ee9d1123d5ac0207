"""The course of a run as its record holds it."""

from __future__ import annotations

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.record.over_time import HeatPart, KeyRangePart, LatencyCoursePart


@given(st.lists(st.integers(0, 10**9)))
def test_a_row_of_counts_is_one_text(counts: list[int]) -> None:
    """What was written is what is read."""
    row = KeyRangePart(first="a", last="b", entities=tuple(counts), throttled=())
    content = row.model_dump(mode="json")
    assert content["entities"] == " ".join(map(str, counts))
    assert KeyRangePart.model_validate(content) == row


@pytest.mark.parametrize(
    "row",
    ["1 2", "1 2 3 4", "1 two 3", "1 -2 3", "1 2.5 3", "", [1, 2], [1, -2, 3], [10**18] * 3],
)
def test_a_damaged_row_is_no_record(row: object) -> None:
    """A row without a count for each column is refused when read, not when drawn."""
    whole = {"first": "a", "last": "b", "entities": "1 2 3", "throttled": "0 0 0"}
    heat = {"start": 0, "width_s": 1, "columns": 3, "ranges": [whole]}
    HeatPart.model_validate(heat)
    with pytest.raises(pydantic.ValidationError):
        HeatPart.model_validate(heat | {"ranges": [whole | {"throttled": row}]})
    course = {"start": 0, "width_s": 1, "columns": 3, "bounds_ms": [1.0], "rows": ["1 2 3"]}
    LatencyCoursePart.model_validate(course)
    with pytest.raises(pydantic.ValidationError):
        LatencyCoursePart.model_validate(course | {"rows": [row]})


def test_each_row_of_latencies_has_a_bound() -> None:
    """Otherwise nobody knows what was so slow."""
    with pytest.raises(pydantic.ValidationError, match="1 rows have 2 bounds"):
        LatencyCoursePart(start=0, width_s=1, columns=1, bounds_ms=(1.0, 2.0), rows=((1,),))
