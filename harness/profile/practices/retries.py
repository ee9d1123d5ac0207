"""Practices about retries."""

from __future__ import annotations

from harness.measure.counts.behaviour import AT_ONCE_S
from harness.measure.record.behaviour import WaitsPart
from harness.measure.verdict.observations import SHOWN_GAP_S
from harness.model.figures import agreed, counted
from harness.model.outcome import RETRYABLE_STATUSES
from harness.model.sessions import session_named
from harness.profile.checks.seen import MISSING, Seen
from harness.profile.practices.practice import (
    CHECKLIST,
    ENTITY_LIMITS,
    EVERYWHERE,
    PARTITIONING,
    Assessment,
    consider,
    fine,
    offends,
    practice,
    remedy,
    says,
    untold,
)

_BACK_OFF = (
    "Back off exponentially from the first retry on, such as 2, 4, 10 and 30 s. Some SDKs send the "
    "first retry at once."
)
_RETRYABLE = ", ".join(map(str, sorted(RETRYABLE_STATUSES)))
_MANY_AT_ONCE = 0.1
"""Share of the retries."""


@practice(
    "retries wait longer each time", "retry.strategy", applies=EVERYWHERE, relieves=("throttling",)
)
@says(CHECKLIST, "Timeout and Server Busy errors", "back off exponentially")
@says(PARTITIONING, "Retry strategy", "without retries data can be lost, and equal waits collide")
@remedy("Use exponential or schedule.")
def back_off(seen: Seen) -> Assessment | None:
    if seen.record is not None and seen.record.behaviour is not None:
        return _waited(seen.record.behaviour.waits, sum(seen.record.throttled.values()))
    if seen.profile is None:
        return untold(f"How long retries wait {MISSING}")
    if seen.record is not None and seen.record.search is not None:
        # It exceeds the limit on purpose, and does not retry.
        return None
    retry = seen.profile.retry
    if session_named(seen.profile.session.kind).as_is:
        return fine("The SDK's own retries back off exponentially.", setting="session.kind")
    if retry.most == 0:
        return offends("No request is retried: throttled or timed-out operations are lost.")
    if retry.strategy == "fixed":
        return offends(
            f"Every retry waits {retry.backoff_s:g} s: operations that were throttled together "
            "are retried together."
        )
    return fine("Waits grow from one retry to the next.")


def _waited(waits: WaitsPart, throttled: int) -> Assessment | None:
    """The waits of an application, as they were."""
    if not waits.count:
        if not throttled:
            return None
        return consider(
            f"{counted(throttled, 'throttled request')}, and none was sent again under its "
            "x-ms-client-request-id.",
            change=_BACK_OFF,
        )
    throttling = waits.after_throttling > 0
    at_once = waits.at_once_after_throttling if throttling else waits.at_once
    count = waits.after_throttling if throttling else waits.count
    retries = counted(waits.count, "retry", "retries")
    median = f"Half of {retries} waited {waits.median_s or 0:g} s or less"
    if at_once >= _MANY_AT_ONCE * count:
        # An SDK that waits only from the second retry on does back off.
        growing = waits.followed and waits.longer >= 0.5 * waits.followed
        judge = consider if growing or at_once < 0.5 * count else offends
        after = "after a throttled request " if throttling else ""
        return judge(
            f"{at_once:,} of {counted(count, 'retry', 'retries')} {after}waited less than "
            f"{AT_ONCE_S:g} s, which adds to the load that was refused. {median}.",
            change=_BACK_OFF,
        )
    if waits.followed and waits.longer < 0.5 * waits.followed:
        return consider(
            f"{median}. Only {waits.longer:,} of {waits.followed:,} further waits were longer than "
            "the wait before: operations that were throttled together are retried together.",
            change=_BACK_OFF,
        )
    if not waits.followed:
        return fine(f"{median}.")
    grew = f"{waits.longer:,} of {waits.followed:,}"
    return fine(f"{median}; {grew} further waits were longer than the wait before.")


@practice(
    "retries outlast the move of a partition",
    "retry",
    applies=ENTITY_LIMITS,
    relieves=("throttling",),
)
@says(PARTITIONING, "Load balancing", "a partition that moves is offline for a few seconds")
@says(PARTITIONING, "Retry strategy", "time-outs belong to the balancing of the load")
@remedy("Let retries continue for longer than a partition is unavailable.")
def partition_moves(seen: Seen) -> Assessment | None:
    record = seen.record
    if record is None or not sum(record.throttled.values()):
        return None
    gap = record.throttling.longest_gap
    if gap is not None and gap.length_s >= SHOWN_GAP_S:
        return offends(
            f"No operation succeeded for {gap.length_s} s, as while a partition moves to another "
            "server."
        )
    late = sum(
        count
        for answer, count in record.attempts_by_status.items()
        if answer.split()[0] == "504" and len(answer.split()) > 1
    )
    if not late:
        return None
    return offends(
        f"{counted(late, 'attempt')} {agreed(late, 'was', 'were')} answered 504 (Timeout), as "
        "while a partition moves to another server; a write that was answered so may have been "
        "applied.",
        change="Treat 504 as 503, with back-off.",
    )


@practice("no request is retried that cannot succeed")
@says(CHECKLIST, "Non-retryable errors", "the same request gets the same answer again")
@remedy(f"Retry after {_RETRYABLE} and lost connections only.")
def non_retryable(seen: Seen) -> Assessment | None:
    if seen.record is None or seen.record.behaviour is None:
        # The harness itself never does: see `harness.model.outcome.is_retryable`.
        return None if seen.profile is not None else untold(f"What was sent again {MISSING}")
    in_vain = seen.record.behaviour.waits.in_vain
    if not in_vain:
        return fine(
            "No request was sent again under its x-ms-client-request-id after an answer such as "
            "400 or 403."
        )
    requests = counted(in_vain, "request")
    return offends(f"{requests} sent again after an answer such as 400 or 403 failed for nothing.")
