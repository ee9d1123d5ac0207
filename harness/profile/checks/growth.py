"""Practices about where in key order the load falls."""

from __future__ import annotations

from harness.model.target import PUBLISHED
from harness.profile.checks.observed import Observed
from harness.profile.checks.practice import Document, Look, consider, fine, offends, practice

_SCHEME = "keys.scheme"
_OF_TABLES = "Partitioning Azure Table storage"
_APPEND_ONLY = "Append Only and Prepend Only patterns"
_FEWEST_RANGES = 10
_ABOUT = 0.8
"""A prediction is no closer than this."""
_OFTEN = 0.1
"""Share of the operations from which on inserts are frequent; the document names no figure."""


@practice(
    "append-only",
    "new rows come at several places in key order",
    Document.CHECKLIST.says(
        _APPEND_ONLY, "keys that follow time put all inserts into the last partition"
    ),
    Document.PARTITIONING.says(
        "Range partitions", "rising or falling keys meet one server; scattered ones do no harm"
    ),
    Document.PARTITIONING.says(
        "Storage operations", "random values keep frequent inserts balanced"
    ),
    Document.PARTITIONING.says_otherwise(
        "Storage operations", "need be no worry where inserts are rare"
    ),
    Document.STRATEGIES.says(
        _OF_TABLES, "inserts at one end of a sequence make a hot spot; hash the key"
    ),
    Document.STRATEGIES.says_otherwise(_OF_TABLES, "a sequence can make range queries fast"),
)
def append_only(seen: Observed) -> Look | None:
    """All inserts go to one end of the table."""
    growing = {table: keys.growth for table, keys in seen.keys.items() if keys.creates}
    if not growing:
        return None
    setting = seen.setting(_SCHEME)
    table = next((table for table, growth in growing.items() if growth), None)
    if table is None:
        return fine(setting, "New rows go to several places in key order.")
    pattern, way = ("Append-only", "later") if growing[table] > 0 else ("Prepend-only", "earlier")
    why = (
        f"{pattern}: in {seen.table_named(table)} new rows come {way} and {way} in key order. All "
        "inserts go to one place, and one server takes them, however many partitions there are."
    )
    change = (
        "Put something in front of the key that scatters neighbours: a hash prefix, or a property "
        "such as the device or the customer."
    )
    share = seen.keys[table].created / seen.operations
    if share >= _OFTEN:
        return offends(setting, why, change)
    return consider(setting, f"{why} They are {share:.1%} of the operations.", change)


@practice(
    "date-key",
    "a PartitionKey does not begin with a date",
    Document.CHECKLIST.says(
        _APPEND_ONLY, "the current date as PartitionKey of a log is the example of what to avoid"
    ),
    Document.KEYS.says_otherwise(
        "1. PartitionKey: Design for Scalability and Query Patterns", "advises a date for logs"
    ),
    Document.KEYS.says_otherwise("4. Common Patterns", "event logs: one partition a day"),
    Document.BLOG.says_otherwise(
        "Recommended Primary Table: Posts", "advises the month, and finds no hot spots in it"
    ),
    Document.STRATEGIES.says_otherwise(_OF_TABLES, "its example has orders by their date"),
)
def date_key(seen: Observed) -> Look | None:
    """Which is advised by one document and warned of by another."""
    dated = [table for table, keys in seen.keys.items() if keys.dates_lead]
    if not dated:
        return None
    setting = seen.setting(_SCHEME)
    table = next((table for table in dated if seen.keys[table].creates), None)
    if table is None:
        return fine(setting, "PartitionKeys begin with a date, but no new rows come.")
    return consider(
        setting,
        f"PartitionKeys of {seen.table_named(table)} begin with a date, and new rows come: those "
        "of one day or month all go to one partition. The documents disagree about such a key.",
        "Measure whether one partition carries the peak of a day. If it does not, put a device, a "
        "customer or a hash before the date.",
    )


