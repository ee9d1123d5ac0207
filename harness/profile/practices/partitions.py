"""Practices about partitions: the share of the load that one takes, and the entities it holds."""

from __future__ import annotations

from collections.abc import Iterator

from harness.measure.record.measured import ABOUT, AT_LEAST, INVERSE
from harness.measure.verdict.evidence import AS_KNOWN
from harness.model.figures import counted, listed, long_duration, number, percent
from harness.model.services.service import LimitUnit
from harness.profile.checks.seen import FEWEST_ROWS, REDACTED, GrowthSeen, Seen
from harness.profile.practices.practice import (
    CHECKLIST,
    COSMOS,
    ENTITY_LIMITS,
    GROUP,
    KEYS,
    MESSAGE_LIMITS,
    PARTITIONING,
    SCATTER,
    STRATEGIES,
    Assessment,
    Severity,
    consider,
    disagrees,
    fine,
    offends,
    practice,
    remedy,
    says,
    untold,
)

_FEWEST_RANGES = 10
_MANY_OPERATIONS = 1_000
"""With fewer operations on a table, other PartitionKeys may come later."""
_PARTITIONS = "keys.partition_key"
_STORED = "How many entities a partition holds is not in the record."
_NEAR_TARGET = 0.8
"""A prediction is no closer than this."""
_ONE_ROW = 0.95
"""Share of the load of a table in one row from which on no key would spread it. The documents name
no figure for it, nor for the next bounds."""
_TINY_PARTITION = 10
"""Entities of a partition, as the bounds of large partitions; "millions" are too many."""
_ONE = 1.05
"""On average."""
_MANY_PARTITIONS = 100
_LARGE_PARTITION = 100_000
_VERY_LARGE_PARTITION = 1_000_000
_DAY_S = 24 * 60 * 60
_SOON_S = 365 * _DAY_S
"""What a partition grows to later than this is no concern."""
_OF_TABLES = "Partitioning Azure Table storage"
_OF_QUEUES = "Partitioning Azure storage queues"
_PARTITION_KEYS = "1. PartitionKey: Design for Scalability and Query Patterns"
_ANTI_PATTERNS = "5. Anti-Patterns (Avoid These)"


def _near_target(seen: Seen) -> Severity:
    """How bad it is that one partition takes its share: by what throttled, or by the rates."""
    if "partition" in seen.limits:
        return Severity.OFFENDS
    reached = seen.shares.account_rate_at(seen.targets.partition)
    if reached >= _NEAR_TARGET * seen.targets.account:
        return Severity.FINE
    return Severity.OFFENDS if seen.peak is None or seen.peak >= reached else Severity.CONSIDER


@practice(
    "no partition takes more than its share of the load",
    "keys.partition_key",
    applies=ENTITY_LIMITS,
    relieves=("partition",),
)
@says(CHECKLIST, "High-traffic data", "no partition should come near its target")
@says(CHECKLIST, "Entities per second (partition)", "one partition serves 2,000 entities/s")
@says(
    PARTITIONING, "Table partition stress testing", "above 2,000 entities/s keys may be too coarse"
)
@says(KEYS, _PARTITION_KEYS, "choose keys that spread the load evenly")
@remedy("Use a finer PartitionKey, so that the most used entities are in several partitions.")
def hot_partition(seen: Seen) -> Assessment | None:
    shares, severity = seen.shares, _near_target(seen)
    # Finer keys do not split a row. Inserts at one end move on, and so do finer keys.
    moves = seen.recorded or severity is Severity.FINE
    growing = moves and any(table.growth for table in seen.several)
    if not shares.hottest_share or seen.hot_row or growing or seen.hottest_service.store != "table":
        return None
    setting = "" if seen.loaded_partitions is None or seen.loaded_partitions > 1 else _PARTITIONS
    share, sign = percent(shares.hottest_share, seen.hottest_sign), seen.hottest_sign
    reached = f"{INVERSE[sign]}{number(shares.account_rate_at(seen.targets.partition))}"
    why = (
        f"Partition {shares.hottest!r} takes {'' if seen.recorded else 'about '}{share} "
        f"of the {'listed keys' if seen.keys_only else 'load'}"
    )
    if severity is Severity.FINE:
        known = AS_KNOWN * (sign in (AT_LEAST, ABOUT))
        return fine(f"{why}, no more than its share{known}.", setting=setting)
    most = seen.most_throttled
    if most is not None and {"partition", "throttling"} <= set(seen.limits):
        why = (
            f"{percent(most.throttled_ratio)} of the attempts on partition {most.key!r} were "
            f"throttled: one server serves a partition. {why}."
        )
        return Assessment(severity, why, setting)
    why += (
        f". It reaches the {seen.targets.named('partition')} entities/s at {reached} "
        f"in total, before the account reaches its {seen.targets.named('account')}."
    )
    if seen.recorded:
        why += f" The highest rate was {number(seen.peak or 0)}."
    elif severity is Severity.CONSIDER and not seen.keys_only:
        why += f" This profile requests {number(seen.peak or 0)}."
    return Assessment(severity, why, setting)


