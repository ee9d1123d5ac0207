"""The rows that were there before a trace, as far as it shows them, or somebody says.

A replay loads the same rows (`harness.trace.replay.initial_rows`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

from harness.model.operation import WHOLE_TABLE, Kind
from harness.trace.operations import Detail, TracedOperation, TracedQuery, by_page
from harness.trace.reader import Trace
from harness.trace.replay.initial_rows import InitialRows
from harness.trace.replay.preparation import Rows, in_order_of_effect
from harness.trace.replay.selection import Selection
from harness.trace.whatif.queries import treated
from harness.trace.whatif.scheme import Scheme

_QUERY = Kind.QUERY
_MOST_LOOKED_AT = 50_000
_MOST_LEARNED = 500_000
"""Of a longer trace, its first operations show the rows."""
EVERY_TABLE = ""
"""In place of a table in what is said: all that are not named."""


@dataclasses.dataclass(frozen=True, slots=True)
class RowsBefore:
    """The rows before a trace.

    Attributes:
        rows: By table and PartitionKey.
        complete: Tables of which every row is known, or how many there were.
        said: How many rows a table had.
    """

    rows: Rows
    complete: frozenset[str]
    said: Mapping[str, int]


def need_counts(trace: Trace, schemes: Sequence[Scheme]) -> list[bool]:
    """Of which schemes the rows that queries walk have to be counted."""
    needed = [False] * len(schemes)
    looked_at: set[tuple[str, str | None, Detail]] = set()
    for batch in trace.batches():
        if not any(shape.kind is _QUERY for shape in set(batch.shapes)):
            continue
        for shape, key, detail in zip(
            batch.shapes, batch.partition_keys, batch.details, strict=True
        ):
            if shape.kind is not _QUERY or (query := (shape.table, key, detail)) in looked_at:
                continue
            if len(looked_at) < _MOST_LOOKED_AT:
                looked_at.add(query)
            asked = detail if isinstance(detail, TracedQuery) else TracedQuery()
            for place, scheme in enumerate(schemes):
                if not needed[place]:
                    counted = treated(scheme, shape.table, key, asked).counted
                    needed[place] = counted or shape.outcome.wanted_again
            if all(needed):
                return needed
    return needed


def rows_before(trace: Trace, said: Mapping[str, int]) -> RowsBefore:
    """Read the first operations of a trace, twice.

    Args:
        said: The rows of each table before the trace, by its name in lower case, or of
            `EVERY_TABLE`.
    """
    selection = Selection(trace.head)
    contents = InitialRows(by_page=by_page(trace.head))
    tables: dict[str, None] = {}
    scanned: set[str] = set()

    def learned() -> Iterator[tuple[str, TracedOperation]]:
        for row in in_order_of_effect(itertools.islice(trace.rows(), _MOST_LEARNED)):
            if not selection.why_left_out(row):
                yield row.shape.table, row

    for table, row in learned():
        tables[table] = None
        contents.add(table, row)
        if row.partition_key == WHOLE_TABLE and _read_all(row):
            scanned.add(table)
    contents.learned()
    for table, row in learned():
        contents.add(table, row)
    rows, _ = contents.filled()
    whole = trace.operations <= _MOST_LEARNED
    known = {table: said.get(table.lower(), said.get(EVERY_TABLE)) for table in tables}
    numbers = {table: number for table, number in known.items() if number is not None}
    return RowsBefore(rows, frozenset(numbers) | (scanned if whole else set()), numbers)


def _read_all(row: TracedOperation) -> bool:
    """Whether a query read its whole table in one operation."""
    query = row.detail if isinstance(row.detail, TracedQuery) else TracedQuery()
    unbounded = query.partition_from is None and query.partition_before is None
    return (
        row.shape.kind is _QUERY
        and row.shape.outcome.succeeded
        and not row.shape.estimated
        and unbounded
        and query.top is None
        and query.continued_at is None
    )
