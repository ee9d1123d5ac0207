"""Every documented key scheme, by the name that the documents give it.

A scheme is a class. Its docstring says which document advises it or warns against it.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from harness.workload.keys.periods import (
    DAYS,
    CustomerMonth,
    CustomerYear,
    Date,
    DeviceDate,
    PublishMonth,
)
from harness.workload.keys.row_keys import (
    EmptyRows,
    InvertedTimestampRows,
    NumberedRows,
    RowKeys,
    guid,
    new_number,
    scattered,
)
from harness.workload.keys.scheme import Key, KeyScheme, RowCounts, new_key

# Numbers of fixed width; a new row goes to the drawn partition.


class Spread(KeyScheme):
    """A fixed number of values, such as p00 to p49; keys.distribution selects one.

    Advised by the partitioning strategy, "Partition sizing" (multiple values), and by the
    performance checklist, "High-traffic data".
    """

    name = "spread"

    @functools.cached_property
    def _width(self) -> int:
        return len(str(self.count - 1))

    def partition_key(self, partition: int) -> str:
        return f"{self.prefix}{str(partition).zfill(self._width)}"


class Single(Spread):
    """The same PartitionKey for all entities.

    The target of the stress test in the partitioning strategy. This document and the data
    partitioning strategies accept it for small tables; key design for blog posts warns against it
    (anti-patterns).
    """

    name = "single"

    @classmethod
    def problems(cls, rows: RowCounts, periods: int, row_keys: RowKeys | None) -> Iterator[str]:
        if rows.partitions != 1:
            yield (
                f"keys.partitions has to be 1, not {rows.partitions:,}: keys.scheme {cls.name!r} "
                f"has one PartitionKey; use {Spread.name!r} for several"
            )
        yield from super().problems(rows, periods, row_keys)


class Tenant(Spread):
    """One partition per tenant; RowKey is the entity id.

    Advised by key design for blog posts, pattern B (multi-tenant SaaS).
    """

    name = "tenant"
    own_prefix = "tenant-"
    own_row_keys = NumberedRows("entity")


class Device(Spread):
    """One partition per device; RowKey is an inverted timestamp, newest reading first.

    Advised by key design for blog posts, pattern A (time-series data).
    """

    name = "device"
    own_prefix = "device-"
    own_row_keys = InvertedTimestampRows()


class Customer(Spread):
    """One partition per customer; RowKey is the order id.

    Advised by key design for blog posts (e-commerce orders), which warns that such partitions can
    get very large: see customer-month and customer-year.
    """

    name = "customer"
    own_prefix = "customer-"
    own_row_keys = NumberedRows("order")


class Category(Spread):
    """One partition per category; RowKey is the product number.

    The Product Info table of the data partitioning strategies.
    """

    name = "category"
    own_prefix = "category-"
    own_row_keys = NumberedRows("product")


_MEMBERS = 10


class Composite(KeyScheme):
    """Two properties joined, the one with fewer values first: ten cities per country.

    Advised by the partitioning strategy, "Choose the PartitionKey value", and by the data
    partitioning strategies (more than two key properties: the third one is the RowKey).
    """

    name = "composite"
    group = "country"
    member = "city"
    own_row_keys = NumberedRows("customer")

    @functools.cached_property
    def _width(self) -> int:
        return len(str((self.count - 1) // _MEMBERS))

    def partition_key(self, partition: int) -> str:
        group, member = divmod(partition, _MEMBERS)
        return f"{self.group}-{str(group).zfill(self._width)}__{self.member}-{member}"


class RegionCategory(Composite):
    """One partition per region and category, ten categories a region; RowKey is the product.

    Advised by key design for blog posts, where a partition by region alone gets too large.
    """

    name = "region-category"
    group = "region"
    member = "category"
    own_row_keys = NumberedRows("product")


# No order: each entity has its own PartitionKey, anywhere in the table.


class Unique(KeyScheme):
    """A GUID per entity.

    Advised by the partitioning strategy, "Storage operations", instead of append-only; key design
    for blog posts warns against it (anti-patterns: groups cannot be queried).
    """

    name = "unique"
    in_order = False
    one_row = True
    grows = True

    def partition_key(self, partition: int) -> str:
        return guid(scattered(partition))

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        return new_key(
            partition_key=self.partition_key(new_number(worker, number)),
            row_key=self.row_keys.inserted(worker, number, self.rows.total),
        )


class NaturalKey(Unique):
    """The natural key of the entity, such as a user name; the RowKey is empty.

    Advised by the data partitioning strategies and the partitioning strategy (one key property),
    and by the performance checklist, "Tables and partitions" (the user's id).
    """

    name = "natural-key"
    own_row_keys = EmptyRows()

    @classmethod
    def problems(cls, rows: RowCounts, periods: int, row_keys: RowKeys | None) -> Iterator[str]:
        if row_keys is not None:
            yield f"keys.row_keys: the RowKey of keys.scheme {cls.name!r} is empty"
        yield from super().problems(rows, periods, row_keys)

    def partition_key(self, partition: int) -> str:
        # An odd factor can be undone: no two results are equal. This one spreads most evenly.
        value = (partition + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        return f"user-{value:016x}"


# Growing sequences: each entity has the next number, and a partition of its own. The worker is at
# the low-order end of the key, so that new rows of all workers are at one end of the table.


_DIGITS = 10
_LAST = 10**_DIGITS - 1


class AppendOnly(KeyScheme):
    """Ascending zero-padded numbers: each insert creates a partition after the last one.

    Three documents warn against it: the partitioning strategy, "Range partitions", the performance
    checklist, "Append Only and Prepend Only patterns", and the data partitioning strategies. The
    last adds that range queries can be faster with such keys.
    """

    name = "append-only"
    one_row = True
    grows = True

    def partition_key(self, partition: int) -> str:
        return self._label(partition)

    def inserted(self, partition: int, worker: int, number: int) -> Key:
        return new_key(
            partition_key=self._label(self._next(number), f"-{str(worker).zfill(4)}"),
            row_key=self.row_keys.inserted(worker, number, self.rows.total),
        )

    def _next(self, number: int) -> int:
        """Place of a worker's new row in the sequence; the first loaded row has place 0."""
        return self.count - 1 + number

    def _label(self, at: int, suffix: str = "") -> str:
        """PartitionKey of a place in the sequence; ``suffix`` is the worker of a new row."""
        return f"{self.prefix}{str(at).zfill(_DIGITS)}{suffix}"


class PrependOnly(AppendOnly):
    """Descending zero-padded numbers: each insert creates a partition before the first one.

    The partitioning strategy, "Range partitions", and the performance checklist, "Append Only and
    Prepend Only patterns", warn against it as against append-only. The loaded partition 0 is the
    newest: partitions are numbered in key order.
    """

    name = "prepend-only"

    def by_age(self, age: int) -> int:
        return min(age, self.count - 1)

    def _next(self, number: int) -> int:
        return -number

    def _label(self, at: int, suffix: str = "") -> str:
        return super()._label(_LAST - self.count + 1 + at, suffix)


class AppendOnlyUnpadded(AppendOnly):
    """The append-only sequence without zero-padding: 111 sorts before 2.

    The partitioning strategy, "Table primary key", warns against it: keys are compared as text.
    """

    name = "append-only-unpadded"
    in_order = False

    def _label(self, at: int, suffix: str = "") -> str:
        return f"{self.prefix}{at}{suffix}"


class HashPrefix(AppendOnly):
    """The append-only sequence with a three-digit hash as prefix, which scatters the keys.

    Advised by the data partitioning strategies (hash the partition key; a three-digit hash as
    prefix), against append-only. Range queries over the sequence are no longer possible.
    """

    name = "hash-prefix"
    in_order = False

    def _label(self, at: int, suffix: str = "") -> str:
        key = f"{self.prefix}{str(at).zfill(_DIGITS)}{suffix}"
        return f"{str(zlib.crc32(key.encode()) % 1000).zfill(3)}-{key}"


class IndexTable(Customer):
    """Each order twice: by customer, and by date in a second table whose name ends in Index.

    Advised by the performance checklist, "Denormalization", key design for blog posts (tables as
    indexes), and the data partitioning strategies (Index Table pattern). The tables are
    eventually consistent. All new index rows go to the newest day: a hot partition, against
    which the checklist warns. The RowKey of an index row names the order.
    """

    name = "index-table"
    tables = ("", "Index")

    def copies(self, key: Key, number: int) -> tuple[tuple[str, Key], ...]:
        """The key by date. As many days are loaded as customers, and each has orders of many."""
        total = self.rows.total
        days = min(self.count, DAYS.most)
        if number < total:
            day = number % days
        else:
            day = min(days - 1 + (number - total) * days // total, DAYS.most - 1)
        row_key = f"{key.partition_key}__{key.row_key}"
        return ((self.tables[1], Key(partition_key=DAYS.label(day), row_key=row_key)),)


_ALL: tuple[type[KeyScheme], ...] = (
    Single,
    Spread,
    Unique,
    AppendOnly,
    PrependOnly,
    AppendOnlyUnpadded,
    HashPrefix,
    Composite,
    NaturalKey,
    Date,
    DeviceDate,
    CustomerMonth,
    CustomerYear,
    RegionCategory,
    PublishMonth,
    Tenant,
    Device,
    Customer,
    Category,
    IndexTable,
)
SCHEMES: Mapping[str, type[KeyScheme]] = MappingProxyType({one.name: one for one in _ALL})
"""All schemes by name."""
