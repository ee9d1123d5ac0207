"""What no part of a profile can tell alone: do its keys, its mix and its sizes go together?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.measure.conditions import parse_condition
from harness.model.entity import MAX_TRANSACTION_BYTES
from harness.workload.entities import EntityFactory, wire_bytes
from harness.workload.making import PART_OVERHEAD_BYTES

if TYPE_CHECKING:
    from harness.profile.schema import Profile

EXAMPLE_RUN_ID = "00000000T000000Z-00000000"
"""As long as any run's."""


def misfits(profile: Profile) -> Iterator[str]:
    """Every reason why the parts of ``profile`` do not fit together, as sentences."""
    yield from _load(profile)
    if profile.scenario is not None:
        if "mix" in profile.model_fields_set:
            yield "scenario and mix: a scenario does what it does; weigh it in [actions]"
        return
    if profile.actions:
        yield "actions: they weigh what a scenario does; without one it is [mix]"
    yield from _keys_and_mix(profile)
    yield from _transaction_size(profile)


def _load(profile: Profile) -> Iterator[str]:
    load, stages = profile.load, profile.stage
    rated = load.entities_per_s is not None or load.operations_per_s is not None
    if len({stage.unit for stage in stages}) > 1:
        yield "stage: all stages go to the same thing: entities, operations or users"
    elif stages and rated:
        yield "stage and load: the rate is that of the stages; leave it out of [load]"
    if stages and not any(stage.to for stage in stages):
        yield "stage: every stage goes to 0; nothing would be sent"
    scheduled = rated or profile.search is not None or bool(stages and stages[0].unit != "to_users")
    yield from _cap(profile)
    for text in profile.conditions:
        form = parse_condition(text).form
        if form.metric == "lost_writes" and not profile.audit.enabled:
            yield f"conditions: {text!r} needs audit.enabled = true"
        if form.of == "response" and not scheduled:
            yield (
                f"conditions: {text!r} needs an open load: in a closed one nothing is due, so that "
                "there is no response latency; ask for service, or give load.entities_per_s"
            )
    if profile.search is not None and (stages or rated):
        yield "search: it decides about the rate; leave stages and the rate of [load] out"


def _cap(profile: Profile) -> Iterator[str]:
    """A cap holds for a closed load alone; who gives one does not want an open load above it."""
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


def _keys_and_mix(profile: Profile) -> Iterator[str]:
    keys, mix, kinds = profile.keys, profile.mix, profile.transaction.kinds
    scheme = keys.made()
    name = f"keys.scheme {keys.scheme!r}"
    if mix.transaction > 0:
        operations = profile.transaction.operations
        fewest = min(keys.rows.of(partition) for partition in _few(keys.partitions))
        if not scheme.can_transact:
            yield (
                f"mix.transaction: {name} gives each entity a partition of its own, and a "
                "transaction stays in one partition"
            )
        elif set(kinds) != {"insert"} and operations > fewest:
            yield (
                f"transaction.operations ({operations}) is more than keys.rows_per_partition "
                f"({fewest}); a transaction names each RowKey once"
            )
        moves = {"insert", "delete"}
        if scheme.grows and moves.intersection(kinds) and not moves.issuperset(kinds):
            yield (
                f"transaction.kinds: with {name} new rows go to another partition than those "
                "that are there, and a transaction stays in one"
            )
    if mix.row_range_scan > 0 and scheme.one_row:
        yield (
            f"mix.row_range_scan: {name} gives each entity a partition of its own, so that there "
            "is no range of rows in one; ask for a partition_range_scan"
        )


def _few(partitions: int) -> range:
    """Enough partitions to know the fewest rows: a list of their rows has so many at most."""
    return range(min(partitions, 10_000))


def _transaction_size(profile: Profile) -> Iterator[str]:
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
