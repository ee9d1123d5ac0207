"""Advice: recommendations of the documents, each with a cause in the figures of the run.

Without a cause in the figures, no advice is given.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.measure.counts.latency import BUCKETS_S
from harness.measure.record.findings import AdvicePart
from harness.measure.record.measured import PartitionPart
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.observations import SHOWN_GAP_S, attempts_answered, named
from harness.measure.verdict.request_units import ThrottlingCause, by_cost, throttled_of_cosmos
from harness.model.figures import agreed, counted, milliseconds, number, percent, request_units
from harness.model.operation import Kind

STRATEGY = "Design a scalable partitioning strategy for Azure Table storage"
CHECKLIST = "Performance and scalability checklist for Table storage"
STORES = "Data partitioning strategies"
COSMOS = "Partitioning and horizontal scaling in Azure Cosmos DB"
SYNTHETIC = "Create a synthetic partition key in Azure Cosmos DB"
TOO_LARGE = "Diagnose and troubleshoot Azure Cosmos DB request rate too large (429) exceptions"
UNITS = "Request Units in Azure Cosmos DB"
README = "README.md"
SESSIONS = "docs/sessions.md"
_PROFILES = "docs/profiles.md"
_WATCH = "docs/watch.md"

BURST_S = 30
"""Throttling before this second meets a table that the service had no time to balance."""
UNEVEN_FROM = 2.0
"""A partition with this multiple of its equal share of the load is uneven."""
UNEVEN_ACCOUNTS_FROM = 1.5
"""An account with this multiple of its equal share of the load is uneven."""
SINGLE_FROM = 0.5
"""Share of single writes among all writes from which transactions are advised."""
WRITES_FROM = 0.25
"""Share of writes among all operations from which there is advice about writes."""
SPARSE_BELOW = 0.5
"""Share of returned among scanned entities below which queries scan too much."""
COSTLY_FROM = 0.5
"""Share of all request units from which there is advice about one operation."""
FAR_S = 0.025
"""If no answer is faster, the client is probably not in the account's region."""
_RETRY_FAULTS = {
    "none": "gives up refused requests",
    "fixed": "sends all refused requests again at the same time",
}


def on_throttling(evidence: Evidence, *, by_account: bool) -> Iterator[AdvicePart]:
    throttling = evidence.throttling
    cosmos = evidence.kind.cosmos
    if cosmos:
        yield from _on_cosmos(evidence)
    elif by_account:
        yield from on_account(evidence)
    else:
        yield from on_keys(evidence)
    yield from _on_single_writes(evidence)
    # A search exceeds the limit on purpose and at once, and does not retry.
    fault = None if evidence.searched else _RETRY_FAULTS.get(evidence.retry)
    if fault is not None:
        yield AdvicePart(
            text=f"use exponential back-off: strategy {evidence.retry!r} {fault}",
            document=STRATEGY,
            section="Retry strategy",
        )
    if not cosmos and (late := attempts_answered(evidence.snapshot, 504)):
        yield AdvicePart(
            text=f"treat 504 as 503, with back-off: {counted(late, 'attempt')} "
            f"{agreed(late, 'was', 'were')} answered 504 (Timeout), as while a partition moves to "
            "another server; a write that was answered so may have been applied",
            document=STRATEGY,
            section="Retry strategy",
        )
    early = throttling.first_s is not None and throttling.first_s <= BURST_S
    # An emulator has limits of its own.
    unexpected = not evidence.searched and not evidence.kind.emulated
    if early and unexpected and _under_targets(evidence):
        yield AdvicePart(
            text=f"raise the load more slowly: throttling began {throttling.first_s} s into the "
            "load, at rates below the targets, before the service could balance the table",
            document=CHECKLIST,
            section="Targets for data operations",
        )
    gap = throttling.longest_gap
    if not cosmos and gap is not None and gap.length_s >= SHOWN_GAP_S:
        yield AdvicePart(
            text=f"let retries continue for more than {gap.length_s} s: a partition is "
            "unavailable for some seconds while it moves to another server",
            document=STRATEGY,
            section="Load balancing",
        )


def _on_cosmos(evidence: Evidence) -> Iterator[AdvicePart]:
    throttled = throttled_of_cosmos(evidence)
    cause = ThrottlingCause.UNKNOWN if throttled is None else throttled.cause
    if cause is ThrottlingCause.COSTLY_OPERATION:
        yield from _on_costs(evidence)
        return
    if cause is not ThrottlingCause.THROUGHPUT:
        yield from on_cosmos_keys(evidence, None if throttled is None else throttled.most)
    charged = throttled is not None and throttled.used_per_s is not None
    if cause is not ThrottlingCause.HOT_PARTITION and charged:
        yield from on_throughput(evidence)


