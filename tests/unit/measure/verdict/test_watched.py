"""The verdict on a watched application, which has no schedule that it could miss."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.measure.record.origin import ClientPart, WatchedPart
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import judge
from tests.support.evidence import IDLE, evidence, generator, snapshot_of

CALM = snapshot_of({"shop/p0": 1000})


def watched(
    snapshot: Any = CALM, *, part: dict[str, Any] | None = None, **changes: Any
) -> Evidence:
    """The evidence of an application with some requests, but for ``changes``."""
    known = WatchedPart(**{"requests": 1000, "passed": 1000, **(part or {})})
    figures = {"users": 0, "entity_bytes": 0, "generator": IDLE, "watched": known, **changes}
    return evidence(snapshot, **figures)


@pytest.mark.parametrize(
    ("given", "result", "limited_by", "says"),
    [
        # It asked for no more: within target.
        (watched(), "within_target", "load", "1,000 entities/s (50% of the target of 2,000)"),
        # A thread without CPU: nobody knows what the endpoint would have served.
        (
            watched(generator=generator(busy_share=0.5, cpu_percents=(95.0,))),
            "client_limited",
            "application",
            "the busiest thread of the application used over 90% of a core in 50% of the seconds",
        ),
        (
            # Neighbours used the machine up, and the application waited most of the time.
            watched(generator=generator(machine_busy_share=0.5, cpu_percents=(12.0,))),
            "within_target",
            "load",
            "Latencies are only upper bounds: the machine was saturated in 50% of the seconds.",
        ),
        # The gateway in front of the endpoint.
        (
            watched(part={"gateway_busy_share": 0.5}),
            "client_limited",
            "gateway",
            "the gateway used over 90% of a core in 50% of the seconds",
        ),
        # Over the target is over the target, whatever the CPU says.
        (
            watched(snapshot_of({"shop/p0": 2500}), generator=generator(busy_share=0.5)),
            "over_target",
            "load",
            "partition 'shop/p0' served 2,500",
        ),
        # The SDK hid it: throttled.
        (
            watched(snapshot_of({"shop/p0": 1000}, throttled_per_s=1)),
            "throttled",
            "partition",
            "all of them for partition 'shop/p0'",
        ),
        # Nothing was measured, and the sentence says what to do.
        (
            watched(part={"requests": 0, "cause": "Use --tls"}),
            "inconclusive",
            "unknown",
            "no request reached the gateway. Use --tls.",
        ),
        (
            watched(part={"requests": 2, "others": 2, "cause": "Use --tls"}),
            "inconclusive",
            "unknown",
            "no request about entities reached the gateway. Use --tls.",
        ),
    ],
)
def test_a_verdict_on_an_application(
    given: Evidence, result: str, limited_by: str, says: str
) -> None:
    """Each situation of an application has its verdict, and its sentence says why."""
    verdict = judge(given)
    assert (verdict.result, verdict.limited_by) == (result, limited_by)
    assert says in f"{verdict.sentence} {verdict.footnote}"


@pytest.mark.parametrize(
    ("snapshot", "says"),
    [
        (CALM, "1,000 in the best 10 s: the application asked for no more."),
        # Its SDK would have asked earlier.
        (snapshot_of({"shop/p0": 1000}, throttled_per_s=1), "1,000 in the best 10 s."),
    ],
)
def test_an_application_in_back_off_would_have_asked_for_more(snapshot: Any, says: str) -> None:
    """That it asked for no more is said only where nothing held it back."""
    assert judge(watched(snapshot)).evidence[0] == f"The mean rate was 1,000 entities/s, {says}"


def test_the_best_ten_seconds_count() -> None:
    """An application that is idle for most of the time is judged by the time in which it is not."""
    idle_after = snapshot_of({"shop/p0": 2500})
    part = idle_after.partitions[0]
    rates = part.entities_per_s.model_copy(update={"mean": 20.0})
    quiet = dataclasses.replace(
        idle_after, partitions=(part.model_copy(update={"entities_per_s": rates}),)
    )
    assert judge(watched(quiet)).result == "over_target"
    assert judge(watched(quiet, watched=None)).result == "within_target"


def test_evidence_tells_what_only_an_application_has() -> None:
    """Hidden retries, clients and requests without an id are sentences of their own."""
    part = {
        "succeeded_after": {2: 3, 4: 1},
        "unjoined": 2,
        "clients": [ClientPart(user_agent=name, requests=1) for name in ("a", "b")],
    }
    said = " ".join(judge(watched(part=part)).evidence)
    assert "4 operations succeeded after a retry, at most after 4 attempts" in said
    assert "2 failed requests had no x-ms-client-request-id" in said
    assert "2 clients (user agents) sent requests" in said
    assert "user waited" not in said
