"""What a trace says of each of its tables, counted by the columnar engine.

Only samples of keys leave the engine, so that memory does not grow with the length of the trace.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.model.operation import WHOLE_TABLE, Kind
from harness.trace.engine import Engine
from harness.trace.operations import TracedQuery
from harness.trace.reader import Trace
from harness.trace.schema import FILES, PART, WANTED, columns, files

MOST_TABLES = 20
_MOST_KEYS = 2_000
_MOST_TRANSACTIONS = 500
_MOST_QUERIES = 20
_MOST_NAMED, _MOST_RANGES = 5, 200
WINDOW_S = 10
"""Of the windows in which load is compared with limits."""
BUSY_OPERATIONS = 20_000
"""Operations that candidates are screened with."""

_OF_TABLE = f"FROM {FILES} WHERE coalesce(table_name, '') = $table"
_WINDOW = "epoch_ms(sent_at) // $window_ms"
_TABLES = f"""
WITH counted AS (
    SELECT coalesce(table_name, '') AS name, {_WINDOW} AS w, count(*) AS operations,
        sum(entities) AS entities,
        count(*) FILTER (partition_key IS NULL OR (
            row_key IS NULL AND kind NOT IN ('{Kind.QUERY}', '{Kind.TRANSACTION}'))) AS unknown,
        count(*) FILTER (kind = '{Kind.TRANSACTION}') AS transactions,
        count(*) FILTER (outcome IN ({WANTED})) AS failed,
        min(epoch_ms(sent_at)) AS first_ms, max(epoch_ms(sent_at)) AS last_ms
    FROM {FILES} GROUP BY ALL)
SELECT name, sum(operations), coalesce(sum(entities), 0), sum(unknown), sum(transactions),
    sum(failed), coalesce(max(entities), 0) / {WINDOW_S},
    coalesce(max(last_ms) - min(first_ms), 0) / 1000
FROM counted GROUP BY name ORDER BY max(entities) DESC, name LIMIT {MOST_TABLES + 1}
"""
_FAILED = f"SELECT count(*) AS failed FROM {PART} AND outcome IN ({WANTED})"
_KEYS = f"""
SELECT * FROM (SELECT DISTINCT partition_key, row_key {_OF_TABLE}
    AND partition_key IS NOT NULL AND partition_key <> '{WHOLE_TABLE}' AND row_key <> '')
ORDER BY hash(partition_key, row_key) LIMIT {_MOST_KEYS}
"""
_PARTITION_KEYS = f"""
SELECT * FROM (SELECT DISTINCT partition_key {_OF_TABLE}
    AND partition_key IS NOT NULL AND partition_key <> '{WHOLE_TABLE}')
ORDER BY hash(partition_key) LIMIT {_MOST_KEYS}
"""
_TOGETHER = f"""
SELECT partition_key, list_transform(parts, lambda part: part.row_key) {_OF_TABLE}
    AND len(parts) BETWEEN 2 AND 100 AND partition_key IS NOT NULL
ORDER BY hash(partition_key, parts) LIMIT {_MOST_TRANSACTIONS}
"""
_PROPERTIES = f"""
SELECT properties {_OF_TABLE} AND kind <> '{Kind.QUERY}' AND properties IS NOT NULL
    AND row_key IS NOT NULL
UNION ALL SELECT unnest(parts).properties {_OF_TABLE} AND parts IS NOT NULL
"""
_VALUES = f"""
SELECT * FROM (SELECT DISTINCT properties."%s" AS value FROM ({_PROPERTIES}))
WHERE value IS NOT NULL ORDER BY hash(value) LIMIT {_MOST_KEYS}
"""
_TIED = f"""
SELECT DISTINCT list_sort(list_distinct(list_transform(
    parts, lambda part: coalesce(part.properties."%s", '')))) {_OF_TABLE}
    AND len(parts) BETWEEN 2 AND 100 LIMIT {_MOST_TRANSACTIONS}
"""
_QUERIES = f"""
SELECT partition_key IS NOT DISTINCT FROM '{WHOLE_TABLE}' AS whole,
    coalesce(query.compared, [])[:{_MOST_NAMED}] AS compared, count(*), coalesce(sum(entities), 0),
    coalesce(sum(returned), 0) {_OF_TABLE}
    AND kind = '{Kind.QUERY}' GROUP BY ALL ORDER BY sum(entities) DESC LIMIT {_MOST_QUERIES}
"""
_RANGES = f"""
SELECT * FROM (SELECT DISTINCT query.partition_from, query.partition_before {_OF_TABLE}
    AND kind = '{Kind.QUERY}' AND partition_key = '{WHOLE_TABLE}'
    AND query.partition_from IS NOT NULL)
ORDER BY hash(COLUMNS(*)) LIMIT {_MOST_RANGES}
"""
_BUSY = f"""
WITH found AS (SELECT *, {_WINDOW} AS w FROM {FILES}),
loads AS (SELECT w, partition_key, sum(entities) AS load, count(*) AS operations
    FROM found GROUP BY ALL),
windows AS (SELECT w, max(load) AS hottest, sum(load) AS load, sum(operations) AS operations
    FROM loads GROUP BY w),
ranked AS (SELECT w, operations, least(row_number() OVER (ORDER BY load DESC, w),
    row_number() OVER (ORDER BY hottest DESC, w)) AS place FROM windows),
