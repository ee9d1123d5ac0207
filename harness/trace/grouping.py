"""The queries that count a trace by groups, in SQL. `harness.trace.counting` adds them up.

Each is about the rows from ``$first`` to ``$last`` of ``$files``. Instants are UTC milliseconds. An
attempt of several ends as if all took equally long, because a trace does not say when each ended.
"""

from __future__ import annotations

from harness.measure.counts.tally import AMOUNTS
from harness.measure.counts.time_course import SLOTS
from harness.model.operation import WHOLE_TABLE, Kind
from harness.model.outcome import THROTTLING_ANSWERS
from harness.trace.operations import UNKNOWN
from harness.trace.schema import PART, SHAPE, hashed, shapes_of

SLOT_MS = 1000 // SLOTS
BUCKETS, FEWER_BUCKETS = 2**20, 2**16
"""Of hashes: of partitions, and of entities, which are more."""
MOST_TOOK_MS = 130_000
"""Longer ones count as this long, as in histograms."""
_MOST_CLIENT = 200

_ROWS = f"FROM {PART}"
_AT = "epoch_ms(sent_at)"
_PARTITION = f"coalesce(table_name, '') AS table_name, coalesce(partition_key, '{UNKNOWN}') AS key"
_HASH = f"hash(coalesce(table_name, ''), coalesce(partition_key, '{UNKNOWN}'))"
_NAME = "CASE WHEN table_name = '' THEN key ELSE concat(table_name, '/', key) END"

NUMBERS = {
    "at": _AT,
    "took": "took_ms",
    "entities": "entities",
    "returned": "returned",
    "sent": "bytes_sent",
    "received": "bytes_received",
}
"""Columns that must have a value in every row, and within bounds."""
LONGEST = {
    "key": "greatest(max(strlen(partition_key)), max(strlen(row_key)))",
    "attempts": "max(len(attempts))",
    "parts": "max(len(parts))",
}
MISSING = {
    "PartitionKey": "partition_key IS NULL",
    "RowKey": f"row_key IS NULL AND parts IS NULL AND kind <> '{Kind.TRANSACTION}'",
    "parts of a transaction": f"parts IS NULL AND kind = '{Kind.TRANSACTION}'",
    "entities counted": "estimated",
}
"""What a source may leave out."""

LOOK = f"""
SELECT {", ".join(f"count({of}), min({of}), max({of})" for of in NUMBERS.values())},
    max({_AT} + took_ms), {", ".join(LONGEST.values())},
    {", ".join(f"count(*) FILTER ({of})" for of in MISSING.values())}, count(*)
{_ROWS}
"""
"""The extent of the columns, and how often the source left out what it can leave out."""

SHAPES = shapes_of(SHAPE)

CLIENTS = f"""
SELECT left(coalesce(client, ''), {_MOST_CLIENT}) AS client, count(*) AS operations
{_ROWS} GROUP BY client ORDER BY operations DESC, client LIMIT $most
"""

_IS_THROTTLED = " OR ".join(
    f"answer.status = {answer.status}"
    + (f" AND answer.error_code = '{answer.error_code}'" if answer.error_code else "")
    for answer in THROTTLING_ANSWERS
)
# A list is looked into where it can hold such an answer: most have one attempt, which succeeded.
_MAY_BE_THROTTLED = "(len(attempts) > 1 OR attempts[1].status >= 400)"
_THROTTLED = f"""CASE WHEN {_MAY_BE_THROTTLED}
    THEN len(list_filter(attempts, lambda answer: {_IS_THROTTLED})) ELSE 0 END"""
PARTITION_BUCKETS = f"""
SELECT {_HASH} % {BUCKETS} AS bucket, sum(entities)::BIGINT AS entities,
    sum({_THROTTLED})::BIGINT AS throttled
{_ROWS} GROUP BY bucket
"""
"""The weight of partitions together whose hashes are alike."""

PARTITIONS = f"""
SELECT *, hash(table_name, key) % {BUCKETS} % $one_in = 0 AS sampled FROM (
    SELECT table_name, key, sum(entities)::BIGINT AS entities,
        sum({_THROTTLED})::BIGINT AS throttled
    FROM (SELECT {_PARTITION}, entities, attempts {_ROWS})
    WHERE hash(table_name, key) % {BUCKETS} % $one_in = 0
        OR hash(table_name, key) % {BUCKETS} IN (SELECT unnest($buckets))
    GROUP BY table_name, key
)
"""
"""The partitions of some buckets, and one in so many of all."""

_ACCESSED = f"""
SELECT hash(table_name, key, row_key) % {FEWER_BUCKETS} AS bucket, * FROM (
    SELECT {_PARTITION}, row_key {_ROWS} AND kind NOT IN ('{Kind.QUERY}', '{Kind.TRANSACTION}')
    UNION ALL
    SELECT {_PARTITION}, unnest(parts).row_key AS row_key
    {_ROWS} AND kind = '{Kind.TRANSACTION}'
) WHERE row_key IS NOT NULL
"""
ENTITY_BUCKETS = f"SELECT bucket, count(*) AS weight FROM ({_ACCESSED}) GROUP BY bucket"
ENTITIES = f"""
SELECT table_name, key, row_key, count(*) AS accesses FROM ({_ACCESSED})
WHERE bucket IN (SELECT unnest($buckets)) GROUP BY table_name, key, row_key
"""
"""How often the entities of some buckets were accessed, each by itself."""

