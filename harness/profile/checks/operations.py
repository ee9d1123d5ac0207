"""Practices about queries and writes."""

from __future__ import annotations

from harness.model.entity import MAX_PROPERTIES
from harness.model.figures import counted, data_size, percent
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
    untold,
)
from harness.profile.checks.seen import MISSING, QuerySeen, Seen, WritesSeen

_LOW_DENSITY = 0.5
_VERY_LOW_DENSITY = 0.1
"""Share of the walked entities that are returned. The document's example of low is 1 %."""
_MANY_SCANS = 0.5
"""Share of the reads; point queries are to be used "in most cases", so in more than half."""
_FEW_SAVED = 0.1
"""Share of the single writes that transactions would save."""
_OFTEN = 0.1
"""Share of the single writes that follow a read."""
_SCOPE = "Query scope"
_LIMITING = "Limiting the amount of data returned"
_OF_TABLES = "Partitioning Azure Table storage"


@practice("table-queries", "queries stay in one partition", "mix")
@says(CHECKLIST, _SCOPE, "avoid queries over entities without a common PartitionKey")
@says(PARTITIONING, "Determine queries", "full table scans are worst, then partition range scans")
@disagrees(PARTITIONING, "Determine queries", "a partition range scan of few servers is good")
@says(STRATEGIES, _OF_TABLES, "without a PartitionKey every partition is scanned")
@remedy("Choose keys so that a query needs one partition only; add index rows if needed.")
def table_queries(seen: Seen) -> Look | None:
    if not seen.reads:
        return None
    over = [query for query in seen.queries if query.over_partitions]
    if not over:
        return fine("No query goes over several partitions.")
    whole = [query for query in over if not query.bounded]
    worst = (whole or over)[0]
    walked = worst.walked / worst.count
    many = f"{walked:,.0f} entities" if walked else "an unknown number of entities"
    times = f" It was sent {counted(worst.count, 'time')}." if seen.recorded else ""
    if whole:
        return offends(
            f"{worst.label} scans a whole table, {many} each time, and all of them count.{times}",
            setting=_setting(seen, worst),
        )
    return consider(
        f"{worst.label} scans {many} of several partitions, which may be on several servers. The "
        f"documents disagree on how bad that is.{times}",
        setting=_setting(seen, worst),
    )


@practice("partition-queries", "most reads are point queries", "mix")
@says(CHECKLIST, _SCOPE, "point queries wherever possible, partition queries sparingly")
@says(PARTITIONING, "Determine queries", "point queries use the one index fully")
@remedy("Give the entities that are read most a key that a point query can name.")
def partition_queries(seen: Seen) -> Look | None:
    if not seen.reads:
        return None
    scans = sum(query.many for query in seen.queries)
    share = scans / seen.reads
    if share < _MANY_SCANS:
        return fine(f"{percent(1 - share)} of the reads are point queries.")
    why = (
        f"{percent(share)} of the reads ask for more than one entity, and count every scanned "
        "entity"
    )
    if seen.recorded:
        mean = sum(query.walked for query in seen.queries if query.many) / scans
        why += f": {mean:,.1f} a query, on average"
    return consider(f"{why}.")


@practice("query-density", "queries scan little more than they return")
@says(CHECKLIST, "Query density", "targets count what is scanned, not what is returned")
@says(CHECKLIST, "Denormalization", "store an entity once for each key it is found by")
@says(STRATEGIES, _OF_TABLES, "look-ups by other fields need index tables")
@says(PARTITIONING, "Choose the PartitionKey value", "selective queries are more efficient")
@remedy("Put the filtered property into the keys, or keep index rows for it.")
def query_density(seen: Seen) -> Look | None:
    known = [(query.density, query) for query in seen.queries if query.density is not None]
    density, query = min(known, key=lambda pair: pair[0], default=(None, None))
    if density is None or query is None or density >= _LOW_DENSITY:
        if seen.recorded and (filtered := _filtered(seen)) is not None:
            return filtered
        if density is None or query is None:
            return None
        share = "all" if density >= 1 else f"{percent(density)} or more"
        return fine(
            f"Every query returns {share} of the entities that it scans.",
            setting=_setting(seen, query),
        )
    setting = _setting(seen, query)
    why = (
        f"{query.label} returns {percent(density)} of the {query.walked / query.count:,.0f} "
        "entities "
        "that it scans, and all of them count."
    )
    if query.by_number:
        why += " In this scheme the range of the query is not a range of keys."
    if seen.recorded and query.filtered:
        why += f" {_share_of(query.filtered, query.count, 'query', 'queries')} compared properties."
    judge = offends if density < _VERY_LOW_DENSITY else consider
    return judge(why, setting=setting)


