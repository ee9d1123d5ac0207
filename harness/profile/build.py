"""What a profile stands for: its workload, its pacer, its retry policy, its conditions."""

from __future__ import annotations

import math

from harness.measure.conditions import Condition, parse_condition
from harness.model.entity import MAX_TRANSACTION_BYTES, MAX_TRANSACTION_OPERATIONS
from harness.model.operation import Kind
from harness.model.target import PUBLISHED, EndpointKind
from harness.profile.schema import EXAMPLE_RUN_ID, PART_OVERHEAD_BYTES, Profile
from harness.workload.entities import EntityFactory, wire_bytes
from harness.workload.keys import NumberedKeys, Picker, Uniform, Zipfian
from harness.workload.pacing import ClosedLoop
from harness.workload.retry import (
    ExponentialBackoff,
    FixedBackoff,
    NoRetry,
    RetryPolicy,
    ScheduledBackoff,
)
from harness.workload.workload import Mix, Workload


def workload_of(profile: Profile, *, run_id: str, worker: int) -> Workload:
    """The operations that worker number ``worker`` of a run sends."""
    keys = profile.keys
    picker: Picker = (
        Uniform(keys.partitions)
        if keys.distribution == "uniform"
        else Zipfian(keys.partitions, keys.theta)
    )
    return Workload(
        keys=numbered_keys(profile),
        picker=picker,
        rows_per_partition=keys.rows_per_partition,
        mix=Mix(profile.mix.weights()),
        entities=EntityFactory(profile.entity.size_bytes, run_id),
        transaction_size=profile.transaction.operations,
        transaction_kind=Kind(profile.transaction.kind),
        worker=worker,
        loading_size=_loading_size(profile),
    )


def numbered_keys(profile: Profile) -> NumberedKeys:
    """The key scheme of a profile."""
    return NumberedKeys(count=profile.keys.partitions, prefix=profile.keys.prefix)


def loaded_entities(profile: Profile) -> int:
    """Entities that are put into the table before the load."""
    return profile.keys.partitions * profile.keys.rows_per_partition


def entity_sizes(profile: Profile, run_id: str) -> tuple[int, int]:
    """Bytes of one written entity: as stored, and about as sent."""
    keys = numbered_keys(profile)
    partition_key, row_key = keys.partition_key(0), keys.loaded_row_key(0, 0)
    properties = EntityFactory(profile.entity.size_bytes, run_id).properties(
        partition_key, row_key, 0
    )
    return profile.entity.size_bytes, wire_bytes(partition_key, row_key, properties)


def wanted_rate(profile: Profile, kind: EndpointKind) -> float | None:
    """Entities a second that the load may reach; None is as many as come.

    An account is held to one partition's target unless the profile says otherwise, so that nobody
    floods it by accident. An emulator, which shares the machine with its generator, has a cap of
    its own on top.
    """
    load = profile.load
    if kind.emulated:
        wanted = min(load.max_entities_per_s or math.inf, load.emulator_max_entities_per_s)
    else:
        wanted = load.max_entities_per_s or PUBLISHED.partition
    return None if math.isinf(wanted) else wanted


def loading_transactions(profile: Profile) -> int:
    """Transactions that load the table."""
    keys = profile.keys
    return keys.partitions * -(-keys.rows_per_partition // _loading_size(profile))


def _loading_size(profile: Profile) -> int:
    """Entities of a transaction that loads: as many as it may have, and as fit into it."""
    _, on_the_wire = entity_sizes(profile, EXAMPLE_RUN_ID)
    fitting = MAX_TRANSACTION_BYTES // (on_the_wire + PART_OVERHEAD_BYTES)
    return min(MAX_TRANSACTION_OPERATIONS, fitting)


def most_transactions(profile: Profile, kind: EndpointKind) -> tuple[int, float]:
    """The most billable transactions that loading and load can make; each retry is one more."""
    tries = 1 + _retries(profile)
    loading = loading_transactions(profile) * tries
    wanted = wanted_rate(profile, kind)
    load = profile.load
    seconds = load.users / load.spawn_rate_per_s + load.settle_s + load.run_time_s + 2
    return loading, math.inf if wanted is None else math.ceil(wanted * seconds) * tries


def pacer_of(profile: Profile, kind: EndpointKind) -> ClosedLoop:
    """The pacer of all workers together."""
    return ClosedLoop(wanted_rate(profile, kind))


def loading_pacer_of(profile: Profile, kind: EndpointKind) -> ClosedLoop:
    """The pacer of loading: an account's cap holds for it too, an emulator is loaded at once."""
    return ClosedLoop(None if kind.emulated else wanted_rate(profile, kind))


def _retries(profile: Profile) -> int:
    retry = profile.retry
    if retry.strategy == "none":
        return 0
    return len(retry.delays_s) if retry.strategy == "schedule" else retry.retries


def retry_of(profile: Profile) -> RetryPolicy:
    """The retry strategy of a profile."""
    retry = profile.retry
    if retry.strategy == "none":
        return NoRetry()
    if retry.strategy == "fixed":
        return FixedBackoff(retries=retry.retries, backoff_s=retry.backoff_s)
    if retry.strategy == "schedule":
        return ScheduledBackoff(delays_s=retry.delays_s)
    return ExponentialBackoff(
        retries=retry.retries,
        backoff_s=retry.backoff_s,
        minimum_s=retry.minimum_s,
        maximum_s=retry.maximum_s,
    )


def conditions_of(profile: Profile) -> tuple[Condition, ...]:
    """The pass conditions of a profile."""
    return tuple(parse_condition(text) for text in profile.conditions)
