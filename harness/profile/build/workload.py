"""What a profile sends: its workload, loading, sizes, retry policy, conditions; or a trace."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

from harness.measure.verdict.conditions import Condition, parse_condition
from harness.model.entity import MAX_TRANSACTION_BYTES, MAX_TRANSACTION_OPERATIONS, stored_size
from harness.model.errors import SetupError, cut, echoed
from harness.model.files import read_toml_file
from harness.model.operation import Kind
from harness.model.services import service_of_session
from harness.model.services.service import EXAMPLE_STORES, Service, store_of
from harness.profile.build.scenarios import scenario_of
from harness.profile.profile_loader import NamedProfile
from harness.profile.settings.parts import EXAMPLE_RUN_ID
from harness.profile.settings.schema import Profile
from harness.trace.engine import Tell
from harness.trace.replay.preparation import Preparation, fingerprint
from harness.trace.replay.source import ReplaySource
from harness.trace.sources import opened
from harness.trace.whatif.scheme import Scheme, parse_scheme
from harness.workload.entity_factory import wire_bytes
from harness.workload.keys.design import Key
from harness.workload.mix import ActionMix
from harness.workload.operation_factory import PART_OVERHEAD_BYTES
from harness.workload.operation_source import OperationSource
from harness.workload.queries import QueryShape
from harness.workload.retry import ExponentialBackoff, RetryPolicy, ScheduledBackoff
from harness.workload.workload import Workload

EXAMPLE_KEY = Key(partition_key="partition-000", row_key="00000000-00000000")
"""For sizes that are computed where keys are not known beforehand."""
_MOST_STORES = 200
"""Of one run, which creates and deletes each by a request."""
LOADING_RETRY = ExponentialBackoff(retries=8, backoff_s=0.5, minimum_s=0.1, maximum_s=8.0)
"""The retries of loading, which is not part of the test: many, whatever those of the load are."""


def source_of(
    profile: Profile, *, run_id: str, worker: int, preparation: Preparation | None = None
) -> OperationSource:
    """What worker number ``worker`` sends; ``preparation`` has the rows that a replay loads."""
    if profile.replay is not None:
        return replay_of(profile, run_id, preparation)
    entities = profile.entity.factory(run_id)
    if profile.scenario is not None:
        return scenario_of(profile, entities, worker)
    return Workload(
        design=profile.design,
        mix=ActionMix(profile.mix.weights()),
        entities=entities,
        transaction_size=profile.transaction.operations,
        transaction_kinds=tuple(Kind(name) for name in profile.transaction.kinds),
        queries=QueryShape(**profile.query.model_dump()),
        worker=worker,
        loading_size=_loading_size(profile),
        messages=profile.messages.shape,
    )


def stores_of(profile: Profile, source: OperationSource) -> tuple[str, ...]:
    """Endings of the names of what a run creates: of its tables, or of the store of each partition.

    A `SetupError` says which partition cannot be a store.
    """
    service = service_of_session(profile.session.kind)
    if service is None or not service.store_each:
        return source.tables
    names = tuple(itertools.islice(source.partitions(), _MOST_STORES + 1))
    if len(names) > _MOST_STORES:
        raise SetupError(
            f"a run has at most {_MOST_STORES:,} {service.store}s, and the keys name more: "
            "lower the values of the fields in keys.partition_key"
        )
    for name in names:
        if (problem := service.name_problem(store_of(EXAMPLE_STORES, name))) is not None:
            raise SetupError(
                f"keys.partition_key: {echoed(name)} cannot end the name of a {service.store}: "
                f"{problem}"
            )
    return tuple(store_of("", name) for name in names)


def entity_sizes(profile: Profile, run_id: str) -> tuple[int, int]:
    """Bytes of one written entity: as stored, and about as sent; of a replay 0, and the mean."""
    if profile.replay is not None:
        return 0, profile.replay.content.entity_bytes
    service = service_of_session(profile.session.kind)
    if service is not None and service.store_each:
        return profile.entity.size_bytes, profile.entity.size_bytes
    # A scenario makes its keys itself, which are about as long.
    first = profile.design.key(0, 0) if profile.mixed else EXAMPLE_KEY
    key = first.partition_key, first.row_key
    properties = profile.entity.factory(run_id).properties(*key, 0)
    return stored_size(*key, properties), wire_bytes(*key, properties)


def settings_problem(profile: Profile, service: Service | None) -> str | None:
    """Why settings do not fit a service; None if they do, or if the service is not known yet."""
    if service is None:
        return None
    if profile.audit.enabled and service.store != "table":
        return "audit.enabled compares rows of tables"
    if profile.audit.enabled and not service.keeps_writes:
        return "audit.enabled reads back what was written, and the endpoint keeps no writes"
    return (profile.entity.compress and service.uncompressed) or None


def _loading_size(profile: Profile) -> int:
    """Entities of a loading transaction: as many as are allowed, and fit into it."""
    _, on_the_wire = entity_sizes(profile, EXAMPLE_RUN_ID)
    fitting = MAX_TRANSACTION_BYTES // (on_the_wire + PART_OVERHEAD_BYTES)
    return min(MAX_TRANSACTION_OPERATIONS, fitting)


def most_transactions(profile: Profile, kind: Service, requests: int) -> tuple[int, float]:
    """Most billable transactions of loading, and of load and audit (may be inf), with retries.

    Loading makes ``requests`` without any.
    """
    loading = requests * (1 + LOADING_RETRY.retries)
    units = profile.load_model.most_requests(kind) * kind.requests_each
    if math.isinf(units):
        return loading, units
    looked_up = min(units, profile.audit.most_rows) if profile.audit.enabled else 0
    return loading, math.ceil(units + looked_up) * (1 + profile.retry.most)


def retry_of(profile: Profile) -> RetryPolicy:
    retry = profile.retry
    if retry.strategy == "exponential":
        return ExponentialBackoff(
            retries=retry.retries,
            backoff_s=retry.backoff_s,
            minimum_s=retry.minimum_s,
            maximum_s=retry.maximum_s,
        )
    waits = {"fixed": (retry.backoff_s,) * retry.retries, "schedule": retry.delays_s}
    return ScheduledBackoff(delays_s=waits.get(retry.strategy, ()))


def conditions_of(profile: Profile) -> tuple[Condition, ...]:
    return tuple(parse_condition(text) for text in profile.conditions)


def read_trace(
    named: NamedProfile, tell: Tell = lambda done, total: None, *, into_one_table: bool = False
) -> tuple[NamedProfile, Preparation | None]:
    """The profile with what its trace holds, and the rows to load; other profiles stay as they are.

    ``into_one_table`` sends all operations to a table that exists, whatever the recorded one is
    named. A `SetupError` says that nothing of the trace can be read or replayed.
    """
    replay = named.profile.replay
    if replay is None:
        return named, None
    path = Path(replay.trace)
    _require_there(path)
    content: dict[str, Any] = {}
    scheme = None
    if replay.keys is not None:
        _, content = read_toml_file(Path(replay.keys), "key scheme")
        scheme = _scheme(replay.keys, content)
    with opened(path, tell, rows=scheme is not None and bool(scheme.properties)) as trace:
        preparation = Preparation(
            trace,
            path.name,
            fingerprint(path, tell),
            entity_bytes=named.profile.entity.size_bytes,
            scheme=scheme,
            into_one_table=into_one_table,
            tell=tell,
        )
    found = preparation.part.model_copy(
        update={"speed": named.profile.load_model.speed, "share": replay.share, "scheme": content}
    )
    profile = named.profile.model_copy(
        update={"replay": replay.model_copy(update={"found": found})}
    )
    return dataclasses.replace(named, profile=profile), preparation


def replay_of(
    profile: Profile, run_id: str, preparation: Preparation | None = None
) -> ReplaySource:
    """What a process of a replay sends, ``preparation`` where it also loads; or a `SetupError`."""
    replay = profile.replay
    assert replay is not None
    return ReplaySource(
        Path(replay.trace),
        replay.content,
        run_id,
        # A worker has it from the master, and reads no file.
        scheme=_scheme(replay.keys, replay.content.scheme) if replay.keys else None,
        by_operation=profile.load_model.by_operation,
        preparation=preparation,
    )


def _scheme(path: str, content: dict[str, Any]) -> Scheme:
    return parse_scheme(Path(path).stem, content, Path(path).name)


def require_same_trace(profile: Profile) -> None:
    """Raise a `SetupError` if the trace of this process is not the one that the master read."""
    replay = profile.replay
    if replay is None or replay.found is None:
        return
    path = Path(replay.trace)
    _require_there(path)
    if fingerprint(path) != replay.found.fingerprint:
        raise SetupError(
            f"the trace {cut(replay.trace)} of this worker differs from the master's; give both "
            "the same file"
        )


def _require_there(path: Path) -> None:
    if not path.exists():
        raise SetupError(
            f"there is no trace {cut(str(path))}. Record one with `harness watch --trace FOLDER -- "
            "COMMAND` or with --trace on a run, and name it with --set replay.trace=FILE"
        )
