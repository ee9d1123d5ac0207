"""Telemetry of devices."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.operation import KeyRange, Operation
from harness.workload.scenarios import simulated_time as times
from harness.workload.scenarios.scenario import Scenario, Setting
from harness.workload.scenarios.simulated_time import SECOND, Clock, Instant

READINGS_A_DAY = 96
"""Loaded readings of a device are a quarter of an hour apart."""
LATEST = 10
BATCH = 10
"""Readings that a device sends together after it was offline."""


class IotTelemetry(Scenario):
    """Readings of devices; PartitionKey is the device, the newest reading comes first.

    The key design for blog posts, "Pattern A: Time-series data": the RowKey is an inverted
    timestamp.

    ``keys.partitions`` is the number of devices,
    ``keys.rows_per_partition`` the number of readings of a device.
    """

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
        readings = [self._new(device) for _ in range(BATCH)]
        # A transaction stays in one partition, but midnight begins another.
        together = [one for one in readings if one.partition == readings[0].partition]
        return self.transaction(together, name="send_batch")

    def latest_readings(self, rng: random.Random) -> Operation:
        """The first rows of the partition of a device."""
        return self.query(
            self.named("device", self.pick(rng)),
            name="latest_readings",
            top=LATEST,
            key_range=KeyRange(entities=self.setting.rows, exact=not self._moving),
        )

    def readings_of_a_day(self, rng: random.Random) -> Operation:
        """All loaded readings of a device on one day: a range of RowKeys."""
        number = self._day(rng)
        readings = self._readings_on(number)
        end = _loaded_at(number * READINGS_A_DAY + readings)
        row_from, row_before = times.newest_first(times.day(number), end)
        return self.query(
            self.named("device", self.pick(rng)),
            name="readings_of_a_day",
            key_range=KeyRange(
                row_from=row_from, row_before=row_before, entities=readings, exact=True
            ),
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
        """PartitionKey and RowKey of a reading."""
        return self.named("device", device), at.inverted

    def _day(self, rng: random.Random) -> int:
        """Any day that has loaded readings."""
        return rng.randrange(-(-self.setting.rows // READINGS_A_DAY))

    def _readings_on(self, day: int) -> int:
        """Loaded readings of each device on this day."""
        return min(READINGS_A_DAY, self.setting.rows - day * READINGS_A_DAY)


class IotTelemetryByDate(IotTelemetry):
    """Readings of devices; PartitionKey is device and date, RowKey a sequence number.

    The key design for blog posts, "Good PartitionKey examples": for devices with so many readings
    that one partition would get too large.
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
