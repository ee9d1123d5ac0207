"""Practices about queries."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable

from harness.measure.verdict.conditions import parse_condition
from harness.measure.verdict.quantities import Unit
from harness.model.entity import MAX_PROPERTIES
from harness.model.figures import counted, data_size, percent, request_units
from harness.model.operation import Kind
from harness.model.request_units import MISSING as NOT_FOUND
from harness.model.request_units import RU, charge
from harness.profile.checks.seen import MISSING, QuerySeen, Seen
from harness.profile.practices.practice import (
    CHECKLIST,
    EVERYWHERE,
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

_LOW_DENSITY = 0.5
_VERY_LOW_DENSITY = 0.1
"""Share of the scanned entities that are returned. The document's example of low is 1 %."""
_MANY_SCANS = 0.5
"""Share of the reads; point queries are to be used "in most cases", so in more than half."""
_SCOPE = "Query scope"
_LIMITING = "Limiting the amount of data returned"
_OF_TABLES = "Partitioning Azure Table storage"


@practice("queries stay in one partition", "mix", relieves=("scans",))
@says(CHECKLIST, _SCOPE, "avoid queries over entities without a common PartitionKey")
@says(PARTITIONING, "Determine queries", "full table scans are worst, then partition range scans")
@disagrees(PARTITIONING, "Determine queries", "a partition range scan of few servers is good")
@says(STRATEGIES, _OF_TABLES, "without a PartitionKey every partition is scanned")
@remedy("Choose keys so that a query needs one partition only; add index rows if needed.")
def table_queries(seen: Seen) -> Assessment | None:
    if not seen.reads:
        return None
    over = seen.over_partitions
    if not over:
        return fine("No query goes over several partitions.")
    whole = [query for query in over if query.unbounded]
    worst = (whole or over)[0]
    setting, scanned = _setting(seen, worst), worst.entities / worst.count
    many = f"{scanned:,.0f} entities" if scanned else "an unknown number of entities"
    times = f" It was sent {counted(worst.count, 'time')}." if seen.recorded else ""
    if whole:
        why = f"{worst.name} scans a whole table, {many} each time, and all of them count.{times}"
        return offends(why, setting=setting)
    return consider(
        f"{worst.name} scans {many} of several partitions, which may be on several servers. The "
        f"documents disagree on how bad that is.{times}",
        setting=setting,
    )


@practice("most reads are point queries", "mix", relieves=("scans",))
@says(CHECKLIST, _SCOPE, "point queries wherever possible, partition queries sparingly")
@says(PARTITIONING, "Determine queries", "point queries use the one index fully")
@remedy("Give the entities that are read most a key that a point query can name.")
def partition_queries(seen: Seen) -> Assessment | None:
    if not seen.reads:
        return None
    scans = sum(query.many for query in seen.queries)
    share = scans / seen.reads
    # `query_density` is about queries that scan more than they return.
    sparse = any((query.density or 1.0) < _LOW_DENSITY for query in seen.queries)
    costly = "scans" in seen.limits and not sparse
    if share < _MANY_SCANS and not costly:
        if (suffixes := _random_suffixes(seen)) > 1:
            return consider(
                f"{percent(1 - share)} of the reads are point queries, and name the random suffix "
                "of the PartitionKey, as an application does that keeps the suffix. Another one "
                f"sends each read to {suffixes:,} partitions{_in_units(seen, suffixes)}.",
                change="Calculate the suffix from the RowKey, such as with {row:bucket16}, or keep "
                "the PartitionKey with whatever names the entity.",
            )
        return fine(f"{percent(1 - share)} of the reads are point queries.")
    why = (
        f"{percent(share)} of the reads ask for more than one entity, and count every scanned "
        "entity"
    )
    if seen.record is not None:
        bound = "at least " * any(part.uncertain for part in seen.record.operations)
        mean = sum(query.entities for query in seen.queries if query.many) / (scans or 1)
        why += f": {bound}{mean:,.1f} a query, on average"
    return (offends if costly else consider)(f"{why}.")


def _in_units(seen: Seen, suffixes: int) -> str:
    """What point queries of a row cost with each of its possible suffixes; nothing elsewhere."""
    if seen.charges is None:
        return ""
    each = charge(Kind.POINT_QUERY, seen.charges.entity_bytes or 0)
    most = request_units((each + (suffixes - 1) * NOT_FOUND) / RU)
    return f" ({most} RU instead of {request_units(each / RU)})"


