"""What each part of a record changes in its summary must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the files anew. Each case is a sentence and a change of
the kept record; below it the files hold the lines that it takes from the summary, and adds to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.measure.record.findings import GapPart, PointersPart
from harness.measure.record.measured import EstimatePart, LatencyPart
from harness.measure.record.record import RunRecord
from harness.model.operation import WHOLE_TABLE
from harness.report.export.markdown import markdown
from harness.report.terminal.page import Page
from harness.report.terminal.summary import summary
from tests.support.golden import changes, check
from tests.support.records import altered, enforcing, kept, move, with_partitions
from tests.support.summary_parts import AUDIT, EXPECTED, MOVED, REASONS, SEARCH

RECORD = kept()
PARTITION = RECORD.partitions[0]
FIRST, SECOND, *REST = RECORD.operations
CONDITION = RECORD.conditions[0]
ENDPOINT = RECORD.endpoint
LATENCY = LatencyPart(count=1, mean=1.0, p50=1.5, p90=2.5, p99=3.5, max=4.5)
NO_RATES = altered(RECORD.account.entities_per_s, mean=0.0, best_1s=0.0, best_10s=0.0)
EACH_STATUS = {
    "204": 100,
    "500 InternalError": 7,
    "500 OperationTimedOut": 5,
    "429 TooManyRequests": 3,
    "504 partition": 6,
    "404 ResourceNotFound": 11,
    "503 ServerBusy account": 2,
    "503 ServerBusy partition": 40,
    "connection_reset": 13,
}
REFUSED = {"204": 100, "503 ServerBusy partition": 50}
SCAN: dict[str, Any] = {
    "kind": "full_table_scan",
    "type": "query",
    "entities": 5000,
    "entities_returned": 50,
}
LIMITS = enforcing(*(move(f"p{place}", 16.6 + place) for place in range(7)))


def spread(*keys: str, **parts: Any) -> tuple[Any, ...]:
    """A partition for each key."""
    return with_partitions(RECORD, keys, **parts).partitions


def condition(**parts: Any) -> Any:
    """A condition of the kept record with other parts."""
    return CONDITION.model_copy(update=parts)


def search(**parts: Any) -> dict[str, Any]:
    return {"search": SEARCH.model_copy(update=parts)}


def capped(kind: str, most: float | None, emulator: float = 500) -> dict[str, Any]:
    """A closed loop with this cap, and one for emulators."""
    load = {"max_entities_per_s": most, "emulator_max_entities_per_s": emulator}
    return {
        "profile": {**RECORD.profile, "load": load},
        "endpoint": altered(ENDPOINT, kind=kind),
    }


CASES: dict[str, dict[str, Any]] = {
    "A run without a request has no empty tables.": {"counts": altered(RECORD.counts, attempts=0)},
    "A run that was stopped before it measured anything has a report.": {
        "partitions": (),
        "operations": (),
        "series": (),
        "attempts_by_status": {},
        "conditions": (),
        "service_ms": None,
        "measured_s": 0,
        "counts": altered(RECORD.counts, attempts=0, operations=0),
        "account": altered(RECORD.account, entities_per_s=NO_RATES),
    },
    "Each throttling status that occurred has a column; 500 InternalError is not throttling.": {
        "partitions": spread("p0", attempts_by_status=EACH_STATUS),
        "attempts_by_status": EACH_STATUS,
    },
    "503 has a column although there was none, so that its absence is seen.": {
        "partitions": spread("p0", attempts_by_status={"204": 100}),
        "attempts_by_status": {"204": 100},
    },
    "Attempts per operation tell the partition whose refusals retries hid.": {
        "partitions": spread("p0", "p1", operations=100, attempts_by_status=REFUSED)
    },
    "Without the operations of a partition nothing is said of its attempts per operation.": {
        "partitions": spread("p0", attempts_by_status=REFUSED)
    },
    "The value of a condition has the unit of the record, also one of a later version.": {
        "conditions": tuple(
            condition(text=f"in {unit}", unit=unit, value=value)
            for unit, value in {
                "share": 0.087,
                "entities/s": 1692.2,
                "ms": 606.2,
                "count": 3.0,
                "bananas": 2.5,
            }.items()
        )
    },
    "A condition says why it is not known, and what its value leaves out.": {
        "conditions": (
            condition(value=None, passed=None, note="the run was not audited"),
            condition(value=None, passed=None),
            condition(note="a part of it is missing"),
            condition(text="future(metric) ~ 3", value=2.5),
        )
    },
    "The hottest ten partitions are listed; the others are one row, and so is what was folded.": {
        "partitions": spread(*(f"key{n:02d}" for n in range(13))),
        "partitions_folded": altered(PARTITION, key="(other)"),
    },
    "A partition that was told apart late is marked, with its bounds.": {
        "partitions": spread(
            "late", exact=False, since=1.0, estimate=EstimatePart(at_least=1200, at_most=1350)
        )
    },
    "Long keys are cut in the middle, so that their ends can be told apart.": {
        "partitions": spread(*(f"{'tenant-' * 20}{n:03d}" for n in range(10)))
    },
    "A row of a whole table is called so, behind the ending of its table.": {
        "partitions": spread("p0", WHOLE_TABLE, "Index//", "Index/p0")
    },
    "For Cosmos DB neither 2,000 nor 20,000 is named: it counts request units.": {
        "partitions": spread("p0", target=None, ratio=None),
        "endpoint": altered(ENDPOINT, kind="cosmos"),
        "account": altered(RECORD.account, target=None, ratio=None),
        "profile": {},
    },
    "Entities of nearly 1 KiB are held against the targets as they are.": {
        "entity": altered(RECORD.entity, stored_bytes=1000)
    },
    "A comparison with entities of another size is marked.": {
        "entity": altered(RECORD.entity, stored_bytes=4096)
    },
    "A broken law frames the report.": {"invariants": ("due 10 is not sent 9",)},
    "A missing report frames the report.": {"complete": False},
    "A defect frames the report.": {"outcomes": {"defect": 3}},
    "In an open model each kind has its response latency.": {
        "operations": tuple(altered(part, response_ms=LATENCY) for part in RECORD.operations),
        "response_ms": LATENCY,
    },
    "Every outcome but plain success is named with its kinds.": {
        "operations": (
            altered(FIRST, outcomes={"success": 9, "not_found": 2}),
            altered(SECOND, outcomes={"success_after_ambiguity": 1, "not_found": 1}),
            *(altered(part, outcomes={"success": 1}) for part in REST),
        )
    },
    "A query shows what it scanned beside what it returned, by its kind.": {
        "operations": (altered(FIRST, **SCAN),)
    },
    "A query that returned nothing has a density of 0.": {
        "operations": (altered(FIRST, **SCAN | {"entities_returned": 0}),)
    },
    "What a query scanned is estimated where a client cannot know it.": {
        "operations": (altered(FIRST, **SCAN, entities_estimated=50, uncertain=FIRST.count),)
    },
    "Rows of index tables without their target, and targets without a row, are counted.": {
        "pointers": (
            PointersPart(table="PostsByTag", to="Posts", rows=1200, dangling=3, unnamed=1),
            PointersPart(table="Index", to="", rows=10, dangling=1, unnamed=0),
        )
    },
    "What was predicted stands beside what was measured.": {
        "partitions": spread("p0", "p7"),
        "prediction": EXPECTED,
    },
    "A partition that was not measured has no share.": {
        "prediction": altered(EXPECTED, hottest="p8")
    },
    "Reasons and advice stand below the verdict.": {
        "verdict": RECORD.verdict.model_copy(update=REASONS)
    },
    "Throttling has its first time, its longest stretch, and outages; a single second is none.": {
        "throttling": MOVED
    },
    "No more than five outages are listed.": {
        "throttling": altered(
            MOVED,
            gaps=tuple(GapPart(start_s=3 * n, length_s=2, recovered_s=None) for n in range(9)),
        )
    },
    "A search shows each step with its rates, its price, and why it failed.": search(),
    "What passed at the maximum is a lower bound.": search(at_least=True, limited_by="maximum"),
    "A search may find the limit of the generator.": search(limited_by="client-limited"),
    "What a search that was interrupted found is not confirmed.": search(
        confirmed=False, limited_by="unfinished"
    ),
    "A search whose first step failed found no rate.": search(rate_per_s=None, confirmed=False),
    "A search that took no step has a report.": search(steps=(), rate_per_s=None),
    "An audit says what was lost, and what became of writes that were not acknowledged.": {
        "audit": AUDIT
    },
    "An audit says what it did not see.": {
        "audit": altered(
            AUDIT,
            rows=500,
            exact=False,
            covered=8,
            unread=1,
            given_up=2,
            cut_short="the budget was used up",
            undecided=1,
        )
    },
    "The limits of a gateway are named, and five of its moves; shares are of its limits.": {
        "enforced": LIMITS,
        "endpoint": altered(ENDPOINT, kind="gateway"),
    },
    "A gateway whose limits are not known may throttle elsewhere than the targets.": {
        "endpoint": altered(ENDPOINT, kind="gateway")
    },
    "A window of a second has one best second.": {"measured_s": 1},
    "An account is held to the cap of a closed loop.": capped("storage", 300),
    "An emulator has a cap of its own.": capped("azurite", 2000),
    "The lower cap holds for an emulator.": capped("azurite", 300),
    "The cap of emulators holds where there is no other.": capped("azurite", None),
    "Without a cap none is named.": capped("storage", None),
    "An endpoint of a later version and an endless cap do no harm.": capped(
        "of a later version", float("inf")
    ),
}


def terminal(record: RunRecord) -> str:
    return summary(record, Page(width=80))


@pytest.mark.parametrize(("name", "output"), [("parts.txt", terminal), ("parts.md", markdown)])
def test_what_a_part_of_a_record_changes(name: str, output: Callable[[RunRecord], str]) -> None:
    """Each part of a record has its place, its words and its figures in the summary."""
    shown = {sentence: output(RECORD.model_copy(update=parts)) for sentence, parts in CASES.items()}
    check(name, changes(output(RECORD), shown))
