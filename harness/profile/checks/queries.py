"""Practices about queries: what they walk, what they bring back, how often they are needed."""

from __future__ import annotations

from harness.model.entity import MAX_PROPERTIES
from harness.model.operation import Kind
from harness.profile.checks.observed import Observed
from harness.profile.checks.observed_operations import PAGE_ENTITIES, Sent
from harness.profile.checks.practice import Document, Look, consider, fine, offends, practice

LOW_DENSITY = 0.5
VERY_LOW_DENSITY = 0.1
"""Share of the walked entities that are wanted. The document's example of low is 1 %."""
MANY_SCANS = 0.6
"""Share of the reads; point queries are to be used "in most cases"."""
_SCOPE = "Query scope"
_LIMITING = "Limiting the amount of data returned"


@practice(
    "table-queries",
    "queries stay in one partition",
    Document.CHECKLIST.says(_SCOPE, "avoid queries over entities without a common PartitionKey"),
    Document.PARTITIONING.says(
        "Determine queries", "a full table scan is the worst query; a partition range scan is next"
    ),
    Document.PARTITIONING.says_otherwise(
        "Determine queries", "a partition range scan that touches few servers is good"
    ),
    Document.STRATEGIES.says(
        "Partitioning Azure Table storage", "without a PartitionKey every partition is scanned"
    ),
)
def table_queries(seen: Observed) -> Look | None:
    """Every partition that is walked counts."""
    if not seen.reads:
        return None
    over = [query for query in seen.queries if query.over_partitions]
    if not over:
        return fine(seen.setting("mix"), "No query goes over several partitions.")
    whole = [query for query in over if not query.bounded]
    worst = (whole or over)[0]
    setting = _setting(seen, worst)
    walked = worst.walked / worst.count
    many = f"{walked:,.0f} entities" if walked else "nobody knows how many entities"
    change = "Choose keys so that what is asked for is in one partition; add index rows if needed."
    if whole:
        return offends(
            setting,
            f"{worst.label} walks a whole table, {many} each time, and all of them count.",
            change,
        )
    return consider(
        setting,
        f"{worst.label} walks {many} of several partitions, which may be on several servers. How "
        "bad that is, the documents see differently.",
        change,
    )


@practice(
    "partition-queries",
    "most reads are point queries",
    Document.CHECKLIST.says(_SCOPE, "point queries wherever possible, partition queries sparingly"),
    Document.PARTITIONING.says("Determine queries", "point queries use the one index fully"),
)
def partition_queries(seen: Observed) -> Look | None:
    """A point query counts one entity, a scan all it walks."""
    if not seen.reads:
        return None
    scans = sum(query.count for query in seen.queries if query.of_many)
    share = scans / seen.reads
    setting = seen.setting("mix")
    if share <= MANY_SCANS:
        return fine(setting, f"{1 - share:.0%} of the reads are point queries.")
    return consider(
        setting,
        f"{share:.0%} of the reads ask for more than one entity, and each counts all it walks.",
        "Give what is read most a key that a point query can name.",
    )


@practice(
    "query-density",
    "queries walk little more than they return",
    Document.CHECKLIST.says("Query density", "targets count what is scanned, not what is returned"),
    Document.CHECKLIST.says("Denormalization", "store an entity once for each key it is found by"),
    Document.STRATEGIES.says(
        "Partitioning Azure Table storage", "look-ups by other fields need index tables"
    ),
    Document.PARTITIONING.says(
        "Choose the PartitionKey value", "the more selective a query is, the more efficient"
    ),
)
def query_density(seen: Observed) -> Look | None:
    """What a filter throws away was walked all the same."""
    known = [(query.density, query) for query in seen.queries if query.density is not None]
    if not known:
        return None
    density, query = min(known, key=lambda pair: pair[0])
    setting = _setting(seen, query)
    if density >= LOW_DENSITY:
        return fine(setting, f"Every query returns {density:.0%} or more of what it walks.")
    why = (
        f"{query.label} returns {density:.1%} of the {query.walked / query.count:,.0f} entities "
        "it walks, and all of them count."
    )
    if query.by_number:
        why += " The range it wants is no range of keys in this scheme."
    change = "Put what is filtered by into the keys, or keep index rows for it."
    if density < VERY_LOW_DENSITY:
        return offends(setting, why, change)
    return consider(setting, why, change)


