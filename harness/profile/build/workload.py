"""What a profile sends: its workload, loading, sizes, retry policy and conditions."""

from __future__ import annotations

import math

from harness.measure.verdict.conditions import Condition, parse_condition
from harness.model.entity import MAX_TRANSACTION_BYTES, MAX_TRANSACTION_OPERATIONS
from harness.model.operation import Kind
from harness.model.target import EndpointKind
from harness.profile.build.pace import most_units
from harness.profile.build.scenarios import picker_of, scenario_of
from harness.profile.settings.parts import EXAMPLE_RUN_ID
from harness.profile.settings.schema import Profile
from harness.workload.entity_factory import EntityFactory, wire_bytes
from harness.workload.mix import ActionMix
from harness.workload.operation_factory import PART_OVERHEAD_BYTES
from harness.workload.operation_source import OperationSource
from harness.workload.queries import QueryShape
from harness.workload.retry import ExponentialBackoff, RetryPolicy, ScheduledBackoff
from harness.workload.workload import Workload

LOADING_RETRY = ExponentialBackoff(retries=8, backoff_s=0.5, minimum_s=0.1, maximum_s=8.0)
"""Loading is not part of the test: it is patient, whatever the load retries."""


def source_of(profile: Profile, *, run_id: str, worker: int) -> OperationSource:
    """What worker number ``worker`` of a run sends; a `SetupError` as in `scenario_of`."""
    entities = EntityFactory(profile.entity.size_bytes, run_id)
    if profile.scenario is not None:
        return scenario_of(profile, entities, worker)
    return Workload(
        scheme=profile.keys.made(),
        picker=picker_of(profile, worker),
        mix=ActionMix(profile.mix.weights()),
        entities=entities,
        transaction_size=profile.transaction.operations,
        transaction_kinds=tuple(Kind(name) for name in profile.transaction.kinds),
        queries=QueryShape(**profile.query.model_dump()),
        worker=worker,
        loading_size=_loading_size(profile),
    )


def entity_sizes(profile: Profile, run_id: str) -> tuple[int, int]:
    """Bytes of one written entity: as stored, and about as sent."""
    scheme = profile.keys.made()
    partition_key, row_key = scheme.partition_key(0), scheme.row_key(0, 0)
    properties = EntityFactory(profile.entity.size_bytes, run_id).properties(
        partition_key, row_key, 0
    )
    return profile.entity.size_bytes, wire_bytes(partition_key, row_key, properties)


def loading_transactions(profile: Profile) -> int:
    """Requests that load the tables, each billed once."""
    if profile.scenario is not None:
        source = source_of(profile, run_id=EXAMPLE_RUN_ID, worker=0)
        return sum(1 for _ in source.loading())
    rows, size = profile.keys.rows, _loading_size(profile)
    copied = rows.total * (len(profile.keys.made().tables) - 1)
    return sum(-(-rows.of(partition) // size) for partition in range(rows.partitions)) + copied


def _loading_size(profile: Profile) -> int:
    """Entities of a loading transaction: as many as are allowed, and fit into it."""
    _, on_the_wire = entity_sizes(profile, EXAMPLE_RUN_ID)
    fitting = MAX_TRANSACTION_BYTES // (on_the_wire + PART_OVERHEAD_BYTES)
    return min(MAX_TRANSACTION_OPERATIONS, fitting)


def most_transactions(profile: Profile, kind: EndpointKind) -> tuple[int, float]:
    """Most billable transactions of loading, and of load and audit (may be inf), with retries."""
    loading = loading_transactions(profile) * (1 + LOADING_RETRY.retries)
    units = most_units(profile, kind)
    if math.isinf(units):
        return loading, units
    looked_up = min(units, profile.audit.most_rows) if profile.audit.enabled else 0
    return loading, math.ceil(units + looked_up) * (1 + profile.retry.most)


def adds_rows(profile: Profile) -> bool:
    """Whether the load may insert entities, which cleaning an existing table has to delete."""
    if profile.scenario is not None:
        return True
    weights = profile.mix.weights()
    moves = any(action.moves_rows and weight > 0 for action, weight in weights.items())
    return moves or not {"insert", "delete"}.isdisjoint(profile.transaction.kinds)


def retry_of(profile: Profile) -> RetryPolicy:
    retry = profile.retry
    if retry.strategy == "none":
        return ScheduledBackoff()
    if retry.strategy == "fixed":
        return ScheduledBackoff(delays_s=(retry.backoff_s,) * retry.retries)
    if retry.strategy == "schedule":
        return ScheduledBackoff(delays_s=retry.delays_s)
    return ExponentialBackoff(
        retries=retry.retries,
        backoff_s=retry.backoff_s,
        minimum_s=retry.minimum_s,
        maximum_s=retry.maximum_s,
    )


def conditions_of(profile: Profile) -> tuple[Condition, ...]:
    return tuple(parse_condition(text) for text in profile.conditions)
