"""Practices about how the load is put on: concurrency, connections, retries, and rates."""

from __future__ import annotations

from harness.measure.verdict.verdict import indicative
from harness.model.target import PUBLISHED
from harness.profile.checks.observed import Observed
from harness.profile.checks.practice import (
    CHECKLIST,
    PARTITIONING,
    Look,
    consider,
    fine,
    offends,
    practice,
    remedy,
    says,
)

_MANY_USERS = 50
"""Without a cap on the rate, so many users that wait for answers are no bound any more."""
_BURST_USERS = 10
_BURST_S = 1.0
"""So many users in less than so many seconds are a burst."""
_NEAR_TARGET = 0.8


@practice("parallelism", "the number of concurrent requests is bounded")
@says(CHECKLIST, "Unbounded parallelism", "it exceeds the client's limits or the targets")
@remedy("Set a cap, and raise it step by step.")
def parallelism(seen: Observed) -> Look | None:
    users, (setting, peak) = seen.profile.load.users, seen.peak
    if peak is not None:
        return fine(f"An account gets at most {peak:,.0f} entities/s.", setting=setting)
    judge = offends if users > _MANY_USERS else consider
    return judge(
        f"The rate has no cap, and {users:,} users send as fast as answers arrive.", setting=setting
    )


@practice("connections", "there are enough connections", "session.connections")
@says(CHECKLIST, "Increase default connection limit", "about one for each concurrent request")
@remedy("Allow more connections, or use more processes.")
def connections(seen: Observed) -> Look | None:
    session, users = seen.profile.session, seen.profile.load.users
    if session.kind == "sdk-default":
        return None
    if users <= session.connections:
        return fine(f"Each of {users:,} users has a connection.")
    return offends(
        f"{users:,} users of one process share {session.connections:,} connections: the latencies "
        "then include waiting for a connection."
    )


@practice("back-off", "retries wait longer each time", "retry.strategy")
@says(CHECKLIST, "Timeout and Server Busy errors", "back off exponentially")
@says(PARTITIONING, "Retry strategy", "without retries data can be lost, and equal waits collide")
@remedy("Use exponential or schedule.")
def back_off(seen: Observed) -> Look | None:
    retry = seen.profile.retry
    if seen.profile.session.kind == "sdk-default":
        return fine("The SDK's own retries back off exponentially.", setting="session.kind")
    if retry.most == 0:
        return offends("No request is retried: throttled or timed-out operations are lost.")
    if retry.strategy == "fixed":
        return offends(
            f"Every retry waits {retry.backoff_s:g} s: operations that were throttled together "
            "are retried together."
        )
    return fine("Waits grow from one retry to the next.")


@practice("ramp", "the load rises slowly", "load.spawn_rate_per_s")
@says(CHECKLIST, "Targets for data operations", "a burst is throttled until it is balanced")
@remedy("Start fewer users a second.")
def ramp(seen: Observed) -> Look | None:
    burst = "a burst, which the service throttles until it has balanced the load."
    before = 0.0
    for stage in seen.profile.stage:
        if stage.jump and stage.to > before:
            return offends(
                f"A stage jumps from {before:,.0f} to {stage.to:,.0f}: {burst}",
                setting="stage.jump",
                change="Ramp up, unless the test is about the burst.",
            )
        before = stage.to
    load = seen.profile.load
    said = f"{load.users:,} users start within {load.ramp_s:,.1f} s"
    if load.users < _BURST_USERS or load.ramp_s >= _BURST_S:
        return fine(f"{said}.")
    return offends(f"{said}: {burst}")


@practice("account-target", "the load stays under the account's target")
@says(CHECKLIST, "Entities per second (storage account)", "20,000 entities/s")
@says(CHECKLIST, "Capacity and transaction targets", "or use several accounts")
@remedy("Request less, or spread the data over several accounts.")
def account_target(seen: Observed) -> Look | None:
    setting, wanted = seen.peak
    if wanted is None:
        return None
    share = wanted / PUBLISHED.account
    judge = fine if share < _NEAR_TARGET else offends if share > 1.0 else consider
    return judge(
        f"{wanted:,.0f} entities/s are {share:.0%} of the published target of an account.",
        setting=setting,
    )


@practice(
    "entity-size", "entities have 1 KiB, the size that the targets assume", "entity.size_bytes"
)
@says(CHECKLIST, "Entities per second (storage account)", "the targets hold for 1 KB")
@remedy("Use 1024, unless the test is about entities of another size.")
def entity_size(seen: Observed) -> Look | None:
    size = seen.profile.entity.size_bytes
    if not indicative(size):
        return fine(f"Entities have {size:,} bytes.")
    return consider(
        f"Entities have {size:,} bytes, and the published targets hold for 1 KiB: every "
        "comparison with them is only indicative."
    )