def _random_suffixes(seen: Seen) -> int:
    profile = seen.profile
    mixed = not seen.recorded and profile is not None and profile.mixed
    return profile.design.random_suffixes if mixed and profile is not None else 1


@practice("the keys serve the most frequent and the most urgent queries", "mix")
@says(PARTITIONING, "Determine queries", "rank queries by how often and how fast they are needed")
@says(PARTITIONING, "Choose the PartitionKey value", "properties that are queried become keys")
@remedy("Choose keys that these queries name, and serve the others by index rows.")
def query_priority(seen: Seen) -> Assessment | None:
    scans = sorted((query for query in seen.queries if query.many), key=lambda query: -query.count)
    if not seen.reads or not scans:
        return None
    others = seen.reads - sum(query.count for query in seen.queries)
    for query in scans:
        if query.name in _urgent(seen):
            scope = "several partitions" if query.over_partitions else "a partition"
            share = percent(query.count / seen.reads)
            return consider(
                f"A condition limits the latency of {query.name}, {share} of the reads. It scans "
                f"{scope}: a point query by both keys would be faster."
            )
    most = scans[0]
    better = sum(query.count for query in scans if not query.over_partitions) + max(0, others)
    share = percent(most.count / seen.reads)
    if most.count <= others:
        return fine("The most frequent reads are point queries.")
    if most.over_partitions:
        # Without better served reads, `table_queries` says it all.
        rarer = f"the keys serve rarer ones ({percent(better / seen.reads)})"
        why = f"The most frequent read, {most.name} ({share}), goes over several partitions"
        return consider(f"{why}, and {rarer}.") if better else None
    return fine(f"The most frequent read, {most.name} ({share}), stays in one partition.")


def _urgent(seen: Seen) -> set[str]:
    """The operations whose latency a pass condition limits."""
    texts: Iterable[str] = () if seen.profile is None else seen.profile.conditions
    if seen.profile is None and seen.record is not None:
        texts = (condition.text for condition in seen.record.conditions)
    names = set()
    for text in texts:
        # A record of another version may have conditions that this one does not know.
        with contextlib.suppress(ValueError):
            condition = parse_condition(text)
            if condition.form.by == "op" and condition.form.unit is Unit.LATENCY:
                names.add(condition.name)
    return names


@practice("queries scan little more than they return", relieves=("scans",))
@says(CHECKLIST, "Query density", "targets count what is scanned, not what is returned")
@says(CHECKLIST, "Denormalization", "store an entity once for each key it is found by")
@says(STRATEGIES, _OF_TABLES, "look-ups by other fields need index tables")
@says(PARTITIONING, "Choose the PartitionKey value", "selective queries are more efficient")
@remedy("Put the filtered property into the keys, or keep index rows for it.")
def query_density(seen: Seen) -> Assessment | None:
    known = [(query.density, query) for query in seen.queries if query.density is not None]
    density, query = min(known, key=lambda pair: pair[0], default=(math.inf, None))
    if density >= _LOW_DENSITY and seen.recorded and (filtered := _filtered(seen)) is not None:
        return filtered
    if query is None:
        return None
    setting = _setting(seen, query)
    if density >= _LOW_DENSITY:
        share = "all" if density >= 1 else f"{percent(density)} or more"
        return fine(f"Every query returns {share} of the entities that it scans.", setting=setting)
    why = (
        f"{query.name} returns {percent(density)} of the {query.entities / query.count:,.0f} "
        "entities that it scans, and all of them count."
    )
    if query.by_number:
        why += " With these keys the range of the query is not a range of keys."
    if seen.recorded and query.filtered:
        why += f" {share_of(query.filtered, query.count, 'query', 'queries')} compared properties."
    judge = offends if density < _VERY_LOW_DENSITY or "scans" in seen.limits else consider
    return judge(why, setting=setting)


def _filtered(seen: Seen) -> Assessment | None:
    """Queries that compare properties, if the number of scanned entities is unknown."""
    unknown = [query for query in seen.queries if query.filtered and query.density is None]
    if not unknown:
        return None
    worst = max(unknown, key=lambda query: query.filtered)
    return consider(
        f"{worst.name} compares properties other than the keys "
        f"{counted(worst.filtered, 'time')}: the service scans the whole range of keys, and how "
        "many entities that are cannot be seen in the answers."
    )