chosen AS (SELECT w FROM (SELECT *, sum(operations) OVER (ORDER BY place, w) - operations AS before
    FROM ranked) WHERE before < $most)
"""


@dataclasses.dataclass(frozen=True, slots=True)
class QueriedPart:
    """Queries of one form, in the order of `_QUERIES`.

    Attributes:
        whole: They read several partitions, or the whole table.
        compared: Properties that their filters compare.
    """

    whole: bool
    compared: Sequence[str]
    count: int
    scanned: int
    returned: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PropertySample:
    """Values of a property in written entities; ``together`` are those of rows of transactions."""

    name: str
    values: tuple[str, ...]
    together: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class TableTraffic:
    """The traffic to one table. What is counted first is in the order of `_TABLES`.

    Attributes:
        unknown: Operations of which the trace lacks a key.
        failed: Operations that failed, and are wanted again: throttled, or without an answer.
        seconds: From its first operation to its last.
        peak_per_s: Entities a second of the busiest 10 s, of all partitions together.
        keys: PartitionKeys and RowKeys of a sample of its entities.
        together: RowKeys that transactions wrote together, with their PartitionKey.
        queries: Those that read most first.
        ranges: Ranges of PartitionKeys that queries read, of a sample.
    """

    table: str
    operations: int
    entities: int
    unknown: int
    transactions: int
    failed: int
    peak_per_s: float
    seconds: float
    keys: tuple[tuple[str, str], ...] = ()
    together: tuple[tuple[str, tuple[str, ...]], ...] = ()
    queries: tuple[QueriedPart, ...] = ()
    ranges: tuple[TracedQuery, ...] = ()
    properties: tuple[PropertySample, ...] = ()


class TraceTables:
    """The tables of a trace. ``scratch`` is a folder for what does not fit into memory."""

    def __init__(self, trace: Trace, scratch: Path) -> None:
        self._trace, self._scratch = trace, scratch
        self._engine = Engine(scratch, threads=2)
        self._columns = columns(trace.properties, moved=trace.shows_rows)
        self._files = files(trace.properties, moved=trace.shows_rows)

    def close(self) -> None:
        self._engine.close()

    def overview(self) -> list[TableTraffic]:
        """The tables, the busiest first, without their keys and queries."""
        return [TableTraffic(*row) for row in self._rows(_TABLES, window_ms=WINDOW_S * 1000)]

    def looked_at(self, traffic: TableTraffic) -> TableTraffic:
        """The same with its keys and queries."""
        table = traffic.table
        keys = self._rows(_KEYS, table=table)
        together = [
            (one, tuple(row for row in rows if row is not None))
            for one, rows in self._rows(_TOGETHER, table=table)
        ]
        keys += [(one, row) for one, rows in together for row in rows]
        if not keys:
            keys = [(one, "") for (one,) in self._rows(_PARTITION_KEYS, table=table)]
        return dataclasses.replace(
            traffic,
            keys=tuple(dict.fromkeys(keys)),
            together=tuple(together),
            properties=tuple(
                PropertySample(
                    name=name,
                    values=tuple(sorted(one for (one,) in self._rows(_VALUES % name, table=table))),
                    together=tuple(
                        tuple(of) for (of,) in self._rows(_TIED % name, table=table) if of[1:]
                    ),
                )
                for name in self._trace.properties
            ),
            queries=tuple(QueriedPart(*row) for row in self._rows(_QUERIES, table=table)),
            ranges=tuple(TracedQuery(*ends) for ends in self._rows(_RANGES, table=table)),
        )

    def alone(self, table: str) -> Trace:
        """A trace of the operations on one table; the trace itself if it has no other."""
        counted = f"SELECT count(DISTINCT coalesce(table_name, '')) FROM {FILES}"
        if self._rows(counted) == [(1,)]:
            return self._trace
        return self._copied(
            f"SELECT {self._columns} {_OF_TABLE} ORDER BY sent_at, file_index, file_row_number",
            self._trace,
            table=table,
        )

    def busiest(self, trace: Trace) -> Trace:
        """The operations in the busiest 10 s, and in those with the hottest partitions.

        Further ones are every n-th of all, so that rare queries are seen too.
        """
        if trace.operations <= BUSY_OPERATIONS:
            return trace
        every = max(1, trace.operations // (BUSY_OPERATIONS // 4))
        return self._copied(
            f"{_BUSY} SELECT {self._columns} FROM found WHERE w IN (FROM chosen) "
            "OR file_row_number % $every = 0 ORDER BY sent_at, file_index, file_row_number",
            trace,
            window_ms=WINDOW_S * 1000,
            most=BUSY_OPERATIONS // 2,
            every=every,
        )

    def _copied(self, select: str, trace: Trace, **values: Any) -> Trace:
        select = select.replace(FILES, self._files)
        return trace.copy(self._engine, select, self._scratch, values)

    def _rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        sql = sql.replace(FILES, self._files)
        return self._engine.rows(sql, {**values, "files": [*self._trace.files]})


def failed_operations(trace: Trace) -> int:
    """How many operations failed when they were recorded, and were wanted again."""
    return sum(int(found["failed"][0]) for (found,), _, _ in trace.answers((_FAILED,)))
