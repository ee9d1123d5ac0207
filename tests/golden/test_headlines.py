"""The first words of a page and of a comparison must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the files anew: a sentence stands below each situation.
"""

from __future__ import annotations

from harness.measure.record.findings import LimitPart, SearchPart
from harness.measure.record.measured import CapacityPart, MachineLoadPart
from harness.measure.record.record import RunRecord
from harness.model.operation import WHOLE_TABLE
from harness.model.services.blobs import AZURITE_BLOBS
from harness.report.compare.comparison import compare
from harness.report.compare.comparison import headline as compare_headline
from harness.report.headline import headline
from tests.support.golden import check
from tests.support.records import (
    altered,
    enforcing,
    judged,
    kept,
    run,
    subjects,
    with_partitions,
)

LIMITS = enforcing()
BLOBS = altered(kept().endpoint, kind=AZURITE_BLOBS.name)
COSMOS = kept("run-v1-cosmos.json")
THROTTLED = judged("throttled", "partition")
FOUND = LimitPart(per_s=507.0, low_per_s=495.0, high_per_s=519.0, confidence=0.99, measured_s=40)
FEW = "6 measured operations are fewer than 100. 1 of 8 attempts failed (12%): 500 InternalError."
BUSY = MachineLoadPart.model_validate(
    {"name": "m", "cores": 2, "workers": 1, "busy_share": 0.9, "cpu_percent": 100.0}
    | {"workers_percent": 20.0}
)
CAPACITY = CapacityPart(
    session="sdk", operations_per_cpu_s=1.0, entities_per_cpu_s=1.0, machines=(BUSY,)
)


def throttled_most(*keys: str) -> RunRecord:
    """Throttled attempts nearly all for the first of ``keys``."""
    record = with_partitions(judged("throttled", "partition", enforced=LIMITS), keys)
    parts = tuple(
        altered(part, attempts_by_status={"503 ServerBusy partition": 1 if place else 98})
        for place, part in enumerate(record.partitions)
    )
    return altered(record, partitions=parts)


def searched(rate: float, limit: LimitPart | None = None) -> SearchPart:
    return SearchPart(
        rate_per_s=rate,
        at_least=False,
        confirmed=True,
        limited_by="",
        limit=limit,
        sentence="",
        steps=(),
    )


RUNS: dict[str, RunRecord] = {
    "a partition throttled at its limit": judged("throttled", "partition", enforced=LIMITS),
    "the account throttled at its limit": judged("throttled", "account", enforced=LIMITS),
    "two partitions throttled": with_partitions(THROTTLED, ["a", "b"]),
    "queries over several partitions throttled": throttled_most(WHOLE_TABLE, "b", "c"),
    "a partition and such queries throttled": with_partitions(THROTTLED, ["a", WHOLE_TABLE]),
    "one partition throttled most": throttled_most("a", "b", "c"),
    "too few users": judged("client_limited", "users"),
    "the generator at its limit": judged("client_limited", "generator"),
    "other processes at work": judged("client_limited", "machine"),
    "other processes with a known share": altered(
        judged("client_limited", "machine"), generator={"capacity": CAPACITY}
    ),
    "the endpoint at its limit": judged("endpoint_limited", "endpoint"),
    "within the target": judged("within_target", "load", throttled_ratio=0.0),
    "over the target": judged("over_target", "load"),
    "no target": judged("no_target", "load", throttled_ratio=0.0, endpoint=BLOBS),
    "a search": kept("run-v1-search.json"),
    "a search in blobs": altered(kept(), endpoint=BLOBS, search=searched(500)),
    "inconclusive: the sentence has the failures, which are not said twice": altered(
        judged("inconclusive"),
        verdict={"why": FEW, "failures": "12% of the attempts failed."},
    ),
    "Cosmos DB: two partitions throttled": COSMOS,
    "Cosmos DB: the throughput used up": altered(COSMOS, verdict={"limited_by": "throughput"}),
    "Cosmos DB: over the target": altered(COSMOS, verdict={"result": "over_target"}),
    "Cosmos DB: within the target": altered(COSMOS, verdict={"result": "within_target"}),
    "Cosmos DB: a search, in entities/s": altered(COSMOS, search=searched(500, FOUND)),
}
CALM = "within_target"
COMPARED: dict[str, list[RunRecord]] = {
    "equal runs": [run(1000, name="customer")] * 2,
    "both throttled": [run(1000, name="customer"), run(2400, name="month")],
    "one of them throttled": [run(1000, name="customer"), run(2400, CALM, "month")],
    "neither throttled": [run(1200, CALM, "customer"), run(1000, CALM, "month")],
    "three of them": [run(100, name="customer"), run(1500, name="month"), run(120, name="day")],
    "two searches": [
        run(1000, name="customer", search=searched(500)),
        run(1000, name="m", search=searched(1250)),
    ],
    "fewer throttled attempts": [
        run(1000, name="customer"),
        run(1000, name="month", throttled={"partition": 0, "account": 0}),
    ],
    "one of them client-limited": [
        run(1000, name="customer"),
        run(2400, "client_limited", "month"),
    ],
}


def listed(sentences: dict[str, str]) -> str:
    return "".join(f"# {name}\n{sentence}\n\n" for name, sentence in sentences.items())


def test_the_verdict_in_a_short_sentence() -> None:
    """It names what was the limit, and holds rates against the limit that was in force."""
    said = {name: headline(record) for name, record in RUNS.items()}
    assert max(map(len, said.values())) < 110
    check("headlines.txt", listed(said))


def test_one_sentence_says_what_a_comparison_comes_to() -> None:
    """It names the better run and by how much, a lower bound as one; or that none is better."""
    said = {
        name: compare_headline(compare(subjects(*records), []))
        for name, records in COMPARED.items()
    }
    check("headlines-of-comparisons.txt", listed(said))
