"""An entity stored under several keys, one for each query."""

from __future__ import annotations

from harness.workload.keys.scheme import Key
from harness.workload.keys.schemes.dates import DAYS
from harness.workload.keys.schemes.numbered import Customer


class IndexTable(Customer):
    """Each order twice: by customer, and by date in a second table whose name ends in Index.

    Advised by the performance checklist, "Denormalization", key design for blog posts (tables as
    indexes), and the data partitioning strategies (Index Table pattern). The tables are
    eventually consistent. New index rows all go to the newest day, a hot partition that the
    checklist warns of. The RowKey of an index row names the order.
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
        by_date = Key(
            partition_key=DAYS.label(day),
            row_key=f"{key.partition_key}__{key.row_key}",
        )
        return ((self.tables[1], by_date),)
