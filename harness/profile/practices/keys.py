"""Practices about keys: what they are made of, and their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.model.entity import MAX_KEY_CHARACTERS, SURE_KEY_CHARACTERS
from harness.model.figures import counted, percent
from harness.model.key_shapes import unpadded
from harness.model.services.service import Service
from harness.profile.checks.seen import MISSING, REDACTED, Seen, TableSeen
from harness.profile.practices.practice import (
    BLOG,
    CHECKLIST,
    DATA_MODEL,
    ENTITY_LIMITS,
    GROUP,
    KEYS,
    PARTITIONING,
    SCATTER,
    STRATEGIES,
    WITHOUT_ROWS,
    Assessment,
    consider,
    disagrees,
    fine,
    offends,
    practice,
    remedy,
    says,
    untold,
)

_OFTEN = 0.1
"""Share of the operations from which on inserts are frequent. No document has a figure."""
_MISSES = "A range of numbers is not a range of {}: a query misses some of the numbers."
_LONG_KEY = 100
"""Characters; the longest key in the documents' examples has 33."""
_APPEND_ONLY = "Append Only and Prepend Only patterns"
_OF_TABLES = "Partitioning Azure Table storage"
_PARTITION_KEYS = "1. PartitionKey: Design for Scalability and Query Patterns"
_ROW_KEYS = "2. RowKey: Ensure Uniqueness and Fast Lookup"
_PRINCIPLES = "3. General Key Design Principles"
_ANTI_PATTERNS = "5. Anti-Patterns (Avoid These)"


@practice(
    "inserts go to several places in key order",
    "keys.partition_key",
    applies=ENTITY_LIMITS,
    relieves=("partition", "server"),
)
@says(CHECKLIST, _APPEND_ONLY, "keys that follow time put all inserts into the last partition")
@says(PARTITIONING, "Range partitions", "rising or falling keys load one server")
@says(PARTITIONING, "Storage operations", "random values keep frequent inserts balanced")
@disagrees(PARTITIONING, "Storage operations", "no concern if inserts are rare")
@says(STRATEGIES, _OF_TABLES, "inserts at one end of a sequence make a hot spot; hash the key")
@disagrees(STRATEGIES, _OF_TABLES, "a sequence can make range queries fast")
@remedy(f"{SCATTER}: a hash prefix, or a property such as the device or the customer.")
def append_only(seen: Seen) -> Assessment | None:
    if not seen.written:
        return None
    if seen.unobserved and all(table.growth is None for table in seen.tables or ()):
        return untold(f"The order of new keys {MISSING}")
    growing = [table for table in seen.several if table.growth is not None]
    if not growing:
        return None
    table = next((table for table in growing if table.growth), None)
    if table is None:
        return fine("Inserts go to several places in key order.")
    pattern, way = ("append-only", "later") if table.growth == 1 else ("prepend-only", "earlier")
    share = _inserting(seen, table)
    return _if_time(
        table,
        offends if share >= _OFTEN else consider,
        f"PartitionKeys of {table.named} are {pattern}: those of new rows sort {way} and {way}. "
        f"All inserts{_of_operations(seen, share)} go to one place in key order, which one server "
        "serves.",
    )


def _if_time(table: TableSeen, look: Callable[[str], Assessment], why: str) -> Assessment:
    """The assessment of keys that have a time; what may be another number is only considered."""
    if not table.doubt:
        return look(why)
    return consider(f"If {table.doubt} is the time of its row: {why}")


def _inserting(seen: Seen, table: TableSeen) -> float:
    """Share of the operations that insert into a table."""
    # A transaction makes several rows.
    return min(table.writing, seen.written) / seen.operations


def _of_operations(seen: Seen, share: float) -> str:
    return "" if seen.keys_only else f", {percent(share)} of the operations,"


