"""Time series: readings of devices, an event log, hourly values, and the lines of a log.

Lines are written in batches and read back by ranges, as rows of a table or as blobs.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import MAX_TRANSACTION_OPERATIONS, EdmValue
from harness.model.operation import KeyRange, Kind, Operation
from harness.model.outcome import Result
from harness.workload import simulated_time as times
from harness.workload.operation_source import Steps
from harness.workload.scenarios.scenario import Scenario, Setting
from harness.workload.simulated_time import HOUR, SECOND, Clock, EvenSpread, Instant

READINGS_A_DAY = 96
"""Loaded readings of a device are a quarter of an hour apart."""
LATEST_READINGS = 10
BATCH_READINGS = 10
"""Readings that a device sends together after it was offline."""


class IotTelemetry(Scenario):
    """Readings of devices; PartitionKey is the device, the newest reading comes first.

    The key design for blog posts, "Pattern A: Time-series data": the RowKey is an inverted
    timestamp.

    ``fields.device.values`` is the number of devices,
    ``keys.rows_per_partition`` the number of readings of a device.
    """

    field = "device"
    actions: ClassVar[Mapping[str, float]] = {
        "send_reading": 60,
        "send_batch": 5,
        "latest_readings": 25,
        "readings_of_a_day": 10,
    }

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # The day of the first new readings.
        self._today = setting.rows // READINGS_A_DAY
        self._clock = Clock(_loaded_at(setting.rows), setting.worker)
        self._moving = self.does("send_reading", "send_batch")

    def loading(self) -> Iterator[Operation]:
        return self.batched(self._loaded(*place) for place in self.places())

    def send_reading(self, rng: random.Random) -> Operation:
        return self._new(self.pick(rng), "send_reading")

    def send_batch(self, rng: random.Random) -> Operation:
        """Several readings of one device by one transaction."""
        device = self.pick(rng)
        readings = [self._new(device) for _ in range(BATCH_READINGS)]
        # A transaction stays in one partition, but midnight begins another.
        together = [one for one in readings if one.partition == readings[0].partition]
        return self.transaction(together, name="send_batch")

    def latest_readings(self, rng: random.Random) -> Operation:
        """The first rows of the partition of a device."""
        return self.query(
            self.named("device", self.pick(rng)),
            name="latest_readings",
            top=LATEST_READINGS,
            key_range=KeyRange(entities=self.setting.rows, exact=not self._moving),
        )

    def readings_of_a_day(self, rng: random.Random) -> Operation:
        """All loaded readings of a device on one day: a range of RowKeys."""
        number = self._day(rng)
        readings = self._readings_on(number)
        end = _loaded_at(number * READINGS_A_DAY + readings)
        return self.query(
            self.named("device", self.pick(rng)),
            name="readings_of_a_day",
            key_range=times.newest_first(times.day(number), end, entities=readings),
        )

    def _loaded(self, device: int, number: int) -> Operation:
        # Readings of different devices are ticks apart.
        sequence = f"{device * self.setting.rows + number:08d}"
        return self._reading(device, _loaded_at(number).after(device), sequence)

    def _new(self, device: int, name: str = "") -> Operation:
        sequence = self.new_id(after=self.loaded_rows)
        return self._reading(device, self._clock.next(), sequence, name)

    def _reading(self, device: int, at: Instant, sequence: str, name: str = "") -> Operation:
        content: dict[str, EdmValue] = {
            "At": at.utc,
            "Temperature": 20.5,
            "Humidity": 0.4,
            "Battery": 87,
        }
        return self.insert(*self._key(device, at, sequence), content, name=name)

    def _key(self, device: int, at: Instant, sequence: str) -> tuple[str, str]:
        return self.named("device", device), at.inverted

    def _day(self, rng: random.Random) -> int:
        return rng.randrange(-(-self.setting.rows // READINGS_A_DAY))

    def _readings_on(self, day: int) -> int:
        """Loaded readings of each device on this day."""
        return min(READINGS_A_DAY, self.setting.rows - day * READINGS_A_DAY)


class IotTelemetryByDate(IotTelemetry):
    """Readings of devices; PartitionKey is device and date, RowKey a sequence number.

    The key design for blog posts, "Good PartitionKey examples": for devices whose partitions would
    otherwise get too large.
    """

    def latest_readings(self, rng: random.Random) -> Operation:
        """The newest day of a device, whole: its latest readings are the last rows."""
        return self.query(
            self._partition(self.pick(rng), self._clock.now),
            name="latest_readings",
            key_range=KeyRange(entities=self._readings_on(self._today), exact=not self._moving),
        )

    def readings_of_a_day(self, rng: random.Random) -> Operation:
        """All readings of a device on one day: a partition."""
        number = self._day(rng)
        still = number < self._today or not self._moving
        return self.query(
            self._partition(self.pick(rng), times.day(number)),
            name="readings_of_a_day",
            key_range=KeyRange(entities=self._readings_on(number), exact=still),
        )

    def _key(self, device: int, at: Instant, sequence: str) -> tuple[str, str]:
        return self._partition(device, at), sequence

    def _partition(self, device: int, at: Instant) -> str:
        return f"{self.named('device', device)}__{at.date}"


def _loaded_at(number: int) -> Instant:
    """When the loaded reading with this number was made."""
    return times.day(0).after(number * (24 * 3600 // READINGS_A_DAY) * SECOND)


LEVELS = ("info", "info", "info", "info", "warning", "info", "info", "info", "info", "error")
"""Of ten events, one is a warning and one an error."""
LATEST_EVENTS = 20
BATCH_EVENTS = 20
_LOADED_HOURS = 12
"""Loaded events are from the first half of each day; new events follow on the last day."""


class EventLog(Scenario):
    """One partition per day with its events, the newest first.

    The key design for blog posts, "Good RowKey examples" and "Pattern C: Event logs", advises the
    date as PartitionKey and an inverted timestamp as RowKey. The performance checklist, "Append
    Only and Prepend Only patterns", gives this as an example of a hot partition: every write goes
    to the current day.

    ``fields.day.values`` is the number of days,
    ``keys.rows_per_partition`` the number of events of a day.
    """

    field = "day"
    actions: ClassVar[Mapping[str, float]] = {
        "write_event": 60,
        "write_batch": 5,
        "latest_events": 20,
        "events_of_an_hour": 10,
        "errors_of_a_day": 3,
    }

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._today = setting.partitions - 1
        self._loaded = EvenSpread(setting.rows, _LOADED_HOURS * HOUR)
        self._clock = Clock(times.day(self._today).after(_LOADED_HOURS * HOUR), setting.worker)
        self._written = 0
        self._moving = self.does("write_event", "write_batch")

    def loading(self) -> Iterator[Operation]:
        return self.batched(
            self._event(times.day(day).after(self._loaded.at(number)), number)
            for day, number in self.places()
        )

    def write_event(self, rng: random.Random) -> Steps:
        self._count((yield self._event(self._clock.next(), self.new_number(), "write_event")))

    def write_batch(self, rng: random.Random) -> Steps:
        """Several events of one server by one transaction."""
        events = [self._event(self._clock.next(), self.new_number()) for _ in range(BATCH_EVENTS)]
        # A transaction stays in one partition, but midnight begins another.
        today = [event for event in events if event.partition == events[0].partition]
        self._count((yield self.transaction(today, name="write_batch")))

    def latest_events(self, rng: random.Random) -> Operation:
        """The first rows of today's partition."""
        today = self._clock.now.date
        return self.query(
            today, name="latest_events", top=LATEST_EVENTS, key_range=self._day(self._today)
        )

    def events_of_an_hour(self, rng: random.Random) -> Operation:
        """The events of one hour: a range of RowKeys that gets no new rows."""
        hour = rng.randrange(_LOADED_HOURS)
        begin = times.day(self.pick(rng)).after(hour * HOUR)
        scanned = self._loaded.within(hour * HOUR, (hour + 1) * HOUR)
        key_range = times.newest_first(begin, begin.after(HOUR), entities=scanned)
        return self.query(begin.date, name="events_of_an_hour", key_range=key_range)

    def errors_of_a_day(self, rng: random.Random) -> Operation:
        """The errors of a day: a scan of all its events, of which one in ten is returned."""
        number = self.pick(rng)
        return self.query(
            times.day(number).date,
            name="errors_of_a_day",
            filter="Level eq 'error'",
            key_range=self._day(number),
        )

    def _count(self, result: Result) -> None:
        today = times.day(self._today).date
        if result.outcome.succeeded and result.operation.partition_key == today:
            self._written += result.operation.entities_asked

    def _day(self, number: int) -> KeyRange:
        if number < self._today:
            return KeyRange(entities=self.setting.rows, exact=True)
        return KeyRange(entities=self.setting.rows + self._written, exact=not self._moving)

    def _event(self, at: Instant, number: int, name: str = "") -> Operation:
        return self.insert(at.date, at.inverted, _content(at, number), name=name)


