"""Practices about what keys are made of and how large partitions are."""

from __future__ import annotations

from harness.model.entity import characters
from harness.model.target import PUBLISHED
from harness.profile.checks.observed import Observed
from harness.profile.checks.practice import Document, Look, consider, fine, offends, practice

LONG_KEY = 100
"""Characters. The documents name no bound; the longest key in their examples has 33."""
TINY_PARTITION = 10
"""Entities a partition; the documents name no figure, as for the next two."""
MANY_PARTITIONS = 100
LARGE_PARTITION = 100_000
VERY_LARGE_PARTITION = 1_000_000
"""Entities a partition; "millions" are too many."""
_SCHEME = "keys.scheme"
_ROWS = "keys.rows_per_partition"
_OF_TABLES = "Partitioning Azure Table storage"
_PARTITION_KEYS = "1. PartitionKey: Design for Scalability and Query Patterns"
_ROW_KEYS = "2. RowKey: Ensure Uniqueness and Fast Lookup"
_PRINCIPLES = "3. General Key Design Principles"
_ANTI_PATTERNS = "5. Anti-Patterns (Avoid These)"


@practice(
    "constant-partition-key",
    "a table has more than one PartitionKey",
    Document.KEYS.says(_ANTI_PATTERNS, "one value for all rows is a massive hot spot"),
    Document.PARTITIONING.says("Partition sizing", "one value is limited to one server"),
    Document.STRATEGIES.says(_OF_TABLES, "one partition cannot scale out"),
    Document.PARTITIONING.says_otherwise(
        "Partition sizing", "right where nothing has to scale: any entities share a transaction"
    ),
)
def constant_partition_key(seen: Observed) -> Look | None:
    """One server takes the load of a table."""
    constant = [table for table, keys in seen.keys.items() if len(keys.partitions) == 1]
    setting = seen.setting("keys.partitions")
    if not constant:
        return fine(setting, "There are several PartitionKeys.")
    return offends(
        setting,
        f"All entities of {seen.table_named(constant[0])} have one PartitionKey: one server takes "
        f"the whole load, and {PUBLISHED.partition:,.0f} entities/s are the target of all of them.",
        "Make the PartitionKey of a property with many values, and compare with the same mix.",
    )


@practice(
    "guid-partition-key",
    "related entities share a PartitionKey",
    Document.KEYS.says(_ANTI_PATTERNS, "with a GUID, related data cannot be queried together"),
    Document.PARTITIONING.says(
        "Partition sizing", "unique values: no transactions, and ranges visit many servers"
    ),
    Document.PARTITIONING.says_otherwise(
        "Storage operations", "advises random values such as GUIDs for frequent inserts"
    ),
    Document.STRATEGIES.says_otherwise(_OF_TABLES, "unique keys scale better than one key"),
)
def guid_partition_key(seen: Observed) -> Look | None:
    """Neighbours in key order have nothing in common."""
    tables = [table for table, keys in seen.keys.items() if keys.guid_partitions]
    if not tables:
        return None
    setting = seen.setting(_SCHEME)
    if any(query.over_partitions for query in seen.queries if query.example.table in tables):
        return offends(
            setting,
            "PartitionKeys are GUIDs, and queries go over several partitions. Neighbours have "
            "nothing in common, so that each such query walks the whole table.",
            "Group what is queried together under one PartitionKey.",
        )
    return consider(
        setting,
        "PartitionKeys are GUIDs: inserts scatter well, but what belongs together cannot be "
        "queried together. The documents disagree about such a key.",
        "Keep it where entities are only read by their own key.",
    )


@practice(
    "guid-row-key",
    "RowKeys have the order that queries want",
    Document.KEYS.says(_ANTI_PATTERNS, "a random GUID destroys the order"),
    Document.KEYS.says_otherwise(_ROW_KEYS, "names GUIDs among the ways to be unique"),
)
def guid_row_key(seen: Observed) -> Look | None:
    """A range of rows is no range of GUIDs."""
    tables = {table for table, keys in seen.keys.items() if keys.guid_rows}
    inside = [
        query
        for query in seen.queries
        if query.example.table in tables and not query.over_partitions
    ]
    if not inside:
        return None
    setting = seen.setting("keys.row_keys")
    if not any(query.by_number or query.example.top is not None for query in inside):
        return fine(setting, "RowKeys are GUIDs, but no query wants rows in an order.")
    return offends(
        setting,
        "RowKeys are GUIDs, and queries want rows that belong together or come first. GUIDs have "
        "no such order: each query walks the whole partition, or brings any rows.",
        "Use a sequence or an inverted timestamp as RowKey.",
    )


