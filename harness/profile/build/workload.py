"""What a profile sends: its workload, loading, sizes, retry policy and conditions."""

from __future__ import annotations

import math

from harness.measure.verdict.conditions import Condition, parse_condition
from harness.model.entity import (
    MAX_TRANSACTION_BYTES,
    MAX_TRANSACTION_OPERATIONS,
    stored_size,
)
from harness.model.operation import Kind
from harness.model.target import EndpointKind
from harness.profile.build.pace import found_in_trace, most_units
from harness.profile.build.replay import replay_of
from harness.profile.build.scenarios import picker_of, scenario_of
from harness.profile.settings.parts import EXAMPLE_RUN_ID
from harness.profile.settings.schema import Profile
from harness.trace.replay.preparation import Preparation
from harness.workload.entity_factory import wire_bytes
from harness.workload.mix import ActionMix
from harness.workload.operation_factory import PART_OVERHEAD_BYTES
from harness.workload.operation_source import OperationSource
from harness.workload.queries import QueryShape
from harness.workload.retry import ExponentialBackoff, RetryPolicy, ScheduledBackoff
from harness.workload.scenarios.scenario import Scenario
from harness.workload.workload import Workload

LOADING_RETRY = ExponentialBackoff(retries=8, backoff_s=0.5, minimum_s=0.1, maximum_s=8.0)
"""The retries of loading, which is not part of the test: many, whatever those of the load are."""


def source_of(
    profile: Profile, *, run_id: str, worker: int, preparation: Preparation | None = None
) -> OperationSource:
    """What worker number ``worker`` of a run sends; a `SetupError` as in `scenario_of`.

    ``preparation`` has the rows that a replay loads; only the process that loads needs it.
    """
    if profile.replay is not None:
        return replay_of(profile, run_id, preparation)
    entities = profile.entity.factory(run_id)
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
    """Bytes of one written entity: as stored, and about as sent; of a replay 0, and the mean."""
    if profile.replay is not None:
        return 0, found_in_trace(profile).entity_bytes
    scheme = profile.keys.made()
    partition_key, row_key = scheme.partition_key(0), scheme.row_key(0, 0)
    properties = profile.entity.factory(run_id).properties(partition_key, row_key, 0)
    stored = stored_size(partition_key, row_key, properties)
    return stored, wire_bytes(partition_key, row_key, properties)


def loading_transactions(profile: Profile, source: OperationSource | None = None) -> int:
    """Requests that load the tables, each billed once.

    A scenario counts them by making them, once for each ``source``.
    """
    if profile.replay is not None:
        return found_in_trace(profile).loading_requests
    if profile.scenario is not None:
        source = source or source_of(profile, run_id=EXAMPLE_RUN_ID, worker=0)
        assert isinstance(source, Scenario)
        return source.loading_requests
    rows, size = profile.keys.rows, _loading_size(profile)
    copied = rows.total * (len(profile.keys.made().tables) - 1)
    return sum(-(-rows.of(partition) // size) for partition in range(rows.partitions)) + copied


def _loading_size(profile: Profile) -> int:
    """Entities of a loading transaction: as many as are allowed, and fit into it."""
    _, on_the_wire = entity_sizes(profile, EXAMPLE_RUN_ID)
    fitting = MAX_TRANSACTION_BYTES // (on_the_wire + PART_OVERHEAD_BYTES)
    return min(MAX_TRANSACTION_OPERATIONS, fitting)


def most_transactions(
    profile: Profile, kind: EndpointKind, requests: int | None = None
) -> tuple[int, float]:
    """Most billable transactions of loading, and of load and audit (may be inf), with retries.

    ``requests`` are the `loading_transactions`, where they are counted already.
    """
    requests = loading_transactions(profile) if requests is None else requests
    loading = requests * (1 + LOADING_RETRY.retries)
    units = most_units(profile, kind)
    if profile.replay is not None:
        units = sum(kind.attempts for kind in found_in_trace(profile).kinds)
    if math.isinf(units):
        return loading, units
    looked_up = min(units, profile.audit.most_rows) if profile.audit.enabled else 0
    return loading, math.ceil(units + looked_up) * (1 + profile.retry.most)


def adds_rows(profile: Profile) -> bool:
    """Whether the load may insert entities, which cleaning an existing table has to delete."""
    if profile.scenario is not None or profile.replay is not None:
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