def _content(at: Instant, number: int) -> dict[str, EdmValue]:
    return {"At": at.utc, "Level": LEVELS[number % len(LEVELS)], "Source": "web"}


HOURS = 24


class DataSeries(Scenario):
    """Hourly values of machines: one entity a day, and in a second table 24 entities a day.

    The performance checklist, "Storing data series in a single entity": one point query reads a
    whole plot, and a new value is a merge of one property. The second table shows the cost of one
    entity for each value. An entity has its natural size in both tables, whatever
    ``entity.size_bytes`` says: filled up, a day of 24 entities would have 24 KiB.

    ``fields.machine.values`` is the number of machines,
    ``keys.rows_per_partition`` the number of days of a machine.

    The load adds no rows; it reads and overwrites the loaded ones.
    """

    field = "machine"
    tables = ("SeriesOfDay", "ValueOfHour")
    actions: ClassVar[Mapping[str, float]] = {
        "merge_hour": 10,
        "plot_day": 10,
        "write_hour": 10,
        "plot_hours": 10,
    }

    def loading(self) -> Iterator[Operation]:
        """Table by table."""
        series: dict[str, EdmValue] = {f"Cpu{hour:02d}": hour * 1.5 for hour in range(HOURS)}
        yield from self.batched(
            self.insert(*self._day(*place), series, table="SeriesOfDay", fill=False)
            for place in self.places()
        )
        yield from self.batched(
            self._value(Kind.INSERT, *place, hour, hour * 1.5)
            for place in self.places()
            for hour in range(HOURS)
        )

    def merge_hour(self, rng: random.Random) -> Operation:
        """One value into the entity of the day: a merge of one property."""
        machine, day, hour = self._any(rng)
        value = {f"Cpu{hour:02d}": rng.random() * 100}
        return self.merge(*self._day(machine, day), value, table="SeriesOfDay", name="merge_hour")

    def plot_day(self, rng: random.Random) -> Operation:
        """24 values: one entity."""
        machine, day, _ = self._any(rng)
        return self.get(*self._day(machine, day), table="SeriesOfDay", name="plot_day")

    def write_hour(self, rng: random.Random) -> Operation:
        """One value as an entity of its own."""
        value = rng.random() * 100
        return self._value(Kind.UPSERT_REPLACE, *self._any(rng), value, "write_hour")

    def plot_hours(self, rng: random.Random) -> Operation:
        """24 values: a range of 24 entities."""
        machine, day, _ = self._any(rng)
        begin, end = times.day(day).stamp, times.day(day + 1).stamp
        return self.query(
            self.named("machine", machine),
            table="ValueOfHour",
            name="plot_hours",
            key_range=KeyRange(row_from=begin, row_before=end, entities=HOURS, exact=True),
        )

    def _any(self, rng: random.Random) -> tuple[int, int, int]:
        """Machine, day and hour."""
        return *self.place(rng), rng.randrange(HOURS)

    def _day(self, machine: int, day: int) -> tuple[str, str]:
        return self.named("machine", machine), times.day(day).date

    def _value(
        self, kind: Kind, machine: int, day: int, hour: int, value: float, name: str = ""
    ) -> Operation:
        key = self.named("machine", machine), times.day(day).after(hour * HOUR).stamp
        content = {"Cpu": value}
        return self.write(kind, *key, content, table="ValueOfHour", name=name, fill=False)


