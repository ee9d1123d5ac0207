"""Practices about how the load is put on: concurrency, connections, and rates."""

from __future__ import annotations

import itertools

from harness.measure.record.record import RunRecord
from harness.measure.verdict.evidence import NEAR_FROM
from harness.measure.verdict.observations import SUDDEN_S
from harness.model.figures import counted, number, percent
from harness.model.services import USUAL
from harness.model.services.service import Targets
from harness.model.sessions import session_named
from harness.model.target import indicative
from harness.profile.checks.seen import Seen
from harness.profile.practices.practice import (
    CHECKLIST,
    ENTITY_LIMITS,
    EVERYWHERE,
    PARTITIONING,
    Assessment,
    consider,
    disagrees,
    fine,
    offends,
    practice,
    remedy,
    says,
    untold,
)

_MANY_USERS = 50
"""From this number of users, a closed load without a cap counts as unbounded."""
_BURST_USERS = 10
_BURST_S = 1.0
"""So many users in less than so many seconds are a burst."""
_BURST_PER_S = 1_000.0
"""Half of the target of a partition."""
_BURST_TIMES = 4.0
_NEAR_TARGET = 0.8
_UNEVEN = 1.5
"""An account with this multiple of its equal share of the load is uneven."""


@practice("the number of concurrent requests is bounded", applies=EVERYWHERE)
@says(CHECKLIST, "Unbounded parallelism", "it exceeds the client's limits or the targets")
@remedy("Set a cap, and raise it step by step.")
def parallelism(seen: Seen) -> Assessment | None:
    if seen.profile is None:
        return untold(
            "Whether the number of concurrent requests is bounded cannot be seen in requests."
        )
    users, setting = seen.profile.load.users, seen.requested_setting
    if seen.requested is not None:
        unit = (seen.without_rows or USUAL).unit.rate
        who = "The load was" if seen.recorded else "An account gets"
        return fine(f"{who} at most {number(seen.requested)} {unit}.", setting=setting)
    judge = offends if users > _MANY_USERS else consider
    return judge(
        f"The rate has no cap, and {users:,} users send as fast as answers arrive.", setting=setting
    )


@practice(
    "there are enough connections",
    "session.connections",
    applies=EVERYWHERE,
    relieves=("generator",),
)
@says(CHECKLIST, "Increase default connection limit", "about one for each concurrent request")
@remedy("Allow more connections, or use more processes.")
def connections(seen: Seen) -> Assessment | None:
    if seen.profile is None:
        return untold("The number of connections is not in the record.")
    session, users = seen.profile.session, seen.profile.load.users
    if session_named(session.kind).as_is:
        return None
    if seen.record is not None and seen.record.generator.connections_in_use is not None:
        limit, most = seen.record.generator.connections, seen.record.generator.connections_in_use
        used = f"{most:,} of {counted(limit or 0, 'connection')}"
        judge = offends if most >= (limit or 0) < seen.record.users else fine
        return judge(f"At most {used} were in use, for {counted(seen.record.users, 'user')}.")
    if users <= session.connections:
        return fine(f"Each of {users:,} users has a connection.")
    return offends(
        f"{users:,} users of one process share {session.connections:,} connections: the latencies "
        "then include waiting for a connection."
    )


@practice(
    "the load rises slowly",
    "load.spawn_rate_per_s",
    applies=ENTITY_LIMITS,
    relieves=("throttling",),
)
@says(CHECKLIST, "Targets for data operations", "a burst is throttled until it is balanced")
@disagrees(PARTITIONING, "Load balancing", "priming is not necessary: retry refused requests")
@remedy("Start fewer users a second.")
def ramp(seen: Seen) -> Assessment | None:
    record = seen.record
    if record is not None and (early := _throttled_early(record, seen.targets)) is not None:
        return early
    if record is not None and seen.profile is None:
        return _jumped(record)
    if seen.profile is None:
        return None
    # One document advises a slow ramp, the other retries: a burst without retries violates both.
    retried = seen.profile.retry.most > 0 or session_named(seen.profile.session.kind).as_is
    judge = consider if retried else offends
    burst = "a burst, which the service throttles until it has balanced the load"
    burst += ". Retries cover it." if retried else ", and nothing is retried."
    decide = "Profiles ramp-up and burst show what a ramp saves."
    for before, after in seen.profile.load_model.jumps:
        return judge(
            f"A stage jumps from {number(before)} to {number(after)}: {burst}",
            setting="stage.jump",
            change=f"Ramp up, unless the test is about the burst. {decide}",
        )
    model, load = seen.profile.load_model, seen.profile.load
    if model.searched or model.starts_with_window:
        # A schedule sets the rate, however many users wait for it.
        return None
    said = f"{load.users:,} users start within {number(load.ramp_s)} s"
    if load.users < _BURST_USERS or load.ramp_s >= _BURST_S:
        return fine(f"{said}.")
    return judge(f"{said}: {burst}", change=f"Start fewer users a second. {decide}")


