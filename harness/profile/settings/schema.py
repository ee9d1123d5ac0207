"""A whole profile, and the rules that span several of its settings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from typing import Annotated, Any

import pydantic
from pydantic import Field

from harness.measure.verdict.conditions import parse_condition
from harness.model.entity import MAX_TRANSACTION_BYTES, key_problem
from harness.model.errors import echoed
from harness.model.figures import counted
from harness.model.services import service_of_session
from harness.profile.load.model import Load, LoadModel, Replay
from harness.profile.load.registry import asked_for
from harness.profile.load.search import Search
from harness.profile.load.stages import Stage
from harness.profile.settings import parts
from harness.profile.settings.keys import FieldSettings, Keys, design_of, key_problems
from harness.workload.entity_factory import wire_bytes
from harness.workload.keys.design import KeyDesign
from harness.workload.mix import Action
from harness.workload.operation_factory import PART_OVERHEAD_BYTES


def _condition(text: str) -> str:
    parse_condition(text)
    return text


def _default_mix(known: dict[str, Any]) -> parts.Mix:
    fields, keys = known["fields"], known["keys"]
    if not any(key_problems(fields, keys)) and design_of(fields, keys).one_row:
        return parts.Mix(point_query=50, upsert_merge=50)
    return parts.Mix(point_query=50, upsert_merge=40, transaction=10)


_EXAMPLE_KEYS = "p0", "0-00000000"
_Name = Annotated[str, Field(min_length=1)]
_Condition = Annotated[str, pydantic.AfterValidator(_condition)]


class Profile(parts.Part):
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
    actions: dict[str, parts.Weight] = Field(default={})
    """Weights of the scenario's actions that differ from its own."""
    replay: Annotated[Replay | None, Field(exclude_if=lambda replay: replay is None)] = None
    """Send the operations of a trace instead of a mix."""
    hosts: Annotated[tuple[_Name, ...], Field(exclude_if=lambda hosts: not hosts)] = ()
    """The endpoints of one or several accounts, if -H is not given."""
    fields: dict[str, FieldSettings] = Field(default={})
    """The fields of the data, by name, of which the keys are made."""
    keys: Keys = Keys()
    entity: parts.Entity = parts.Entity()
    mix: parts.Mix = Field(default_factory=_default_mix)
    """Default: point_query 50, upsert_merge 40, transaction 10; or, where the keys give each entity
    a partition of its own, point_query 50, upsert_merge 50."""
    query: parts.Query = parts.Query()
    transaction: parts.Transaction = parts.Transaction()
    messages: Annotated[
        parts.Messages, Field(exclude_if=lambda asked: asked == parts.Messages())
    ] = parts.Messages()
    loading: parts.Loading = parts.Loading()
    load: Load = Load()
    stage: tuple[Stage, ...] = ()
    """Stages of the load, one after the other, in place of one rate."""
    search: Search | None = None
    """Search for the highest sustainable rate."""
    retry: parts.Retry = parts.Retry()
    session: parts.Session = parts.Session()
    limits: parts.Limits = parts.Limits()
    endpoint: Annotated[
        parts.EndpointSettings, Field(exclude_if=lambda known: known == parts.EndpointSettings())
    ] = parts.EndpointSettings()
    audit: parts.Audit = parts.Audit()
    fail_fast: bool = False
    """End the run as soon as a condition cannot be met any more."""

    @property
    def load_model(self) -> LoadModel:
        """When operations are due, and for how long."""
        return next(asked_for(self.load, self.stage, self.search, self.replay))

    @functools.cached_property
    def design(self) -> KeyDesign:
        """The keys of a mix; a `ValueError` if fields and keys do not fit together."""
        return design_of(self.fields, self.keys)

    @functools.cached_property
    def key_problems(self) -> tuple[str, ...]:
        """Why there is no `design`: several rules ask, and a large design takes seconds."""
        return tuple(key_problems(self.fields, self.keys)) if self.mixed else ()

    @property
    def mixed(self) -> bool:
        """Whether a mix of actions is sent: neither a scenario nor a trace."""
        return self.scenario is None and self.replay is None


def broken_rules(profile: Profile, wrong: Collection[str] = ()) -> Iterator[str]:
    """Every rule over several settings that ``profile`` breaks, as sentences.

    Parts that are ``wrong`` have defaults in it; rules that depend on them are not checked.
    """
    for names, rule in _RULES:
        if not names.intersection(wrong):
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


def _scenario(profile: Profile) -> Iterator[str]:
    if profile.scenario is not None and "mix" in profile.model_fields_set:
        yield "scenario and mix: a scenario has actions instead; set their weights in [actions]"
    if profile.scenario is None and profile.actions:
        yield "actions: only a scenario has actions; without a scenario set the weights in [mix]"


def _scenario_keys(profile: Profile) -> Iterator[str]:
    """A scenario makes its keys itself, of the number of things and of rows that it is given."""
    if profile.scenario is None:
        return
    for setting in sorted(profile.keys.model_fields_set - {"rows_per_partition"}):
        yield f"keys.{setting}: a scenario makes its keys itself; leave it out"
    for name, field in profile.fields.items():
        yield from field.problems(name)
        if not isinstance(field.values, int):
            yield f"fields.{name}: a scenario draws a number; write values = 50"
    if len(profile.fields) > 1:
        yield f"fields: a scenario draws one field, and there are {', '.join(profile.fields)}"


