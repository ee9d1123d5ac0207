"""A log that is written in batches and read back by ranges: as rows of a table, or as blobs."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import MAX_TRANSACTION_OPERATIONS, EdmValue
from harness.model.operation import KeyRange, Operation
from harness.workload.scenarios import simulated_time as times
from harness.workload.scenarios.scenario import Scenario, Setting
from harness.workload.scenarios.simulated_time import SECOND, Instant
from harness.workload.scenarios.time_series import LEVELS

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

    ``keys.partitions`` is the number of loaded periods, ``keys.rows_per_partition`` the number of
    lines of a period, for each worker. New lines go to the periods that follow.
    """

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
        period, first = divmod(self.new_number() - 1, self._batches)
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

    @property
    def _batches(self) -> int:
        return -(-self.setting.rows // MAX_TRANSACTION_OPERATIONS)

    def _number(self, period: int, number: int) -> str:
        """The RowKey of a line, which is its number in the whole log."""
        return f"{period * self.setting.rows + number:08d}"

    def _line(self, period: int, number: int, row_key: str) -> Operation:
        at = self._begin(period).after(number * self._step)
        content: dict[str, EdmValue] = {
            "At": at.utc,
            "Level": LEVELS[number % len(LEVELS)],
            "Source": "web",
        }
        return self.insert(self._name(period), row_key, content)

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
