"""Practices about queries and writes, and about how the load is put on."""

from __future__ import annotations

from harness.measure.verdict.verdict import indicative
from harness.model.entity import MAX_PROPERTIES
from harness.model.operation import Kind
from harness.model.target import PUBLISHED
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
_MANY_USERS = 50
"""Without a cap on the rate, so many users that wait for answers are no bound any more."""
_BURST_USERS = 10
_BURST_S = 1.0
"""So many users in less than so many seconds are a burst."""
_NEAR_TARGET = 0.8
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


@practice("parallelism", "the number of concurrent requests is bounded")
@says(CHECKLIST, "Unbounded parallelism", "it exceeds the client's limits or the targets")
@remedy("Set a cap, and raise it step by step.")
def parallelism(seen: Observed) -> Look | None:
    users, (setting, peak) = seen.profile.load.users, seen.peak
    if peak is not None:
        return fine(f"An account gets at most {peak:,.0f} entities/s.", setting=setting)
    judge = offends if users > _MANY_USERS else consider
    return judge(
        f"The rate has no cap, and {users:,} users send as fast as answers arrive.", setting=setting
    )


@practice("connections", "there are enough connections", "session.connections")
@says(CHECKLIST, "Increase default connection limit", "about one for each concurrent request")
@remedy("Allow more connections, or use more processes.")
def connections(seen: Observed) -> Look | None:
    session, users = seen.profile.session, seen.profile.load.users
    if session.kind == "sdk-default":
        return None
    if users <= session.connections:
        return fine(f"Each of {users:,} users has a connection.")
    return offends(
        f"{users:,} users of one process share {session.connections:,} connections: the latencies "
        "then include waiting for a connection."
    )


@practice("back-off", "retries wait longer each time", "retry.strategy")
@says(CHECKLIST, "Timeout and Server Busy errors", "back off exponentially")
@says(PARTITIONING, "Retry strategy", "without retries data can be lost, and equal waits collide")
@remedy("Use exponential or schedule.")
def back_off(seen: Observed) -> Look | None:
    retry = seen.profile.retry
    if seen.profile.session.kind == "sdk-default":
        return fine("The SDK's own retries back off exponentially.", setting="session.kind")
    if retry.most == 0:
        return offends("No request is retried: throttled or timed-out operations are lost.")
    if retry.strategy == "fixed":
        return offends(
            f"Every retry waits {retry.backoff_s:g} s: operations that were throttled together "
            "are retried together."
        )
    return fine("Waits grow from one retry to the next.")


@practice("ramp", "the load rises slowly", "load.spawn_rate_per_s")
@says(CHECKLIST, "Targets for data operations", "a burst is throttled until it is balanced")
@remedy("Start fewer users a second.")
def ramp(seen: Observed) -> Look | None:
    burst = "a burst, which the service throttles until it has balanced the load."
    before = 0.0
    for stage in seen.profile.stage:
        if stage.jump and stage.to > before:
            return offends(
                f"A stage jumps from {before:,.0f} to {stage.to:,.0f}: {burst}",
                setting="stage.jump",
                change="Ramp up, unless the test is about the burst.",
            )
        before = stage.to
    load = seen.profile.load
    said = f"{load.users:,} users start within {load.ramp_s:,.1f} s"
    if load.users < _BURST_USERS or load.ramp_s >= _BURST_S:
        return fine(f"{said}.")
    return offends(f"{said}: {burst}")


@practice("account-target", "the load stays under the account's target")
@says(CHECKLIST, "Entities per second (storage account)", "20,000 entities/s")
@says(CHECKLIST, "Capacity and transaction targets", "or use several accounts")
@remedy("Request less, or spread the data over several accounts.")
def account_target(seen: Observed) -> Look | None:
    setting, wanted = seen.peak
    if wanted is None:
        return None
    share = wanted / PUBLISHED.account
    judge = fine if share < _NEAR_TARGET else offends if share > 1.0 else consider
    return judge(
        f"{wanted:,.0f} entities/s are {share:.0%} of the published target of an account.",
        setting=setting,
    )


@practice(
    "entity-size", "entities have 1 KiB, the size that the targets assume", "entity.size_bytes"
)
@says(CHECKLIST, "Entities per second (storage account)", "the targets hold for 1 KB")
@remedy("Use 1024, unless the test is about entities of another size.")
def entity_size(seen: Observed) -> Look | None:
    size = seen.profile.entity.size_bytes
    if not indicative(size):
        return fine(f"Entities have {size:,} bytes.")
    return consider(
        f"Entities have {size:,} bytes, and the published targets hold for 1 KiB: every "
        "comparison with them is only indicative."
    )
