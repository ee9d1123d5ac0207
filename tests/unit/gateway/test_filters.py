"""The range of keys that a ``$filter`` leaves, against a brute-force evaluation of the filter."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.filters import FilterError, parse_filter
from harness.gateway.key_ranges import WHOLE, IndexRange, after, compared_properties, index_range

KEYS = ["", "a", "a0", "a'b", "b", "b0", "not", "z"]
GRID = list(itertools.product(KEYS, KEYS))
OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
OTHERS = ["Count gt 5", "Flag", "Name eq 'PartitionKey eq ''b'''", "At le datetime'x'"]

Row = tuple[str, str]
Filter = tuple[str, Callable[[Row], bool | None]]
"""A filter, and whether a row passes it: None if that depends on other properties."""


def compared(key: int, name: str, text: str, flipped: bool) -> Filter:
    """A comparison of a key, with the operands in either order."""
    quoted = "'" + text.replace("'", "''") + "'"
    told = f"{('PartitionKey', 'RowKey')[key]} {name} {quoted}"
    if flipped:
        told = f"{quoted} {FLIPPED.get(name, name)} {('PartitionKey', 'RowKey')[key]}"
    return told, lambda row: OPERATORS[name](row[key], text)


def joined(word: str, parts: list[Filter]) -> Filter:
    """Several by ``and`` or ``or``, in parentheses."""

    def passes(row: Row) -> bool | None:
        answers = {part(row) for _, part in parts}
        decided = word == "or"
        return decided if decided in answers else None if None in answers else not decided

    return f"({f' {word} '.join(text for text, _ in parts)})", passes


def negated(part: Filter) -> Filter:
    return f"not ( {part[0]})", lambda row: None if (one := part[1](row)) is None else not one


TEXTS = st.sampled_from(KEYS)
NARROWING = st.builds(
    compared,
    st.integers(0, 1),
    st.sampled_from(["eq", "lt", "le", "gt", "ge"]),
    TEXTS,
    st.booleans(),
)
COMPARED = NARROWING | st.builds(compared, st.integers(0, 1), st.just("ne"), TEXTS, st.booleans())
UNKNOWN = st.sampled_from(OTHERS).map(lambda text: (text, lambda row: None))
FILTERS: st.SearchStrategy[Any] = st.recursive(
    COMPARED | UNKNOWN,
    lambda parts: (
        st.builds(joined, st.sampled_from(["and", "or"]), st.lists(parts, min_size=2, max_size=4))
        | parts.map(negated)
    ),
    max_leaves=12,
)


@given(FILTERS)
def test_no_row_that_passes_is_outside_the_range(made: Filter) -> None:
    """Whatever its other properties are."""
    text, passes = made
    found = index_range(text)
    assert all(row in found for row in GRID if passes(row) is not False)


@given(st.lists(NARROWING, min_size=1, max_size=4))
def test_what_and_joins_narrows_the_range(parts: list[Filter]) -> None:
    """To the partitions that may have rows that pass, and in a single one to these rows."""
    text, passes = joined("and", parts)
    found = index_range(text)
    if found.only is None:
        _, passes = joined("and", [part for part in parts if "PartitionKey" in part[0]])
    # A few more keys than the filter can name, so that every gap between those has a row.
    every = [near for key in KEYS for near in (key, after(key), after(after(key)))]
    assert all(passes(row) for row in itertools.product(every, every) if row in found)


@given(st.text(max_size=60))
def test_every_text_leaves_a_range(text: str) -> None:
    """A text that is not a filter leaves the whole table."""
    try:
        parse_filter(text)
    except FilterError:
        assert index_range(text) == WHOLE
    else:
        assert isinstance(index_range(text), IndexRange)


A = IndexRange(("a", ""), ("a\0", ""))


@pytest.mark.parametrize(
    ("text", "found", "compared"),
    [
        ("PartitionKey eq 'a' or PartitionKey eq 'b'", WHOLE, ("PartitionKey",)),
        ("PartitionKey ne 'a'", WHOLE, ("PartitionKey",)),
        ("not (PartitionKey lt 'a')", WHOLE, ("PartitionKey",)),
        ("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '3')", A, ("RowKey",)),
        ("PartitionKey eq 'a' and RowKey ne '1'", A, ("RowKey",)),
        (
            "PartitionKey eq 'a' and RowKey ge '1' and (RowKey lt '3' or Count eq 1)",
            IndexRange(("a", "1"), ("a\0", "")),
            ("RowKey", "Count"),
        ),
        (
            "PartitionKey ge 'a' and PartitionKey lt 'b' and RowKey eq '1'",
            IndexRange(("a", ""), ("b", "")),
            ("RowKey",),
        ),
        (
            "(PartitionKey eq 'a' and RowKey eq '1') or Flag",
            WHOLE,
            ("PartitionKey", "RowKey", "Flag"),
        ),
    ],
)
def test_or_not_and_ne_narrow_nothing(
    text: str, found: IndexRange, compared: tuple[str, ...]
) -> None:
    """A partition is scanned for RowKeys that ``or`` joins, and the table for PartitionKeys."""
    assert index_range(text) == found
    assert compared_properties(text) == compared


@pytest.mark.parametrize(
    ("text", "partition"),
    [
        ("PartitionKey eq 'a'", "a"),
        ("'a' eq PartitionKey", "a"),
        ("((PartitionKey) eq 'a')", None),
        ("(((PartitionKey eq 'a')))", "a"),
        ("PartitionKey eq 'a' and (Count eq 1 or Count eq 2)", "a"),
        ("(Count eq 1 or Count eq 2) and PartitionKey eq 'a'", "a"),
        ("PartitionKey eq 'a' and not (Count eq 1)", "a"),
        ("PartitionKey ge 'a' and PartitionKey le 'a'", "a"),
        ("PartitionKey eq ''", ""),
        ("PARTITIONKEY eq 'a'", None),
        ("PartitionKey EQ 'a' AND Count GT 1", "a"),
        ("PartitionKey eq 'a' or Count eq 1", None),
        ("PartitionKey ge 'a' and PartitionKey lt 'a0'", None),
        ("PartitionKey eq guid'a'", None),
        ("PartitionKey eq 'a' and", None),
        ("", None),
    ],
)
def test_a_filter_of_one_partition_tells_it(text: str, partition: str | None) -> None:
    """However a filter says that it is about one partition, the partition is derived."""
    assert index_range(text).only == partition


def test_rows_narrow_the_scan_within_a_partition_only() -> None:
    """Of several partitions each is scanned whole, because the RowKey is second in the index."""
    within = index_range("PartitionKey eq 'a' and RowKey ge 'c' and RowKey lt 'e'")
    assert [row for row in "abcdef" if ("a", row) in within] == ["c", "d"]
    across = index_range("PartitionKey ge 'a' and PartitionKey lt 'c' and RowKey eq 'c'")
    assert [row for row in "abcdef" if ("b", row) in across] == list("abcdef")


def test_a_continued_scan_begins_in_the_middle_of_a_partition() -> None:
    """The part from a key on, and the part before it, are all there is."""
    found = index_range("PartitionKey ge 'a' and PartitionKey le 'c'")
    rest, done = found.within(("c", "k")), found.within(end=("c", "k"))
    keys = [(partition, row) for partition in "acd" for row in "jkl"]
    assert [key for key in keys if key in rest] == [("c", "k"), ("c", "l")]
    assert {key for key in keys if key in done} == {("a", row) for row in "jkl"} | {("c", "j")}
    assert rest.only == "c"


def test_a_filter_of_any_size_is_bounded() -> None:
    """Deep nesting leaves the table, and many alternatives cost little."""
    assert index_range("(" * 5000 + "PartitionKey eq 'a'" + ")" * 5000) == WHOLE
    assert index_range("not " * 5000 + "PartitionKey eq 'a'") == WHOLE
    either = " or ".join(f"RowKey eq 'k{number:04d}'" for number in range(5000))
    assert index_range(f"({either}) and PartitionKey eq 'a'") == A
