"""Templates of keys: what each function takes of a value, and what a mistake is called."""

from __future__ import annotations

import collections
import datetime as dt
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.workload.keys.template import FUNCTIONS, SCATTERING, function_named, parse_template
from harness.workload.simulated_time import ticks_of

KNOWN = ("a", "b", "row")
values = st.text(max_size=20)
moments = st.datetimes(
    dt.datetime(1001, 1, 1), dt.datetime(9999, 12, 31), timezones=st.just(dt.UTC)
)


def of(function: str, value: str) -> str:
    return function_named(function).of(value)


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        ("", "Köln", "Köln"),
        ("year", "2026-11-20T08:15", "2026"),
        ("month", "2026-11-20 08:15", "2026-11"),
        ("month", "20261120", "2026-11"),
        ("day", "20261120T0815", "2026-11-20"),
        ("hour", "2026-11-20T08:15", "2026-11-20T08"),
        ("hour", "2026112008", "2026-11-20T08"),
        ("hour", "2026-11-20", "2026-11-20"),
        ("month", "orders", "orders"),
        ("ticks", "0001-01-01", "0000000000000000000"),
        ("ticks", "2026-11-20T08:15:30.25Z", "0639307593302500000"),
        ("ticks", "20261120", "0639307296000000000"),
        ("ticks", "0639307305302500000", "0639307305302500000"),
        ("ticks", "2026-13-20", "2026-13-20"),
        ("inverted", "9999-12-31T23:59:59.9999999Z", "0000000000000000000"),
        ("inverted", "0639307305302500000", "2516071670697499999"),
        ("inverted", "0042", "9957"),
        ("inverted", "order-7", "order-7"),
        ("first3", "sensor7", "sen"),
        ("last1", "sensor7", "7"),
        ("last9", "sensor7", "sensor7"),
        ("pad4", "7", "0007"),
        ("pad4", "12345", "12345"),
        ("lower", "Aachen", "aachen"),
        ("hash2", "sensor7", "19"),
        ("hash8", "sensor7", "a1627f19"),
        ("bucket16", "sensor72026-11-20", "07"),
    ],
)
def test_a_function_takes_what_it_says(function: str, value: str, expected: str) -> None:
    """Dates, ticks, parts, padding and hashes of known values are known texts."""
    assert of(function, value) == expected


@pytest.mark.parametrize("names", FUNCTIONS)
def test_every_explained_function_is_there(names: str) -> None:
    """Each name of the explanation, with a number for its N, can be written."""
    for name in names.split(", "):
        assert function_named(name.replace("N", "4")).text == name.replace("N", "4")


@given(values, st.integers(2, 10_000), st.sampled_from(["bucket", "random"]))
def test_a_bucket_is_one_of_its_choices(value: str, size: int, name: str) -> None:
    """The buckets that a query asks are those that rows are put into, in order."""
    function = function_named(f"{name}{size}")
    assert function.of(value) in function.choices
    assert len(set(function.choices)) == size
    assert list(function.choices) == sorted(function.choices)
    assert len({len(choice) for choice in function.choices}) == 1


@given(values, st.integers(1, 8))
def test_a_hash_has_its_digits(value: str, size: int) -> None:
    """A hash is hexadecimal, of its length, and one of all that there are where these are few."""
    function = function_named(f"hash{size}")
    text = function.of(value)
    assert len(text) == size
    assert int(text, 16) < 16**size
    assert text in (function.choices or [text])
    assert len(function.choices) == (16**size if size < 4 else 0)


@pytest.mark.parametrize("function", ["hash1", "bucket16", "random16"])
def test_numbers_in_a_row_are_spread_evenly(function: str) -> None:
    """Of 16 results each belongs to about a sixteenth of 16,000 numbers."""
    seen = collections.Counter(of(function, str(number)) for number in range(16_000))
    assert len(seen) == 16
    assert max(seen.values()) < 1200
    assert min(seen.values()) > 800


def test_a_random_suffix_is_not_the_calculated_one() -> None:
    """The bucket of a value does not show its random number."""
    pairs = {(of("bucket4", str(n)), of("random4", str(n))) for n in range(500)}
    assert len(pairs) == 16


# Numbers of 18 and 19 digits may be ticks, and of 8 to 14 dates such as 20261120.
@given(st.sampled_from([1, 2, 7, 9, 11, 13, 15, 17, 20]), st.data())
def test_inverted_numbers_sort_the_other_way(width: int, data: st.DataObject) -> None:
    """Of numbers of one width the higher one sorts first, and twice inverted is the number."""
    numbers = st.integers(0, 10**width - 1).map(lambda number: f"{number:0{width}}")
    one, other = data.draw(numbers), data.draw(numbers)
    assert (of("inverted", one) < of("inverted", other)) is (one > other)
    assert of("inverted", of("inverted", one)) == one


@given(moments, moments)
def test_times_sort_by_ticks_and_the_other_way_inverted(
    one: dt.datetime, other: dt.datetime
) -> None:
    """A later time has higher ticks, and lower inverted ones, as text of one width."""
    texts = [f"{moment:%Y-%m-%dT%H:%M:%S.%f}".rjust(26, "0") for moment in (one, other)]
    ticks = [of("ticks", text) for text in texts]
    inverted = [of("inverted", text) for text in texts]
    assert [int(text) for text in ticks] == [ticks_of(one), ticks_of(other)]
    assert {len(text) for text in (*ticks, *inverted)} == {19}
    assert (ticks[0] < ticks[1]) is (one < other)
    assert (inverted[0] > inverted[1]) is (one < other)


@given(st.integers(0, 10**30), st.integers(0, 10**30), st.integers(1, 40))
def test_padded_numbers_sort_as_numbers(one: int, other: int, width: int) -> None:
    """Numbers that are no longer than the padding have the order of their texts."""
    texts = [of(f"pad{width}", str(number)) for number in (one, other)]
    assert [int(text) for text in texts] == [one, other]
    if max(one, other) < 10**width:
        assert {len(text) for text in texts} == {width}
        assert (texts[0] < texts[1]) is (one < other)


@given(values, values)
def test_a_guid_belongs_to_its_value(one: str, other: str) -> None:
    """It is spelled as any GUID, always the same, and another value has another one."""
    assert str(uuid.UUID(of("guid", one))) == of("guid", one)
    assert (of("guid", one) == of("guid", other)) is (one == other)


@given(st.dictionaries(st.sampled_from(KNOWN), values, min_size=3))
def test_a_template_is_text_and_what_is_taken_of_values(known: dict[str, str]) -> None:
    """Fields are filled in their place, joined by +, and two braces are one of the key."""
    template = parse_template("x-{a}{{{b:first2}}}{a + row:pad30}", KNOWN)
    joined = f"{known['a']}{known['row']}".zfill(30)
    assert template.fill(known) == f"x-{known['a']}{{{known['b'][:2]}}}{joined}"
    assert [reference.names for reference in template.references] == [("a",), ("b",), ("a", "row")]


def test_a_template_may_be_empty() -> None:
    """Both keys of an entity may be the empty text."""
    assert parse_template("", KNOWN).fill({}) == ""


def test_functions_that_scatter_are_named() -> None:
    """What is said to scatter does not keep the order of numbers; everything else does."""
    for names in FUNCTIONS:
        for name in names.split(", "):
            texts = [of(name.replace("N", "4"), f"{number:010}") for number in range(100)]
            ordered = texts in (sorted(texts), sorted(texts, reverse=True))
            assert ordered is (name.rstrip("N") not in SCATTERING), name
