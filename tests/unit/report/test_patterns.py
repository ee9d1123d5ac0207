"""A heat map is named after its pattern only where nothing else would look like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.model.operation import WHOLE_TABLE
from harness.report.web.heat_maps import pattern
from tests.support.records import altered, kept, with_heat

KEYS = [f"tenant-{place:02d}" for place in range(16)]


def said(
    entities: Callable[[int, int], int], keys: list[str] = KEYS, last: str | None = None
) -> str:
    """The pattern of a map of 16 columns; with ``last`` every row is a range that ends there."""
    heat = with_heat(kept(), keys, entities, columns=16).heat
    assert heat is not None
    if last is not None:
        rows = tuple(altered(row, last=row.first + last) for row in heat.ranges)
        heat = altered(heat, ranges=rows)
    return pattern(heat)


@pytest.mark.parametrize(
    ("entities", "expected"),
    [
        pytest.param(lambda row, column: 300 if row == 3 else 10, "One hot key", id="hot key"),
        pytest.param(
            lambda row, column: 200 if row == column else 1, "A moving front", id="append-only"
        ),
        pytest.param(
            lambda row, column: 200 if row == 15 - column else 1, "A moving front", id="backwards"
        ),
        pytest.param(
            lambda row, column: 90 if row in (5, 6, 7) else 2, "A hot range: the 3", id="hot range"
        ),
        pytest.param(lambda row, column: 50 + (row + column) % 9, "An even spread", id="even"),
        pytest.param(lambda row, column: 5 * row, "", id="none of them"),
        pytest.param(lambda row, column: int(row == 3), "", id="too few counts"),
        pytest.param(
            lambda row, column: 5000 if (row, column) == (3, 7) else 10, "", id="one burst"
        ),
        pytest.param(
            lambda row, column: 160 if column == (5 * row) % 16 else 0, "", id="one after another"
        ),
    ],
)
def test_a_pattern_is_named(entities: Callable[[int, int], int], expected: str) -> None:
    """The four patterns by their first words; what is like one and is none has no name."""
    found = said(entities)
    assert found.startswith(expected) if expected else not found


def test_ranges_of_many_keys_are_not_called_even() -> None:
    """They are made so that they weigh the same: nothing follows for a key. A front is one."""
    assert said(lambda row, column: 50, last="z") == ""
    assert said(lambda row, column: 200 if row == 3 else 1, last="z") == ""
    assert said(lambda row, column: 200 if row == column else 1, last="z").startswith("A moving")


def test_queries_over_the_table_have_no_key() -> None:
    """Their row is left out: the rest is even."""
    keys = [WHOLE_TABLE, *KEYS]
    assert said(lambda row, column: 50 if row else 9000, keys).startswith("An even spread")
