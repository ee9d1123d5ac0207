"""What a what-if says: of lower bounds, and of schemes whose queries are several."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from harness.measure.record.whatif import DrawPart, WhatIfRecord
from harness.measure.verdict.ranking import marked
from harness.model.operation import Kind
from harness.report.whatif import ranking, sentences
from harness.report.whatif_rows import rows
from tests.support.traced import trace_of, traced
from tests.unit.trace.advise.test_reasons import bounded
from tests.unit.trace.whatif.test_simulation import calculated, of_hot_partition, recorded, steady


def lower_bounds(found: WhatIfRecord) -> WhatIfRecord:
    return found.model_copy(update={"schemes": (*map(bounded, found.schemes),)})


def test_what_is_only_known_at_least_is_said_so(tmp_path: Path) -> None:
    """In the headline, the order and the first limit: nothing is best, or never met, for sure."""
    trace = recorded(tmp_path, steady(20, 5, ["hot"]))
    found = calculated(trace, most_factor=10_000.0)
    first, *others = sentences(found)
    assert first.startswith("Best: buckets")
    assert "≥" not in first
    found = lower_bounds(found)
    first, *others = sentences(found)
    assert first.startswith("Best as far as the trace shows: buckets")
    assert "has ≥ " in first
    assert "nothing that the trace shows is throttled" in first
    assert "may scan rows that the trace does not show" in others[-1]
    assert all(text.startswith("≥ ") for _, texts, _ in ranking(found)[1] for text in texts[2:6])
    assert marked(found.schemes[0], "<0.01%") == "> 0%"
    never = found.schemes[0].model_copy(update={"first_limit": None})
    [said] = [row.text(found, never) for row in rows(found) if row.label == "first limit met at"]
    assert said == "not known"


def test_operations_that_fail_are_a_share_of_those_that_are_sent() -> None:
    """Ten queries became 160, of which 120 failed."""
    found = of_hot_partition()
    part = found.schemes[1]
    price = dataclasses.replace(part.price, operations=10, queries=10, spread=10, needed=160)
    retried = dataclasses.replace(part.retried, failed=120)
    part = part.model_copy(update={"price": price, "retried": retried})
    [said] = [row.text(found, part) for row in rows(found) if "fail" in row.label]
    assert said == "75%"


def test_what_the_waits_of_back_off_decide_has_a_least_and_a_most() -> None:
    """Real traffic is one draw of them. What is a lower bound besides has no most."""
    found = of_hot_partition()
    part, labels = found.schemes[0], ("billable", "with back-off", "fail nevertheless")
    assert part.draws is not None
    least, most = part.draws
    assert least.ratio <= part.retried.ratio <= most.ratio
    assert least.attempts < part.price.billable < most.attempts
    draws = (
        DrawPart(ratio=0.2, attempts=1900, failed=15),
        DrawPart(ratio=0.3, attempts=2000, failed=30),
    )
    part = part.model_copy(update={"draws": draws})
    shown = [row for row in rows(found) if any(label in row.label for label in labels)]
    said = ["1,900 to 2,000", "20% to 30%", "1.0% to 2.0%"]
    assert [row.text(found, part) for row in shown] == said
    assert [row.text(found, bounded(part)) for row in shown] == ["≥ 1,900", "≥ 20%", "≥ 1.0%"]


def test_what_passes_as_a_burst_is_not_said_to_pass_for_long(tmp_path: Path) -> None:
    """Two seconds at 10/s, 200 times as fast, pass a limit of 100/s only because they are over."""
    trace = recorded(tmp_path, steady(10, 2, ["hot"]))
    found = calculated(trace, rate=200.0, most_factor=10_000.0)
    recorded_keys = found.model_copy(update={"schemes": found.schemes[:1]})
    [said] = sentences(recorded_keys)
    assert said.endswith(
        "nothing is throttled, because a burst passes: if it lasts, the limit of a partition is "
        "met at about x 10."
    )
    [row] = [one for one in rows(found) if one.label == "first limit met at (x 200 asked)"]
    assert row.bad(found, found.schemes[0])
    assert "a burst passes" not in sentences(calculated(trace, most_factor=10_000.0))[0]


def test_a_limit_that_one_query_exceeds_is_met_at_any_rate(tmp_path: Path) -> None:
    """Five thousand entities are more than a partition serves, however long the next one waits."""
    scan = traced(Kind.QUERY, "hot", None, entities=5000)
    rows_after = [traced(Kind.UPSERT_MERGE, "hot", f"r{at}", at_ms=at) for at in range(1, 9)]
    found = calculated(
        trace_of(tmp_path / "scan.parquet", [scan, *rows_after]), most_factor=10_000.0
    )
    first = found.schemes[0].first_limit
    assert first is not None
    assert first.factor == 0
    [_, texts, _] = next(row for row in ranking(found)[1] if row[0] is found.schemes[0])
    assert texts[-1] == "at any rate, partition"
