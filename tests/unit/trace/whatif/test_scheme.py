"""A key scheme makes new keys of recorded ones, or lists every mistake of its file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import SetupError
from harness.trace.whatif.scheme import Scheme, as_recorded, parse_scheme, require_properties


def scheme(content: dict[str, Any]) -> Scheme:
    return parse_scheme("mine", content, "mine.toml")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{partition_key}", "2026-11-20__sensor7"),
        ("{sensor}_{day:month}", "sensor7_2026-11"),
        ("{day:year}", "2026"),
        ("{sensor:last1}-{sensor:first3}", "7-sen"),
        ("{sensor:hash2}", "19"),
        ("{sensor+day:bucket16}", "07"),
        ("{time:hour}", "2026-11-20T08"),
        ("{{{sensor}}}", "{sensor7}"),
        ("all", "all"),
        ("{row_key}", "20261120T0815_x"),
    ],
)
def test_fields_take_parts_of_the_recorded_keys(template: str, expected: str) -> None:
    """Groups, whole keys, dates, hashes, buckets, prefixes and fixed text make a new key."""
    made = scheme(
        {
            "match": {
                "partition_key": "(?P<day>[0-9-]+)__(?P<sensor>.+)",
                "row_key": "(?P<time>[^_]+)_.*",
            },
            "keys": {"partition_key": template},
        }
    )
    assert made.keys("2026-11-20__sensor7", "20261120T0815_x") == (expected, "20261120T0815_x")


def test_keys_that_do_not_match_have_no_new_keys() -> None:
    """The regular expression has to match the whole key."""
    made = scheme({"match": {"partition_key": "s(?P<n>[0-9]+)"}, "keys": {"partition_key": "{n}"}})
    assert made.keys("s12", "r") == ("12", "r")
    assert made.keys("s12x", "r") is None


@given(st.text(max_size=8), st.text(max_size=8))
def test_the_recorded_scheme_changes_nothing(partition_key: str, row_key: str) -> None:
    """As recorded, every key is its own new key."""
    assert as_recorded().keys(partition_key, row_key) == (partition_key, row_key)


def test_a_property_is_a_part_of_a_key() -> None:
    """Where it is known; it is listed, and recorded, or the message says so."""
    content = {"properties": ["Customer"], "keys": {"partition_key": "{Customer}_{row_key}"}}
    mine = scheme(content)
    assert mine.keys("p", "r", {"Customer": "c1", "Other": "x"}) == ("c1_r", "r")
    assert mine.keys("p", "r", {"Other": "x"}) is None
    assert mine.new_keys("", "p", "r") == ("p", "r")
    require_properties(mine, ("Customer",))
    with pytest.raises(SetupError, match=r"lacks the values of Customer; it has those of Region"):
        require_properties(mine, ("Region",))
    with pytest.raises(SetupError, match=r'a property is listed: properties = \["Customer"\]'):
        scheme({"keys": content["keys"]})
    with pytest.raises(SetupError, match="'Customer' has two meanings"):
        scheme(content | {"match": {"row_key": "(?P<Customer>.)"}})
