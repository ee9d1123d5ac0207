"""What is said of results holds for every value that begins so."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model.entity import sort_key
from harness.workload.keys.beginnings import (
    Beginning,
    after,
    of_function,
    of_parts,
    of_pattern,
    of_range,
)
from harness.workload.keys.template import function_named, parse_template

FUNCTIONS = ("", "first3", "first12", "last2", "lower", "pad4", "hash2", "bucket4", "guid")
PERIODS = ("year", "month", "day", "hour")
KEYS = st.text(st.sampled_from("Aab019-T_~.é"), max_size=14) | st.from_regex(
    r"20\d\d-?[01]\d-?[0-3]\d([T _-][0-9]{0,3})?", fullmatch=True
)


@given(st.sampled_from(FUNCTIONS + PERIODS), KEYS, st.integers(0, 14))
def test_a_result_begins_as_said(name: str, value: str, known: int) -> None:
    """For every beginning of a value."""
    function = function_named(name)
    begun, whole, *_ = of_function(function, Beginning(value[:known]))
    result = function.of(value)
    assert result == begun if whole else result.startswith(begun)


PATTERNS = (
    r"(?P<day>\d{4}-\d\d-\d\d)T(?P<rest>.*)",
    r"A(?P<one>[^_]+)_(?P<two>[a-b]*)",
    r"(?P<one>.)(?P<two>\d+)-(?P<three>[0-9]{2})\.?",
    r"(?P<one>[^.]*)\.(?P<two>.+)",
    r"(?P<one>a+)b(?P<two>.)",
    r"(?P<one>.+)_(?P<two>.)",
    r"(?:A)(?P<one>.)",
    r"(?P<one>a)b|c(?P<two>.)",
    r"(?P<one>a{1,2})(?P<two>.*)",
    r"(?P<one>[ab]+).*",
    r".(?P<one>[^b]*)(?s:.*)",
)


@given(st.data(), st.sampled_from(PATTERNS), st.integers(0, 14))
def test_groups_begin_as_said(data: st.DataObject, pattern: str, known: int) -> None:
    """In every value that matches, whatever of it is known."""
    value = data.draw(st.from_regex(pattern, fullmatch=True))
    match = re.fullmatch(pattern, value)
    assert match is not None
    for name, (text, whole, *_) in of_pattern(pattern, Beginning(value[:known])).items():
        found = match[name] or ""
        assert found == text if whole else found.startswith(text)


def test_groups_at_fixed_places_are_known() -> None:
    """And those that end at a character."""
    known = of_pattern(r"invoice-(?P<ten>[0-9]{5}).", Beginning("invoice-00009"))
    assert known == {"ten": Beginning("00009", whole=True)}
    known = of_pattern(r"(?P<order>[^_]+)_(?P<line>\d+)", Beginning("o7_1"))
    assert known == {"order": Beginning("o7", whole=True), "line": Beginning("1")}
    assert of_pattern(r"(?P<one>[^_]+)_.*", Beginning("o7"))["one"] == Beginning("o7")
    assert of_pattern(r"o(?P<one>[0-9]+).*", Beginning("o7")) == {"one": Beginning("7")}
    known = of_pattern(r"o(?P<one>[0-9]+).*", Beginning("o7-"))
    assert known == {"one": Beginning("7", whole=True)}


@given(KEYS, KEYS, KEYS)
def test_keys_of_a_range_begin_as_said(first: str, key: str, before: str) -> None:
    """Whatever its bounds are."""
    first, key, before = sorted((first, key, before))
    if key < before:
        text, whole, *_ = of_range(first, before)
        assert key == text if whole else key.startswith(text)


@example("%Y-%m-%dT%H:%M:%SZ", "month", 168, 480, True)
@given(
    st.sampled_from(("%Y-%m-%dT%H:%M:%SZ", "%Y%m%d%H", "%Y-%m-%d %H_x", "%Y-%m-%dT%H", "%Y-%m-%d")),
    st.sampled_from(PERIODS),
    st.integers(0, 10_000),
    st.integers(1, 2_000),
    st.booleans(),
)
def test_the_periods_of_a_range_are_those_of_its_hours(
    notation: str, name: str, begin: int, hours: int, of_days: bool
) -> None:
    """No more and no less, whatever the notation is, with bounds of hours or of days."""
    if of_days or notation == "%Y-%m-%d":
        begin, hours = 24 * (begin // 24), 24 * (hours // 24 + 1)
    every = [
        dt.datetime(2027, 2, 1) + dt.timedelta(hours=hour) for hour in range(begin, begin + hours)
    ]
    before = f"{every[-1] + dt.timedelta(hours=1):{notation}}"
    known = of_range(
        f"{every[0]:{notation}}",
        before[: 8 if notation == "%Y%m%d%H" else 10] if of_days else before,
    )
    if name == "hour" and notation == "%Y-%m-%d":
        return
    function = function_named(name)
    times = [f"{one:{notation}}" for one in every]
    # A key such as 2027-02-01 01_a is of the hour of the bound, and before it.
    times += [before] if notation.endswith("_x") and not of_days else []
    wanted = list(dict.fromkeys(map(function.of, times)))
    parts = parse_template(f"{{time:{name}}}", {"time"}).parts
    assert of_parts(parts, {"time": known}, most=3_000) == (wanted, True)
    pattern = re.escape("t-") + "(?P<time>.+)"
    within = of_range(f"t-{known.since}", f"t-{known.until}")
    assert of_parts(parts, of_pattern(pattern, within), most=3_000) == (wanted, True)


ODD = st.text(st.sampled_from("a\ud7ff\U0001f600\U0010ffff\ue000\uffff"), max_size=4)


@given((KEYS | ODD).filter(bool), KEYS | ODD)
def test_the_end_of_a_prefix_is_behind_its_keys_alone(prefix: str, other: str) -> None:
    """And before all others that sort behind them; behind the last character is none."""
    end, key = after(prefix), sort_key(other)
    if end is None:
        assert set(prefix) == {"\uffff"}
        return
    assert sort_key(prefix + other) < sort_key(end)
    assert (sort_key(prefix) <= key < sort_key(end)) == other.startswith(prefix)


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("a", "b"),
        ("p\uffff", "q"),
        ("p\ud7ff", "p\U00010000"),
        ("p\U0010ffff", "p\ue000"),
        ("\uffff", None),
    ],
)
def test_characters_beyond_ffff_are_where_the_surrogates_are(prefix: str, end: str | None) -> None:
    """In the order of UTF-16 code units."""
    assert after(prefix) == end


@pytest.mark.parametrize(
    ("template", "first", "before", "keys"),
    [
        (
            "{partition_key}_{row_key:day}",
            "2026-11-20T01",
            "2026-11-20T05",
            (["p_2026-11-20"], True),
        ),
        ("{partition_key}_{row_key:day}", "2026-11-20", "2026-11-21", (["p_2026-11-20"], True)),
        ("{row_key:month}", "2026-10", "2026-12", (["2026-10", "2026-11"], True)),
        ("{row_key:month}", "2026-11-20T08", "2027-01", (["2026-11", "2026-12"], True)),
        (
            "{row_key:day}",
            "2026-10-31",
            "2026-11-02T00:00:00Z",
            (["2026-10-31", "2026-11-01"], True),
        ),
        (
            "{row_key:hour}",
            "20261031 23",
            "20261101 005",
            (["2026-10-31T23", "2026-11-01T00"], True),
        ),
        ("{row_key:hour}", "2026-10-31", "2026-11-02", (["2026-1"], False)),
        ("{row_key:day}", "2026-10-31", "20261102", (["2026"], False)),
        ("{row_key:year}", "2025-12-31", "2026~", (["2025", "2026"], True)),
        ("{row_key:first2}", "1990", "2200", (["19", "20", "21"], True)),
        ("{row_key:bucket2}-{partition_key}", "a", "b", (["0-p", "1-p"], True)),
        ("{row_key:bucket2}-{row_key}", "a", "b", (["0-a", "1-a"], False)),
        ("{partition_key}-{row_key:bucket2000}", "a", "b", (["p-"], False)),
        ("{row_key}", None, None, ([""], False)),
        ("{partition_key+row_key:first2}", "a1", "a2", (["pa"], True)),
    ],
)
def test_new_keys_of_a_range_of_rows(
    template: str, first: str | None, before: str | None, keys: tuple[list[str], bool]
) -> None:
    """Known parts, choices and beginnings of RowKeys narrow them."""
    values = {"partition_key": Beginning("p", whole=True), "row_key": of_range(first, before)}
    parts = parse_template(template, {"partition_key", "row_key"}).parts
    assert of_parts(parts, values, most=1000) == keys
