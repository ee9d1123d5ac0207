"""A day of hourly values: 24 properties of one entity, and beside it 24 entities.

The performance checklist, "Storing data series in a single entity": what is plotted together is
read by one point query, and a new value is one merge of one property. The other way is here too,
so that both can be compared.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.operation import KeyRange, Kind, Operation
from harness.workload.scenarios import simulated_time as times
from harness.workload.scenarios.scenario import Scenario, Setting
from harness.workload.scenarios.simulated_time import HOUR

HOURS = 24


class DataSeries(Scenario):
    """Hourly values of machines: one entity a day, and in a second table 24 entities a day.

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

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._width = len(str(setting.partitions - 1))

    def loading(self) -> Iterator[Operation]:
        """Machine by machine, the table of days first."""
        machines, days = range(self.setting.partitions), range(self.setting.rows)
        series: dict[str, EdmValue] = {f"Cpu{hour:02d}": hour * 1.5 for hour in range(HOURS)}
        yield from self.batched(
            self.insert(*self._day(machine, day), series, table="SeriesOfDay")
            for machine in machines
            for day in days
        )
        yield from self.batched(
            self._value(Kind.INSERT, machine, day, hour, hour * 1.5)
            for machine in machines
            for day in days
            for hour in range(HOURS)
        )

    def merge_hour(self, rng: random.Random) -> Operation:
        """One value into the day's entity: a merge of just this property."""
        machine, day, hour = self._place(rng)
        return self.merge(
            *self._day(machine, day),
            {f"Cpu{hour:02d}": rng.random() * 100},
            table="SeriesOfDay",
            name="merge_hour",
        )

    def plot_day(self, rng: random.Random) -> Operation:
        """24 values: one entity."""
        machine, day, _ = self._place(rng)
        return self.get(*self._day(machine, day), table="SeriesOfDay", name="plot_day")

    def write_hour(self, rng: random.Random) -> Operation:
        """One value as an entity of its own."""
        value = rng.random() * 100
        return self._value(Kind.UPSERT_REPLACE, *self._place(rng), value, "write_hour")

    def plot_hours(self, rng: random.Random) -> Operation:
        """24 values: a range of 24 entities."""
        machine, day, _ = self._place(rng)
        begin = times.day(day)
        return self.query(
            self._machine(machine),
            table="ValueOfHour",
            name="plot_hours",
            key_range=KeyRange(
                row_from=begin.stamp,
                row_before=begin.after(HOURS * HOUR).stamp,
                entities=HOURS,
                exact=True,
            ),
        )

    def _place(self, rng: random.Random) -> tuple[int, int, int]:
        return self.pick(rng), rng.randrange(self.setting.rows), rng.randrange(HOURS)

    def _machine(self, number: int) -> str:
        return f"machine-{number:0{self._width}d}"

    def _day(self, machine: int, day: int) -> tuple[str, str]:
        return self._machine(machine), times.day(day).date

    def _value(
        self, kind: Kind, machine: int, day: int, hour: int, value: float, name: str = ""
    ) -> Operation:
        at = times.day(day).after(hour * HOUR)
        return self.write(
            kind, self._machine(machine), at.stamp, {"Cpu": value}, table="ValueOfHour", name=name
        )
