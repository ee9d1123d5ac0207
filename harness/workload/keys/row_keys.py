"""Row keys. RowKeys sort as text, which decides which ranges can be queried.

Time is simulated: rows are a millisecond apart, from 2024-01-01 on. Numbers are padded by
`str.zfill`, which takes a third of the time of a format with a width.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Protocol

TICKS_AT_EPOCH = 638_396_640_000_000_000
"""Ticks of 100 ns from the year 1 to 2024-01-01, where simulated time begins."""
MAX_TICKS = 3_155_378_975_999_999_999
"""The last tick of the year 9999."""
_TICKS_LEFT = MAX_TICKS - TICKS_AT_EPOCH
TICKS_A_ROW = 10_000
"""Simulated time between two rows: a millisecond. Rows of different workers are ticks apart."""


class RowKeys(Protocol):
    """A kind of RowKey; ``order`` by the row's number is 1 (ascending), -1 (descending) or 0."""

    order: ClassVar[int]

    def loaded(self, partition: int, row: int, number: int) -> str:
        """RowKey of row ``row`` of a loaded partition; ``number`` counts all loaded rows."""

    def inserted(self, worker: int, number: int, loaded: int) -> str:
        """RowKey of a new row that no other worker makes. With an order, it sorts last (1) or
        first (-1).

        Args:
            worker: Number of the worker, below 10,000.
            number: Number of the row among all that the worker inserts, from 1.
            loaded: Number of all loaded rows.
        """


class SequenceRows:
    """Partition number and row number, zero-padded; new rows sort last."""

    __slots__ = ("_width",)
    order: ClassVar[int] = 1

    def __init__(self, partitions: int) -> None:
        self._width = len(str(partitions - 1))

    def loaded(self, partition: int, row: int, number: int) -> str:
        return f"{str(partition).zfill(self._width)}-{str(row).zfill(8)}"

    def inserted(self, worker: int, number: int, loaded: int) -> str:
        return f"w{str(worker).zfill(4)}-{str(number).zfill(10)}"


@dataclasses.dataclass(frozen=True, slots=True)
class NumberedRows:
    """Identifiers such as ``order-0000000012``, one sequence over all partitions."""

    order: ClassVar[int] = 1

    thing: str

    def loaded(self, partition: int, row: int, number: int) -> str:
        return f"{self.thing}-{str(number).zfill(10)}"

    def inserted(self, worker: int, number: int, loaded: int) -> str:
        return f"{self.thing}-{str(loaded + number).zfill(10)}-{str(worker).zfill(4)}"


class TimestampRows:
    """Timestamp in ticks of 100 ns, 19 digits: the newest row sorts last."""

    order: ClassVar[int] = 1

    def loaded(self, partition: int, row: int, number: int) -> str:
        return str(TICKS_AT_EPOCH + number * TICKS_A_ROW).zfill(19)

    def inserted(self, worker: int, number: int, loaded: int) -> str:
        return str(TICKS_AT_EPOCH + (loaded + number) * TICKS_A_ROW + worker).zfill(19)


class InvertedTimestampRows:
    """Ticks from the timestamp to the year 9999, 19 digits: the newest row sorts first."""

    order: ClassVar[int] = -1

    def loaded(self, partition: int, row: int, number: int) -> str:
        return str(_TICKS_LEFT - number * TICKS_A_ROW).zfill(19)

    def inserted(self, worker: int, number: int, loaded: int) -> str:
        return str(_TICKS_LEFT - (loaded + number) * TICKS_A_ROW - worker).zfill(19)


class GuidRows:
    """GUIDs, which have no order that a query can use."""

    order: ClassVar[int] = 0

    def loaded(self, partition: int, row: int, number: int) -> str:
        return guid(scattered(number))

    def inserted(self, worker: int, number: int, loaded: int) -> str:
        return guid(scattered(new_number(worker, number)))


_FIRST_WORDS = (
    "amber brisk calm dusty early faint grand hazy idle jolly keen late mild neat odd plain"
)
_LAST_WORDS = "arch barn cove dune elm fern gate hill inn jetty knoll lane mill nook oak path"
_FIRST = tuple(_FIRST_WORDS.split())
_LAST = tuple(_LAST_WORDS.split())


class SlugRows:
    """Titles as in URLs, such as ``keen-oak-12``: no order in time."""

    order: ClassVar[int] = 0

    def loaded(self, partition: int, row: int, number: int) -> str:
        return f"{_title(number)}-{number}"

    def inserted(self, worker: int, number: int, loaded: int) -> str:
        return f"{_title(number)}-{loaded + number}-{worker}"


def _title(number: int) -> str:
    mixed = number * 0x9E3779B1 >> 8
    return f"{_FIRST[mixed & 15]}-{_LAST[mixed >> 4 & 15]}"


class EmptyRows:
    """An empty RowKey: the PartitionKey identifies the entity."""

    order: ClassVar[int] = 0

    def loaded(self, partition: int, row: int, number: int) -> str:
        return ""

    def inserted(self, worker: int, number: int, loaded: int) -> str:
        return ""


ROW_KEYS: Mapping[str, Callable[[int], RowKeys]] = MappingProxyType(
    {
        "sequence": SequenceRows,
        "timestamp": lambda _: TimestampRows(),
        "inverted-timestamp": lambda _: InvertedTimestampRows(),
        "guid": lambda _: GuidRows(),
        "slug": lambda _: SlugRows(),
    }
)
"""Makes the RowKeys for a number of partitions, by their name in ``keys.row_keys``."""


def scattered(number: int) -> int:
    """A number of 128 bits that belongs to ``number`` alone: always the same, evenly spread."""
    # Odd factors and shifted copies of the upper bits can be undone: no two results are equal.
    mixed = (number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 & 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 67
    mixed = mixed * 0xD1342543DE82EF95DA942042E4DD58B5 & 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF
    return mixed ^ mixed >> 61


def new_number(worker: int, number: int) -> int:
    """A number under 2^64 that no loaded row and no other worker has."""
    return (worker + 1 << 44) + number


def guid(value: int) -> str:
    """``value`` of 128 bits as a GUID. Several times as fast as `uuid.UUID`."""
    text = value.to_bytes(16, "big").hex("-", 4)
    return f"{text[:13]}-{text[13:22]}-{text[22:26]}{text[27:]}"