def on_cosmos_keys(evidence: Evidence, most: PartitionPart | None) -> Iterator[AdvicePart]:
    """Advice for a run against Cosmos DB with too much load on one partition, ``most``."""
    keys = evidence.snapshot.partitions
    yield AdvicePart(
        text="choose a partition key with many values over which requests spread evenly: every "
        "physical partition has an equal part of the provisioned throughput, and a hot one cannot "
        "borrow from the others",
        document=COSMOS,
        section="Physical partitions",
    )
    if most is None or most.request_units is None:
        return
    used = number(most.request_units.per_s.mean)
    limit = number(evidence.throughput.partition_ru_per_s)
    yield AdvicePart(
        text=f"build a synthetic key: append to {most.key!r} a suffix that is computed from "
        "the RowKey, so that one value becomes many and a read still knows its key; it used "
        f"{used} of {limit} RU/s",
        document=SYNTHETIC,
        section="Use a partition key with precalculated suffixes",
    )
    if len(keys) == 1 and evidence.snapshot.folded is None:
        yield AdvicePart(
            text="make the RowKey, or another property with many values, the second part of the "
            "PartitionKey: the run used one PartitionKey",
            document=SYNTHETIC,
            section="Concatenate multiple properties of an item",
        )


def on_throughput(evidence: Evidence) -> Iterator[AdvicePart]:
    """Advice for a run that used all that was provisioned at Cosmos DB."""
    provisioned = evidence.throughput.ru_per_s
    used = number(evidence.rate(evidence.snapshot.account_request_units))
    if provisioned is None:
        yield AdvicePart(
            text=f"compare the {used} RU/s that were used with what is provisioned: if they are "
            "the same, provision more; if they are far below it, look for a hot partition",
            document=TOO_LARGE,
            section="Request rate is large",
        )
    else:
        yield AdvicePart(
            text=f"provision more throughput: {used} of {number(provisioned)} RU/s were used on "
            "average, and another key cannot spread what is used up everywhere",
            document=COSMOS,
            section="Physical partitions",
        )
    yield from _on_costs(evidence)


def _on_costs(evidence: Evidence) -> Iterator[AdvicePart]:
    """Advice about the operations that took most of the request units."""
    for part, share in by_cost(evidence.snapshot)[:1]:
        each = part.request_units_each
        if share >= COSTLY_FROM and each is not None:
            yield AdvicePart(
                text=f"reduce the cost of {part.kind}: it took {percent(share)} of the request "
                f"units, {request_units(each)} each; smaller entities, fewer scanned entities and "
                "filters with a PartitionKey cost less",
                document=UNITS,
                section="Request unit considerations",
            )


def on_keys(evidence: Evidence) -> Iterator[AdvicePart]:
    """Advice for a run with too much load on one partition."""
    yield from _on_queries(evidence)
    if evidence.growing_keys and not evidence.queries_are_most:
        yield AdvicePart(
            text="prefix the key with a hash: with ascending or descending keys all inserts go to "
            "one end of the table, which one server serves",
            document=STORES,
            section="Partitioning Azure Table storage",
        )
        return
    yield AdvicePart(
        text="use a finer PartitionKey so that more servers share the load: one server serves a "
        "partition",
        document=STRATEGY,
        section="Table partition stress testing",
    )
    hottest, partitions = evidence.snapshot.hottest, evidence.snapshot.partitions
    if hottest is None or not evidence.achieved_per_s:
        return
    share = hottest.entities_per_s.mean / evidence.achieved_per_s
    if len(partitions) > 1 and share * len(partitions) >= UNEVEN_FROM:
        yield AdvicePart(
            text=f"split the busiest partition: {named(hottest)} took {percent(share)} of the load "
            f"of at least {len(partitions):,} partitions",
            document=CHECKLIST,
            section="High-traffic data",
        )


def on_missed(evidence: Evidence) -> Iterator[AdvicePart]:
    """Advice for a run whose queries by key bounds missed what they asked for."""
    if evidence.scans.missed:
        yield AdvicePart(
            text="write numbers in keys with leading zeros, in a fixed width: keys are compared as "
            "text, so that a range of keys was not the range of numbers that was asked for",
            document=STRATEGY,
            section="Table primary key",
        )


