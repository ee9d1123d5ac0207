"""What a trace shows of the properties of the rows that its operations are about.

An operation on a row has the values that it writes. A read or a delete, and a merge of others, has
those that the row was last written with before it; before the first such write, those of that
write. A row that is not written with a property, before or after, has none. These values are added
in a copy of the trace, in SQL, so that memory does not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.model.operation import Kind
from harness.model.outcome import Outcome
from harness.trace.engine import Tell
from harness.trace.operations import RecordedValues, TracedOperation, TracedParts
from harness.trace.reader import Trace
from harness.trace.schema import MOVED, PROPERTIES, columns, files
from harness.trace.whatif.scheme import Scheme

_APPLIED = ", ".join(f"'{outcome.value}'" for outcome in Outcome if outcome.succeeded)
_CHANGES = ", ".join(f"'{kind}'" for kind in Kind if kind.stores and kind is not Kind.INSERT)
_FOUND = f"""
found AS (
    SELECT *, row_number() OVER (ORDER BY sent_at, file_index, file_row_number) AS n FROM %s
),
accesses AS (
    SELECT n, 0 AS part, table_name, partition_key, row_key, kind, properties AS v,
        outcome IN ({_APPLIED}) AS applied
    FROM found
    WHERE kind NOT IN ('{Kind.QUERY}', '{Kind.TRANSACTION}') AND partition_key IS NOT NULL
        AND row_key IS NOT NULL
    UNION ALL
    SELECT n, part, table_name, partition_key, one.row_key, one.kind, one.properties, applied
    FROM (
        SELECT n, generate_subscripts(parts, 1) AS part, table_name, partition_key,
            unnest(parts) AS one, outcome IN ({_APPLIED}) AS applied
        FROM found WHERE parts IS NOT NULL AND partition_key IS NOT NULL
    )
)"""


def _copied(names: Sequence[str]) -> str:
    written = [f"CASE WHEN applied THEN v.{_quoted(name)} END" for name in names]
    before = [f"last_value({one} IGNORE NULLS) OVER earlier" for one in written]
    values = [
        f"coalesce(v.{_quoted(name)}, {last}, first_value({one} IGNORE NULLS) OVER later)"
        for name, one, last in zip(names, written, before, strict=True)
    ]
    moves = [
        f"CASE WHEN kind IN ({_CHANGES}) AND {one} <> {last} THEN '{name}' END"
        for name, one, last in zip(names, written, before, strict=True)
    ]
    fields = ", ".join(f"{_quoted(name)} := {one}" for name, one in zip(names, values, strict=True))
    return f"""
WITH {_FOUND % files(names)},
known AS (
    SELECT n, part, struct_pack({fields}) AS v,
        list_filter([{", ".join(moves)}], lambda one: one IS NOT NULL) AS moved
    FROM accesses
    WINDOW earlier AS (PARTITION BY table_name, partition_key, row_key ORDER BY n, part
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
        later AS (PARTITION BY table_name, partition_key, row_key ORDER BY n, part
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
),
joined AS (
    SELECT n, any_value(v) FILTER (part = 0) AS v, list(v ORDER BY part) FILTER (part > 0) AS vs,
        list_distinct(flatten(list(moved))) AS moved
    FROM known GROUP BY n
)
SELECT {columns(names, moved=True)} FROM (
    SELECT found.* REPLACE (
        coalesce(joined.v, found.{PROPERTIES}) AS {PROPERTIES},
        CASE WHEN vs IS NULL THEN parts ELSE list_transform(list_zip(parts, vs), lambda pair: {{
            'kind': pair[1].kind, 'row_key': pair[1].row_key, 'bytes': pair[1].bytes,
            'properties': pair[2]}}) END AS parts
    ), coalesce(joined.moved, []) AS {MOVED}
    FROM found LEFT JOIN joined USING (n)
) ORDER BY n
"""


def _quoted(name: str) -> str:
    return f'"{name}"'


def showing_rows(trace: Trace, folder: Path, tell: Tell | None = None) -> Trace:
    """A copy in ``folder`` whose operations have the properties of their rows; `TraceError`."""
    return trace.copied(_copied(trace.properties), folder, tell)


def moves(trace: Trace, scheme: Scheme) -> int:
    """Writes that change a property of their row that keys are made of."""
    if not scheme.properties or not trace.shows_rows:
        return 0
    counted = f"""
    SELECT count(*) FROM {files(moved=True)}
    WHERE list_has_any({MOVED}, $names) AND $table IN ('', lower(table_name))
    """
    values = {"files": [*trace.files], "names": [*scheme.properties], "table": scheme.table}
    return int(trace.engine.rows(counted, values)[0][0])


class RowProperties(dict[tuple[str, str, str], RecordedValues]):
    """Values by table, PartitionKey and RowKey, at the first operation on each row."""

    def learn(self, row: TracedOperation) -> None:
        """Take the values of an operation of a trace that shows rows."""
        table, key, detail = row.shape.table, row.partition_key or "", row.detail
        if isinstance(detail, TracedParts):
            for part in detail.each():
                if part.properties:
                    self.setdefault((table, key, part.row_key or ""), part.properties)
        elif row.properties:
            self.setdefault((table, key, row.row_key or ""), row.properties)
