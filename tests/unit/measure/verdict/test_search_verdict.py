"""What a search is said to mean: what it found, and what may be done about its limit."""

from __future__ import annotations

import pytest

from harness.measure.record.findings import SearchPart
from harness.measure.verdict.verdict import judge
from tests.support.evidence import evidence, recorded, snapshot_of

FINER, BATCH = "hot-partition", "transactions"


@pytest.mark.parametrize(
    ("limited_by", "result", "practices"),
    [
        ("throttled", "throttled", [FINER, BATCH]),
        ("client-limited", "client_limited", ["generator-size"]),
        ("users", "client_limited", []),
        ("latency", "endpoint_limited", [BATCH]),
        ("failing", "failing", []),
        ("maximum", "within_target", []),
        ("unfinished", "inconclusive", []),
    ],
)
def test_a_search_is_advised_on_its_limit(
    limited_by: str, result: str, practices: list[str]
) -> None:
    """Steps go beyond the limit at once and on purpose: that is no cause for advice."""
    snapshot = snapshot_of({"p0": 1000}, throttled_per_s=1)
    given = evidence(snapshot, searched=True, scheduled=True)
    part = SearchPart(
        rate_per_s=900.0,
        at_least=False,
        confirmed=True,
        limited_by=limited_by,
        sentence="Found.",
        steps=(),
    )
    verdict = judge(given, part)
    assert (verdict.result, verdict.sentence) == (result, "Found.")
    record = recorded(given, "retry.strategy=none", search=part)
    assert [advice.practice for advice in record.verdict.advice] == practices
    assert verdict.evidence[0] == (
        "The mean rate was 1,000 entities/s over all steps of the search."
    )


@pytest.mark.parametrize(
    ("rates", "found", "result"),
    [
        ({"p0": 900, "p1": 100}, 2000.0, "within_target"),
        ({"p0": 900, "p1": 100}, 2300.0, "over_target"),
        ({"p0": 500, "p1": 500}, 3000.0, "within_target"),
        ({f"p{number}": 100 for number in range(20)}, 21_000.0, "over_target"),
    ],
)
def test_a_search_to_its_maximum_is_held_against_all_targets(
    rates: dict[str, int], found: float, result: str
) -> None:
    """At the rate that was found the hottest partition has its share of it."""
    part = SearchPart(
        rate_per_s=found,
        at_least=True,
        confirmed=True,
        limited_by="maximum",
        sentence="Found.",
        steps=(),
    )
    given = evidence(snapshot_of(rates), searched=True, steady=False)
    assert judge(given, part).result == result
