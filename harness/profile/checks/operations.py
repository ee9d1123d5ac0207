"""Practices about queries and writes."""

from __future__ import annotations

from harness.model.entity import MAX_PROPERTIES
from harness.model.operation import Kind
from harness.profile.checks.observed import PAGE_ENTITIES, Observed, Sent
from harness.profile.checks.practice import (
    BLOG,
    CHECKLIST,
    PARTITIONING,
    STRATEGIES,
    Look,
    consider,
    disagrees,
    fine,
    offends,
    practice,
    remedy,
    says,
)

_LOW_DENSITY = 0.5
_VERY_LOW_DENSITY = 0.1
"""Share of the walked entities that are returned. The document's example of low is 1 %."""
_MANY_SCANS = 0.6
"""Share of the reads; point queries are to be used "in most cases"."""
_SCOPE = "Query scope"
_LIMITING = "Limiting the amount of data returned"
_OF_TABLES = "Partitioning Azure Table storage"


@practice("table-queries", "queries stay in one partition", "mix")
@says(CHECKLIST, _SCOPE, "avoid queries over entities without a common PartitionKey")
@says(PARTITIONING, "Determine queries", "full table scans are worst, then partition range scans")
@disagrees(PARTITIONING, "Determine queries", "a partition range scan of few servers is good")
@says(STRATEGIES, _OF_TABLES, "without a PartitionKey every partition is scanned")
@remedy("Choose keys so that a query needs one partition only; add index rows if needed.")
def table_queries(seen: Observed) -> Look | None:
    if not seen.reads:
        return None
    over = [query for query in seen.queries if query.over_partitions]
    if not over:
        return fine("No query goes over several partitions.")
    whole = [query for query in over if not query.bounded]
    worst = (whole or over)[0]
    walked = worst.walked / worst.count
    many = f"{walked:,.0f} entities" if walked else "an unknown number of entities"
    if whole:
        return offends(
            f"{worst.label} scans a whole table, {many} each time, and all of them count.",
            setting=_setting(seen, worst),
        )
    return consider(
        f"{worst.label} scans {many} of several partitions, which may be on several servers. The "
        "documents disagree on how bad that is.",
        setting=_setting(seen, worst),
    )


@practice("partition-queries", "most reads are point queries", "mix")
@says(CHECKLIST, _SCOPE, "point queries wherever possible, partition queries sparingly")
@says(PARTITIONING, "Determine queries", "point queries use the one index fully")
@remedy("Give the entities that are read most a key that a point query can name.")
def partition_queries(seen: Observed) -> Look | None:
    if not seen.reads:
        return None
    share = sum(query.count for query in seen.queries if query.of_many) / seen.reads
    if share <= _MANY_SCANS:
        return fine(f"{1 - share:.0%} of the reads are point queries.")
    return consider(
        f"{share:.0%} of the reads ask for more than one entity, and count every scanned entity."
    )


@practice("query-density", "queries scan little more than they return")
@says(CHECKLIST, "Query density", "targets count what is scanned, not what is returned")
@says(CHECKLIST, "Denormalization", "store an entity once for each key it is found by")
@says(STRATEGIES, _OF_TABLES, "look-ups by other fields need index tables")
@says(PARTITIONING, "Choose the PartitionKey value", "selective queries are more efficient")
@remedy("Put the filtered property into the keys, or keep index rows for it.")
def query_density(seen: Observed) -> Look | None:
    known = [(query.density, query) for query in seen.queries if query.density is not None]
    if not known:
        return None
    density, query = min(known, key=lambda pair: pair[0])
    setting = _setting(seen, query)
    if density >= _LOW_DENSITY:
        return fine(
            f"Every query returns {density:.0%} or more of the entities that it scans.",
            setting=setting,
        )
    why = (
        f"{query.label} returns {density:.1%} of the {query.walked / query.count:,.0f} entities "
        "that it scans, and all of them count."
    )
    if query.by_number:
        why += " In this scheme the range of the query is not a range of keys."
    judge = offends if density < _VERY_LOW_DENSITY else consider
    return judge(why, setting=setting)


@practice("filtering", "no query returns unneeded entities", "query")
@says(CHECKLIST, _LIMITING, "a filter saves bandwidth and work of the client")
@remedy("Ask for a range of keys, filter, or limit the number, unless all entities are needed.")
def filtering(seen: Observed) -> Look | None:
    if not any(seen.queries):
        return None
    whole = [
        query
        for query in seen.queries
        if not query.bounded
        and not query.example.filter
        and query.example.top is None
        and query.returned > PAGE_ENTITIES * query.count
    ]
    if not whole:
        return fine("No query returns whole ranges of several pages.")
    worst = max(whole, key=lambda query: query.returned / query.count)
    return consider(
        f"{worst.label} returns all that it scans, {worst.returned / worst.count:,.0f} entities in "
        "pages of at most 1,000.",
        setting=_setting(seen, worst),
    )