@practice(
    "tiny-partitions",
    "partitions that are scanned are not tiny",
    Document.KEYS.says(_PARTITION_KEYS, "too many tiny partitions slow down scans"),
    Document.KEYS.says(_ANTI_PATTERNS, "a partition for each row makes range scans impossible"),
    Document.PARTITIONING.says_otherwise(
        "Partition sizing",
        "favours small partitions, which balance better, and may be grouped for range queries",
    ),
    Document.CHECKLIST.says_otherwise(
        "Tables and partitions", "millions of PartitionKeys are no problem"
    ),
)
def tiny_partitions(seen: Observed) -> Look | None:
    """A query over many of them visits many places for few entities."""
    if not seen.loaded_partitions:
        return None
    mean = seen.loaded_entities / seen.loaded_partitions
    setting = seen.setting(_ROWS)
    if seen.loaded_partitions < MANY_PARTITIONS or mean >= TINY_PARTITION:
        return fine(setting, f"Partitions hold {mean:,.0f} entities each, on average.")
    over = [query for query in seen.queries if query.over_partitions]
    if not over:
        return fine(setting, "Partitions are tiny, but no query goes over several of them.")
    why = (
        f"{seen.loaded_partitions:,} partitions hold {mean:,.1f} entities each, and queries go "
        "over them: each visits many partitions, maybe on many servers, for few entities."
    )
    change = "Group what is queried together under one PartitionKey."
    if all(query.bounded for query in over):
        return consider(setting, f"{why} Neighbours may be served together, though.", change)
    return offends(setting, why, change)


@practice(
    "large-partitions",
    "no partition grows without bound",
    Document.KEYS.says(_PARTITION_KEYS, "for millions of entities add a second dimension"),
    Document.PARTITIONING.says("Determine queries", "large partitions are bad for row range scans"),
)
def large_partitions(seen: Observed) -> Look | None:
    """A partition stays on one server, however large it gets."""
    if not seen.loaded_partitions:
        return None
    largest = seen.loaded_entities // seen.loaded_partitions
    if seen.profile.scenario is None:
        rows = seen.profile.keys.rows_per_partition
        largest = rows if isinstance(rows, int) else max(rows)
    setting = seen.setting(_ROWS)
    if largest < LARGE_PARTITION:
        return fine(setting, f"The largest partition holds {largest:,} entities.")
    why = f"The largest partition holds {largest:,} entities, and stays on one server."
    change = "Add a second part to the PartitionKey, such as the month, the year or a category."
    if largest < VERY_LARGE_PARTITION:
        return consider(setting, why, change)
    return offends(setting, why, change)


@practice(
    "key-length",
    "keys are short",
    Document.KEYS.says(_ROW_KEYS, "long keys cost storage and slow down queries"),
)
def key_length(seen: Observed) -> Look | None:
    """Keys are stored with every entity and sent with every request."""
    longest = max((keys.longest for keys in seen.keys.values()), key=characters, default="")
    setting = seen.setting("keys.prefix")
    length = characters(longest)
    if length <= LONG_KEY:
        return fine(setting, f"The longest key has {length} characters.")
    return offends(
        setting,
        f"A key has {length} characters. It is stored with every entity, sent with every request, "
        "and repeated in index rows.",
        f"Shorten it; over {LONG_KEY} characters are taken for long here.",
    )


@practice(
    "key-characters",
    "keys need no escaping",
    Document.KEYS.says(_PRINCIPLES, "keep keys ASCII, without characters to be escaped"),
)
def key_characters(seen: Observed) -> Look | None:
    """Keys are part of addresses."""
    odd = next((keys.escaped for keys in seen.keys.values() if keys.escaped), "")
    setting = seen.setting("keys.prefix")
    if not odd:
        return fine(setting, "Keys stand in an address as they are.")
    change = "Make keys of ASCII letters, digits, and - . _ alone."
    if odd.isascii():
        return consider(setting, f"The key {odd!r} has to be escaped in an address.", change)
    return offends(
        setting, f"The key {odd!r} is not ASCII, and has to be escaped in an address.", change
    )


@practice(
    "key-change",
    "keys never change",
    Document.KEYS.says(_PRINCIPLES, "to change a key is to delete and to insert the entity"),
)
def key_change(seen: Observed) -> Look | None:
    """A changed key is a delete and an insert."""
    if not seen.written:
        return None
    setting = seen.setting("mix.key_change")
    if not any(sent.label.startswith("key_change") for sent in seen.sent):
        return fine(setting, "No key changes.")
    return offends(
        setting,
        "Entities get another key, which is a delete and an insert. Between partitions no "
        "transaction does both, so that a failure in between loses the entity.",
        "Make keys of properties that never change; keep what changes in other properties.",
    )


PRACTICES = (
    constant_partition_key,
    guid_partition_key,
    guid_row_key,
    tiny_partitions,
    large_partitions,
    key_length,
    key_characters,
    key_change,
)
