"""An event log."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.operation import KeyRange, Operation
from harness.model.outcome import Result
from harness.workload.operation_source import Steps
from harness.workload.scenarios import simulated_time as times
from harness.workload.scenarios.scenario import Scenario, Setting
from harness.workload.scenarios.simulated_time import HOUR, Clock, EvenSpread, Instant

LEVELS = ("info", "info", "info", "info", "warning", "info", "info", "info", "info", "error")
"""Of ten events, one is a warning and one an error."""
LATEST = 20
BATCH = 20
_LOADED_HOURS = 12
"""Loaded events are from the first half of each day; new events follow on the last day."""


class EventLog(Scenario):
    """One partition per day with its events, the newest first.

    The key design for blog posts, "Good RowKey examples" and "Pattern C: Event logs", advises the
    date as PartitionKey and an inverted timestamp as RowKey. The performance checklist, "Append
    Only and Prepend Only patterns", gives this as an example of a hot partition: every write goes
    to the current day.

    ``keys.partitions`` is the number of days,
    ``keys.rows_per_partition`` the number of events of a day.
    """

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
        events = [self._event(self._clock.next(), self.new_number()) for _ in range(BATCH)]
        # A transaction stays in one partition, but midnight begins another.
        today = [event for event in events if event.partition == events[0].partition]
        self._count((yield self.transaction(today, name="write_batch")))

    def latest_events(self, rng: random.Random) -> Operation:
        """The first rows of today's partition."""
        today = self._clock.now.date
        return self.query(today, name="latest_events", top=LATEST, key_range=self._day(self._today))

    def events_of_an_hour(self, rng: random.Random) -> Operation:
        """The events of one hour: a range of RowKeys that gets no new rows."""
        hour = rng.randrange(_LOADED_HOURS)
        begin = times.day(self.pick(rng)).after(hour * HOUR)
        row_from, row_before = times.newest_first(begin, begin.after(HOUR))
        scanned = self._loaded.within(hour * HOUR, (hour + 1) * HOUR)
        return self.query(
            begin.date,
            name="events_of_an_hour",
            key_range=KeyRange(
                row_from=row_from, row_before=row_before, entities=scanned, exact=True
            ),
        )

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
        content: dict[str, EdmValue] = {
            "At": at.utc,
            "Level": LEVELS[number % len(LEVELS)],
            "Source": "web",
        }
        return self.insert(at.date, at.inverted, content, name=name)
