"""Work with a time limit."""

import threading

import pytest

from harness.model.process import bounded


def test_the_result_is_returned() -> None:
    """Work that ends in time is as a call."""
    assert bounded(lambda: 7, 60.0) == 7


def test_an_error_is_raised_where_the_work_is_waited_for() -> None:
    """An error of the work keeps its type."""

    def fail() -> None:
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        bounded(fail, 60.0)


def test_work_that_takes_too_long_is_abandoned() -> None:
    """The wait ends, although the work does not."""
    end = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            bounded(end.wait, 0.05)
    finally:
        end.set()
