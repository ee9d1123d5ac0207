"""Practices about writes."""

from __future__ import annotations

from harness.measure.record.behaviour import WritesPart
from harness.model.figures import counted, percent
from harness.profile.checks.seen import MISSING, Seen
from harness.profile.practices.practice import (
    BLOG,
    CHECKLIST,
    ENTITY_LIMITS,
    PARTITIONING,
    STRATEGIES,
    Assessment,
    consider,
    disagrees,
    fine,
    offends,
    practice,
    remedy,
    says,
    share_of,
    untold,
)

_FEW_SAVED = 0.1
"""Share of the single writes that transactions would save."""
_OFTEN = 0.1
"""Share of the single writes that follow a read."""
_OF_TABLES = "Partitioning Azure Table storage"


@practice(
    "writes to one partition are batched",
    "mix.transaction",
    applies=ENTITY_LIMITS,
    relieves=("writes",),
)
@says(CHECKLIST, "Batching", "fewer round trips, one billable transaction for 100")
@says(CHECKLIST, "Batch transactions", "for entities of one table and one partition")
@says(PARTITIONING, "Entity group transactions", "higher throughput at a lower price")
@remedy("Collect related writes into transactions.")
def transactions(seen: Seen) -> Assessment | None:
    if not seen.written:
        return None
    writes = seen.writes
    if writes is None:
        return untold(f"Which writes came together {MISSING}")
    share = writes.together / writes.singles if writes.singles else 0.0
    others = " Other writes are in transactions." if writes.transactions else ""
    if seen.recorded:
        return _could_have_been(seen, writes, others)
    if share < 0.5:
        return fine("Consecutive single writes go to different partitions.")
    why = (
        f"{percent(share)} of the single writes go to the same partition as the single write "
        "before them: up to 100 of them could be one request, billed once."
    )
    return consider(f"{why}{others}") if others else offends(why)


def _could_have_been(seen: Seen, writes: WritesPart, others: str) -> Assessment:
    """How many requests fewer a run would have sent."""
    if not writes.singles:
        return fine("Every write was in a transaction.")
    share = writes.saved / writes.singles
    together = share_of(writes.together, writes.singles, "single write")
    whose = "" if seen.unobserved else " of the same user agent"
    why = (
        f"{'About ' if seen.unobserved else ''}{together} went to the same partition as others"
        f"{whose} in the same second. "
        f"In transactions of up to 100 they would be {writes.saved:,} requests fewer"
    )
    if share < _FEW_SAVED:
        return fine(f"{why}.")
    judge = offends if share >= 0.5 and not others else consider
    return judge(f"{why}, {percent(share)} of the single writes.{others}")


@practice("nothing is read only to choose between insert and update", "mix.read_then_write")
@says(CHECKLIST, "Upsert", "insert-or-merge or insert-or-replace takes one request")
@remedy("Use upsert_merge or upsert_replace.")
def upsert(seen: Seen) -> Assessment | None:
    if not seen.written:
        return None
    writes = seen.writes
    if writes is None or seen.unobserved:
        return untold(f"Which writes follow a read {MISSING}")
    if seen.recorded:
        return _read_first(writes)
    if not writes.read_first:
        return fine("No write waits for a query that checks whether the entity exists.")
    return offends(
        "Entities are read only to choose between insert and update: two requests for one write, "
        "and another client may write in between."
    )


def _read_first(writes: WritesPart) -> Assessment:
    """Reads before writes of an application."""
    etags = ""
    if named := writes.read_first_conditional:
        etags = f" {counted(named, 'write')} after a read named the ETag of the entity."
    if writes.unconditional:
        number = share_of(
            writes.unconditional, writes.updates, "update or delete", "updates and deletes"
        )
        etags += f" {number} replaced whatever was stored (ETag *)."
    if not writes.read_first:
        return fine(f"No write without an ETag follows a read of the same entity.{etags}")
    number = share_of(writes.read_first, writes.singles, "single write")
    judge = offends if writes.read_first >= _OFTEN * writes.singles else consider
    return judge(
        f"{number} followed a read of the same entity by the same user agent within a second, and "
        "named no ETag: two requests for one write, and another client may write in between."
        f"{etags}",
        change="Use insert-or-merge or insert-or-replace. If the new value depends on the old one, "
        "name the ETag.",
    )


@practice("copies of an entity are kept consistent", "keys.partition_key")
@says(PARTITIONING, "Choose the PartitionKey value", "only writes to one partition can be atomic")
@says(STRATEGIES, _OF_TABLES, "across partitions there is only eventual consistency")
@disagrees(CHECKLIST, "Denormalization", "advises to store entities several times")
@disagrees(BLOG, "Handling Categories, Tags, and Authors", "advises a table for each look-up")
@remedy("Use one PartitionKey with a second RowKey, or count the differences and repair them.")
def index_rows(seen: Seen) -> Assessment | None:
    if seen.pointing is None:
        return untold("Whether rows refer to rows of other partitions cannot be seen in requests.")
    if not seen.pointing:
        return None
    return consider(
        "Entities are also stored under further keys in other partitions. No transaction covers "
        "two partitions: a failure between two writes leaves an index row without an entity, or "
        "an entity without its index row."
    )