@practice("names of blobs do not begin with a date", "keys.partition_key", applies=WITHOUT_ROWS)
@says(STRATEGIES, "Partitioning Azure Blob Storage", "names by date lead all traffic to one server")
@remedy("Begin the names with a hash of three digits, as profile log-in-blobs-hashed does.")
def blob_names(seen: Seen) -> Assessment | None:
    growing = [table for table in seen.tables or () if table.growth is not None]
    if not growing:
        return None
    if not any(table.dates for table in growing):
        return fine("Names of blobs do not begin with a date.")
    return consider(
        "Names of blobs begin with a date: what is written at one time goes to neighbouring names, "
        "which one server serves."
    )


@practice("a PartitionKey does not begin with a date", "keys.partition_key")
@says(CHECKLIST, _APPEND_ONLY, "names a log with the date as PartitionKey as an example to avoid")
@disagrees(KEYS, _PARTITION_KEYS, "advises a date for logs")
@disagrees(KEYS, "4. Common Patterns", "event logs: one partition a day")
@disagrees(BLOG, "Recommended Primary Table: Posts", "advises the month, without hot spots")
@disagrees(STRATEGIES, _OF_TABLES, "uses orders by date as an example")
@remedy("If one partition cannot carry the peak of a day, put a device or a hash before it.")
def date_key(seen: Seen) -> Assessment | None:
    if seen.tables is None:
        return untold(REDACTED)
    dated = [table for table in seen.tables if table.dates]
    if not dated:
        return None
    # Rows of a list were inserted, also where their dates do not sort by time.
    if seen.keys_only:
        table: TableSeen | None = dated[0]
    else:
        table = next((table for table in dated if table.growth is not None), None)
    if table is None:
        if seen.unobserved and seen.written:
            return untold(f"PartitionKeys begin with a date; where new rows go {MISSING}")
        return fine("PartitionKeys begin with a date, but no rows are inserted.")
    if table in seen.several and not table.growth and not seen.keys_only:
        return fine("PartitionKeys begin with a date, but inserts go to several of them.")
    share = _inserting(seen, table)
    return _if_time(
        table,
        offends if share >= _OFTEN else consider,
        f"PartitionKeys of {table.named} differ first in a date: all inserts of one hour, day or "
        f"month{_of_operations(seen, share)} go to one partition, or to neighbouring ones. The "
        "documents disagree about such keys.",
    )


@practice("numbers in keys have a fixed width", "keys.partition_key", relieves=("missed",))
@says(PARTITIONING, "Table primary key", "keys are text; only padded numbers keep their order")
@remedy("Write numbers in keys with a fixed width, with leading zeros.")
def zero_padding(seen: Seen) -> Assessment | None:
    operations = () if seen.record is None else seen.record.operations
    if missed := sum(part.entities_missed for part in operations):
        wanted = counted(sum(part.entities_wanted for part in operations), "entity", "entities")
        return offends(
            f"Queries by key bounds missed {missed:,} of {wanted} that they asked for: a range of "
            "keys was not the range of numbers."
        )
    if seen.tables is None:
        return untold(REDACTED)
    table = next((table for table in seen.tables if table.unpadded), None)
    if table is None:
        rows = next((table for table in seen.tables if table.row_unpadded), None)
        if rows is None:
            return None
        why = _widths("RowKeys", rows.row_keys)
        if any(query.of_row_range and query.of_table(rows.table) for query in seen.queries):
            return offends(f"{why} {_MISSES.format('RowKeys')}")
        return consider(why)
    why = _widths("PartitionKeys", table.partition_keys)
    over = seen.over_partitions
    if seen.recorded:
        over = [query for query in over if not query.unbounded and query.of_table(table.table)]
    if over:
        return offends(f"{why} {_MISSES.format('keys')}")
    return consider(why)


def _widths(which: str, keys: Sequence[str]) -> str:
    pair = unpadded(sorted(keys))
    example = f": {pair[0]!r} sorts before {pair[1]!r}" if pair else ""
    return f"Numbers in {which} have different widths{example}."


