"""``partitions.csv``: the partitions of a run for spreadsheets and scripts.

One row per partition, hottest first. Column names carry their unit and never change; a later
version may add columns on the right.
"""

from __future__ import annotations

import csv
import io

from harness.measure.record.record import PartitionPart, RunRecord
from harness.model.operation import over_partitions
from harness.report.columns import PARTITION_COLUMNS
from harness.report.names import partition_name, printable

_FORMULA = ("=", "+", "-", "@")


def partitions_csv(record: RunRecord) -> str:
    """The content of the file.

    The column ``row`` is ``partition``, ``queries`` (over several partitions) or ``other`` (the sum
    of all partitions that are not counted separately). A missing value is empty.

    A key that begins with ``=``, ``+``, ``-`` or ``@`` has an apostrophe before it: a spreadsheet
    would run it as a formula, and keys may come from strangers. Characters that cannot be printed
    are written as ``\\u`` escapes.
    """
    columns = [column for column in PARTITION_COLUMNS if column.csv]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["row", "partition", *(column.csv for column in columns)])
    rows = [(_kind(part), _key(part), part) for part in record.partitions]
    if (folded := record.partitions_folded) is not None:
        rows.append(("other", folded.key, folded))
    for kind, key, part in rows:
        cells = (column.get(part) for column in columns)
        writer.writerow([kind, key, *("" if cell is None else cell for cell in cells)])
    return out.getvalue()


def _kind(part: PartitionPart) -> str:
    return "queries" if over_partitions(part.key) else "partition"


def _key(part: PartitionPart) -> str:
    key = partition_name(part.key) if over_partitions(part.key) else printable(part.key)
    return f"'{key}" if key.startswith(_FORMULA) else key
