"""A day of hourly values."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.operation import KeyRange, Kind, Operation
from harness.workload.scenarios import simulated_time as times
from harness.workload.scenarios.scenario import Scenario
from harness.workload.scenarios.simulated_time import HOUR

HOURS = 24


class DataSeries(Scenario):
    """Hourly values of machines: one entity a day, and in a second table 24 entities a day.

    The performance checklist, "Storing data series in a single entity": one point query reads a
    whole plot, and a new value is a merge of one property. The second table shows the cost of one
    entity for each value.

    ``keys.partitions`` is the number of machines,
    ``keys.rows_per_partition`` the number of days of a machine.

    The load adds no rows; it reads and overwrites the loaded ones.
    """

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
            self.insert(*self._day(*place), series, table="SeriesOfDay") for place in self.places()
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
        begin = times.day(day)
        end = begin.after(HOURS * HOUR)
        return self.query(
            self.named("machine", machine),
            table="ValueOfHour",
            name="plot_hours",
            key_range=KeyRange(
                row_from=begin.stamp, row_before=end.stamp, entities=HOURS, exact=True
            ),
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
        return self.write(kind, *key, {"Cpu": value}, table="ValueOfHour", name=name)
