"""Telemetry of devices, keyed by device, or by device and date.

The key design for blog posts, "Good PartitionKey examples" and "Pattern A: Time-series data":
DeviceId with an inverted timestamp as RowKey, newest first; or DeviceId + Date with a sequence
number, where a device has so many readings that one partition would grow too large.
"""

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
"""Readings that a device sends together when it was without a connection."""


class IotTelemetry(Scenario):
    """Readings of devices; PartitionKey is the device, the newest reading comes first.

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
        self._width = len(str(setting.partitions - 1))
        # The day on which new readings begin, behind all that is loaded.
        self._today = setting.rows // READINGS_A_DAY
        self._clock = Clock(_loaded_at(setting.rows), setting.worker)
        self._moving = self.does("send_reading", "send_batch")

    def loading(self) -> Iterator[Operation]:
        """Device by device."""
        return self.batched(
            # Devices are ticks apart.
            self._reading(
                device,
                _loaded_at(number).after(device),
                f"{device * self.setting.rows + number:08d}",
            )
            for device in range(self.setting.partitions)
            for number in range(self.setting.rows)
        )

    def send_reading(self, rng: random.Random) -> Operation:
        """One reading of one device."""
        return self._new(self.pick(rng), "send_reading")

    def send_batch(self, rng: random.Random) -> Operation:
        """Some readings of one device by one transaction."""
        device = self.pick(rng)
        readings = [self._new(device) for _ in range(BATCH)]
        # A transaction stays in one partition, also where midnight begins another.
        together = [one for one in readings if one.partition == readings[0].partition]
        return self.transaction(together, name="send_batch")

    def latest_readings(self, rng: random.Random) -> Operation:
        """The latest readings of a device stand at the beginning of its partition."""
        return self.query(
            self._device(self.pick(rng)),
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
            self._device(self.pick(rng)),
            name="readings_of_a_day",
            key_range=KeyRange(
                row_from=row_from, row_before=row_before, entities=readings, exact=True
            ),
        )

    def _new(self, device: int, name: str = "") -> Operation:
        sequence = self.new_id(after=self.setting.partitions * self.setting.rows)
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
        return self._device(device), at.inverted

    def _device(self, number: int) -> str:
        return f"device-{number:0{self._width}d}"

    def _day(self, rng: random.Random) -> int:
        """Any day on which there are loaded readings."""
        return rng.randrange(-(-self.setting.rows // READINGS_A_DAY))

    def _readings_on(self, day: int) -> int:
        """Loaded readings of each device on this day."""
        return min(READINGS_A_DAY, self.setting.rows - day * READINGS_A_DAY)


class IotTelemetryByDate(IotTelemetry):
    """Readings of devices; PartitionKey is device and date, RowKey a sequence number."""

    def latest_readings(self, rng: random.Random) -> Operation:
        """The latest readings of a device are the last of its newest day, which is read whole."""
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
        return f"{self._device(device)}__{at.date}"


def _loaded_at(number: int) -> Instant:
    """When the loaded reading with this number was made."""
    return times.day(0).after(number * (24 * 3600 // READINGS_A_DAY) * SECOND)
