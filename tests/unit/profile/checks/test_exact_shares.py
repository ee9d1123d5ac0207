"""Calculated shares of the load, held against what a dry run of the same profile sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.measure.record.findings import PredictionPart
from harness.model.partition import Partition
from harness.profile.build.scenarios import dry_run
from harness.profile.build.workload import source_of
from harness.profile.checks.prediction import KeyRanges, exact_shares
from harness.profile.profile_loader import parse
from harness.profile.settings.schema import Profile
from harness.workload.mix import Action
from tests.support.examples import tried
from tests.support.profiles import shipped, without_trace

TASKS = tried(4000)
UNKNOWN = {
    # Ranges by bounds of keys that are not in order.
    "append-only-unpadded",
    "unpadded-rows",
    # Two tables.
    "index-table",
    # A hash of each entity in the PartitionKey.
    "calculated-suffix",
    "cosmos-calculated-suffix",
    "cosmos-synthetic-suffix",
    "random-suffix",
    # The newest rows of a table, of which there are more and more.
    "ycsb-d",
}
"""Shipped profiles whose shares cannot be calculated."""
MIXED = [name for name in without_trace() if shipped(name).mixed]
ZIPF: dict[str, Any] = {
    "fields": {"customer": {"values": 30, "distribution": "zipfian"}},
    "keys": {"partition_key": "{customer}", "rows_per_partition": 20},
}
DATED: dict[str, Any] = {
    "fields": {**ZIPF["fields"], "time": {"history": "3 months"}},
    "keys": {"partition_key": "{customer}_{time:month}", "rows_per_partition": 20},
}


def made(**parts: Any) -> Profile:
    return parse({"question": "Why?", **parts}, source="a test")


def measured(profile: Profile, found: PredictionPart) -> Iterator[tuple[float, float]]:
    """Shares of the hottest partition, of its range and of all together, with their deviations.

    Tasks are independent of one another, their operations are not.
    """
    source, ranges = source_of(profile, run_id="r" * 25, worker=0), KeyRanges(found.ranges)
    tasks: list[list[int]] = []
    for number, operation in dry_run(source, profile):
        if number >= TASKS:
            break
        while len(tasks) <= number:
            tasks.append([0, 0, 0, 0])
        entities, partition = operation.entities_asked, Partition.named(operation.partition)
        tasks[number][0] += entities
        tasks[number][1] += entities * (operation.partition == found.hottest)
        if partition.whole_table:
            tasks[number][3] += entities
        elif ranges.of(operation.partition) == found.hottest_range:
            tasks[number][2] += entities
    total = sum(task[0] for task in tasks)
    for which in (1, 2, 3):
        share = sum(task[which] for task in tasks) / total
        spread = sum((task[which] - share * task[0]) ** 2 for task in tasks) ** 0.5 / total
        yield share, spread


def agrees(profile: Profile) -> None:
    """What is calculated is what is sent, within five standard deviations."""
    found = exact_shares(profile)
    assert found is not None
    predicted = (found.hottest_share, found.hottest_range_share, found.over_partitions_share)
    for share, (counted, deviation) in zip(predicted, measured(profile, found), strict=True):
        assert counted == pytest.approx(share, abs=5 * deviation + 0.002)


@pytest.mark.parametrize("name", MIXED)
def test_a_shipped_profile_sends_what_is_calculated(name: str) -> None:
    """The hottest partition, the hottest range, and what goes over partitions."""
    profile = shipped(name)
    if name in UNKNOWN:
        assert exact_shares(profile) is None
    else:
        agrees(profile)


@pytest.mark.parametrize("action", list(Action))
@pytest.mark.parametrize("keys", [ZIPF, DATED], ids=["zipf", "dated"])
def test_each_action_sends_what_is_calculated(action: Action, keys: dict[str, Any]) -> None:
    """Beside point queries, so that its entities have a part in the shares."""
    agrees(made(**keys, mix={"point_query": 9, action.value: 10}))


@pytest.mark.parametrize(
    "parts",
    [
        {"transaction": {"kinds": ["insert"]}, "mix": {"transaction": 1, "point_query": 9}},
        {
            "transaction": {"kinds": ["insert", "delete"], "operations": 4},
            "mix": {"transaction": 1, "point_query": 9},
        },
        {
            "fields": {},
            "keys": {"partition_key": "{row:pad8}", "row_key": ""},
            "mix": {"insert": 1},
        },
        {"query": {"top": 5}, "mix": {"partition_scan": 1, "point_query": 9}},
        {"query": {"top": 5}, "mix": {"row_range_scan": 1, "point_query": 9}},
        {"query": {"top": 5}, "mix": {"partition_range_scan": 1, "point_query": 9}},
        {"query": {"top": 5}, "mix": {"full_table_scan": 1, "point_query": 9}},
        {"query": {"returned_share": 0.1}, "mix": {"partition_scan": 1, "point_query": 9}},
        {"query": {"rows": 7, "partitions": 3}, "mix": {"row_range_scan": 1, "point_query": 9}},
    ],
)
def test_shapes_of_operations_have_a_part_in_the_shares(parts: dict[str, Any]) -> None:
    """New rows of transactions, and queries of some rows."""
    agrees(made(**{**DATED, **parts}))
