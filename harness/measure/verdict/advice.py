"""What to do about a finding, as the documents advise it, each with its cause in the run.

Advice without a cause in the figures is not given, however good it is in general.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from harness.measure.counts.latency import BUCKETS_S
from harness.measure.figures import agreed, counted, percent
from harness.measure.verdict.evidence import Evidence, connections_used_up
from harness.measure.verdict.observations import SHOWN_GAP_S, named
from harness.measure.verdict.throttling import Throttling
from harness.model.operation import Kind
from harness.model.target import EndpointKind

STRATEGY = "Design a scalable partitioning strategy for Azure Table storage"
CHECKLIST = "Performance and scalability checklist for Table storage"
STORES = "Data partitioning strategies"
COSMOS = "Partitioning and horizontal scaling in Azure Cosmos DB"
README = "README.md"

BURST_S = 30
"""Throttling that begins so soon found a table whose load had no time to be balanced."""
UNEVEN_FROM = 2.0
"""A partition with so many times its fair share of the load is used far more than others."""
SINGLE_FROM = 0.5
"""Share of writes outside of transactions from which gathering them is worth a word."""
WRITES_FROM = 0.25
"""Share of the operations that write from which it is worth a word how they do."""
SPARSE_BELOW = 0.5
"""Of what queries walked so little came back: what they looked for could be found otherwise."""
FAR_S = 0.025
"""Where nothing is answered sooner, the client is likely not in the account's region."""
_RETRY_FAULTS = {
    "none": "gives up refused requests",
    "fixed": "sends all refused requests again at the same time",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing to do.

    Attributes:
        text: What, and its cause.
        document: Title of the document that advises it.
        section: Its section.
    """

    text: str
    document: str
    section: str


def on_throttling(
    evidence: Evidence, throttling: Throttling, *, by_account: bool
) -> Iterator[Advice]:
    """What helps where a partition or the account refused attempts."""
    cosmos = evidence.kind is EndpointKind.COSMOS
    if cosmos:
        yield Advice(
            text="choose a partition key with many values over which requests spread evenly: "
            "every physical partition has an equal part of the provisioned throughput, and a hot "
            "one cannot borrow from the others",
            document=COSMOS,
            section="Physical partitions",
        )
    elif by_account:
        yield from on_account(evidence)
    else:
        yield from on_keys(evidence)
    yield from _on_single_writes(evidence)
    # A search goes beyond the limit on purpose, at once, and does not send again what is refused.
    fault = None if evidence.searched else _RETRY_FAULTS.get(evidence.retry)
    if fault is not None:
        yield Advice(
            text=f"use exponential back-off: strategy {evidence.retry!r} {fault}",
            document=STRATEGY,
            section="Retry strategy",
        )
    early = throttling.first_s is not None and throttling.first_s <= BURST_S
    # What stands in for the service has limits of its own.
    unexpected = not evidence.searched and not evidence.kind.emulated
    if early and unexpected and _under_targets(evidence):
        yield Advice(
            text=f"raise the load more slowly: throttling began {throttling.first_s} s into the "
            "load, at rates below the targets, before the service could balance the table",
            document=CHECKLIST,
            section="Targets for data operations",
        )
    gap = throttling.longest_gap
    if not cosmos and gap is not None and gap.length_s >= SHOWN_GAP_S:
        yield Advice(
            text=f"let retries continue for more than {gap.length_s} s: a partition is "
            "unavailable for some seconds while it moves to another server",
            document=STRATEGY,
            section="Load balancing",
        )


def on_keys(evidence: Evidence) -> Iterator[Advice]:
    """What helps where one partition takes more than it can or should."""
    yield from _on_queries(evidence)
    if evidence.growing_keys and not evidence.queries_are_most:
        yield Advice(
            text="prefix the key with a hash: with ascending or descending keys all inserts go to "
            "one end of the table, which one server serves",
            document=STORES,
            section="Partitioning Azure Table storage",
        )
        return
    yield Advice(
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
        yield Advice(
            text=f"split the busiest partition: {named(hottest)} took {percent(share)} of the load "
            f"of at least {len(partitions):,} partitions",
            document=CHECKLIST,
            section="High-traffic data",
        )


def on_account(evidence: Evidence) -> Iterator[Advice]:
    """What helps where the account takes more than it can or should."""
    yield from _on_queries(evidence)
    less = "" if evidence.queries_are_most else "send fewer requests, or "
    yield Advice(
        text=f"{less}spread the data over several storage accounts",
        document=CHECKLIST,
        section="Capacity and transaction targets",
    )


def on_generator(evidence: Evidence) -> Iterator[Advice]:
    """What helps where the generator was the limit."""
    if connections_used_up(evidence):
        yield Advice(
            text=f"raise session.connections from {evidence.connections:,}: all were in use by "
            f"{evidence.users:,} users",
            document=CHECKLIST,
            section="Increase default connection limit",
        )
        return
    yield Advice(
        text="use more worker processes (--processes) or machines, or a smaller load: an "
        "overloaded client measures its own limit",
        document=CHECKLIST,
        section="Unbounded parallelism",
    )
    if evidence.leaner_session is not None:
        yield Advice(
            text=f"use session {evidence.leaner_session!r}, which costs less CPU an operation",
            document=README,
            section="Sessions",
        )


def on_users(evidence: Evidence) -> Iterator[Advice]:
    """What helps where there were too few users for the wanted rate."""
    if evidence.wanted_per_s is None or not evidence.achieved_per_s:
        return
    needed = evidence.on_the_way * evidence.wanted_per_s / evidence.achieved_per_s
    yield Advice(
        text=f"raise load.users from {evidence.users:,} to more than {needed:,.0f}: by "
        "Little's law, that many wait for answers at the wanted rate",
        document=README,
        section="Profiles",
    )


def on_endpoint(evidence: Evidence) -> Iterator[Advice]:
    """What helps where the endpoint answered too slowly."""
    service = evidence.snapshot.service_ms
    if evidence.kind.emulated:
        yield Advice(
            text="repeat the run against an account: the limit here is the capacity of an emulator",
            document=README,
            section="Against your own account",
        )
    elif service is not None and not service.buckets[BUCKETS_S.index(FAR_S)]:
        yield Advice(
            text="run the generator in the account's region: no answer came within "
            f"{FAR_S * 1000:.0f} ms",
            document=CHECKLIST,
            section="Location",
        )
    yield from _on_single_writes(evidence)


def _on_queries(evidence: Evidence) -> Iterator[Advice]:
    """What helps where the load is mostly what queries walk."""
    walked = evidence.walked
    if not evidence.queries_are_most:
        return
    figures = f"{counted(walked.entities, 'entity', 'entities')} and returned {walked.returned:,}"
    if walked.returned < SPARSE_BELOW * walked.entities:
        yield Advice(
            text=f"let queries scan less: they scanned {figures}, and every scanned entity counts",
            document=CHECKLIST,
            section="Query density",
        )
        return
    yield Advice(
        text=f"ask for less at once: {counted(walked.operations, 'query', 'queries')} scanned "
        f"{figures}, and every scanned entity counts",
        document=CHECKLIST,
        section="Query scope",
    )


def _on_single_writes(evidence: Evidence) -> Iterator[Advice]:
    writes = [view for view in evidence.snapshot.operations if not Kind(view.type).reads]
    total = sum(view.count for view in writes)
    single = sum(view.count for view in writes if view.type != Kind.TRANSACTION)
    if evidence.kind is EndpointKind.COSMOS or evidence.snapshot.folded is not None:
        # Cosmos DB bills by work done; folded partitions have few writes each to gather.
        return
    operations = sum(view.count for view in evidence.snapshot.operations)
    if evidence.queries_are_most or total < WRITES_FROM * operations:
        # Other writes would hardly change the load.
        return
    if total and single >= SINGLE_FROM * total:
        yield Advice(
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
    account = evidence.snapshot.entities_per_s.best_1s
    return hottest.entities_per_s.best_1s <= targets.partition and account <= targets.account