def _filtered(seen: Seen) -> Look | None:
    """Queries that compare properties, if the number of scanned entities is unknown."""
    unknown = [query for query in seen.queries if query.filtered and query.density is None]
    if not unknown:
        return None
    worst = max(unknown, key=lambda query: query.filtered)
    return consider(
        f"{worst.label} compares properties other than the keys "
        f"{counted(worst.filtered, 'time')}: the service scans the whole range of keys, and how "
        "many entities that are cannot be seen in the answers."
    )


@practice("filtering", "no query returns unneeded entities", "query")
@says(CHECKLIST, _LIMITING, "a filter saves bandwidth and work of the client")
@remedy("Ask for a range of keys, filter, or limit the number, unless all entities are needed.")
def filtering(seen: Seen) -> Look | None:
    if not seen.queries:
        return None
    if seen.recorded and seen.writes is None:
        return untold(f"How many entities one query returns {MISSING}")
    whole = [
        query
        for query in seen.queries
        if query.full and not query.bounded and not query.filtered and not query.limited
    ]
    if not whole:
        return fine("No query returns whole ranges of several pages.")
    worst = max(whole, key=lambda query: query.returned / query.count)
    if seen.recorded:
        return consider(
            f"{worst.label} returned all that it scanned: "
            f"{counted(worst.full, 'full page')} of 1,000 entities."
        )
    return consider(
        f"{worst.label} returns all that it scans, {worst.returned / worst.count:,.0f} entities in "
        "pages of at most 1,000.",
        setting=_setting(seen, worst),
    )


@practice("projection", "queries return only the properties that are needed", "query.select")
@says(CHECKLIST, _LIMITING, "projection saves bandwidth and work of the client")
@remedy("Select the properties that are needed; change nothing if all are needed.")
def projection(seen: Seen) -> Look | None:
    if not seen.queries:
        return None
    if seen.recorded and seen.writes is None:
        return untold(f"Which properties a query selects {MISSING}")
    plain = [query for query in seen.queries if query.many and query.unselected]
    if not plain:
        return fine("Every query of many entities selects properties.")
    names = ", ".join(dict.fromkeys(query.label for query in plain))
    why = f"{names}: all properties of each entity are returned."
    if seen.recorded:
        worst = max(plain, key=lambda query: query.returned * (query.entity_bytes or 0))
        number = _share_of(worst.unselected, worst.count, "query", "queries")
        why += f" {number} of {worst.label} had no $select"
        if worst.entity_bytes is not None:
            why += f", and an entity took {data_size(round(worst.entity_bytes))} of the answer"
        why += "."
    return consider(why)