def _replay(profile: Profile) -> Iterator[str]:
    if profile.replay is None:
        return
    for name in ("scenario", "mix", "fields", "keys", "query", "transaction"):
        if name in profile.model_fields_set and getattr(profile, name) is not None:
            yield f"replay and {name}: a replay sends the operations of its trace; leave {name} out"


def _keys_and_mix(profile: Profile) -> Iterator[str]:
    if not profile.mixed or profile.key_problems:
        return
    mix, design = profile.mix, profile.design
    alone = "keys.partition_key gives each entity a partition of its own"
    if mix.transaction > 0 and design.one_row:
        yield f"mix.transaction: {alone}, and a transaction stays in one partition"
    elif mix.transaction > 0:
        yield from _transaction_rows(profile)
    query = profile.query
    if query.by_key_bounds and (query.returned_share < 1 or query.top is not None):
        yield (
            "query.by_key_bounds: it counts what a query misses, so that the query must return all "
            "it finds; leave out query.returned_share and query.top"
        )
    if mix.row_range_scan > 0 and design.one_row:
        yield f"mix.row_range_scan: {alone}, with one row; use partition_range_scan"
    inserts = [action for action, weight in mix.weights().items() if weight and action.moves_rows]
    if mix.transaction > 0 and any(profile.transaction.moving):
        inserts.append(Action.TRANSACTION)
    if inserts and not design.creates:
        yield (
            f"mix.{inserts[0].value}: it makes new entities, and no field in the keys is new for "
            "each; write {row} into keys.row_key"
        )


def _transaction_rows(profile: Profile) -> Iterator[str]:
    design, kinds = profile.design, profile.transaction.kinds
    operations = profile.transaction.operations
    fewest = min(map(design.rows.of, range(design.count)))
    if set(kinds) != {"insert"} and operations > fewest and not design.creates:
        yield (
            f"transaction.operations ({operations}): the RowKey tells {counted(fewest, 'row')} of "
            "a partition apart; write {row} into keys.row_key, or leave transactions out"
        )
    elif set(kinds) != {"insert"} and operations > fewest:
        yield (
            f"transaction.operations ({operations}) is more than the rows of a loaded partition "
            f"({fewest}); a transaction names each RowKey once: set keys.rows_per_partition"
        )
    moving = profile.transaction.moving
    if design.scatters and any(moving):
        yield (
            f"transaction.kinds: by keys.partition_key {echoed(profile.keys.partition_key)} new "
            "rows go to different partitions, and a transaction stays in one"
        )
    elif any(moving) and not all(moving) and design.grows:
        yield (
            "transaction.kinds: new rows go to another partition than loaded rows, because "
            "keys.partition_key has a time, and a transaction stays in one partition"
        )


def _sizes(profile: Profile) -> Iterator[str]:
    service, weights = service_of_session(profile.session.kind), profile.mix.weights()
    on_rows = any(weight and action.on_rows for action, weight in weights.items())
    if service is not None and service.store_each and not (profile.mixed and on_rows):
        # A message has its text alone, of any length.
        return
    keys = _EXAMPLE_KEYS
    if profile.mixed and not profile.key_problems:
        design = profile.design
        key, new = design.key(0, 0), design.new(0, 0, 1)
        row_key = max(key.row_key, new.row_key, key=len)
        for setting, text in (("partition_key", new.partition_key), ("row_key", row_key)):
            if problem := key_problem(text):
                yield f"keys.{setting}: {echoed(text)} {problem}"
                return
        keys = key.partition_key, row_key
    try:
        properties = profile.entity.factory(parts.EXAMPLE_RUN_ID).properties(*keys, 0)
    except ValueError as error:
        yield f"entity.size_bytes: {error}"
        return
    operations = profile.transaction.operations
    one = wire_bytes(*keys, properties) + PART_OVERHEAD_BYTES
    if profile.mixed and profile.mix.transaction > 0 and operations * one > MAX_TRANSACTION_BYTES:
        yield (
            f"transaction.operations x entity.size_bytes: {operations} operations of about "
            f"{one:,} bytes are over the 4 MiB that a transaction may have"
        )


_RULES: tuple[tuple[frozenset[str], Callable[[Profile], Iterator[str]]], ...] = (
    (frozenset(), _load),
    (frozenset({"conditions", "audit", "load", "stage", "search", "replay"}), _conditions),
    (frozenset({"scenario", "mix", "actions"}), _scenario),
    (frozenset({"fields", "keys"}), lambda profile: iter(profile.key_problems)),
    (frozenset({"fields", "keys", "scenario"}), _scenario_keys),
    (frozenset({"replay", "scenario", "mix", "fields", "keys"}), _replay),
    (frozenset({"scenario", "fields", "keys", "mix", "transaction"}), _keys_and_mix),
    (frozenset({"scenario", "fields", "keys", "mix", "transaction", "entity"}), _sizes),
)
"""The rules, each with the parts of a profile that it depends on."""