TRACKED = """
CREATE OR REPLACE TEMP TABLE tracked AS
SELECT unnest($tables::VARCHAR[]) AS table_name, unnest($keys::VARCHAR[]) AS key,
    unnest($numbers::BIGINT[]) AS number
"""
"""The partitions that are counted each; the others have the number 0."""

_NAMED = {"entities_returned": "returned"}
"""Columns of a trace that have another name than the number of a result."""
OPERATIONS = f"""
SELECT GROUPING(shape, number, second, took, place) AS "set", shape, number, second, took, place,
    count(*) AS operations, {", ".join(f"sum({name})::BIGINT AS {name}" for name in AMOUNTS)}
FROM (
    SELECT {hashed(SHAPE)} AS shape, coalesce(number, 0) AS number, done // 1000 AS second,
        least(took, {MOST_TOOK_MS}) AS took, done // 1000 // $width AS place, {", ".join(AMOUNTS)}
    FROM (
        SELECT kind, operation, outcome, estimated, attempts, {_PARTITION}, took_ms AS took,
            {_AT} + took_ms AS done,
            {", ".join(f"{_NAMED.get(name, name)} AS {name}" for name in AMOUNTS)}
        {_ROWS}
    ) LEFT JOIN tracked USING (table_name, key)
)
GROUP BY GROUPING SETS (
    (shape, second), (shape, number), (number, second), (shape, took), (number, took), (place, took)
)
"""
"""Operations by pairs of their properties; ``place`` is the column of time when they were done."""
_BITS = {"shape": 16, "number": 8, "second": 4, "took": 2, "place": 1}


def set_of(*names: str) -> int:
    """The number of a set of `OPERATIONS` in its column ``set``."""
    return sum(bit for name, bit in _BITS.items() if name not in names)


def _attempts(condition: str) -> str:
    """The attempts of the rows with a condition, each by itself."""
    return f"""(
SELECT table_name, key, answer.status AS status, answer.error_code AS error_code,
    sent + took * (place - 1) // number AS began, sent + took * place // number AS ended
FROM (
    SELECT {_PARTITION}, {_AT} AS sent, took_ms AS took, len(attempts) AS number,
        unnest(attempts) AS answer, generate_subscripts(attempts, 1) AS place
    {_ROWS} AND {condition}
)) AS answer"""


ATTEMPTS = f"""
SELECT ended // 1000 AS second, status, coalesce({_IS_THROTTLED}, false) AS throttled,
    count(*) AS attempts, bit_or(1::BIGINT << (ended % 1000 // {SLOT_MS})) AS slots
FROM {_attempts("true")} GROUP BY second, status, throttled
"""
"""Attempts by the second in which they ended, and in which of its slots."""
WAITS = f"""
SELECT (began + {SLOT_MS - 1}) // {SLOT_MS} AS slot, max(ended // {SLOT_MS}) AS before
FROM {_attempts("took_ms >= $long_ms")} WHERE ended - began >= $long_ms GROUP BY slot
"""
"""From when to when there was no answer to a request; of several from one slot on, the longest."""


HEAT = ("entities", "throttled", "written", "operations", "transferred", "took_us")
"""What a cell of a heat map counts, in the order of a `Band`."""


def heat(ranges: int) -> str:
    """The counts of `HEAT` by key range, and by column of time of ``$width`` seconds.

    ``$firsts`` has the first name in each. Queries over several partitions have the range 0, apart
    by table.
    """
    return f"""
SELECT "range", CASE "range" WHEN 0 THEN name END AS name, place,
    {", ".join(f"sum({one})::BIGINT AS {one}" for one in HEAT)}
FROM (
    SELECT CASE WHEN key = '{WHOLE_TABLE}' THEN 0 ELSE {_range(1, ranges)} END AS "range", *
    FROM (
        SELECT {_NAME} AS name, key, second // $width AS place,
            {", ".join(f"sum({one}) AS {one}" for one in HEAT)}
        FROM (
            SELECT {_PARTITION}, ({_AT} + took_ms) // 1000 AS second, entities, 0 AS throttled,
                CASE WHEN kind IN ('{Kind.POINT_QUERY}', '{Kind.QUERY}') THEN 0 ELSE entities END
                    AS written,
                1 AS operations, bytes_sent + bytes_received AS transferred,
                took_ms * 1000 AS took_us
            {_ROWS} AND entities > 0
            UNION ALL
            SELECT table_name, key, ended // 1000, 0, 1, 0, 0, 0, 0
            FROM {_attempts(_MAY_BE_THROTTLED)} WHERE {_IS_THROTTLED}
        )
        GROUP BY table_name, key, place
    )
)
GROUP BY ALL
"""


def _range(low: int, high: int) -> str:
    """The number of the range that a name is in, from ``low`` to ``high``, by halves."""
    if low >= high:
        return str(low)
    middle = (low + high + 1) // 2
    lower, upper = _range(low, middle - 1), _range(middle, high)
    return f"CASE WHEN name < $firsts[{middle}] THEN {lower} ELSE {upper} END"