@practice(
    "no row takes most of the load of its partition",
    "keys.rows_per_partition",
    relieves=("partition",),
)
@says(CHECKLIST, "High-traffic data", "data that is far more used than other data is throttled")
@remedy(
    "Split the row, such as a counter, into several rows with PartitionKeys of their own, or keep "
    "it in a cache."
)
def hot_row(seen: Seen) -> Assessment | None:
    share, severity = seen.hot_row_share, _near_target(seen)
    if seen.hottest_service.store != "table":
        return None
    if share is None:
        return untold("How often a row is used is not in the record.") if seen.recorded else None
    about = "At least" if seen.recorded else "About"
    hottest = seen.shares.hottest
    why = (
        f"{about} {percent(share)} of the entities counted for partition {hottest!r} are of one row"
    )
    if not seen.hot_row or severity is Severity.FINE:
        return fine(f"{why}.")
    return Assessment(
        severity,
        f"{why}. Neither a finer PartitionKey nor transactions split a row, and one server "
        "serves it.",
    )


@practice(
    "no range of neighbouring keys takes most of the load",
    "keys.partition_key",
    applies=ENTITY_LIMITS,
    relieves=("server",),
)
@says(PARTITIONING, "Range partitions", "one server may serve a group of neighbouring keys")
@says(STRATEGIES, _OF_TABLES, "small partitions in sequence may share a server")
@remedy(f"{SCATTER}, unless range queries need them together.")
def hot_range(seen: Seen) -> Assessment | None:
    shares = seen.shares
    count = shares.range_count
    growing = any(table.growth for table in seen.several)
    if "server" in seen.limits and seen.record and len(seen.record.partitions) > 1 and not growing:
        why = (
            "Requests were throttled although no partition was near its target. A server serves a "
            "range of neighbouring keys, and may throttle all of them."
        )
        if seen.record.verdict.limited_by == "server":
            why = "The limit of a server throttled the range of neighbouring keys that it serves."
        return offends(
            why,
            change="Spread busy PartitionKeys over the whole order of keys, such as with a prefix "
            "of their hash.",
        )
    if shares.hottest_range is None and seen.recorded and shares.hottest:
        return untold("Keys are redacted, or not every partition has a row in the record.")
    if shares.hottest_range is None or count < _FEWEST_RANGES:
        return None
    share, about = shares.hottest_range_share, "" if seen.recorded else "about "
    if share < 0.5 or share < 1.5 * shares.hottest_share:
        return fine(
            f"The hottest of {count} ranges of keys takes {about}{percent(share)} of the load."
        )
    first, last = shares.ranges[shares.hottest_range]
    return consider(
        f"The keys from about {first!r} to {last!r}, one of {count} ranges, take {about}"
        f"{percent(share)} of the load, and one server may hold them all."
    )