def _throttled_early(record: RunRecord, targets: Targets) -> Assessment | None:
    """Throttling below the targets soon after the start, which a search causes on purpose."""
    first_s = record.throttling.first_s
    # An emulator has limits of its own.
    if first_s is None or first_s > SUDDEN_S or record.search or record.endpoint.service.emulated:
        return None
    best = max((part.entities_per_s.best_1s for part in record.partitions), default=0.0)
    if best > targets.partition or record.account.entities_per_s.best_1s > targets.account:
        return None
    return offends(
        f"Throttling began {first_s} s into the load, at rates below the targets, before the "
        "service could balance the table.",
        change="Raise the load more slowly.",
    )


def _jumped(record: RunRecord) -> Assessment:
    """The steepest rise of the rate of an application."""
    if not record.series or any(point.width_s > 1 for point in record.series):
        return untold("The record has no rate for each second.")
    rates = [0.0, *(point.entities for point in record.series)]
    before, after = max(itertools.pairwise(rates), key=lambda pair: pair[1] - pair[0])
    why = (
        f"The steepest rise was from {number(before)} to {number(after)} entities/s within a second"
    )
    if after - before < _BURST_PER_S or after < _BURST_TIMES * before:
        return fine(f"{why}.")
    change = "Start slowly, so that the service can balance the load."
    return consider(f"{why}: the service may throttle until it has balanced it.", change=change)


@practice("the load stays under the account's target", applies=ENTITY_LIMITS, relieves=("account",))
@says(CHECKLIST, "Capacity and transaction targets", "or use several accounts")
@says(CHECKLIST, "Entities per second (storage account)", "20,000 entities/s")
@remedy("Request less, or spread the data over several accounts.")
def account_target(seen: Seen) -> Assessment | None:
    wanted = seen.peak
    if wanted is None:
        return None
    share = wanted / (seen.targets.account * seen.accounts)
    judge = fine if share < _NEAR_TARGET else offends if share > 1.0 else consider
    whose = "an account" if seen.accounts == 1 else f"{seen.accounts} accounts"
    published = seen.targets.word("account") == "target"
    target = f"{percent(share)} of the {'published' if published else 'raised'} target of {whose}."
    if seen.record is not None:
        best = f"The best second had {number(wanted)} entities/s, {target}"
        if "account" not in seen.limits:
            return judge(best)
        if seen.record.enforced is not None:
            allows = f"the gateway allows {number(seen.record.enforced.account_per_s)}"
            return offends(f"The best second had {number(wanted)} entities/s, and {allows}.")
        if share >= NEAR_FROM:
            return offends(best)
        return offends(
            f"The account throttled far below its target. {best}",
            change="Find out what else the account serves: requests of others and its other "
            "limits, such as bandwidth, count too.",
        )
    return judge(f"{number(wanted)} entities/s are {target}", setting=seen.requested_setting)


@practice(
    "partitions spread evenly over the accounts", applies=ENTITY_LIMITS, relieves=("account",)
)
@says(CHECKLIST, "High-traffic data", "no partition should have far more traffic than others")
@remedy("Make PartitionKeys finer, so that the partitions spread evenly over the accounts.")
def account_spread(seen: Seen) -> Assessment | None:
    accounts = () if seen.record is None else seen.record.accounts
    busiest = max(accounts, key=lambda part: part.entities, default=None)
    if busiest is None or not busiest.entities:
        return None
    share = busiest.entities / sum(part.entities for part in accounts)
    judge = fine if share * len(accounts) < _UNEVEN else offends
    return judge(f"Account {busiest.name} took {percent(share)} of the load of {len(accounts)}.")


@practice(
    "entities have 1 KiB, the size that the targets assume",
    "entity.size_bytes",
    applies=ENTITY_LIMITS,
)
@says(CHECKLIST, "Entities per second (storage account)", "the targets hold for 1 KB")
@remedy("Use 1024, unless the test is about entities of another size.")
def entity_size(seen: Seen) -> Assessment | None:
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
