"""The columns of a trace in Parquet, in SQL. `docs/trace-schema.md` says what each means."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.model.entity import MOST_PROPERTIES
from harness.model.outcome import Outcome

ATTEMPTS = "STRUCT(status INTEGER, error_code VARCHAR, scope VARCHAR)[]"
_QUERY = (
    "STRUCT(partition_from VARCHAR, partition_before VARCHAR, row_from VARCHAR, "
    "row_before VARCHAR, compared VARCHAR[], selected VARCHAR[], top BIGINT, "
    "continued_at STRUCT(partition_key VARCHAR, row_key VARCHAR))"
)
_PARTS = "STRUCT(kinds VARCHAR[], row_keys VARCHAR[], bytes BIGINT[]%s)"
MOST_KEY = 1200
"""Characters of a key that are kept: more than the 1,024 that the service takes."""

ROWS = 32_768
"""Of a group of rows in a file. Each group is read at once."""
FORMAT = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS}, WRITE_BLOOM_FILTER false"

COLUMNS = {
    "sent_at": "TIMESTAMP",
    "took_ms": "BIGINT",
    "client": "VARCHAR",
    "kind": "VARCHAR",
    "table_name": "VARCHAR",
    "operation": "VARCHAR",
    "outcome": "VARCHAR",
    "estimated": "BOOLEAN",
    "partition_key": "VARCHAR",
    "row_key": "VARCHAR",
    "entities": "BIGINT",
    "returned": "BIGINT",
    "bytes_sent": "BIGINT",
    "bytes_received": "BIGINT",
    "attempts": ATTEMPTS,
    "query": _QUERY,
    "parts": "STRUCT(kind VARCHAR, row_key VARCHAR, bytes BIGINT)[]",
}
"""The type of each column."""

PROPERTIES = "properties"
"""A column of traces that have values of properties, and a field of ``parts`` there."""
MOVED = "moved"
"""A column of a copy by `harness.trace.row_properties`."""


def _values(properties: Sequence[str]) -> str:
    """Their type."""
    return "STRUCT({})".format(", ".join(f'"{name}" VARCHAR' for name in properties))


def files(properties: Sequence[str] = (), *, moved: bool = False) -> str:
    """All rows of files with their places, in the types of `COLUMNS` whoever wrote them."""
    types = dict(COLUMNS)
    if properties:
        types[PROPERTIES] = _values(properties)
        types["parts"] = types["parts"].replace(")[]", f", properties {_values(properties)})[]")
    if moved:
        types[MOVED] = "VARCHAR[]"
    typed = ", ".join(f"{name}::{of} AS {name}" for name, of in types.items())
    return (
        f"(SELECT {typed}, file_index, file_row_number "
        "FROM read_parquet($files, file_row_number = true))"
    )


def columns(properties: Sequence[str], *, moved: bool = False) -> str:
    """The columns of a trace with values of these properties, as a list."""
    return ", ".join([*COLUMNS, *[PROPERTIES] * bool(properties), *[MOVED] * moved])


_WRITTEN = f"""
SELECT
    make_timestamp_ms("at") AS sent_at,
    took::BIGINT AS took_ms,
    list_extract($client::VARCHAR[], shape + 1) AS client,
    list_extract($kind::VARCHAR[], shape + 1) AS kind,
    list_extract($table_name::VARCHAR[], shape + 1) AS table_name,
    list_extract($operation::VARCHAR[], shape + 1) AS operation,
    list_extract($outcome::VARCHAR[], shape + 1) AS outcome,
    list_extract($estimated::BOOLEAN[], shape + 1) AS estimated,
    left("key"::VARCHAR, {MOST_KEY}) AS partition_key,
    left("row"::VARCHAR, {MOST_KEY}) AS row_key,
    entities::BIGINT AS entities,
    returned::BIGINT AS returned,
    sent::BIGINT AS bytes_sent,
    received::BIGINT AS bytes_received,
    list_extract($attempts::{ATTEMPTS}[], shape + 1) AS attempts,
    query::VARCHAR::JSON::{_QUERY} AS query,
    CASE WHEN of_parts IS NOT NULL THEN list_transform(
        list_zip(of_parts.kinds, of_parts.row_keys, of_parts.bytes%s),
        lambda part: {{'kind': part[1], 'row_key': part[2], 'bytes': part[3]%s}}
    ) END AS parts%s