@practice(
    "zero-padding",
    "numbers in keys have a fixed width",
    Document.PARTITIONING.says(
        "Table primary key", "keys are compared as text; only padded numbers keep their order"
    ),
)
def zero_padding(seen: Observed) -> Look | None:
    """Numbers sort as text."""
    pairs = [pair for keys in seen.keys.values() if (pair := keys.unpadded) is not None]
    if not pairs:
        return None
    less, more = pairs[0]
    setting = seen.setting(_SCHEME)
    why = f"Numbers in PartitionKeys have different widths: {more!r} sorts before {less!r}."
    change = "Write numbers in keys with a fixed width, with zeros in front."
    if any(query.over_partitions for query in seen.queries):
        why += " A range of numbers is no range of keys, so that a query for it misses some."
        return offends(setting, why, change)
    return consider(setting, why, change)


@practice(
    "hot-partition",
    "no partition takes more than its part of the load",
    Document.CHECKLIST.says("High-traffic data", "no partition should come near its target"),
    Document.CHECKLIST.says("Entities per second (partition)", "one serves 2,000 entities/s"),
    Document.PARTITIONING.says(
        "Table partition stress testing",
        "above 2,000 entities/s the server may run too hot: keys may be too coarse",
    ),
    Document.KEYS.says(
        "1. PartitionKey: Design for Scalability and Query Patterns",
        "choose keys that spread the load evenly",
    ),
)
def hot_partition(seen: Observed) -> Look | None:
    """One partition is at its target long before the account is."""
    prediction = seen.prediction
    if not prediction.hottest:
        return None
    share, reached = prediction.hottest_share, prediction.account_rate_at(PUBLISHED.partition)
    setting = seen.setting("keys.distribution" if seen.loaded_partitions > 1 else "keys.partitions")
    if reached >= _ABOUT * PUBLISHED.account:
        if any(keys.growth for keys in seen.keys.values()):
            # Inserts move on from one partition to the next: none keeps its share.
            return None
        return fine(
            setting,
            f"The hottest partition takes about {share:.1%} of the load, so that the account "
            "reaches its target first, or about then.",
        )
    why = (
        f"Partition {prediction.hottest!r} takes about {share:.0%} of the load. It reaches its "
        f"{PUBLISHED.partition:,.0f} entities/s at {reached:,.0f} in all, before the account "
        f"reaches its {PUBLISHED.account:,.0f}."
    )
    change = "Make PartitionKeys finer, so that what is touched most is not in one partition."
    wanted = seen.peak_per_s
    if wanted is None or wanted >= reached:
        return offends(setting, why, change)
    return consider(setting, f"{why} This profile wants {wanted:,.0f}.", change)


@practice(
    "hot-range",
    "no range of neighbouring keys takes most of the load",
    Document.PARTITIONING.says(
        "Range partitions", "neighbouring unique keys may be grouped, and served by one server"
    ),
    Document.STRATEGIES.says(_OF_TABLES, "small partitions in sequence may share a server"),
)
def hot_range(seen: Observed) -> Look | None:
    """Neighbours may be served together."""
    prediction = seen.prediction
    count = prediction.range_count
    if prediction.hottest_range is None or count < _FEWEST_RANGES:
        return None
    share = prediction.hottest_range_share
    setting = seen.setting(_SCHEME)
    if share < 0.5 or share < 1.5 * prediction.hottest_share:
        return fine(
            setting,
            f"The hottest of {count} ranges of keys takes about {share:.0%} of the load.",
        )
    first, last = prediction.ranges[prediction.hottest_range]
    return consider(
        setting,
        f"The keys about {first!r} to {last!r}, one range of {count}, take about "
        f"{share:.0%} of the load, and may be served by one server.",
        "Put something in front of the key that scatters neighbours, unless range queries need "
        "them together.",
    )


PRACTICES = (append_only, date_key, zero_padding, hot_partition, hot_range)