@practice("data-series", "a series that is read together is one entity", "mix.series_merge")
@says(CHECKLIST, "Storing data series in a single entity", "one property for each value")
@remedy("Merge the values as properties of one entity, which a point query then reads.")
def data_series(seen: Seen) -> Look | None:
    if "series_merge" in seen.labels:
        return fine("A series is merged into one entity.")
    if seen.recorded and seen.writes is None:
        return untold(f"What is done to each table {MISSING}") if seen.queries else None
    appended = [table.name for table in seen.tables or () if table.appended and table.inserted]
    together = [
        query
        for query in seen.queries
        if not query.over_partitions and any(query.of_table(name) for name in appended)
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


@practice(
    "blobs", "data that is written and read in bulk is in blobs", "mix.transaction", blobs=True
)
@says(CHECKLIST, "Storing structured data in blobs", "for batch inserts that are read as ranges")
@remedy("If no row is ever read alone, as in a log, store each batch as a blob.")
def blobs(seen: Seen) -> Look | None:
    if seen.recorded and seen.writes is None:
        return untold(f"What is done to each table {MISSING}") if seen.queries else None
    batched = [table.name for table in seen.tables or () if table.appended and table.batched]
    ranges = [
        query
        for query in seen.queries
        if query.many
        and not (seen.recorded and query.filtered)
        and any(query.of_table(name) for name in batched)
    ]
    if not ranges:
        return None
    if seen.in_blobs:
        why = "Batches are appended to blobs, which are read by ranges of bytes."
        return fine(why, setting="session.kind")
    return consider(
        f"Rows are inserted in batches and never touched again, and {ranges[0].label} reads many "
        "of them at once."
    )


def _setting(seen: Seen, query: QuerySeen) -> str:
    """The action of the mix, or of the scenario, that a query comes from."""
    action = query.label
    if query.by_number:
        action = "partition_range_scan" if query.over_partitions else "row_range_scan"
    return seen.setting(f"mix.{action}", query.label)


@practice("transactions", "writes to one partition are batched", "mix.transaction", cosmos=False)
@says(CHECKLIST, "Batching", "fewer round trips, one billable transaction for 100")
@says(CHECKLIST, "Batch transactions", "for entities of one table and one partition")
@says(PARTITIONING, "Entity group transactions", "higher throughput at a lower price")
@remedy("Collect related writes into transactions.")
def transactions(seen: Seen) -> Look | None:
    if not seen.written:
        return None
    writes = seen.writes
    if writes is None:
        return untold(f"Which writes came together {MISSING}")
    share = writes.together / writes.singles if writes.singles else 0.0
    others = " Other writes are in transactions." if writes.transactions else ""
    if writes.saved is not None:
        return _could_have_been(writes, writes.saved, others)
    if share < 0.5:
        return fine("Consecutive single writes go to different partitions.")
    why = (
        f"{percent(share)} of the single writes go to the same partition as the single write "
        "before "
        "them: up to 100 of them could be one request, billed once."
    )
    return consider(f"{why}{others}") if others else offends(why)


def _could_have_been(writes: WritesSeen, saved: int, others: str) -> Look:
    """How many requests fewer an application would have sent."""
    if not writes.singles:
        return fine("Every write was in a transaction.")
    share = saved / writes.singles
    together = _share_of(writes.together, writes.singles, "single write")
    why = (
        f"{together} went to the same partition as others of the same client in the same second. "
        f"In transactions of up to 100 they would be {saved:,} requests fewer"
    )
    if share < _FEW_SAVED:
        return fine(f"{why}.")
    judge = offends if share >= 0.5 and not others else consider
    return judge(f"{why}, {percent(share)} of the single writes.{others}")


@practice(
    "upsert", "nothing is read only to choose between insert and update", "mix.read_then_write"
)
@says(CHECKLIST, "Upsert", "insert-or-merge or insert-or-replace takes one request")
@remedy("Use upsert_merge or upsert_replace.")
def upsert(seen: Seen) -> Look | None:
    if not seen.written:
        return None
    writes = seen.writes
    if writes is None:
        return untold(f"Which writes follow a read {MISSING}")
    if seen.recorded:
        return _read_first(writes)
    if not writes.read_first:
        return fine("No write waits for a query that checks whether the entity exists.")
    return offends(
        "Entities are read only to choose between insert and update: two requests for one write, "
        "and another client may write in between."
    )


def _read_first(writes: WritesSeen) -> Look:
    """Reads before writes of an application."""
    etags = f" {counted(writes.conditional, 'write')} after a read named the ETag of the entity."
    etags = etags if writes.conditional else ""
    if writes.unconditional:
        number = _share_of(
            writes.unconditional, writes.updates, "update or delete", "updates and deletes"
        )
        etags += f" {number} replaced whatever was stored (ETag *)."
    if not writes.read_first:
        return fine(f"No write without an ETag follows a read of the same entity.{etags}")
    number = _share_of(writes.read_first, writes.singles, "single write")
    judge = offends if writes.read_first >= _OFTEN * writes.singles else consider
    return judge(
        f"{number} followed a read of the same entity by the same client within a second, and "
        "named no ETag: two requests for one write, and another client may write in between."
        f"{etags}",
        change="Use insert-or-merge or insert-or-replace. If the new value depends on the old one, "
        "name the ETag.",
    )


@practice("index-rows", "copies of an entity are kept consistent", "keys.scheme")
@says(PARTITIONING, "Choose the PartitionKey value", "only writes to one partition can be atomic")
@says(STRATEGIES, _OF_TABLES, "across partitions there is only eventual consistency")
@disagrees(CHECKLIST, "Denormalization", "advises to store entities several times")
@disagrees(BLOG, "Handling Categories, Tags, and Authors", "advises a table for each look-up")
@remedy("Use one PartitionKey with a second RowKey, or count the differences and repair them.")
def index_rows(seen: Seen) -> Look | None:
    if seen.pointing is None:
        return untold("Whether rows refer to rows of other partitions cannot be seen in requests.")
    if not seen.pointing:
        return None
    return consider(
        "Entities are also stored under further keys in other partitions. No transaction covers "
        "two partitions: a failure between two writes leaves an index row without an entity, or "
        "an entity without its index row."
    )


def _share_of(count: int, of: int, one: str, more: str | None = None) -> str:
    return f"{count:,} of {counted(of, one, more)}"
