"""Practices of Cosmos DB: request units, the partitions that share them, and the size of keys."""

from __future__ import annotations

import math

from harness.model.figures import counted, long_duration, number, percent, storage_size
from harness.model.figures import request_units as units_words
from harness.model.physical_partitions import MAX_PHYSICAL_PARTITION_BYTES, MAX_REQUEST_BYTES
from harness.model.request_units import QUERY_PAGE, RU
from harness.profile.checks.seen import ChargesSeen, Seen
from harness.profile.practices.practice import (
    COSMOS,
    COSMOS_FAQ,
    UNIT_LIMITS,
    UNITS,
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

_PHYSICAL = "Physical partitions"
_CHOOSE = "Choose a partition key"
_READ_HEAVY = "Partition keys for read-heavy containers"
_ITEM_ID = "Use item ID as the partition key"
_DIFFERENT = "Where is API for Table not identical with Azure Table storage behavior?"
_PROVISIONED = "endpoint.provisioned_ru_per_s"
_NEAR = 0.8
"""A prediction is no closer than this."""
_UNEVEN = 1.25
"""Times its even share, from which a physical partition counts as hot. No document has a figure."""
_COSTLY = 0.5
"""Share of all request units from which there is advice about one operation."""
_FEW_PHYSICAL = 3
"""Physical partitions of 30,000 RU/s (10,000 each): more need care ("read-heavy")."""
_MUCH_STORED = 100 * 10**9
"""Bytes above which a container has more than a few physical partitions (likewise)."""
_LONG_COPY_S = 3600.0
"""A copy that takes longer is worth thinking of. No document has a figure for it, nor for these."""
_YEAR_S = 365 * 24 * 3600
"""Growth that needs longer for a physical partition is no concern."""
_ONE_EACH = 1.05
"""Entities of a PartitionKey on average, below which each has its own."""
_SMALL_KEY_BYTES = 101
"""A longer PartitionKey needs a container with large partition keys ("Choose a partition key")."""
_UNCHARGED = "No answer named its charge in request units."
_UNKNOWN_KEYS = "Keys are redacted, or not every partition has a row in the record."


@practice(
    "the load fits into the provisioned request units",
    _PROVISIONED,
    applies=UNIT_LIMITS,
    relieves=("throughput",),
)
@says(COSMOS, _PHYSICAL, "throughput is provisioned for a container")
@remedy("Provision more, or request less.")
def request_units(seen: Seen) -> Assessment | None:
    charges = seen.charges
    if charges is not None and not charges.known:
        return untold(_UNCHARGED)
    if charges is None or charges.per_s is None:
        return None
    provisioned = charges.throughput.ru_per_s
    need = f"{number(charges.per_s)} RU/s"
    said = f"The best second took {need}" if seen.recorded else f"This profile takes about {need}"
    used_up = "throughput" in seen.limits
    if provisioned is None:
        change = "Set what is provisioned, so that rates are compared with it."
        return (offends if used_up else consider)(
            f"{said}; what is provisioned is not set.", change=change
        )
    share = charges.per_s / provisioned
    judge = offends if share > 1.0 or used_up else fine if share < _NEAR else consider
    return judge(f"{said}, {percent(share)} of the {number(provisioned)} that are provisioned.")


@practice(
    "no PartitionKey takes more than its share of the request units",
    "keys.partition_key",
    applies=UNIT_LIMITS,
    relieves=("partition",),
)
@says(COSMOS, _PHYSICAL, "a PartitionKey has at most 10,000 RU/s, those of its physical partition")
@says(COSMOS, _CHOOSE, "a wide range of values that spreads the request units evenly")
@disagrees(COSMOS, _CHOOSE, "with one physical partition the value may not matter")
@remedy(
    "Make PartitionKeys finer: a key with more values, two properties in one key, or a suffix that "
    "spreads one key over several."
)
def hot_partition_key(seen: Seen) -> Assessment | None:
    charges = seen.charges
    # Finer keys do not split a row.
    if charges is None or not charges.shares.hottest or seen.hot_row:
        return None
    if not charges.known:
        return untold(_UNCHARGED)
    share, about = charges.shares.hottest_share, "" if seen.recorded else "about "
    limit = charges.throughput.partition_ru_per_s
    why = f"PartitionKey {charges.shares.hottest!r} takes {about}{percent(share)} of the RU"
    if "partition" not in seen.limits:
        return _held(seen, charges, f"{why}, and can have {number(limit)} RU/s at most", share)
    if (most := seen.most_throttled) is not None:
        units = most.request_units
        why = f"{percent(most.throttled_ratio)} of the attempts on {most.key!r} were throttled"
        if units is not None:
            why += f"; it used {number(units.per_s.mean)} of {number(limit)} RU/s"
    return offends(f"{why}. A partition cannot borrow from the others.")


@practice(
    "no operation takes most of the request units",
    "mix",
    applies=UNIT_LIMITS,
    relieves=("throughput", "operation"),
)
@says(UNITS, "Request unit considerations", "what an operation reads and writes decides its charge")
@remedy("Make entities smaller, scan fewer of them, and name the PartitionKey in filters.")
def costly_operations(seen: Seen) -> Assessment | None:
    most = next(iter(seen.charges.kinds), None) if seen.charges is not None else None
    if most is None or not seen.recorded:
        return None
    why = f"{most.label} took {percent(most.share)} of the RU, {units_words(most.each)} each."
    used_up = {"throughput", "operation"}.intersection(seen.limits)
    return (offends if used_up and most.share >= _COSTLY else fine)(why)


@practice(
    "request units spread evenly over the physical partitions",
    "keys.partition_key",
    applies=UNIT_LIMITS,
)
@says(COSMOS, _PHYSICAL, "each has an equal part of the throughput; a hot one wastes the others'")
@says(COSMOS, _CHOOSE, "even use of PartitionKeys makes physical partitions even")
@remedy("Use many more PartitionKeys than physical partitions, each with a small share.")
def physical_partitions(seen: Seen) -> Assessment | None:
    charges = seen.charges
    if charges is None or charges.throughput.fewest_partitions == 1:
        return None
    if not charges.known:
        return untold(_UNCHARGED)
    if charges.physical_share is None:
        return untold(_UNKNOWN_KEYS)
    count, share = charges.throughput.fewest_partitions, charges.hottest_share
    limit = charges.throughput.partition_ru_per_s
    why = (
        f"The hottest of {count} physical partitions takes about {percent(share)} of the RU (even: "
        f"{percent(1 / count)}), and has {number(limit)} RU/s"
    )
    if share * count < _UNEVEN:
        return fine(f"{why}.")
    return _held(seen, charges, why, share)


def _held(seen: Seen, charges: ChargesSeen, why: str, share: float) -> Assessment:
    """Whether ``share`` of the request units is too much for one physical partition."""
    # In a sample of many keys none may stand out.
    reached = charges.throughput.partition_ru_per_s / share if share else math.inf
    provisioned, wanted = charges.throughput.ru_per_s, charges.per_s
    most = provisioned if provisioned is not None else wanted
    if most is not None and reached >= _NEAR * most:
        return fine(f"{why}.")
    why += f": it has no more at {number(reached)} RU/s in total"
    if provisioned is not None:
        why += f", and {number(provisioned)} are provisioned"
    if wanted is None or wanted >= reached:
        return offends(f"{why}.")
    said = "The best second took" if seen.recorded else "This profile takes"
    return consider(f"{why}. {said} {number(wanted)}.")


@practice("keys are no longer than Cosmos DB allows", "keys.partition_key", applies=UNIT_LIMITS)
@says(COSMOS, _CHOOSE, "PartitionKeys of 2,048 bytes, or 101 without large partition keys")
@says(COSMOS_FAQ, _DIFFERENT, "RowKeys of 255 bytes")
@remedy("Shorten the keys.")
def key_bytes(seen: Seen) -> Assessment | None:
    charges = seen.charges
    if charges is None:
        return None
    partition, row = charges.longest_partition_key, charges.longest_row_key
    if partition is None:
        return untold(_UNKNOWN_KEYS)
    for name, length, limit in charges.keys_over():
        return offends(f"A {name} has {length:,} bytes; {limit:,} are allowed.")
    if partition > _SMALL_KEY_BYTES:
        return consider(
            f"A PartitionKey has {partition:,} bytes. Without large partition keys only the first "
            f"{_SMALL_KEY_BYTES} are hashed, so keys that differ later share a partition."
        )
    rows = "" if row is None else f", the longest RowKey {row}"
    return fine(f"The longest PartitionKey has {partition} bytes{rows}.")


@practice("queries name the PartitionKey", "mix", applies=UNIT_LIMITS)
@says(COSMOS, _READ_HEAVY, "a filter by the key goes to one physical partition only")
@disagrees(COSMOS, _READ_HEAVY, "no concern below 30,000 RU/s and 100 GB")
@remedy("Name the PartitionKey in the filter, or store the data a second time by the other key.")
def cross_partition(seen: Seen) -> Assessment | None:
    charges, labels = seen.charges, {query.name for query in seen.over_partitions}
    if charges is None or not labels:
        return None
    share = sum(kind.share for kind in charges.kinds if kind.label in labels)
    taken = percent(share) if charges.known else "an unknown part"
    asked = counted(charges.throughput.fewest_partitions, "physical partition")
    page = units_words(charges.throughput.fewest_partitions * QUERY_PAGE / RU)
    why = (
        f"Queries over several PartitionKeys take {taken} of the RU; each page asks {asked}, which "
        f"costs {page} RU before anything is returned."
    )
    return consider(why) if _many_physical(charges) else fine(why)


def _many_physical(charges: ChargesSeen) -> bool:
    """Whether the document asks for care with queries over several PartitionKeys."""
    throughput = charges.throughput
    return throughput.fewest_partitions > _FEW_PHYSICAL or throughput.stored_bytes > _MUCH_STORED


@practice("no PartitionKey is full", "keys.partition_key", applies=UNIT_LIMITS, relieves=("size",))
@says(COSMOS, "Logical partitions", "a PartitionKey stores 20 GB; many values let the data grow")
@remedy(
    "Split the partition by a further part of its key, such as a category, a shorter period or a "
    "calculated suffix."
)
def full_key(seen: Seen) -> Assessment | None:
    # `large_partitions` says when a key will be full.
    if not seen.full:
        return None
    others = f" and {counted(len(seen.full) - 1, 'other')}" if len(seen.full) > 1 else ""
    return offends(
        f"Writes to partition {seen.full[0]!r}{others} were refused, because it stores as much as "
        "it may. Neither retries nor more throughput help."
    )


@practice(
    "stored data leaves each physical partition enough throughput",
    "keys.rows_per_partition",
    applies=UNIT_LIMITS,
)
@says(COSMOS, _PHYSICAL, "each stores 50 GB; more data is split, and each has a smaller share")
@remedy("Keep old data elsewhere, or provision more for a smaller share of each partition.")
def data_volume(seen: Seen) -> Assessment | None:
    charges = seen.charges
    if charges is None or not charges.throughput.stored_bytes:
        return None
    throughput, count = charges.throughput, charges.throughput.storing_partitions
    needed = counted(count, "physical partition")
    why = (
        f"{storage_size(throughput.stored_bytes)} are stored, which need {needed} of "
        f"{storage_size(MAX_PHYSICAL_PARTITION_BYTES)}"
    )
    grows = ""
    lasting = seen.profile is None or seen.profile.load_model.lasting
    if charges.grown_per_s and lasting:
        split_s = MAX_PHYSICAL_PARTITION_BYTES / charges.grown_per_s
        if split_s < _YEAR_S:
            grows = f" If the rate lasts, one more is needed every {long_duration(split_s)}."
    serving = throughput.serving_partitions
    if count <= serving:
        return fine(f"{why}; for the throughput there are {serving:,}.{grows}")
    return consider(
        f"{why}: more than the {serving:,} of the throughput. Each, and so one PartitionKey, has "
        f"{number(throughput.partition_ru_per_s)} RU/s at most.{grows}"
    )


@practice("an entity's own key as PartitionKey fits the load", "mix", applies=UNIT_LIMITS)
@says(COSMOS, _ITEM_ID, "for small read-heavy containers, and write-heavy ones of any size")
@disagrees(COSMOS, _ITEM_ID, "with many physical partitions, queries should name the key")
@disagrees(COSMOS, _ITEM_ID, "no transaction covers several keys; it is about the API for NoSQL")
@remedy("Make a PartitionKey of a property by which most queries filter.")
def item_key(seen: Seen) -> Assessment | None:
    charges, partitions = seen.charges, seen.loaded_partitions or 0
    alone = partitions > 1 and (seen.loaded_entities or 0) < _ONE_EACH * partitions
    if charges is None or not alone or seen.growth is not None:
        return None
    why = "Each entity has a PartitionKey of its own: load and data spread evenly"
    if not seen.over_partitions:
        return fine(f"{why}, and no query needs several of them.")
    why += ", but no transaction covers two entities, and queries ask all physical partitions"
    reading = seen.reads > seen.written and _many_physical(charges)
    return (consider if reading else fine)(f"{why}.")


@practice("the PartitionKey is chosen before there is much data", "keys", applies=UNIT_LIMITS)
@says(COSMOS, _CHOOSE, "another one cannot be set: the data moves to a new container")
@remedy("Compare keys in runs now, with few rows; later every change costs this copy.")
def key_choice(seen: Seen) -> Assessment | None:
    charges = seen.charges
    if charges is None or not charges.copied or seen.recorded:
        return None
    why = (
        f"Another PartitionKey means a copy of all {seen.loaded_entities or 0:,} rows to a new "
        f"table: about {number(charges.copied)} RU"
    )
    provisioned = charges.throughput.ru_per_s
    if provisioned is None:
        return fine(f"{why}. How long that takes depends on what is provisioned.")
    took_s = charges.copied / provisioned
    why += f", {long_duration(max(took_s, 1))} of the provisioned {number(provisioned)} RU/s"
    return (consider if took_s > _LONG_COPY_S else fine)(f"{why}.")


@practice("a transaction has at most 2 MB", "transaction.operations", applies=UNIT_LIMITS)
@says(COSMOS_FAQ, _DIFFERENT, "batches of 2 MB; Storage allows 4 MiB")
@remedy("Put fewer entities into a transaction.")
def transaction_bytes(seen: Seen) -> Assessment | None:
    charges = seen.charges
    if charges is None or not charges.largest_transaction:
        return None
    judge = offends if charges.largest_transaction > MAX_REQUEST_BYTES else fine
    return judge(f"The largest transaction has about {charges.largest_transaction:,} bytes.")
