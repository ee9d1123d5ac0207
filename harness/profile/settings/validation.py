"""Rules that span several settings of a profile: keys, mix, sizes, rates and conditions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from harness.measure.verdict.conditions import parse_condition
from harness.model.entity import MAX_TRANSACTION_BYTES
from harness.profile.settings.part import EXAMPLE_RUN_ID
from harness.workload.entity_factory import EntityFactory, wire_bytes
from harness.workload.keys.schemes import SCHEMES
from harness.workload.operation_factory import PART_OVERHEAD_BYTES

if TYPE_CHECKING:
    from harness.profile.settings.schema import Profile


def misfits(profile: Profile, wrong: Collection[str] = ()) -> Iterator[str]:
    """Every rule that ``profile`` breaks, as sentences.

    Args:
        profile: The profile, with defaults in place of invalid parts.
        wrong: Names of the invalid parts; rules that depend on them are not checked.
    """
    for parts, rule in _RULES:
        if not parts.intersection(wrong):
            yield from rule(profile)


def _rated(profile: Profile) -> bool:
    """Whether the load has one rate, and neither stages nor a search."""
    return profile.load.entities_per_s is not None or profile.load.operations_per_s is not None


def _stages(profile: Profile) -> Iterator[str]:
    stages = profile.stage
    if len({stage.unit for stage in stages}) > 1:
        yield "stage: all stages go to the same thing: entities, operations or users"
    if stages and not any(stage.to for stage in stages):
        yield "stage: every stage goes to 0; nothing would be sent"


def _rates(profile: Profile) -> Iterator[str]:
    if profile.stage and _rated(profile):
        yield "stage and load: the rate is that of the stages; leave it out of [load]"
    if profile.search is not None and (profile.stage or _rated(profile)):
        yield "search: it decides about the rate; leave stages and the rate of [load] out"
    yield from _cap(profile)


def _conditions(profile: Profile) -> Iterator[str]:
    stages = profile.stage
    scheduled = _rated(profile) or profile.search is not None
    scheduled = scheduled or bool(stages and stages[0].unit != "to_users")
    for text in profile.conditions:
        form = parse_condition(text).form
        if form.metric == "lost_writes" and not profile.audit.enabled:
            yield f"conditions: {text!r} needs audit.enabled = true"
        if form.of == "response" and not scheduled:
            yield (
                f"conditions: {text!r} needs an open load: in a closed one nothing is due, so that "
                "there is no response latency; ask for service, or give load.entities_per_s"
            )


def _cap(profile: Profile) -> Iterator[str]:
    """A cap applies to closed loads only; an open load above it is surely a mistake."""
    cap = profile.load.max_entities_per_s
    if cap is None or "max_entities_per_s" not in profile.load.model_fields_set:
        return
    rates = {
        "load.entities_per_s": profile.load.entities_per_s or 0,
        "search.max_per_s": 0 if profile.search is None else profile.search.max_per_s,
        "stage.to_entities_per_s": max(
            (stage.to for stage in profile.stage if stage.unit == "to_entities_per_s"), default=0
        ),
    }
    for name, rate in rates.items():
        if rate > cap:
            yield (
                f"load.max_entities_per_s: {cap:g} is below {name} ({rate:g}), and caps a load "
                "without a rate of its own alone; lower the rate, or leave the cap out"
            )


def _keys(profile: Profile) -> Iterator[str]:
    for problem in profile.keys.problems():
        yield f"keys: {problem}"


def _scenario(profile: Profile) -> Iterator[str]:
    if profile.scenario is not None and "mix" in profile.model_fields_set:
        yield "scenario and mix: a scenario does what it does; weigh it in [actions]"
    if profile.scenario is None and profile.actions:
        yield "actions: they weigh what a scenario does; without one it is [mix]"


def _keys_and_mix(profile: Profile) -> Iterator[str]:
    if profile.scenario is not None:
        return
    scheme, mix = profile.keys.scheme, profile.mix
    one_row = SCHEMES[scheme].one_row
    alone = f"keys.scheme {scheme!r} gives each entity a partition of its own"
    if mix.transaction > 0 and one_row:
        yield f"mix.transaction: {alone}, and a transaction stays in one partition"
    elif mix.transaction > 0:
        yield from _transaction_rows(profile)
    if mix.row_range_scan > 0 and one_row:
        yield (
            f"mix.row_range_scan: {alone}, so that there is no range of rows in one; ask for a "
            "partition_range_scan"
        )


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
            f"transaction.kinds: with keys.scheme {keys.scheme!r} new rows go to another "
            "partition than those that are there, and a transaction stays in one"
        )


def _transaction_size(profile: Profile) -> Iterator[str]:
    if profile.scenario is not None or any(profile.keys.problems()):
        return
    scheme = profile.keys.made()
    partition_key = scheme.partition_key(0)
    row_key = max(scheme.row_key(0, 0), scheme.inserted(0, 0, 1).row_key, key=len)
    factory = EntityFactory(profile.entity.size_bytes, EXAMPLE_RUN_ID)
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
    (frozenset({"stage"}), _stages),
    (frozenset({"load", "stage", "search"}), _rates),
    (frozenset({"conditions", "audit", "load", "stage", "search"}), _conditions),
    (frozenset({"scenario", "mix", "actions"}), _scenario),
    (frozenset({"keys"}), _keys),
    (frozenset({"scenario", "keys", "mix", "transaction"}), _keys_and_mix),
    (frozenset({"scenario", "keys", "mix", "transaction", "entity"}), _transaction_size),
)
"""The rules, each with the parts of a profile that it depends on."""
