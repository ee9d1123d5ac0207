"""An entity under several keys, one for each way of looking for it."""

from __future__ import annotations

from typing import ClassVar

from harness.workload.keys import Key
from harness.workload.schemes.dates import DAYS
from harness.workload.schemes.numbered import Customer


class IndexTable(Customer):
    """Each order twice: by customer, and in a table ending in Index by date.

    Advised by the performance checklist, "Denormalization", key design for blog posts (tables as
    indexes), and the data partitioning strategies (Index Table pattern). The two tables agree only
    in the end, and new rows of the index all go to the newest day: the checklist warns of such
    dates as PartitionKey. RowKeys of the index tell the first key.
    """

    name: ClassVar[str] = "index-table"
    tables: ClassVar[tuple[str, ...]] = ("", "Index")

    def copies(self, key: Key, number: int) -> tuple[tuple[str, Key], ...]:
        """The key by date. As many days are loaded as customers, and each has orders of many."""
        total = self.rows.total
        days = min(self.count, DAYS.most)
        if number < total:
            day = number % days
        else:
            day = min(days - 1 + (number - total) * days // total, DAYS.most - 1)
        by_date = Key(
            partition_key=DAYS.label(day),
            row_key=f"{key.partition_key}__{key.row_key}",
        )
        return ((self.tables[1], by_date),)