@practice(
    "no queue takes more than its share of the messages",
    "keys.partition_key",
    applies=MESSAGE_LIMITS | ENTITY_LIMITS,
    relieves=("partition",),
)
@says(STRATEGIES, _OF_QUEUES, "one server holds a queue, which handles up to 2,000 messages/s")
@remedy("Use a queue for each functional area of the application, or several for one.")
def hot_queue(seen: Seen) -> Assessment | None:
    shares, target = seen.shares, seen.targets.partition
    if not shares.hottest_share or seen.hottest_service.limits is not LimitUnit.MESSAGES:
        return None
    share, peak = shares.hottest_share, seen.peak
    whole = "messages" if seen.limited_in is LimitUnit.MESSAGES else "entities and messages"
    why = f"Queue {shares.hottest!r} takes {percent(share)} of the {whole}"
    rate = None if peak is None else peak * share
    if "partition" in seen.limits or (rate is not None and rate > target):
        of = "" if rate is None else f", up to {number(rate)} messages/s of {number(target)}"
        return offends(f"{why}{of}: it is one partition on one server.")
    return fine(
        f"{why}, {'' if rate is None else f'{number(rate)} messages/s, '}within its target."
    )


@practice("a table has more than one PartitionKey", "keys.partition_key")
@says(KEYS, _ANTI_PATTERNS, "one value for all rows is a massive hot spot")
@says(PARTITIONING, "Partition sizing", "one value is limited to one server")
@says(STRATEGIES, _OF_TABLES, "one partition cannot scale out")
@disagrees(PARTITIONING, "Partition sizing", "acceptable if nothing has to scale")
@remedy("Make the PartitionKey from a property with many values, and compare with the same mix.")
def constant_partition_key(seen: Seen) -> Assessment | None:
    if seen.tables is None:
        return untold(REDACTED)
    constant = [table for table in seen.tables if table.partitions == 1]
    if (seen.hot_row_share or 0.0) >= _ONE_ROW:
        # `hot_row`: no key would spread the load.
        return None
    if not constant:
        return fine("There are several PartitionKeys.") if seen.tables else None
    table = max(constant, key=lambda table: table.operations)
    limit = f"a {seen.targets.named('partition')} entities/s"
    if seen.charges is not None:
        limit = f"{number(seen.charges.throughput.partition_ru_per_s)} RU/s at most"
    if seen.keys_only and table.operations < _MANY_OPERATIONS:
        if table.operations < FEWEST_ROWS:
            return None
        return consider(
            f"All {table.operations:,} PartitionKeys of {table.named} are equal. If there are no "
            "others, one server holds the table."
        )
    if not seen.recorded:
        return offends(
            f"All entities of {table.named} have one PartitionKey: one server takes the "
            f"whole load, with {limit}."
        )
    why = f"The operations on {table.named} used one PartitionKey"
    if table.operations:
        why = f"All {table.operations:,} operations on {table.named} used one PartitionKey"
        if table.operations < _MANY_OPERATIONS:
            return consider(f"{why}. If there are no others, one server holds the table.")
    return offends(f"{why}: one server took all of them, with {limit}.")


@practice("scanned partitions are not tiny", "keys.rows_per_partition")
@says(KEYS, _PARTITION_KEYS, "too many tiny partitions slow down scans")
@says(KEYS, _ANTI_PATTERNS, "a partition for each row makes range scans impossible")
@disagrees(PARTITIONING, "Partition sizing", "favours small partitions, which balance better")
@disagrees(CHECKLIST, "Tables and partitions", "millions of PartitionKeys are no problem")
@remedy(GROUP)
def tiny_partitions(seen: Seen) -> Assessment | None:
    over = seen.over_partitions
    if seen.loaded_partitions is None or seen.loaded_entities is None:
        return untold(_STORED) if over else None
    if not seen.loaded_partitions:
        return None
    mean = seen.loaded_entities / seen.loaded_partitions
    held = f"{number(mean)} entities each, on average"
    if mean < _ONE:
        held = "one entity each" if mean == 1 else "about one entity each"
    if seen.loaded_partitions < _MANY_PARTITIONS or mean >= _TINY_PARTITION:
        return fine(f"Partitions hold {held}.")
    if not over and not seen.keys_only:
        return fine("Partitions are tiny, but no query goes over several of them.")
    why = (
        f"{seen.loaded_partitions:,} partitions hold {held}. Each query over them visits many "
        "partitions, perhaps on many servers, for few entities."
    )
    if all(not query.unbounded for query in over):
        return consider(f"{why} However, one server may hold neighbouring partitions.")
    return offends(why)