@practice("projection", "queries return only the properties that are needed", "query.select")
@says(CHECKLIST, _LIMITING, "projection saves bandwidth and work of the client")
@remedy("Select the properties that are needed; change nothing if all are needed.")
def projection(seen: Observed) -> Look | None:
    if not any(seen.queries):
        return None
    plain = [query for query in seen.queries if query.of_many and not query.example.select]
    if not plain:
        return fine("Every query of many entities selects properties.")
    names = ", ".join(dict.fromkeys(query.label for query in plain))
    return consider(f"{names}: all properties of each entity are returned.")


@practice("data-series", "a series that is read together is one entity", "mix.series_merge")
@says(CHECKLIST, "Storing data series in a single entity", "one property for each value")
@remedy("Merge the values as properties of one entity, which a point query then reads.")
def data_series(seen: Observed) -> Look | None:
    if any(sent.label == "series_merge" for sent in seen.sent):
        return fine("A series is merged into one entity.")
    inserted = {sent.example.table for sent in seen.sent if sent.kind is Kind.INSERT}
    together = [
        query
        for query in seen.queries
        if query.example.table in inserted & _appended(seen) and not query.over_partitions
    ]
    if not together:
        return None
    query = min(together, key=lambda query: query.returned / query.count)
    mean = query.returned / query.count
    if not 2 <= mean <= MAX_PROPERTIES:
        return fine(f"The {mean:,.0f} rows that are read together do not fit into one entity.")
    return consider(
        f"Rows are inserted one by one and never touched again, and {query.label} reads "
        f"{mean:,.0f} of one partition together. If each row holds one value of a series, one "
        "entity could hold them all."
    )


@practice("blobs", "data that is written and read in bulk is in blobs", "mix.transaction")
@says(CHECKLIST, "Storing structured data in blobs", "for batch inserts that are read as ranges")
@remedy("If no row is ever read alone, as in a log, store each batch as a blob.")
def blobs(seen: Observed) -> Look | None:
    batched = seen.writes.batch_inserts & _appended(seen)
    ranges = [query for query in seen.queries if query.example.table in batched and query.of_many]
    if not ranges:
        return None
    return consider(
        f"Rows are inserted in batches and never touched again, and {ranges[0].label} reads many "
        "of them at once."
    )


def _appended(seen: Observed) -> set[str]:
    """Tables whose rows are inserted and then only read together."""
    appending = (Kind.INSERT, Kind.TRANSACTION, Kind.QUERY)
    touched = {sent.example.table for sent in seen.sent if sent.kind not in appending}
    return {sent.example.table for sent in seen.sent} - touched - seen.writes.mixed_transactions


def _setting(seen: Observed, query: Sent) -> str:
    """The action of the mix, or of the scenario, that a query comes from."""
    action = query.label
    if query.by_number:
        action = "partition_range_scan" if query.over_partitions else "row_range_scan"
    return seen.setting(f"mix.{action}", query.label)


@practice("transactions", "writes to one partition are batched", "mix.transaction")
@says(CHECKLIST, "Batching", "fewer round trips, one billable transaction for 100")
@says(CHECKLIST, "Batch transactions", "for entities of one table and one partition")
@says(PARTITIONING, "Entity group transactions", "higher throughput at a lower price")
@remedy("Collect related writes into transactions.")
def transactions(seen: Observed) -> Look | None:
    if not seen.written:
        return None
    writes = seen.writes
    share = writes.together / writes.singles if writes.singles else 0.0
    if share < 0.5:
        return fine("Consecutive single writes go to different partitions.")
    why = (
        f"{share:.0%} of the single writes go to the same partition as the single write before "
        "them: up to 100 of them could be one request, billed once."
    )
    return (
        consider(f"{why} Other writes are in transactions.")
        if writes.transactions
        else offends(why)
    )


@practice(
    "upsert", "nothing is read only to choose between insert and update", "mix.read_then_write"
)
@says(CHECKLIST, "Upsert", "insert-or-merge or insert-or-replace takes one request")
@remedy("Use upsert_merge or upsert_replace.")
def upsert(seen: Observed) -> Look | None:
    if not seen.written:
        return None
    if not seen.writes.read_first:
        return fine("No write waits for a query that checks whether the entity exists.")
    return offends(
        "Entities are read only to choose between insert and update: two requests for one write, "
        "and another client may write in between."
    )


@practice("index-rows", "copies of an entity are kept consistent", "keys.scheme")
@says(PARTITIONING, "Choose the PartitionKey value", "only writes to one partition can be atomic")
@says(STRATEGIES, _OF_TABLES, "across partitions there is only eventual consistency")
@disagrees(CHECKLIST, "Denormalization", "advises to store entities several times")
@disagrees(BLOG, "Handling Categories, Tags, and Authors", "advises a table for each look-up")
@remedy("Use one PartitionKey with a second RowKey, or count the differences and repair them.")
def index_rows(seen: Observed) -> Look | None:
    if not seen.pointing:
        return None
    return consider(
        "Entities are also stored under further keys in other partitions. No transaction covers "
        "two partitions: a failure between two writes leaves an index row without an entity, or "
        "an entity without its index row."
    )
