"""Practices about how the load is put on: concurrency, connections, retries, and rates."""

from __future__ import annotations

from harness.measure.counts.behaviour import AT_ONCE_S
from harness.measure.record.behaviour import WaitsPart
from harness.measure.verdict.verdict import indicative
from harness.model.figures import counted, number, percent
from harness.model.target import PUBLISHED
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
    untold,
)
from harness.profile.checks.seen import MISSING, Seen

_MANY_USERS = 50
"""From this number of users, a closed load without a cap counts as unbounded."""
_BURST_USERS = 10
_BURST_S = 1.0
"""So many users in less than so many seconds are a burst."""
_BURST_PER_S = 1_000.0
"""Half of the target of a partition."""
_BURST_TIMES = 4.0
_NEAR_TARGET = 0.8
_BACK_OFF = (
    "Back off exponentially from the first retry on, such as 2, 4, 10 and 30 s. Some SDKs send the "
    "first retry at once."
)
_MANY_AT_ONCE = 0.1
"""Share of the retries."""


@practice("parallelism", "the number of concurrent requests is bounded", blobs=True)
@says(CHECKLIST, "Unbounded parallelism", "it exceeds the client's limits or the targets")
@remedy("Set a cap, and raise it step by step.")
def parallelism(seen: Seen) -> Look | None:
    if seen.profile is None:
        return untold(
            "Whether the number of concurrent requests is bounded cannot be seen in requests."
        )
    users, setting = seen.profile.load.users, seen.requested_setting
    if seen.requested is not None:
        unit = "lines/s" if seen.in_blobs else "entities/s"
        return fine(f"An account gets at most {number(seen.requested)} {unit}.", setting=setting)
    judge = offends if users > _MANY_USERS else consider
    return judge(
        f"The rate has no cap, and {users:,} users send as fast as answers arrive.", setting=setting
    )


@practice("connections", "there are enough connections", "session.connections", blobs=True)
@says(CHECKLIST, "Increase default connection limit", "about one for each concurrent request")
@remedy("Allow more connections, or use more processes.")
def connections(seen: Seen) -> Look | None:
    if seen.profile is None:
        return untold("The number of connections is not in the record.")
    session, users = seen.profile.session, seen.profile.load.users
    if session.kind == "sdk-default":
        return None
    if users <= session.connections:
        return fine(f"Each of {users:,} users has a connection.")
    return offends(
        f"{users:,} users of one process share {session.connections:,} connections: the latencies "
        "then include waiting for a connection."
    )


@practice("back-off", "retries wait longer each time", "retry.strategy", blobs=True)
@says(CHECKLIST, "Timeout and Server Busy errors", "back off exponentially")
@says(PARTITIONING, "Retry strategy", "without retries data can be lost, and equal waits collide")
@remedy("Use exponential or schedule.")
def back_off(seen: Seen) -> Look | None:
    if seen.waits is not None:
        return _waited(seen.waits, seen.throttled)
    if seen.profile is None:
        return untold(f"How long retries wait {MISSING}")
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


def _waited(waits: WaitsPart, throttled: int) -> Look | None:
    """The waits of an application, as they were."""
    if not waits.count:
        if not throttled:
            return None
        return offends(
            f"{counted(throttled, 'throttled request')}, and none was sent again.", change=_BACK_OFF
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


@practice("non-retryable", "no request is retried that cannot succeed")
@says(CHECKLIST, "Non-retryable errors", "the same request gets the same answer again")
@remedy("Retry after 408, 429, 500, 503, 504 and lost connections only.")
def non_retryable(seen: Seen) -> Look | None:
    if seen.waits is None:
        # The harness itself never does: see `harness.model.outcome.is_retryable`.
        return None if seen.profile is not None else untold(f"What was sent again {MISSING}")
    if not seen.waits.in_vain:
        return fine("No request was sent again after an answer such as 400 or 403.")
    requests = counted(seen.waits.in_vain, "request")
    return offends(f"{requests} sent again after an answer such as 400 or 403 failed for nothing.")


@practice("ramp", "the load rises slowly", "load.spawn_rate_per_s", cosmos=False)
@says(CHECKLIST, "Targets for data operations", "a burst is throttled until it is balanced")
@remedy("Start fewer users a second.")
def ramp(seen: Seen) -> Look | None:
    burst = "a burst, which the service throttles until it has balanced the load."
    if seen.profile is None:
        return _jumped(seen)
    before = 0.0
    for stage in seen.profile.stage:
        if stage.jump and stage.to > before:
            return offends(
                f"A stage jumps from {number(before)} to {number(stage.to)}: {burst}",
                setting="stage.jump",
                change="Ramp up, unless the test is about the burst.",
            )
        before = stage.to
    load = seen.profile.load
    said = f"{load.users:,} users start within {number(load.ramp_s)} s"
    if load.users < _BURST_USERS or load.ramp_s >= _BURST_S:
        return fine(f"{said}.")
    return offends(f"{said}: {burst}")


def _jumped(seen: Seen) -> Look:
    """The steepest rise of the rate of an application."""
    if seen.jump is None:
        return untold("The record has no rate for each second.")
    before, after = seen.jump
    why = (
        f"The steepest rise was from {number(before)} to {number(after)} entities/s within a second"
    )
    if after - before < _BURST_PER_S or after < _BURST_TIMES * before:
        return fine(f"{why}.")
    change = "Start slowly, so that the service can balance the load."
    return consider(f"{why}: the service may throttle until it has balanced it.", change=change)


@practice("account-target", "the load stays under the account's target", cosmos=False)
@says(CHECKLIST, "Entities per second (storage account)", "20,000 entities/s")
@says(CHECKLIST, "Capacity and transaction targets", "or use several accounts")
@remedy("Request less, or spread the data over several accounts.")
def account_target(seen: Seen) -> Look | None:
    wanted = seen.peak
    if wanted is None:
        return None
    share = wanted / (PUBLISHED.account * seen.accounts)
    judge = fine if share < _NEAR_TARGET else offends if share > 1.0 else consider
    whose = "an account" if seen.accounts == 1 else f"{seen.accounts} accounts"
    target = f"{percent(share)} of the published target of {whose}."
    if seen.recorded:
        return judge(f"The best second had {number(wanted)} entities/s, {target}")
    return judge(f"{number(wanted)} entities/s are {target}", setting=seen.requested_setting)


@practice(
    "entity-size",
    "entities have 1 KiB, the size that the targets assume",
    "entity.size_bytes",
    cosmos=False,
)
@says(CHECKLIST, "Entities per second (storage account)", "the targets hold for 1 KB")
@remedy("Use 1024, unless the test is about entities of another size.")
def entity_size(seen: Seen) -> Look | None:
    size = seen.entity_bytes
    if size is None:
        # A replay sends the recorded sizes.
        return untold("The size of an entity is not in the record.") if seen.recorded else None
    if not indicative(size):
        return fine(f"Entities have {size:,} bytes.")
    return consider(
        f"Entities have {size:,} bytes, and the published targets hold for 1 KiB: every "
        "comparison with them is only indicative."
    )
