"""The verdict on a watched application, which has no schedule that it could miss."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.measure.record.origin import ClientPart
from harness.measure.verdict.verdict import judge
from tests.support.evidence import CALM, snapshot_of, watched_evidence
from tests.support.records import altered


@pytest.mark.parametrize(
    ("snapshot", "says"),
    [
        (CALM, "1,000 in the best 10 s: the application asked for no more."),
        # Its SDK would have asked earlier.
        (snapshot_of({"shop/p0": 1000}, throttled_per_s=1), "1,000 in the best 10 s."),
        # It may have waited for answers for most of the time.
        (snapshot_of({"shop/p0": 1000}, operations_per_s=200), "1,000 in the best 10 s."),
    ],
)
def test_an_application_in_back_off_would_have_asked_for_more(snapshot: Any, says: str) -> None:
    """That it asked for no more is said only where nothing held it back."""
    assert (
        judge(watched_evidence(snapshot)).evidence[0]
        == f"The mean rate was 1,000 entities/s, {says}"
    )


def test_the_best_ten_seconds_count() -> None:
    """An application that is idle for most of the time is judged by the time in which it is not."""
    idle_after = snapshot_of({"shop/p0": 2500})
    part = idle_after.partitions[0]
    rates = altered(part.entities_per_s, mean=20.0)
    quiet = dataclasses.replace(idle_after, partitions=(altered(part, entities_per_s=rates),))
    assert judge(watched_evidence(quiet)).result == "over_target"
    assert judge(watched_evidence(quiet, watched=None)).result == "within_target"


def test_evidence_tells_what_only_an_application_has() -> None:
    """Hidden retries, clients and requests without an id are sentences of their own."""
    part = {
        "succeeded_after": {2: 3, 4: 1},
        "unjoined": 2,
        "clients": [ClientPart(user_agent=name, requests=1) for name in ("a", "b")],
    }
    said = " ".join(judge(watched_evidence(part=part)).evidence)
    assert "4 operations succeeded after a retry, at most after 4 attempts" in said
    assert "2 failed requests had no x-ms-client-request-id" in said
    assert "2 clients (user agents) sent requests" in said
    assert "user waited" not in said