@practice("related entities share a PartitionKey", "keys.partition_key")
@says(KEYS, _ANTI_PATTERNS, "with a GUID, related data cannot be queried together")
@says(PARTITIONING, "Partition sizing", "no transactions, and ranges visit many servers")
@disagrees(PARTITIONING, "Storage operations", "advises GUIDs for frequent inserts")
@disagrees(STRATEGIES, _OF_TABLES, "unique keys scale better than one key")
@remedy(GROUP)
def guid_partition_key(seen: Seen) -> Assessment | None:
    if seen.tables is None:
        return untold(REDACTED)
    tables = [table for table in seen.tables if table.guids]
    if not tables:
        return None
    if any(query.of_table(table.table) for query in seen.over_partitions for table in tables):
        return offends(
            "PartitionKeys are GUIDs, and queries go over several partitions. Neighbouring keys "
            "are unrelated, so each such query scans the whole table."
        )
    return consider(
        "PartitionKeys are GUIDs: inserts scatter well, but related entities cannot be queried "
        "together. The documents disagree about such keys.",
        change="Keep GUIDs if entities are only read by their own key.",
    )


@practice("RowKeys sort in the order that queries need", "keys.row_key")
@says(KEYS, _ANTI_PATTERNS, "a random GUID destroys the order")
@disagrees(KEYS, _ROW_KEYS, "names GUIDs as a way to make RowKeys unique")
@remedy("Use a sequence or an inverted timestamp as RowKey.")
def guid_row_key(seen: Seen) -> Assessment | None:
    if seen.unobserved:
        return untold(f"What RowKeys look like {MISSING}") if seen.queries else None
    tables = [table for table in seen.tables or () if table.row_guids]
    if seen.keys_only and tables:
        return consider(
            "RowKeys are GUIDs, which have no order: a query for a range of rows or for the newest "
            "rows scans the whole partition."
        )
    inside = [
        query
        for query in seen.queries
        if not query.over_partitions and any(query.of_table(table.table) for table in tables)
    ]
    if not inside:
        return None
    for query in inside:
        # Ranges of GUIDs are known of an application only; a profile filters by a number instead.
        if query.by_number or query.limited or (seen.recorded and not query.unbounded):
            return offends(
                "RowKeys are GUIDs, and queries ask for a range of rows or for the first rows. "
                "GUIDs have no such order: each query scans the whole partition, or returns "
                "arbitrary rows."
            )
    return fine("RowKeys are GUIDs, but no query needs rows in an order.")


@practice("the service takes every key")
@says(DATA_MODEL, "Characters disallowed in key fields", "forbids / \\ # ? and control characters")
@remedy("Replace these characters, such as by percent-encoding them before they become a key.")
def valid_keys(seen: Seen) -> Assessment | None:
    if not seen.keys_only:
        # A profile with such keys is refused, and requests with them are failures of a run.
        return None
    refusing = [table for table in seen.tables or () if table.refused]
    if not refusing:
        return fine("No key has forbidden characters or is too long.")
    refused = counted(sum(table.refused for table in refusing), "key")
    return offends(f"The service refuses {refused}: {refusing[0].refusal}.")


@practice("a single key property is the PartitionKey", "keys.partition_key")
@says(PARTITIONING, "Choose the PartitionKey value", "of two properties each is one of the keys")
@says(CHECKLIST, "Tables and partitions", "such as the ID of the user, however many there are")
@disagrees(KEYS, _ANTI_PATTERNS, "a partition for each row makes range scans impossible")
@remedy("Use the property of the RowKey as PartitionKey, with the same text in every RowKey.")
def key_properties(seen: Seen) -> Assessment | None:
    if seen.tables is None or seen.writes is None:
        return untold(REDACTED if seen.tables is None else f"What is written together {MISSING}")
    scanned = [query for query in seen.queries if query.many]
    for table in seen.tables if seen.reads and not seen.writes.transactions else ():
        rows = len(table.row_keys) > 1 or 0 < table.hottest_row < table.operations
        together = any(query.of_table(table.table) for query in scanned)
        if table.partitions == 1 and rows and not together:
            return consider(
                f"Only the RowKey tells entities of {table.named} apart, and nothing reads or "
                "writes several of them together: it is the one key property."
            )
    if 1 < (seen.loaded_partitions or 0) == seen.loaded_entities and seen.growth is None:
        return fine("Each entity has a PartitionKey of its own.")
    return None


