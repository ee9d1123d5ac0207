"""How figures are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.figures import (
    counted,
    data_size,
    duration,
    long_duration,
    milliseconds,
    multiple,
    number,
    percent,
    request_units,
    storage_size,
)

WRITE = (number, milliseconds, request_units, lambda share: percent(share).strip("<%"))


@given(st.floats(1e-9, 1e9))
def test_something_is_never_written_as_nothing(value: float) -> None:
    """A small figure differs from 0, and no figure is off by more than half its last digit."""
    for write, scale in zip(WRITE, (1, 1, 1, 100), strict=True):
        text = write(value)
        digits = len(text.partition(".")[2])
        assert float(text.replace(",", "")) > 0
        if value * scale >= 0.01 and text != "99.9":
            read = float(text.replace(",", ""))
            assert read == pytest.approx(value * scale, abs=0.5001 * 10**-digits, rel=1e-12)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (multiple(8.1), multiple(8.3)),
        (percent(0.6, "≥"), "≥60%"),
        # A bound of what is below the smallest share that is written.
        (percent(1e-6, "≥"), ">0%"),
        (percent(1e-6, "≤"), "<0.01%"),
        (percent(1e-6, "~"), "~0%"),
        (multiple(2.64), "2.6"),
        (multiple(0.97), "1"),
        (multiple(9990), "10,000"),
        (number(0), "0"),
        (number(0.004), "0.01"),
        (number(0.04), "0.04"),
        (number(0.3), "0.3"),
        (number(3.04), "3.0"),
        (number(45.26), "45.3"),
        (number(99.94), "99.9"),
        (number(99.96), "100"),
        (number(1204.4), "1,204"),
        (milliseconds(0), "0"),
        (milliseconds(0.417), "0.42"),
        (milliseconds(45.31), "45.3"),
        (milliseconds(1204.4), "1,204"),
        (percent(0), "0%"),
        (percent(0.000001), "<0.01%"),
        (percent(0.0042), "0.42%"),
        (percent(0.066), "6.6%"),
        (percent(0.6), "60%"),
        (percent(0.9999), "99.9%"),
        (percent(1), "100%"),
        (percent(1.2), "120%"),
        (data_size(512), "512 B"),
        (data_size(3500), "3.4 KiB"),
        (data_size(5 * 1024**4), "5,120.0 GiB"),
        (duration(42.4), "0:42"),
        (duration(42.6), "0:43"),
        (duration(0.2), "0:01"),
        (duration(3727), "1:02:07"),
        (long_duration(59.4), "59 s"),
        (long_duration(5400), "1.5 hours"),
        (long_duration(3e8), "3,472.2 days"),
        (storage_size(999), "999 B"),
        (storage_size(20e9), "20 GB"),
        (storage_size(1.26e6), "1.3 MB"),
        (counted(1, "user"), "1 user"),
        (counted(2, "process", "processes"), "2 processes"),
    ],
)
def test_figures_are_written_alike(shown: str, expected: str) -> None:
    """Each kind of figure has one way to be written."""
    assert shown == expected