@practice("no query returns unneeded entities", "query")
@says(CHECKLIST, _LIMITING, "a filter saves bandwidth and work of the client")
@remedy("Ask for a range of keys, filter, or limit the number, unless all entities are needed.")
def filtering(seen: Seen) -> Assessment | None:
    if not seen.queries:
        return None
    if seen.unobserved:
        return untold(f"How many entities one query returns {MISSING}")
    whole = [
        query
        for query in seen.queries
        if query.full and query.unbounded and not query.filtered and not query.limited
    ]
    if not whole:
        return fine("No query returns whole ranges of several pages.")
    worst = max(whole, key=lambda query: query.entities_returned / query.count)
    if seen.recorded:
        return consider(
            f"{worst.name} returned all that it scanned: "
            f"{counted(worst.full, 'full page')} of 1,000 entities."
        )
    each = worst.entities_returned / worst.count
    return consider(
        f"{worst.name} returns all that it scans, {each:,.0f} entities in pages of at most 1,000.",
        setting=_setting(seen, worst),
    )


@practice("queries return only the properties that are needed", "query.select")
@says(CHECKLIST, _LIMITING, "projection saves bandwidth and work of the client")
@remedy("Select the properties that are needed; change nothing if all are needed.")
def projection(seen: Seen) -> Assessment | None:
    if not seen.queries:
        return None
    if seen.unobserved:
        return untold(f"Which properties a query selects {MISSING}")
    plain = [query for query in seen.queries if query.many and query.unselected]
    if not plain:
        return fine("Every query of many entities selects properties.")
    names = ", ".join(dict.fromkeys(query.name for query in plain))
    why = f"{names}: all properties of each entity are returned."
    if seen.recorded:
        worst = max(plain, key=lambda query: query.entities_returned * (query.entity_bytes or 0))
        number = share_of(worst.unselected, worst.count, "query", "queries")
        why += f" {number} of {worst.name} had no $select"
        if worst.entity_bytes is not None:
            why += f", and an entity took {data_size(round(worst.entity_bytes))} of the answer"
        why += "."
    return consider(why)


@practice("a series that is read together is one entity", "mix.series_merge")
@says(CHECKLIST, "Storing data series in a single entity", "one property for each value")
@remedy("Merge the values as properties of one entity, which a point query then reads.")
def data_series(seen: Seen) -> Assessment | None:
    if "series_merge" in seen.labels:
        return fine("A series is merged into one entity.")
    if seen.unobserved:
        return untold(f"What is done to each table {MISSING}") if seen.queries else None
    appended = [table.table for table in seen.tables or () if table.appended and table.inserted]
    together = [
        query
        for query in seen.queries
        if not query.over_partitions and any(query.of_table(name) for name in appended)
    ]
    if not together:
        return None
    query = min(together, key=lambda query: query.entities_returned / query.count)
    mean = query.entities_returned / query.count
    if not 2 <= mean <= MAX_PROPERTIES:
        return fine(f"The {mean:,.0f} rows that are read together do not fit into one entity.")
    return consider(
        f"Rows are inserted one by one and never touched again, and {query.name} reads "
        f"{mean:,.0f} of one partition together. If each row holds one value of a series, one "
        "entity could hold them all."
    )


@practice(
    "data that is written and read in bulk is in blobs", "mix.transaction", applies=EVERYWHERE
)
@says(CHECKLIST, "Storing structured data in blobs", "for batch inserts that are read as ranges")
@remedy("If no row is ever read alone, as in a log, store each batch as a blob.")
def blobs(seen: Seen) -> Assessment | None:
    if seen.unobserved:
        return untold(f"What is done to each table {MISSING}") if seen.queries else None
    batched = [table.table for table in seen.tables or () if table.appended and table.batches]
    ranges = [
        query
        for query in seen.queries
        if query.many
        and not (seen.recorded and query.filtered)
        and any(query.of_table(name) for name in batched)
    ]
    if not ranges:
        return None
    if seen.without_rows is not None:
        why = "Batches are appended to blobs, which are read by ranges of bytes."
        return fine(why, setting="session.kind")
    return consider(
        f"Rows are inserted in batches and never touched again, and {ranges[0].name} reads many "
        "of them at once."
    )


def _setting(seen: Seen, query: QuerySeen) -> str:
    """The action of the mix, or of the scenario, that a query comes from."""
    action = query.name
    if query.by_number:
        action = "partition_range_scan" if query.over_partitions else "row_range_scan"
    return seen.setting(f"mix.{action}", query.name)
