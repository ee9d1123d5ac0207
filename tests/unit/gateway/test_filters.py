"""The ranges of keys that a ``$filter`` leaves, against a brute-force evaluation of the filter."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.filters import (
    Both,
    Constant,
    Either,
    FilterError,
    KeyComparison,
    Negated,
    Node,
    Unknown,
    parse_filter,
)
from harness.gateway.key_ranges import WHOLE, IndexRanges, after, key_ranges

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

COMPARED = st.builds(
    KeyComparison,
    st.sampled_from(["PartitionKey", "RowKey"]),
    st.sampled_from(list(OPERATORS)),
    st.sampled_from(KEYS),
)
LEAVES = st.one_of(COMPARED, COMPARED, st.just(Unknown()), st.builds(Constant, st.booleans()))


def joined(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Nodes made of others."""
    several = st.lists(parts, min_size=2, max_size=4).map(tuple)
    return st.one_of(
        st.builds(Both, several), st.builds(Either, several), st.builds(Negated, parts)
    )


TREES = st.recursive(LEAVES, joined, max_leaves=12)


def written(node: Node, draw: Callable[[int], int]) -> str:
    """The text of a tree, with operands in any order and more parentheses than needed."""
    match node:
        case KeyComparison():
            text = "'" + node.text.replace("'", "''") + "'"
            if draw(2):
                flipped = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
                told = f"{text} {flipped.get(node.operator, node.operator)} {node.key}"
            else:
                told = f"{node.key} {node.operator} {text}"
        case Constant():
            told = "true" if node.passes else "false"
        case Unknown():
            told = ["Count gt 5", "Flag", "Name eq 'PartitionKey eq ''b'''", "At le datetime'x'"][
                draw(4)
            ]
        case Negated():
            told = f"not ({written(node.part, draw)})"
        case Both() | Either():
            word = " and " if isinstance(node, Both) else " or "
            told = f"({word.join(written(part, draw) for part in node.parts)})"
    return f"( {told})" if draw(2) else told


def may_pass(node: Node, key: tuple[str, str], *, unknown: Callable[[], bool]) -> bool:
    """Whether a row with this key passes, where the answer of unknown parts is given."""
    match node:
        case KeyComparison():
            value = key[0] if node.key == "PartitionKey" else key[1]
            return OPERATORS[node.operator](value, node.text)
        case Constant():
            return node.passes
        case Unknown():
            return unknown()
        case Negated():
            return not may_pass(node.part, key, unknown=unknown)
        case Both():
            return all(may_pass(part, key, unknown=unknown) for part in node.parts)
        case Either():
            return any(may_pass(part, key, unknown=unknown) for part in node.parts)


def unknowns(node: Node) -> int:
    """How many unknown parts a tree has."""
    match node:
        case Unknown():
            return 1
        case Negated():
            return unknowns(node.part)
        case Both() | Either():
            return sum(unknowns(part) for part in node.parts)
        case _:
            return 0


def ever_passes(node: Node, key: tuple[str, str]) -> bool:
    """Whether any row with this key passes, whatever its other properties are."""
    for answers in itertools.product((False, True), repeat=unknowns(node)):
        told = iter(answers)
        if may_pass(node, key, unknown=lambda told=told: next(told)):  # type: ignore[misc]
            return True
    return False


@given(TREES, st.data())
def test_the_text_of_a_tree_leaves_every_row_that_may_pass(tree: Node, data: st.DataObject) -> None:
    """No row that passes the filter is outside the ranges, and the ranges are in order."""
    ranges = key_ranges(written(tree, lambda most: data.draw(st.integers(0, most - 1))))
    for key in GRID:
        if ever_passes(tree, key):
            assert key in ranges
    ends = list(itertools.pairwise(ranges.ranges))
    assert all(one.end is not None and one.end < other.first for one, other in ends)


@given(TREES, st.data())
def test_ranges_of_partitions_are_exact(tree: Node, data: st.DataObject) -> None:
    """A partition is scanned only if some row in it may pass, unless a part is unknown."""
    ranges = key_ranges(written(tree, lambda most: data.draw(st.integers(0, most - 1))))
    if unknowns(tree):
        return
    # A few more keys than the filter can name, so that every gap between those has a row.
    every = {near for key in KEYS for near in (key, after(key), after(after(key)))}
    for partition in KEYS:
        if not any((partition, row) in ranges for row in every):
            continue
        assert any(ever_passes(tree, (partition, row)) for row in every)


@given(st.text(max_size=60))
def test_every_text_leaves_ranges(text: str) -> None:
    """A text that is not a filter leaves the whole table."""
    try:
        parse_filter(text)
    except FilterError:
        assert key_ranges(text) == WHOLE
    else:
        assert isinstance(key_ranges(text), IndexRanges)


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
        ("not (PartitionKey ne 'a')", "a"),
        ("not (PartitionKey lt 'a' or PartitionKey gt 'a')", "a"),
        ("PartitionKey ge 'a' and PartitionKey le 'a'", "a"),
        ("PartitionKey eq 'a' and RowKey ge 'r' or PartitionKey eq 'a' and RowKey lt 'b'", "a"),
        ("PartitionKey eq ''", ""),
        ("PARTITIONKEY eq 'a'", None),
        ("PartitionKey EQ 'a' AND Count GT 1", "a"),
        ("PartitionKey eq 'a' or Count eq 1", None),
        ("PartitionKey eq 'a' or PartitionKey eq 'b'", None),
        ("PartitionKey ge 'a' and PartitionKey lt 'a0'", None),
        ("PartitionKey eq guid'a'", None),
        ("PartitionKey eq 'a' and", None),
        ("", None),
    ],
)
def test_a_filter_of_one_partition_tells_it(text: str, partition: str | None) -> None:
    """However a filter says that it is about one partition, the partition is derived."""
    assert key_ranges(text).only == partition


def test_rows_narrow_the_scan_within_a_partition_only() -> None:
    """Of several partitions each is scanned whole, because the RowKey is second in the index."""
    within = key_ranges("PartitionKey eq 'a' and RowKey ge 'c' and RowKey lt 'e'")
    assert [row for row in "abcdef" if ("a", row) in within] == ["c", "d"]
    across = key_ranges("PartitionKey ge 'a' and PartitionKey lt 'c' and RowKey eq 'c'")
    assert [row for row in "abcdef" if ("b", row) in across] == list("abcdef")


def test_a_continued_scan_begins_in_the_middle_of_a_partition() -> None:
    """The part from a key on, and the part before it, are all there is."""
    ranges = key_ranges("PartitionKey eq 'a' or PartitionKey eq 'c'")
    rest, done = ranges.within(("c", "k")), ranges.within(end=("c", "k"))
    keys = [(partition, row) for partition in "abcd" for row in "jkl"]
    assert [key for key in keys if key in rest] == [("c", "k"), ("c", "l")]
    assert {key for key in keys if key in done} == {("a", row) for row in "jkl"} | {("c", "j")}
    assert rest.only == "c"


def test_a_filter_of_any_size_is_bounded() -> None:
    """Deep nesting and a product of many alternatives cost little, and leave no row out."""
    assert key_ranges("(" * 5000 + "PartitionKey eq 'a'" + ")" * 5000) == WHOLE
    assert key_ranges("not " * 5000 + "PartitionKey eq 'a'") == WHOLE
    either = " or ".join(f"PartitionKey eq 'k{number:04d}'" for number in range(500))
    assert len(key_ranges(either).ranges) == 500
    across = key_ranges(f"({either}) and ({either}) and ({either})")
    assert ("k0000", "r") in across
    assert ("k0499", "r") in across
    assert ("z", "r") not in across
