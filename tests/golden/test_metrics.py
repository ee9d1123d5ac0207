"""The metrics page must not change by accident: names, texts, labels and values.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the files anew. One file holds the page of a run with
retries and failures, another one the lines by which the pages of other runs differ.
"""

from __future__ import annotations

import dataclasses

from harness.metrics.exposition import Exposed
from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.outcome import Result
from harness.model.target import UNKNOWN_THROUGHPUT, Throughput
from tests.support.golden import changes, check
from tests.support.metrics_page import (
    BUSY,
    CHARGED,
    COURSE,
    LOAD,
    REFUSED,
    SOME,
    START,
    WHOLE,
    exposed,
    rendered,
    result,
)

KEYS = ["p", "", "(table)", "(empty)", "(other)", WHOLE_TABLE]
COSMOS = dataclasses.replace(
    exposed(
        result("p0", attempts=(REFUSED, CHARGED)),
        result("p1", kind=Kind.INSERT, attempts=(CHARGED,)),
        targets=None,
    ),
    throughput=Throughput(ru_per_s=18_000, physical_partitions=3),
)


def page_of(shown: Exposed, *, buckets: bool = True) -> str:
    """The page; attempts stand on it in the order of a set."""
    lines = [
        line
        for line in rendered(lambda: shown).splitlines()
        if buckets or "_duration_seconds_" not in line
    ]
    places = [n for n, line in enumerate(lines) if line.startswith("aztables_attempts_total{")]
    for place, line in zip(places, sorted(lines[n] for n in places), strict=True):
        lines[place] = line
    return "\n".join(lines) + "\n"


def scan(key: str, entities: int, returned: int, name: str = "", *, sure: bool = True) -> Result:
    """A result of a query of one partition, or of the whole table."""
    answer = result(key, entities=entities, returned=returned, estimated=not sure)
    operation = Operation(kind=Kind.QUERY, partition_key=key, name=name)
    return dataclasses.replace(answer, operation=operation)


CASES: dict[str, Exposed] = {
    "Queries show what they scanned beside what they brought, and what is estimated.": exposed(
        scan(WHOLE_TABLE, 5000, 50),
        scan(WHOLE_TABLE, 5000, 0),
        scan(WHOLE_TABLE, 10, 10, sure=False),
        scan("p0", 100, 100),
        scan("p0", 7, 7, "by_bib", sure=False),
        result("p0", kind=Kind.POINT_QUERY),
        result("p0", kind=Kind.TRANSACTION, entities=100),
    ),
    "A partition of a further table stands behind its ending, reserved names too.": exposed(
        *(
            result(key, table=table, entities=6 * number + place)
            for number, table in enumerate(("", "T"))
            for place, key in enumerate(KEYS, start=1)
        )
    ),
    "Cosmos DB has request units, with what one partition can have, and no target.": COSMOS,
    "Without what is provisioned the limit of a physical partition remains.": dataclasses.replace(
        COSMOS, throughput=UNKNOWN_THROUGHPUT
    ),
    "Throttling that may come is counted from 0, of known partitions too.": dataclasses.replace(
        SOME, partitions=("p0", "later")
    ),
    "While users come there are no times of a window.": dataclasses.replace(
        SOME, course=dataclasses.replace(COURSE, window=None)
    ),
    "At the end there is a verdict, and the window as it was; the load has its state.": WHOLE,
    "An overrun budget leaves nothing, not less.": dataclasses.replace(
        SOME, load=dataclasses.replace(LOAD, billable_transactions=1003)
    ),
    "Percentiles are of all operations, whatever their names.": exposed(
        *(result("p0", service_s=(n + 1) / 1000, name=f"op{n % 2}") for n in range(100)),
        result("p0", service_s=0.1, due_s=START - 1.0),
    ),
    "A range is named by its first key as partitions are.": exposed(
        *(result(key, entities=10 * n) for n, key in enumerate(["", "(other)", "T/p", "a"], 1)),
        result("a", attempts=(BUSY, BUSY), entities=0),
        cap=2,
        counted_until_s=START + 1,
    ),
    "Without load no range is known.": exposed(),
}


def test_the_page_of_a_run() -> None:
    """Every attempt has its status, failures count no entity, and buckets are cumulative."""
    check("metrics.txt", page_of(SOME))


def test_what_other_runs_show() -> None:
    """What a run has, and no other, has its series; nothing stands in for what is not known."""
    pages = {sentence: page_of(shown, buckets=False) for sentence, shown in CASES.items()}
    check("metrics-cases.txt", changes(page_of(SOME, buckets=False), pages))
