"""The rows that were there before a trace, as far as it shows them, or somebody says.

A replay loads the same rows (`harness.trace.replay.initial_rows`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from harness.model.errors import SetupError, cut
from harness.model.operation import WHOLE_TABLE
from harness.trace.operations import TracedOperation, TracedQuery
from harness.trace.reader import Trace
from harness.trace.replay.initial_rows import InitialRows, QueriedKeys
from harness.trace.replay.preparation import in_order_of_effect
from harness.trace.replay.selection import Selection
from harness.trace.row_properties import RowProperties
from harness.trace.whatif.queries import treated
from harness.trace.whatif.scheme import Rows, Scheme

_MOST_LOOKED_AT = 50_000
_MOST_LEARNED = 500_000
"""Of a longer trace, its first operations show the rows."""
_TOLD_EVERY = 1000
EVERY_TABLE = ""
"""In place of a table in what is said: all that are not named."""


@dataclasses.dataclass(frozen=True, slots=True)
class RowsBefore:
    """The rows before a trace.

    Attributes:
        rows: By table and PartitionKey.
        complete: Tables of which every row is known, or it is said how many there were.
        said: How many rows a table had.
        read: What queries read to the end, so that its rows are known.
        properties: What is known of those of rows.
    """

    rows: Rows
    complete: frozenset[str]
    said: Mapping[str, int]
    read: Set[QueriedKeys] = frozenset()
    properties: RowProperties = dataclasses.field(default_factory=RowProperties)


def require_rows_of(said: Mapping[str, int], tables: Iterable[str]) -> None:
    """Raise `SetupError` unless a trace has each table of which it is said how many rows it had."""
    for table in said.keys() - {EVERY_TABLE} - {name.lower() for name in tables}:
        raise SetupError(f"the trace has no table {cut(repr(table))} that could have rows")


def need_counts(trace: Trace, schemes: Sequence[Scheme]) -> list[bool]:
    """Of which schemes the rows that queries scan have to be counted."""
    needed = [False] * len(schemes)
    looked_at: set[object] = set()
    for query, outcome in trace.queries():
        seen = query, outcome.wanted_again
        if seen in looked_at:
            continue
        if len(looked_at) < _MOST_LOOKED_AT:
            looked_at.add(seen)
        table, key, detail = query
        asked = detail if isinstance(detail, TracedQuery) else TracedQuery()
        for place, scheme in enumerate(schemes):
            if not needed[place]:
                counted = treated(scheme, table, key, asked).counted
                needed[place] = outcome.wanted_again or counted
        if all(needed):
            return needed
    return needed


def rows_before(
    trace: Trace,
    said: Mapping[str, int],
    progress: Callable[[str, int], None] = lambda step, operations: None,
) -> RowsBefore:
    """Read the first operations of a trace, twice.

    Args:
        said: The rows of each table before the trace, by its name in lower case, or of
            `EVERY_TABLE`.
    """
    selection = Selection(trace.head)
    contents = InitialRows(trace.head)
    properties = RowProperties()
    tables: dict[str, None] = {}

    def learned() -> Iterator[tuple[str, TracedOperation]]:
        rows = itertools.islice(trace.rows(), _MOST_LEARNED)
        for number, row in enumerate(in_order_of_effect(rows), 1):
            if not number % _TOLD_EVERY:
                progress("rows before the trace", _TOLD_EVERY)
            if not selection.why_left_out(row):
                yield row.shape.table, row

    for table, row in learned():
        tables[table] = None
        contents.add(table, row)
        if trace.shows_rows:
            properties.learn(row)
    contents.learned()
    for table, row in learned():
        contents.add(table, row)
    rows, _ = contents.filled()
    read = contents.read if trace.operations <= _MOST_LEARNED else frozenset[QueriedKeys]()
    known = {table: said.get(table.lower(), said.get(EVERY_TABLE)) for table in tables}
    numbers = {table: number for table, number in known.items() if number is not None}
    scanned = {table for table in tables if (table, WHOLE_TABLE, TracedQuery().bounds) in read}
    # Where those that are not known are follows from the others, if there are any.
    placed = {table for table, number in numbers.items() if rows.get(table) or not number}
    complete = placed | (scanned - contents.unsure)
    return RowsBefore(rows, frozenset(complete), numbers, read, properties)
