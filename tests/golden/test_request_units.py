"""What a verdict on Cosmos DB says must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the file anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.measure.verdict.verdict import judge
from harness.model.operation import WHOLE_TABLE
from harness.model.services.cosmos import COSMOS
from harness.model.target import Throughput
from tests.support.charged import ALL_REFUSED, SPREAD, THREE, UNKNOWN, charged
from tests.support.evidence import evidence
from tests.support.golden import check

HALF = {"a": (2900, 6), "b": (2800, 5), "c": (3100, 0), "d": (3000, 0)}
CASES: dict[str, tuple[Mapping[str, tuple[int, float]], Throughput]] = {
    "a partition within": ({"hot": (7000, 0)}, UNKNOWN),
    "a partition over": ({"hot": (11_000, 0)}, UNKNOWN),
    "a partition over its share": ({"hot": (7000, 0)}, THREE),
    "all within": (SPREAD, THREE),
    "all over": (dict.fromkeys(SPREAD, (1000, 0)), THREE),
    "an unknown number of physical partitions": (
        {"hot": (7000, 0)},
        Throughput(ru_per_s=15_000),
    ),
    "little throughput": ({"p": (300, 0)}, Throughput(ru_per_s=400)),
    "queries over several partitions belong to none": (
        {WHOLE_TABLE: (12_000, 0), "p": (100, 0)},
        THREE,
    ),
    "one key throttled while most of the throughput is unused": (
        {**SPREAD, "hot": (5900, 10)},
        Throughput(ru_per_s=30_000, physical_partitions=5),
    ),
    "the only key throttled while most of the throughput is unused": ({"hot": (6000, 10)}, THREE),
    "some keys share a hot physical partition": (
        {key: (500, 5 if key < "p06" else 0) for key in SPREAD},
        THREE,
    ),
    "two keys share a hot physical partition, beside two that do not": (HALF, THREE),
    "throttled once in 200 attempts is hardly throttled": (
        {"a": (2900, 9), "b": (2800, 9), "c": (3100, 0.1), "d": (3000, 0)},
        THREE,
    ),
    "a few keys, all in one physical partition": (dict.fromkeys("abcd", (1500, 5)), THREE),
    "a key at the most that any partition can have": ({"hot": (9800, 9)}, UNKNOWN),
    "three keys at the most that any partition can have": (
        dict.fromkeys("abc", (9500, 9)),
        Throughput(ru_per_s=30_000),
    ),
    "all keys throttled near what is provisioned": (ALL_REFUSED, THREE),
    "the only key throttled near what is provisioned": (
        {"only": (396, 5)},
        Throughput(ru_per_s=400, physical_partitions=1),
    ),
    "one key throttled near what is provisioned": ({**SPREAD, "hot": (5900, 10)}, THREE),
    "all keys throttled by an unknown throughput": (ALL_REFUSED, UNKNOWN),
    "one key throttled by an unknown throughput": ({**SPREAD, "hot": (5900, 10)}, UNKNOWN),
    "the only key throttled by an unknown throughput": ({"hot": (6000, 10)}, UNKNOWN),
    "all keys throttled far below what is provisioned": (
        dict.fromkeys(SPREAD, (300, 5)),
        THREE,
    ),
    "one key throttled, of many that were used as much": ({**SPREAD, "hot": (2900, 10)}, THREE),
    "the only key throttled, and no answer named its charge": ({"p": (0, 10)}, THREE),
    "all keys throttled, and no answer named its charge": (dict.fromkeys(SPREAD, (0, 5)), THREE),
    "nothing throttled, and no answer named its charge": ({"p": (0, 0)}, THREE),
}
"""RU/s and refused attempts a second of each key, and what is known of the throughput."""


def test_verdicts_in_request_units() -> None:
    """Rates are held against what is known, and a 429 is explained by which keys had it when."""
    lines: list[str] = []
    for name, (rates, throughput) in CASES.items():
        verdict = judge(evidence(charged(rates), kind=COSMOS, throughput=throughput))
        found = f"{verdict.result}, limited by: {verdict.limited_by}"
        lines += [f"# {name}", found, verdict.sentence, ""]
    rates = {**SPREAD, "hot": (5000, 10), WHOLE_TABLE: (100, 0)}
    verdict = judge(evidence(charged(rates), kind=COSMOS, throughput=Throughput(ru_per_s=30_000)))
    check("request-units.txt", "\n".join([*lines, "# evidence", *verdict.evidence, ""]))
