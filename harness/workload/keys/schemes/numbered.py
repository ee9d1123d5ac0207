"""PartitionKeys that are numbers of fixed width; a new row goes to the drawn partition."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from harness.workload.keys.row_keys import InvertedTimestampRows, NumberedRows, RowKeys
from harness.workload.keys.scheme import KeyScheme, RowCounts


class Spread(KeyScheme):
    """A fixed number of values, such as p00 to p49; a new row goes to the drawn value.

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

    The target of the stress test in the partitioning strategy, which takes it for small tables
    (as do the data partitioning strategies); key design for blog posts warns of it (anti-patterns).
    """

    name = "single"

    @classmethod
    def problems(cls, rows: RowCounts, periods: int, row_keys: RowKeys | None) -> Iterator[str]:
        if rows.partitions != 1:
            yield (
                f"keys.partitions has to be 1: keys.scheme {cls.name!r} has one value, which "
                f"makes no {rows.partitions:,} partitions; {Spread.name!r} has"
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
