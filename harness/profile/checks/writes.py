"""Practices about writes, and about how the load is put on."""

from __future__ import annotations

from harness.measure.verdict.verdict import indicative
from harness.model.target import PUBLISHED
from harness.profile.checks.observed import Observed
from harness.profile.checks.practice import Document, Look, consider, fine, offends, practice

MANY_USERS = 50
"""Without a cap on the rate these many that wait for answers are no bound any more."""
BURST_USERS = 10
BURST_S = 1.0
"""So many users in less than so many seconds are no ramp."""
NEAR_TARGET = 0.8
_RETRY = "retry.strategy"


@practice(
    "transactions",
    "writes to one partition go together",
    Document.CHECKLIST.says("Batching", "fewer round trips, one billable transaction for 100"),
    Document.CHECKLIST.says("Batch transactions", "for entities of one table and one partition"),
    Document.PARTITIONING.says("Entity group transactions", "higher throughput at a lower price"),
)
def transactions(seen: Observed) -> Look | None:
    """Single writes, one after the other, to one partition."""
    if not seen.written:
        return None
    writes = seen.writes
    setting = seen.setting("mix.transaction")
    share = writes.together / writes.singles if writes.singles else 0.0
    if share < 0.5:
        return fine(setting, "Single writes that follow one another go to different partitions.")
    why = (
        f"{share:.0%} of the single writes go to the same partition as the single write before "
        "them: up to 100 could be one request, billed once."
    )
    change = "Collect writes that belong together into transactions."
    if writes.transactions:
        return consider(setting, f"{why} Others already are in transactions.", change)
    return offends(setting, why, change)


@practice(
    "upsert",
    "nothing is read only to choose between insert and update",
    Document.CHECKLIST.says(
        "Upsert", "insert-or-merge or insert-or-replace does it in one request"
    ),
)
def upsert(seen: Observed) -> Look | None:
    """An upsert needs no look before."""
    if not seen.written:
        return None
    setting = seen.setting("mix.read_then_write")
    if not seen.writes.read_first:
        return fine(setting, "No write waits for a look at whether the entity is there.")
    return offends(
        setting,
        "Entities are read only to choose between insert and update: two requests for one write, "
        "and somebody else may be in between.",
        "Use upsert_merge or upsert_replace.",
    )


@practice(
    "index-rows",
    "entities stored several times are kept in step",
    Document.PARTITIONING.says(
        "Choose the PartitionKey value", "rows with one PartitionKey can be written as one"
    ),
    Document.STRATEGIES.says(
        "Partitioning Azure Table storage", "over partitions there is only eventual consistency"
    ),
    Document.CHECKLIST.says_otherwise("Denormalization", "advises to store entities several times"),
    Document.BLOG.says_otherwise(
        "Handling Categories, Tags, and Authors", "advises a table for each way to look posts up"
    ),
)
def index_rows(seen: Observed) -> Look | None:
    """Copies in other partitions are nobody's transaction."""
    if not seen.pointing:
        return None
    return consider(
        seen.setting("keys.scheme"),
        "Entities are stored under further keys in other partitions. No transaction keeps these "
        "in step: a failure between two writes leaves an index row too many or too few.",
        "Use the same PartitionKey and a second RowKey where it can be done; else count the "
        "difference, and repair it.",
    )


@practice(
    "parallelism",
    "what is on the way at once is bounded",
    Document.CHECKLIST.says(
        "Unbounded parallelism", "without a bound, a client runs into its own or the targets' limit"
    ),
)
def parallelism(seen: Observed) -> Look | None:
    """The rate is bounded by a cap, or by users that wait for their answers."""
    load = seen.profile.load
    setting = seen.rate_setting
    if seen.peak_per_s is not None:
        return fine(setting, f"An account is asked for {seen.peak_per_s:,.0f} entities/s at most.")
    why = f"The rate has no cap, and {load.users:,} users send as fast as answers come."
    change = "Set a cap, and raise it step by step."
    if load.users > MANY_USERS:
        return offends(setting, why, change)
    return consider(setting, why, change)


