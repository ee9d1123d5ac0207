"""A whole profile, and the rules that span several of its settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Annotated, Any

import pydantic
from pydantic import Field

from harness.measure.verdict.conditions import parse_condition
from harness.model.entity import MAX_TRANSACTION_BYTES
from harness.profile.load.model import Load, LoadModel, Replay
from harness.profile.load.registry import asked_for
from harness.profile.load.search import Search
from harness.profile.load.stages import Stage
from harness.profile.settings.parts import (
    EXAMPLE_RUN_ID,
    Audit,
    EndpointSettings,
    Entity,
    Keys,
    Limits,
    Loading,
    Mix,
    Part,
    Query,
    Retry,
    Session,
    Transaction,
    Weight,
)
from harness.workload.entity_factory import wire_bytes
from harness.workload.keys.schemes import SCHEMES
from harness.workload.operation_factory import PART_OVERHEAD_BYTES


def _condition(text: str) -> str:
    parse_condition(text)
    return text


def _default_mix(parts: dict[str, Any]) -> Mix:
    if SCHEMES[parts["keys"].scheme].one_row:
        return Mix(point_query=50, upsert_merge=50)
    return Mix(point_query=50, upsert_merge=40, transaction=10)


_Name = Annotated[str, Field(min_length=1)]
_Condition = Annotated[str, pydantic.AfterValidator(_condition)]


class Profile(Part):
    """One question, and the load that answers it.

    A profile can break rules that span several settings: see `broken_rules`.
    """

    question: _Name
    """What the profile answers; in a file it can be the comment in the first line."""
    user_class: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = "ProfileUser"
    """The Locust user class that sends."""
    seed: Annotated[int, Field(ge=0)] = 1
    """The same seed gives the same list of operations."""
    conditions: tuple[_Condition, ...] = ()
    """What must hold for the run to pass; exit code 1 otherwise."""
    scenario: _Name | None = None
    """A whole application instead of a mix: the name of a shipped one, or file.py:Class of a file
    in the profile's folder."""
    actions: dict[str, Weight] = Field(default={})
    """Weights of the scenario's actions that differ from its own."""
    replay: Annotated[Replay | None, Field(exclude_if=lambda replay: replay is None)] = None
    """Send the operations of a trace instead of a mix."""
    hosts: Annotated[tuple[_Name, ...], Field(exclude_if=lambda hosts: not hosts)] = ()
    """The endpoints of one or several accounts, if -H is not given."""
    keys: Keys = Keys()
    entity: Entity = Entity()
    mix: Mix = Field(default_factory=_default_mix)
    """Default: point_query 50, upsert_merge 40, transaction 10; or, where the scheme gives each
    entity a partition of its own, point_query 50, upsert_merge 50."""
    query: Query = Query()
    transaction: Transaction = Transaction()
    loading: Loading = Loading()
    load: Load = Load()
    stage: tuple[Stage, ...] = ()
    """Stages of the load, one after the other, in place of one rate."""
    search: Search | None = None
    """Search for the highest sustainable rate."""
    retry: Retry = Retry()
    session: Session = Session()
    limits: Limits = Limits()
    endpoint: Annotated[
        EndpointSettings, Field(exclude_if=lambda known: known == EndpointSettings())
    ] = EndpointSettings()
    audit: Audit = Audit()
    fail_fast: bool = False
    """End the run as soon as a condition cannot be met any more."""

    @property
    def load_model(self) -> LoadModel:
        """When operations are due, and for how long."""
        return next(asked_for(self.load, self.stage, self.search, self.replay))


def broken_rules(profile: Profile, wrong: Collection[str] = ()) -> Iterator[str]:
    """Every rule over several settings that ``profile`` breaks, as sentences.

    Args:
        profile: The profile, with defaults in place of invalid parts.
        wrong: Names of the invalid parts; rules that depend on them are not checked.
    """
    for parts, rule in _RULES:
        if not parts.intersection(wrong):
            yield from rule(profile)


def _load(profile: Profile) -> Iterator[str]:
    replay, rated = profile.replay, profile.load.rate_per_s is not None
    if profile.search is not None and (profile.stage or rated):
        yield "search: a search sets the rate; leave out stages and the rate of [load]"
    if replay is not None and replay.speed != 1.0 and profile.load_model.speed is None:
        yield (
            "replay.speed: it applies to the recorded instants; with a rate, stages or a search "
            "the operations leave in the recorded order at that rate"
        )
    for model in asked_for(profile.load, profile.stage, profile.search, replay):
        yield from model.problems()


