"""Key schemes with a day, month or year, from 2024 on, in the PartitionKey.

New rows go to the newest period. The documents disagree. Key design for blog posts uses a date for
logs and a month for posts, and calls them evenly distributed; the performance checklist, "Append
Only and Prepend Only patterns", names the date as PartitionKey as its example of a hot partition.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from collections.abc import Callable, Iterator
from typing import ClassVar

from harness.workload.keys.row_keys import (
    InvertedTimestampRows,
    NumberedRows,
    RowKeys,
    SlugRows,
    TimestampRows,
)
from harness.workload.keys.scheme import Key, KeyScheme, RowCounts

_YEAR = 2024
_YEARS = 10_000 - _YEAR
_FIRST_DAY = dt.date(_YEAR, 1, 1).toordinal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A kind of period.

    Attributes:
        most: Number of periods until the end of the year 9999.
        label: Text of the period with this number, from 0; later periods sort last.
    """

    plural: str
    most: int
    label: Callable[[int], str]


DAYS = Period(
    plural="days",
    most=dt.date.max.toordinal() - _FIRST_DAY + 1,
    label=lambda number: dt.date.fromordinal(_FIRST_DAY + number).isoformat(),
)
MONTHS = Period(
    plural="months",
    most=_YEARS * 12,
    label=lambda number: f"{_YEAR + number // 12}-{number % 12 + 1:02d}",
)
YEARS = Period(plural="years", most=_YEARS, label=lambda number: f"{_YEAR + number}")


class Date(KeyScheme):
    """One partition per day, such as 2024-02-04; the newest log entry comes first.

    Advised by key design for blog posts, pattern C (event logs). The performance checklist, "Append
    Only and Prepend Only patterns", warns against it: every insert goes to the last day. A day ends
    when a worker has inserted as many rows as the last loaded day has.
    """

    name = "date"
    own_row_keys: ClassVar[RowKeys | None] = InvertedTimestampRows()
    period = DAYS
    grows = True

    @classmethod
    def problems(cls, rows: RowCounts, periods: int, row_keys: RowKeys | None) -> Iterator[str]:
        if rows.partitions > cls.period.most:
            yield _calendar_ends("keys.partitions", rows.partitions, cls)
        yield from super().problems(rows, periods, row_keys)

    def partition_key(self, partition: int) -> str:
        return self.period.label(partition)

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        last = self.count - 1
        newest = last + (number - 1) // self.rows.of(last)
        return super().inserted(min(newest, self.period.most - 1), worker, number)


class PublishMonth(Date):
    """One partition per month, such as 2025-02; RowKey is the slug of the post.

    Advised by key design for blog posts (with inverted timestamps as RowKeys, to read the latest
    posts first). The performance checklist warns against PartitionKeys that follow the time. A
    month ends when a worker has inserted as many posts as the last loaded month has.
    """

    name = "publish-month"
    own_row_keys = SlugRows()
    period = MONTHS


class DeviceDate(KeyScheme):
    """One partition per device and day; RowKey is the time of the reading.

    Advised by key design for blog posts (IoT telemetry), where a device alone has too many rows.
    New rows go to the newest day of the device that was drawn.
    """

    name = "device-date"
    own_row_keys: ClassVar[RowKeys | None] = TimestampRows()
    thing = "device"
    period = DAYS

    @property
    def grows(self) -> bool:
        return self.periods > 1

    @functools.cached_property
    def _things(self) -> int:
        return self.count // self.periods

    @functools.cached_property
    def _labels(self) -> tuple[str, ...]:
        return tuple(self.period.label(period) for period in range(self.periods))

    @functools.cached_property
    def _width(self) -> int:
        return len(str(self._things - 1))

    @classmethod
    def problems(cls, rows: RowCounts, periods: int, row_keys: RowKeys | None) -> Iterator[str]:
        if periods > cls.period.most:
            yield _calendar_ends("keys.periods", periods, cls)
        if rows.partitions % periods:
            yield (
                f"keys.partitions ({rows.partitions:,}) has to be a multiple of keys.periods "
                f"({periods:,}): keys.scheme {cls.name!r} has this number of "
                f"{cls.period.plural} for each {cls.thing}"
            )
        yield from super().problems(rows, 1, row_keys)

    def partition_key(self, partition: int) -> str:
        thing, period = divmod(partition, self.periods)
        return f"{self.thing}-{str(thing).zfill(self._width)}__{self._labels[period]}"

    def by_age(self, age: int) -> int:
        # The newest period of each thing, then the one before it.
        older, thing = divmod(min(age, self.count - 1), self._things)
        return (self._things - thing) * self.periods - 1 - older

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        newest = partition - partition % self.periods + self.periods - 1
        return super().inserted(newest, worker, number)


class CustomerMonth(DeviceDate):
    """One partition per customer and month; RowKey is the order id.

    Advised by key design for blog posts, where a customer alone has too many rows.
    """

    name = "customer-month"
    own_row_keys = NumberedRows("order")
    thing = "customer"
    period = MONTHS


class CustomerYear(CustomerMonth):
    """One partition per customer and year; RowKey is the order id.

    Advised by key design for blog posts (e-commerce orders).
    """

    name = "customer-year"
    period = YEARS


def _calendar_ends(setting: str, wanted: int, scheme: type[Date] | type[DeviceDate]) -> str:
    return (
        f"{setting} ({wanted:,}) is more than the {scheme.period.most:,} "
        f"{scheme.period.plural} from {_YEAR} to 9999 that keys.scheme {scheme.name!r} has"
    )
