"""Partitions that grow: what they reach at the rate of a load, and when."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.key_shapes import period_s
from harness.model.key_tokens import tokens_of
from harness.model.services.cosmos import COSMOS
from harness.profile.checks.observed import observe
from harness.profile.checks.recorded import seen_in
from harness.profile.checks.seen import GrowthSeen, Seen
from harness.profile.practices.partitions import large_partitions
from harness.profile.practices.practice import Assessment, Severity
from harness.profile.profile_loader import resolve
from tests.support.behaviour import insert, measured, result

DAY_S = 24 * 60 * 60
ONE = ["keys.rows_per_partition=1000", "mix.transaction=0", "mix.upsert_merge=0"]
HALF = ["mix.insert=50", "mix.partition_scan=50", "mix.point_query=0"]


def seen_of(*settings: str, name: str = "single-partition") -> Seen:
    return observe(resolve(name, [*ONE, *settings]).profile, 600).seen()


def look(seen: Seen) -> Assessment:
    found = large_partitions.look(seen)
    assert found is not None
    return found


INSERTS = seen_of("load.operations_per_s=10", "mix.insert=1", "mix.point_query=0")


def test_growth_is_the_inserts_of_a_partition() -> None:
    """Ten inserts a second into one partition are ten new rows a second, besides the loaded."""
    assert INSERTS.growth is not None
    assert INSERTS.growth.per_s == pytest.approx(10)
    days = (1_000_000 - 1000) / 10 / DAY_S
    assert f"holds 1,000,000 entities after {days:.1f} days" in look(INSERTS).why


def test_scans_of_a_partition_that_grows_reach_its_target() -> None:
    """Where every second operation reads the whole partition, fewer rows are too many."""
    scanned = seen_of("load.operations_per_s=0.2", *HALF)
    growth = scanned.growth
    assert growth is not None
    assert growth.scans_per_s == pytest.approx(0.2 - growth.per_s)
    days = (2_000 / growth.scans_per_s - 1000) / growth.per_s / DAY_S
    assert f"target of 2,000 entities/s by scans of all its entities after {days:.1f} days" in (
        look(scanned).why
    )


def test_the_limit_of_a_partition_is_that_of_its_service() -> None:
    """20 GB at Cosmos DB; Azure Storage has no such limit."""
    assert "is full" not in look(INSERTS).why
    assert "is full (20 GB) after" in look(dataclasses.replace(INSERTS, service=COSMOS)).why


@given(st.floats(1e-6, 1e6), st.integers(0, 999_999))
def test_what_is_reached_within_a_year_is_to_consider(per_s: float, largest: int) -> None:
    """Whatever the rate and the loaded rows: later than that is no concern."""
    growth = GrowthSeen(partition="p", per_s=per_s, period_s=math.inf)
    found = look(dataclasses.replace(INSERTS, growth=growth, largest=largest))
    soon = (1_000_000 - largest) / per_s < 365 * DAY_S
    assert found.severity is (Severity.CONSIDER if soon else Severity.FINE)


def test_a_partition_of_a_day_grows_for_a_day() -> None:
    """Ten rows a second are 864,000 in a day: the next day has a PartitionKey of its own."""
    growth = GrowthSeen(partition="d1-2024-05-01", per_s=10, period_s=DAY_S)
    assert look(dataclasses.replace(INSERTS, growth=growth)).severity is Severity.FINE
    faster = dataclasses.replace(growth, per_s=12)
    assert look(dataclasses.replace(INSERTS, growth=faster)).severity is Severity.CONSIDER


def test_a_stress_rate_is_no_growth() -> None:
    """Users that send as fast as they can try out a limit, whatever it would mean day by day."""
    stressed = look(seen_of("mix.insert=1"))
    assert stressed.severity is Severity.FINE
    assert "this load tries out a limit" in stressed.why


@pytest.mark.parametrize(
    ("keys", "days"),
    [
        (["a-2024-05-01", "b-2024-05-02", "c-2024-06-03"], 1),
        (["a_2024-05", "b_2024-06", "c_2024-07"], 31),
        (["anna-2024", "bert-2025", "carl-2025"], 366),
        (["anna", "bert", "carl"], math.inf),
    ],
)
def test_a_date_in_keys_says_how_long_new_rows_go_to_a_partition(
    keys: list[str], days: float
) -> None:
    """A day, a month, a year; without a date for ever."""
    assert period_s(tokens_of(keys)) == days * DAY_S


def test_a_run_shows_growth_too() -> None:
    """The inserts into the busiest partition, at the rate of the run."""
    record = measured([result(insert("p", f"r{n}"), at_s=n / 2, entities=1) for n in range(60)])
    growth = seen_in(record).growth
    assert growth is not None
    assert growth.partition == "p"
    assert f"Partition 'p' grows by {growth.per_s:.1f} entities/s." in look(seen_in(record)).why