def _conditions(profile: Profile) -> Iterator[str]:
    for text in profile.conditions:
        form = parse_condition(text).form
        if form.metric == "lost_writes" and not profile.audit.enabled:
            yield f"conditions: {text!r} needs audit.enabled = true"
        if form.of == "response" and not profile.load_model.scheduled:
            yield (
                f"conditions: {text!r} needs an open load: a closed load has no response latency; "
                "use service, or set load.entities_per_s"
            )


def _keys(profile: Profile) -> Iterator[str]:
    for problem in profile.keys.problems():
        yield f"keys: {problem}"


def _scenario(profile: Profile) -> Iterator[str]:
    if profile.scenario is not None and "mix" in profile.model_fields_set:
        yield "scenario and mix: a scenario has actions instead; set their weights in [actions]"
    if profile.scenario is None and profile.actions:
        yield "actions: only a scenario has actions; without a scenario set the weights in [mix]"


def _replay(profile: Profile) -> Iterator[str]:
    if profile.replay is None:
        return
    for name in ("scenario", "mix", "keys", "query", "transaction"):
        if name in profile.model_fields_set and getattr(profile, name) is not None:
            yield f"replay and {name}: a replay sends the operations of its trace; leave {name} out"


def _keys_and_mix(profile: Profile) -> Iterator[str]:
    if profile.scenario is not None or profile.replay is not None:
        return
    mix, one_row = profile.mix, SCHEMES[profile.keys.scheme].one_row
    alone = f"keys.scheme {profile.keys.scheme!r} gives each entity a partition of its own"
    if mix.transaction > 0 and one_row:
        yield f"mix.transaction: {alone}, and a transaction stays in one partition"
    elif mix.transaction > 0:
        yield from _transaction_rows(profile)
    query = profile.query
    if query.by_key_bounds and (query.returned_share < 1 or query.top is not None):
        yield (
            "query.by_key_bounds: it counts what a query misses, so that the query must return all "
            "it finds; leave out query.returned_share and query.top"
        )
    if mix.row_range_scan > 0 and one_row:
        yield f"mix.row_range_scan: {alone}, with one row; use partition_range_scan"


def _transaction_rows(profile: Profile) -> Iterator[str]:
    keys, kinds = profile.keys, profile.transaction.kinds
    operations, rows = profile.transaction.operations, keys.rows_per_partition
    fewest = rows if isinstance(rows, int) else min(rows, default=operations)
    if set(kinds) != {"insert"} and operations > fewest:
        yield (
            f"transaction.operations ({operations}) is more than keys.rows_per_partition "
            f"({fewest}); a transaction names each RowKey once"
        )
    moves = {"insert", "delete"}
    mixed = moves.intersection(kinds) and not moves.issuperset(kinds)
    if mixed and not any(keys.problems()) and keys.made().grows:
        yield (
            f"transaction.kinds: with keys.scheme {keys.scheme!r} new rows go to another partition "
            "than loaded rows, and a transaction stays in one partition"
        )


def _transaction_size(profile: Profile) -> Iterator[str]:
    made = profile.scenario is None and profile.replay is None
    if not made or any(profile.keys.problems()):
        return
    scheme = profile.keys.made()
    partition_key = scheme.partition_key(0)
    row_key = max(scheme.row_key(0, 0), scheme.inserted(0, 0, 1).row_key, key=len)
    factory = profile.entity.factory(EXAMPLE_RUN_ID)
    try:
        properties = factory.properties(partition_key, row_key, 0)
    except ValueError as error:
        yield f"entity.size_bytes: {error}"
        return
    operations = profile.transaction.operations
    one = wire_bytes(partition_key, row_key, properties) + PART_OVERHEAD_BYTES
    if profile.mix.transaction > 0 and operations * one > MAX_TRANSACTION_BYTES:
        yield (
            f"transaction.operations x entity.size_bytes: {operations} operations of about "
            f"{one:,} bytes are over the 4 MiB that a transaction may have"
        )


_RULES: tuple[tuple[frozenset[str], Callable[[Profile], Iterator[str]]], ...] = (
    (frozenset(), _load),
    (frozenset({"conditions", "audit", "load", "stage", "search", "replay"}), _conditions),
    (frozenset({"scenario", "mix", "actions"}), _scenario),
    (frozenset({"keys"}), _keys),
    (frozenset({"replay", "scenario", "mix", "keys"}), _replay),
    (frozenset({"scenario", "keys", "mix", "transaction"}), _keys_and_mix),
    (frozenset({"scenario", "keys", "mix", "transaction", "entity"}), _transaction_size),
)
"""The rules, each with the parts of a profile that it depends on."""