@practice("keys are short", "keys.partition_key")
@says(KEYS, _ROW_KEYS, "long keys cost storage and slow down queries")
@says(PARTITIONING, "Table primary key", "the keys store up to 1 KiB of text")
@says(STRATEGIES, _OF_TABLES, "PartitionKey and RowKey together have at most 1 KB")
@remedy(f"Shorten the key; more than {_LONG_KEY} characters count as long here.")
def key_length(seen: Seen) -> Assessment | None:
    if seen.tables is None:
        return untold(REDACTED)
    length = max((table.longest_key for table in seen.tables), default=0)
    if length <= _LONG_KEY:
        return fine(f"The longest key has {counted(length, 'character')}.")
    limit = ""
    if length > SURE_KEY_CHARACTERS:
        limit = (
            f" The documents disagree whether the service takes it: {MAX_KEY_CHARACTERS:,} "
            "characters for each key by its targets, 1 KiB of text, or 1 KB for both keys; Azurite "
            f"refuses more than {SURE_KEY_CHARACTERS}, which `harness doctor` tries."
        )
    return offends(
        f"A key has {length:,} characters. It is stored with every entity, sent with every "
        f"request, and repeated in index rows.{limit}"
    )


def refused_keys(seen: Seen, kind: Service) -> str | None:
    """Why an endpoint of this kind would refuse keys of the load; None where it takes them."""
    if seen.charges is not None:
        for name, length, limit in seen.charges.keys_over():
            return (
                f"the longest {name} of the load has {length:,} bytes, and Cosmos DB takes "
                f"{limit:,} at most: shorten the keys (keys.partition_key)"
            )
    length = max((table.longest_key for table in seen.tables or ()), default=0)
    if length <= kind.key_characters:
        return None
    who, more = kind.described, ""
    if kind.emulated:
        who, more = "an emulator", f" (Azure Table storage: {MAX_KEY_CHARACTERS:,})"
    return (
        f"the longest key of the load has {length:,} characters, and {who} refuses more than "
        f"{kind.key_characters:,}{more}: shorten the keys (keys.partition_key)"
        f"{', or run against an account' * kind.emulated}"
    )


@practice("keys need no escaping", "keys.partition_key")
@says(KEYS, _PRINCIPLES, "keep keys ASCII, without characters to be escaped")
@remedy("Use only ASCII letters, digits, and - . _ in keys.")
def key_characters(seen: Seen) -> Assessment | None:
    if seen.tables is None:
        return untold(REDACTED)
    escaped = [table for table in seen.tables if table.escaped]
    if not escaped:
        return fine("Keys need no escaping in an address.")
    foreign = next((table for table in escaped if table.foreign), None)
    if foreign is not None:
        return offends(f"{_named(foreign)} is not ASCII, and has to be escaped in an address.")
    return consider(f"{_named(escaped[0])} has to be escaped in an address.")


def _named(table: TableSeen) -> str:
    return f"A key of {table.named}" if table.odd is None else f"The key {table.odd!r}"


@practice("keys never change", "mix.key_change")
@says(KEYS, _PRINCIPLES, "a key change is a delete and an insert of the entity")
@remedy("Make keys from properties that never change; keep values that change in other properties.")
def key_change(seen: Seen) -> Assessment | None:
    if not seen.written:
        return None
    if not any(label.startswith("key_change") for label in seen.labels):
        if seen.profile is None:
            return untold("Whether a delete and an insert change a key cannot be seen in requests.")
        return fine("No key changes.")
    return offends(
        "The keys of entities change. Each change is a delete and an insert. No transaction covers "
        "two partitions, so a failure between delete and insert loses the entity."
    )