FROM (SELECT *, parts::VARCHAR::JSON::{_PARTS} AS of_parts FROM (SELECT *"""


def written(missing: Sequence[str] = (), properties: Sequence[str] = ()) -> str:
    """The query for rows of the arrays ``recorded``, without the ``missing`` ones.

    What operations have in common are lists as parameters. The trace has values of ``properties``.
    """
    more = [""] * 4
    if properties:
        # A cast needs every name.
        named = json.dumps(dict.fromkeys(properties, "VARCHAR"))
        more = [
            ", of_parts.properties",
            f", 'properties': from_json(part[4], '{named}')",
            f", from_json({PROPERTIES}::VARCHAR, '{named}') AS {PROPERTIES}",
            ", properties JSON[]",
        ]
    select = _WRITTEN % tuple(more)
    return f"{select}{''.join(f', NULL AS {name}' for name in missing)} FROM recorded))"


SHAPE = ("kind", "operation", "outcome", "estimated")
CLIENT_SHAPE = (*SHAPE, "client", "table_name")
"""What many operations have in common besides the answers, without and with client and table."""
_MOST_NAMED, _MOST_SHAPES_BYTES = 500, 16 * 1024 * 1024
MOST_LISTED = 1000
"""Attempts or parts of an operation. The service takes 100 parts."""
_MOST_KEY_BYTES = 4 * MOST_KEY
_MOST_VALUES_BYTES = 2 * MOST_PROPERTIES * _MOST_KEY_BYTES


def part_of(properties: Sequence[str] = ()) -> str:
    """Some rows of a file, or all of several, with the values of these properties."""
    return f"{files(properties)} WHERE file_row_number BETWEEN $first AND $last"


FILES, PART = files(), part_of()
WANTED = ", ".join(f"'{outcome.value}'" for outcome in Outcome if outcome.wanted_again)
"""The outcomes of operations that an application would send again, as a list."""


def hashed(names: Sequence[str]) -> str:
    """The hash of what a row has in common with others."""
    return f"hash({', '.join(names)}, attempts)"


READ = f"""
SELECT
    epoch_ms(sent_at) AS "at",
    took_ms AS took,
    {hashed(CLIENT_SHAPE)} AS shape,
    CASE WHEN strlen(partition_key) > {_MOST_KEY_BYTES} THEN error('a key is too long')
         ELSE partition_key END AS "key",
    CASE WHEN strlen(row_key) > {_MOST_KEY_BYTES} THEN error('a key is too long')
         ELSE row_key END AS "row",
    entities,
    returned,
    bytes_sent AS sent,
    bytes_received AS received
FROM {PART}
"""
"""Some rows of a file, or all of several, in the order of the files."""


def values_of(properties: Sequence[str]) -> str:
    """The query for the values of properties in the same rows, as JSON."""
    return f"""
SELECT CASE WHEN strlen(to_json({PROPERTIES})::VARCHAR) > {_MOST_VALUES_BYTES}
    THEN error('values are too long') ELSE to_json({PROPERTIES})::VARCHAR END AS properties
FROM {part_of(properties)}
"""


_DETAILS = f"""
SELECT
    to_json(query)::VARCHAR AS query,
    CASE WHEN len(parts) > {MOST_LISTED} THEN error('an operation has too many parts')
         WHEN parts IS NOT NULL THEN to_json({{
        'kinds': list_transform(parts, lambda part: part.kind),
        'row_keys': list_transform(parts, lambda part: part.row_key),
        'bytes': list_transform(parts, lambda part: part.bytes)%s
    }})::VARCHAR END AS parts
FROM %s
"""


def details_of(properties: Sequence[str]) -> str:
    """The query for what queries asked for, and for the parts of transactions, in the same rows.

    As JSON; parts have values of ``properties``.
    """
    values = ", 'properties': list_transform(parts, lambda part: part.properties)"
    return _DETAILS % (values * bool(properties), part_of(properties))


def shapes_of(names: Sequence[str]) -> str:
    """The query for what these rows have in common: its hash, the answers as JSON, the ``names``.

    They are in the order of their first instants. Long texts are cut.
    """
    columns = ", ".join(("answers", *names))
    firsts = ", ".join(
        f"first({name}) AS {name}"
        if name == "estimated"
        # Of the first ones, because it takes time for every row.
        else f"left(first({name}), {_MOST_NAMED}) AS {name}"
        for name in names
    )
    return f"""
SELECT shape, {columns} FROM (
    SELECT *, sum(strlen(concat({columns}))) OVER () AS size FROM (
        SELECT {hashed(names)} AS shape, {firsts}, min(sent_at) AS since,
            CASE WHEN len(first(attempts)) > {MOST_LISTED}
                THEN error('an operation has too many attempts')
                ELSE to_json(first(attempts))::VARCHAR END AS answers
        FROM {PART} GROUP BY shape
    )
) WHERE CASE WHEN size > {_MOST_SHAPES_BYTES} THEN error('operations have too little in common')
    ELSE true END
ORDER BY since, operation
"""


def queries_of(properties: Sequence[str]) -> str:
    """The query for the different queries in these rows, with values of these properties."""
    values = f"to_json({PROPERTIES})::VARCHAR" if properties else "NULL::VARCHAR"
    return f"""
SELECT DISTINCT coalesce(table_name, '') AS "table", partition_key AS "key", outcome,
    to_json(query)::VARCHAR AS query, {values} AS properties
FROM {part_of(properties)} AND kind = 'query'
"""


GROUPS = """
SELECT file_name, any_value(row_group_num_rows),
    epoch_ms(any_value(TRY_CAST(stats_min_value AS TIMESTAMP)) FILTER (path_in_schema = 'sent_at')),
    epoch_ms(any_value(TRY_CAST(stats_max_value AS TIMESTAMP)) FILTER (path_in_schema = 'sent_at')),
    max(num_values)
FROM parquet_metadata($files)
WHERE regexp_matches(path_in_schema, '^(sent_at|parts|attempts)')
GROUP BY file_name, row_group_id ORDER BY file_name, row_group_id
"""
"""The groups of rows of all files: their rows, first and last instants, and the most of rows, parts
and attempts."""


def in_order(properties: Sequence[str]) -> str:
    """The query for all rows in order."""
    order = "ORDER BY sent_at, file_index, file_row_number"
    return f"SELECT {columns(properties)} FROM {files(properties)} {order}"


IN_PARTS = "SELECT * FROM read_parquet($files)"
AS_TEXT = """
SELECT * REPLACE (to_json(attempts) AS attempts, to_json(query) AS query, to_json(parts) AS parts)
FROM read_parquet($files)
"""
"""For CSV, which has no nested values."""