@practice("no partition grows without bound", "keys.rows_per_partition")
@says(KEYS, _PARTITION_KEYS, "for millions of entities add a second dimension")
@says(PARTITIONING, "Determine queries", "large partitions are bad for row range scans")
@disagrees(PARTITIONING, "Partition sizing", "a large partition is right if nothing has to scale")
@says(COSMOS, "Logical partitions", "at Cosmos DB the data of one PartitionKey has 20 GB at most")
@remedy("Split the partition by a further part of its key, such as a category or a shorter period.")
def large_partitions(seen: Seen) -> Assessment | None:
    if seen.loaded_partitions is None and seen.growth is None:
        return untold(_STORED)
    largest, limit, size = seen.largest, seen.service.partition_bytes, _stored_bytes(seen)
    held = f"The largest partition holds {counted(largest, 'entity', 'entities')}"
    if limit is not None and largest * size > limit:
        full = f"{largest * size / 1e9:,.1f} GB; {limit / 1e9:g} GB are allowed"
        return offends(f"{held}, {full}.")
    if largest >= _VERY_LARGE_PARTITION:
        return offends(f"{held}, and stays on one server.")
    if seen.growth is not None:
        return _growing(seen, seen.growth)
    if not seen.loaded_partitions:
        return None
    if largest >= _LARGE_PARTITION:
        return consider(f"{held}, and stays on one server.")
    return fine(f"{held}.")


def _growing(seen: Seen, growth: GrowthSeen) -> Assessment:
    """What the partition that grows most reaches at the rate of the load, and when."""
    if not growth.lasting:
        stress = "how fast is not known, because this load tries out a limit"
        return fine(f"Partition {growth.partition!r} grows by inserts; {stress}.")
    reached = sorted(_reached(seen, growth))
    ends = min(growth.period_s, _SOON_S)
    soon = [f"{what} after {long_duration(at_s)}" for at_s, what in reached if at_s < ends]
    grows = f"Partition {growth.partition!r} grows by {number(growth.per_s)} entities/s"
    if soon:
        return consider(f"{grows}. If this rate lasts, it {listed(soon)}.")
    if growth.period_s < _SOON_S:
        return fine(f"{grows} only until the date in its key changes.")
    at_s, what = reached[0]
    return fine(f"{grows}. If this rate lasts, it {what} after {long_duration(at_s)}.")


def _reached(seen: Seen, growth: GrowthSeen) -> Iterator[tuple[float, str]]:
    """What happens to a partition that grows, and after how many seconds."""
    size, limit, targets = _stored_bytes(seen), seen.service.partition_bytes, seen.service.targets
    events: list[tuple[float, str]] = [
        (_VERY_LARGE_PARTITION, f"holds {_VERY_LARGE_PARTITION:,} entities")
    ]
    if limit is not None and size:
        events.append((limit / size, f"is full ({limit / 1e9:g} GB)"))
    if targets is not None and growth.scans_per_s:
        reaches = (
            f"reaches the {targets.named('partition')} entities/s by scans of all its entities"
        )
        events.append((targets.partition / growth.scans_per_s, reaches))
    for rows, what in events:
        if rows > seen.largest:
            yield (rows - seen.largest) / growth.per_s, what


def _stored_bytes(seen: Seen) -> int:
    """The size of an entity as the limit of a partition counts it; 0 if unknown."""
    return (seen.charges and seen.charges.entity_bytes) or seen.entity_bytes or 0