PERIOD = 600 * SECOND
"""A partition, or a blob, holds the lines of ten minutes."""
READ_SHARE = 2
"""A period has this many times the lines of a read, which are those of five minutes."""
PREFIXES = 1000


class Log(Scenario):
    """Lines of a log, written in batches of 100 and read back by ranges of some minutes.

    The performance checklist, "Storing structured data in blobs". A period of ten minutes is the
    PartitionKey; with session ``blob`` it is the name of a blob, and a line of the blob stands for
    an entity. A range of lines is a range of RowKeys, or of bytes.

    ``fields.period.values`` is the number of loaded periods, ``keys.rows_per_partition`` the number
    of lines of a period, for each worker. New lines go to the periods that follow.
    """

    field = "period"
    actions: ClassVar[Mapping[str, float]] = {"write_lines": 80, "read_back": 20}

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # Time between two lines of a worker.
        self._step = max(1, PERIOD // setting.rows)

    def loading(self) -> Iterator[Operation]:
        return self.batched(
            self._line(period, number, self._number(period, number))
            for period, number in self.places()
        )

    def write_lines(self, rng: random.Random) -> Operation:
        """The next lines of one period by one transaction, or by one append."""
        batches = -(-self.setting.rows // MAX_TRANSACTION_OPERATIONS)
        period, first = divmod(self.new_number() - 1, batches)
        first *= MAX_TRANSACTION_OPERATIONS
        last = min(first + MAX_TRANSACTION_OPERATIONS, self.setting.rows)
        period += self.setting.partitions
        lines = [
            self._line(period, number, f"{self._number(period, number)}w{self.setting.worker:04d}")
            for number in range(first, last)
        ]
        return self.transaction(lines, name="write_lines")

    def read_back(self, rng: random.Random) -> Operation:
        """Half of the lines of a loaded period, one after the other; it gets no new ones."""
        period = self.pick(rng)
        count = -(-self.setting.rows // READ_SHARE)
        first = rng.randrange(self.setting.rows - count + 1)
        return self.query(
            self._name(period),
            name="read_back",
            key_range=KeyRange(
                row_from=self._number(period, first),
                row_before=self._number(period, first + count),
                entities=count,
                exact=True,
                preceding=first,
            ),
        )

    def _number(self, period: int, number: int) -> str:
        """The RowKey of a line, which is its number in the whole log."""
        return f"{period * self.setting.rows + number:08d}"

    def _line(self, period: int, number: int, row_key: str) -> Operation:
        at = self._begin(period).after(number * self._step)
        return self.insert(self._name(period), row_key, _content(at, number))

    def _begin(self, period: int) -> Instant:
        return times.day(0).after(period * PERIOD)

    def _name(self, period: int) -> str:
        """The period by its date and time."""
        return self._begin(period).stamp


class LogHashPrefix(Log):
    """The same log, with three digits of a hash before the name of each period.

    The data partitioning strategies, "Partitioning Azure blob storage": names that begin with a
    date lead the traffic of a day to one partition server.
    """

    def _name(self, period: int) -> str:
        name = super()._name(period)
        return f"{zlib.crc32(name.encode()) % PREFIXES:03d}-{name}"