@practice(
    "filtering",
    "no query brings back what is not needed",
    Document.CHECKLIST.says(_LIMITING, "a filter saves network and work of the client"),
)
def filtering(seen: Observed) -> Look | None:
    """A whole partition or table may be more than is needed."""
    queries = list(seen.queries)
    if not queries:
        return None
    whole = [
        query
        for query in queries
        if not query.bounded
        and not query.example.filter
        and query.example.top is None
        and query.returned > PAGE_ENTITIES * query.count
    ]
    if not whole:
        return fine(seen.setting("query"), "No query brings back whole ranges of several pages.")
    worst = max(whole, key=lambda query: query.returned / query.count)
    return consider(
        _setting(seen, worst),
        f"{worst.label} brings back all it walks, {worst.returned / worst.count:,.0f} entities in "
        "pages of 1,000 at most.",
        "Ask for a range of keys, filter, or take the first ones; if all are needed, it is fine.",
    )


@practice(
    "projection",
    "queries return only the properties that are needed",
    Document.CHECKLIST.says(_LIMITING, "projection saves network and work of the client"),
)
def projection(seen: Observed) -> Look | None:
    """Whether all properties are needed, the application knows."""
    queries = list(seen.queries)
    if not queries:
        return None
    setting = seen.setting("query.select")
    plain = [query for query in queries if query.of_many and not query.example.select]
    if not plain:
        return fine(setting, "Every query of many entities names the properties it wants.")
    names = ", ".join(dict.fromkeys(query.label for query in plain))
    return consider(
        setting,
        f"{names}: all properties of each entity are returned.",
        "Name the properties that are needed; if all are, it is fine.",
    )


@practice(
    "data-series",
    "a series that is read together is one entity",
    Document.CHECKLIST.says(
        "Storing data series in a single entity", "one entity with a property for each value"
    ),
)
def data_series(seen: Observed) -> Look | None:
    """Rows that come one by one and are read together might be properties."""
    series = [sent for sent in seen.sent if sent.label == "series_merge"]
    setting = seen.setting("mix.series_merge")
    if series:
        return fine(setting, "A series is merged into one entity.")
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
        return fine(setting, f"What is read together, {mean:,.0f} rows, is no single entity.")
    return consider(
        setting,
        f"Rows are inserted one by one and never touched again, and {query.label} reads "
        f"{mean:,.0f} of one partition together. If each holds one value of a series, one entity "
        "could hold them all.",
        "Merge the values as properties of one entity, which a point query then reads.",
    )


@practice(
    "blobs",
    "what is written and read in bulk is in blobs",
    Document.CHECKLIST.says(
        "Storing structured data in blobs", "for batch inserts that are read as ranges, use blobs"
    ),
)
def blobs(seen: Observed) -> Look | None:
    """Batch inserts that are read back as ranges, as of a log."""
    batched = seen.writes.batch_inserts & _appended(seen)
    setting = seen.setting("mix.transaction")
    ranges = [query for query in seen.queries if query.example.table in batched and query.of_many]
    if not ranges:
        return None
    return consider(
        setting,
        f"Rows are inserted in batches and never touched again, and {ranges[0].label} reads many "
        "of them at once.",
        "Where nothing is ever read one by one, as in a log, store each batch as a blob.",
    )


def _appended(seen: Observed) -> set[str]:
    """Tables whose rows are inserted and then only read together."""
    appending = (Kind.INSERT, Kind.TRANSACTION, Kind.QUERY)
    touched = {sent.example.table for sent in seen.sent if sent.kind not in appending}
    return {sent.example.table for sent in seen.sent} - touched - seen.writes.mixed_transactions


PRACTICES = (
    table_queries,
    partition_queries,
    query_density,
    filtering,
    projection,
    data_series,
    blobs,
)


def _setting(seen: Observed, query: Sent) -> str:
    """The action of the mix that a query comes from."""
    if query.by_number:
        action = "partition_range_scan" if query.over_partitions else "row_range_scan"
    else:
        action = query.label
    return seen.setting(f"mix.{action}", query.label)
