"""Simulated time, and the keys that are made of it."""

from __future__ import annotations

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from harness.workload.simulated_time import (
    DAY,
    HOUR,
    SECOND,
    Clock,
    EvenSpread,
    Instant,
    day,
    month,
    newest_first,
)

moments = st.integers(0, 7975 * 365 * DAY).map(day(0).after)
ticks = st.integers(0, 10 * DAY)


def test_days_and_months_are_those_of_the_calendar() -> None:
    """Time begins on 2024-01-01; months have as many days as they have."""
    assert (day(0).date, day(59).date, day(366).date) == ("2024-01-01", "2024-02-29", "2025-01-01")
    assert (month(0).month, month(11).month, month(12).month) == ("2024-01", "2024-12", "2025-01")
    assert month(2) == day(60)


def test_a_moment_is_written_as_the_documents_write_it() -> None:
    """Date, stamp, time of day with all digits, ticks that are left in 19 digits."""
    moment = day(35).after(13 * HOUR + 5 * 60 * SECOND + 7 * SECOND + 1_234_567)
    assert moment.date == "2024-02-05"
    assert moment.stamp == "2024-02-05-13-05-07"
    assert moment.time == "13:05:07.1234567"
    assert moment.utc == dt.datetime(2024, 2, 5, 13, 5, 7, 123456, tzinfo=dt.UTC)
    assert moment.inverted == str(3155378975999999999 - moment.ticks)
    assert len(Instant(3155378975999999999).inverted) == 19


@given(moments, ticks)
def test_later_moments_sort_behind_or_inverted_before(moment: Instant, later: int) -> None:
    """Dates, months and stamps keep the order of time as text; inverted ticks turn it round."""
    other = moment.after(later)
    assert moment.date <= other.date
    assert moment.month <= other.month
    assert moment.stamp <= other.stamp
    assert (moment.inverted > other.inverted) == bool(later)


@given(moments, ticks, st.integers(-DAY, 11 * DAY))
def test_a_range_of_inverted_keys_is_a_span_of_time(begin: Instant, span: int, offset: int) -> None:
    """A RowKey is in the range exactly if its moment is in the span of time."""
    keys = newest_first(begin, begin.after(span), entities=1)
    assert keys.row_from is not None
    assert keys.row_before is not None
    inside = keys.row_from <= begin.after(offset).inverted < keys.row_before
    assert inside == (0 <= offset < span)


@given(st.integers(1, 500), st.integers(1000, DAY), ticks, ticks)
def test_a_spread_counts_its_rows(rows: int, span: int, one: int, other: int) -> None:
    """What lies in a span of time equals a count row by row."""
    spread = EvenSpread(rows, span)
    begin, end = sorted((one, other))
    counted = sum(begin <= spread.at(number) < end for number in range(rows))
    assert spread.within(begin, end) == counted
    assert spread.at(rows - 1) < span


@given(st.lists(st.integers(0, 9999), min_size=2, max_size=4, unique=True))
def test_workers_have_no_moment_in_common(workers: list[int]) -> None:
    """Each worker's moments ascend, and none of them is another worker's."""
    clocks = [Clock(day(0), worker) for worker in workers]
    made = [[clock.next() for _ in range(20)] for clock in clocks]
    for moments in made:
        assert [moment.ticks for moment in moments] == sorted({one.ticks for one in moments})
        assert moments[0].ticks > day(0).ticks
    assert len({moment for moments in made for moment in moments}) == 20 * len(workers)