@practice(
    "connections",
    "there are enough connections",
    Document.CHECKLIST.says(
        "Increase default connection limit", "as many connections as requests at once, about"
    ),
)
def connections(seen: Observed) -> Look | None:
    """A user without a connection waits in the client."""
    session, users = seen.profile.session, seen.profile.load.users
    setting = "session.connections"
    if session.kind == "sdk-default":
        return None
    if users <= session.connections:
        return fine(setting, f"Each of {users:,} users has a connection.")
    return offends(
        setting,
        f"{users:,} users of one process share {session.connections:,} connections: what is "
        "measured then is their waiting.",
        "Raise it, or add processes.",
    )


@practice(
    "back-off",
    "retries wait longer each time",
    Document.CHECKLIST.says(
        "Timeout and Server Busy errors", "exponential back-off: retries at once make it worse"
    ),
    Document.PARTITIONING.says(
        "Retry strategy", "no retry risks data, equal waits collide; exponential is recommended"
    ),
)
def back_off(seen: Observed) -> Look | None:
    """What is throttled must not come back all at once."""
    profile = seen.profile
    strategy = profile.retry.strategy
    if profile.session.kind == "sdk-default":
        return fine("session.kind", "The SDK's own retries back off exponentially.")
    change = "Use exponential, or schedule."
    if strategy == "none" or (strategy != "schedule" and not profile.retry.retries):
        return offends(
            _RETRY, "Nothing is sent again: what is throttled or timed out is lost.", change
        )
    if strategy == "fixed":
        return offends(
            _RETRY,
            f"Every retry waits {profile.retry.backoff_s:g} s: what was refused together comes "
            "back together.",
            change,
        )
    return fine(_RETRY, "Waits grow from one retry to the next.")


@practice(
    "ramp",
    "the load comes slowly",
    Document.CHECKLIST.says(
        "Targets for data operations", "a burst is throttled until the service has balanced it"
    ),
)
def ramp(seen: Observed) -> Look | None:
    """A burst is throttled where a ramp is not."""
    load = seen.profile.load
    before = 0.0
    for stage in seen.profile.stage:
        if stage.jump and stage.to > before:
            return offends(
                "stage.jump",
                f"A stage jumps from {before:,.0f} to {stage.to:,.0f}: a burst, which the service "
                "throttles before it has balanced the load.",
                "Ramp up, unless it is the burst that is to be tested.",
            )
        before = stage.to
    seconds = load.users / load.spawn_rate_per_s
    setting = "load.spawn_rate_per_s"
    if load.users < BURST_USERS or seconds >= BURST_S:
        return fine(setting, f"{load.users:,} users come within {seconds:,.1f} s.")
    return offends(
        setting,
        f"{load.users:,} users come within {seconds:.1f} s: a burst, which the service throttles "
        "before it has balanced the load.",
        "Start fewer users a second.",
    )


@practice(
    "account-target",
    "the load stays under the account's target",
    Document.CHECKLIST.says("Entities per second (storage account)", "20,000 entities/s"),
    Document.CHECKLIST.says(
        "Capacity and transaction targets", "change the design, or use several accounts"
    ),
)
def account_target(seen: Observed) -> Look | None:
    """Near the target of the account throttling of the account is likely."""
    wanted = seen.peak_per_s
    if wanted is None:
        return None
    setting = seen.rate_setting
    share = wanted / PUBLISHED.account
    why = f"{wanted:,.0f} entities/s are {share:.0%} of what an account is published to serve."
    if share < NEAR_TARGET:
        return fine(setting, why)
    change = "Ask for less, or spread the data over several accounts."
    if share > 1.0:
        return offends(setting, why, change)
    return consider(setting, why, change)


@practice(
    "entity-size",
    "targets are held against entities of 1 KiB",
    Document.CHECKLIST.says("Entities per second (storage account)", "the targets hold for 1 KB"),
)
def entity_size(seen: Observed) -> Look | None:
    """With another size a comparison is indicative."""
    size = seen.profile.entity.size_bytes
    if not indicative(size):
        return fine("entity.size_bytes", f"Entities have {size:,} bytes.")
    return consider(
        "entity.size_bytes",
        f"Entities have {size:,} bytes, and the published targets hold for 1 KiB: every "
        "comparison with them is indicative.",
        "Use 1024, unless it is the application's own size that is to be tested.",
    )


PRACTICES = (
    transactions,
    upsert,
    index_rows,
    parallelism,
    connections,
    back_off,
    ramp,
    account_target,
    entity_size,
)