def on_account(evidence: Evidence) -> Iterator[AdvicePart]:
    yield from _on_queries(evidence)
    less = "" if evidence.queries_are_most else "send fewer requests, or "
    accounts, busiest = len(evidence.snapshot.accounts), evidence.snapshot.busiest_account
    yield AdvicePart(
        text=f"{less}spread the data over {f'more than {accounts}' if accounts else 'several'} "
        "storage accounts",
        document=CHECKLIST,
        section="Capacity and transaction targets",
    )
    if busiest is None or not evidence.achieved_per_s:
        return
    share = busiest.entities_per_s.mean / evidence.achieved_per_s
    if share * accounts >= UNEVEN_ACCOUNTS_FROM:
        yield AdvicePart(
            text="use a finer PartitionKey so that the partitions spread evenly over the accounts: "
            f"account {busiest.name} took {percent(share)} of the load of {accounts}",
            document=CHECKLIST,
            section="High-traffic data",
        )


def on_gateway(evidence: Evidence) -> Iterator[AdvicePart]:
    """Advice for an application that the gateway in front of the endpoint slowed down."""
    yield AdvicePart(
        text="share the requests among several gateway processes (harness watch --processes)",
        document=_WATCH,
        section="What it costs",
    )


def on_users(evidence: Evidence) -> Iterator[AdvicePart]:
    """Advice for a run with too few users for the wanted rate."""
    if evidence.wanted_per_s is None or not evidence.achieved_per_s:
        return
    needed = evidence.on_the_way * evidence.wanted_per_s / evidence.achieved_per_s
    yield AdvicePart(
        text=f"raise load.users from {evidence.users:,} to more than {needed:,.0f}: by "
        "Little's law, that many wait for answers at the wanted rate",
        document=_PROFILES,
        section="Load models",
    )


def on_endpoint(evidence: Evidence) -> Iterator[AdvicePart]:
    service = evidence.snapshot.service_ms
    if evidence.kind.emulated:
        yield AdvicePart(
            text="repeat the run against an account: the limit here is the capacity of an emulator",
            document=README,
            section="Against your own account",
        )
    elif service is not None and not service.buckets[BUCKETS_S.index(FAR_S)]:
        yield AdvicePart(
            text="run the generator in the account's region: no answer took less than "
            f"{milliseconds(FAR_S * 1000)} ms",
            document=CHECKLIST,
            section="Location",
        )
    yield from _on_single_writes(evidence)


def _on_queries(evidence: Evidence) -> Iterator[AdvicePart]:
    scans = evidence.scans
    if not evidence.queries_are_most:
        return
    figures = f"{counted(scans.entities, 'entity', 'entities')} and returned {scans.returned:,}"
    if scans.returned < SPARSE_BELOW * scans.entities:
        yield AdvicePart(
            text=f"let queries scan less: they scanned {figures}, and every scanned entity counts",
            document=CHECKLIST,
            section="Query density",
        )
        return
    yield AdvicePart(
        text=f"read fewer entities per query: {counted(scans.queries, 'query', 'queries')} scanned "
        f"{figures}, and every scanned entity counts",
        document=CHECKLIST,
        section="Query scope",
    )


def _on_single_writes(evidence: Evidence) -> Iterator[AdvicePart]:
    writes = [part for part in evidence.snapshot.operations if not Kind(part.type).reads]
    total = sum(part.count for part in writes)
    single = sum(part.count for part in writes if part.type != Kind.TRANSACTION)
    if evidence.kind.cosmos or evidence.snapshot.folded is not None:
        # Cosmos DB bills by work done. Folded partitions have few writes each.
        return
    operations = sum(part.count for part in evidence.snapshot.operations)
    if evidence.queries_are_most or total < WRITES_FROM * operations:
        # Fewer requests for writes would hardly change the load.
        return
    if total and single >= SINGLE_FROM * total:
        yield AdvicePart(
            text=f"batch the writes to a partition in transactions of up to 100: "
            f"{single:,} of {counted(total, 'write operation')} {agreed(single, 'was', 'were')} "
            "single",
            document=CHECKLIST,
            section="Batching",
        )


def _under_targets(evidence: Evidence) -> bool:
    hottest, targets = evidence.snapshot.hottest, evidence.targets
    if targets is None or hottest is None:
        return False
    account = evidence.snapshot.account_rates.best_1s
    return hottest.entities_per_s.best_1s <= targets.partition and account <= targets.account
