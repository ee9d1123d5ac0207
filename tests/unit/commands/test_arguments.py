"""The forms of the values of options."""

import argparse

import pytest

from harness.commands.common import duration, variable_name, whole_number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("1h1m1s", 3661),
        ("1.5h", 5400),
        ("0.25s", 0.25),
        ("0", 0),
    ],
)
def test_a_duration_is_a_sum_of_units(text: str, seconds: float) -> None:
    """Hours, minutes and seconds in this order; a number without a unit is seconds."""
    assert duration(text) == seconds
    assert isinstance(duration(text), int) == isinstance(seconds, int)


@pytest.mark.parametrize("text", ["", "s", "5x", "-1", "1m1h", "nan", "inf", "1e3", "1,5h", "٣"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """The message repeats the value."""
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration"):
        duration(text)


@pytest.mark.parametrize("text", ["1", "64", "007"])
def test_a_whole_number_has_bounds(text: str) -> None:
    """Both bounds are allowed."""
    assert whole_number(64)(text) == int(text)


@pytest.mark.parametrize("text", ["0", "65", "-1", "1.0", "", " 1", "٣", "9" * 5000])
def test_a_number_out_of_bounds_is_refused(text: str) -> None:
    """The message names the bounds, and repeats the value in short."""
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        whole_number(64)(text)
    assert str(refused.value).startswith("must be a whole number from 1 to 64, not ")
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("text", ["", " ", "STORE=1", "=C:"])
def test_what_no_variable_is_called_is_refused(text: str) -> None:
    """The message shows the form, and repeats the value."""
    with pytest.raises(argparse.ArgumentTypeError, match="such as STORE_CONNECTION, not "):
        variable_name(text)
    assert variable_name("Tables__Connection") == "Tables__Connection"
