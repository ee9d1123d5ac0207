"""Request units that a profile would take, or a run took, and the practices of Cosmos DB."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measure.record.measured import RatesPart, RequestUnitsPart
from harness.measure.record.record import RunRecord
from harness.model.operation import WHOLE_TABLE, KeyRange, Kind, Operation, transaction
from harness.model.physical_partitions import PhysicalPartitions
from harness.model.request_units import (
    QUERY_PAGE,
    SCANNED_ENTITY,
    WRITE_CHARGES,
    charge,
    copy_charge,
)
from harness.model.services.cosmos import COSMOS, COSMOS_EMULATOR
from harness.model.services.service import LimitUnit
from harness.model.target import Throughput
from harness.profile.checks.observed import observe
from harness.profile.checks.prediction import ChargedLoad
from harness.profile.checks.recorded import seen_in
from harness.profile.checks.seen import ChargesSeen, Seen
from harness.profile.practices.checklist import PRACTICES, findings_of, with_advice
from harness.profile.practices.keys import refused_keys
from harness.profile.practices.practice import UNIT_LIMITS, Severity
from harness.report.sentences import hottest, hottest_share
from harness.report.terminal.page import Page
from harness.report.terminal.request_units import charges_shown
from tests.support.command import Command
from tests.support.profiles import look_of, profile_of, severity_of
from tests.support.records import kept

OFFENDS, CONSIDER, FINE = Severity.OFFENDS, Severity.CONSIDER, Severity.FINE
THROUGHPUT = Throughput(ru_per_s=18_000, physical_partitions=3)
SAMPLE = 1000


def load(*operations: Operation, creates: bool = False, **known: Any) -> ChargesSeen:
    """What these operations take, 10 a second, of 18,000 RU/s over three physical partitions."""
    charged = ChargedLoad((), 1000, known.pop("throughput", THROUGHPUT))
    for operation in operations:
        charged.add(operation, creates=creates, matching=known.get("matching"))
    return charged.seen(10.0, [([one.partition_key for one in operations], ())])


def write(kind: Kind, key: str = "p", row: str = "r", size: int = 10) -> Operation:
    return Operation(kind=kind, partition_key=key, row_key=row, properties={"A": "x" * size})


def query(entities: int | None = 30, key: str = "p", **shape: Any) -> Operation:
    keys = KeyRange(entities=entities)
    return Operation(kind=Kind.QUERY, partition_key=key, key_range=keys, **shape)


ONE_WRITE = WRITE_CHARGES[0][1] + 20
"""Of an entity of up to 1 KB with one property."""


@pytest.mark.parametrize(
    ("operation", "creates", "matching", "hundredths"),
    [
        (Operation(kind=Kind.POINT_QUERY, partition_key="p", row_key="r"), False, None, 100),
        (write(Kind.INSERT), False, None, ONE_WRITE),
        (write(Kind.UPDATE_MERGE), False, None, 2 * ONE_WRITE),
        (write(Kind.UPSERT_REPLACE), False, None, 2 * ONE_WRITE),
        (write(Kind.UPSERT_REPLACE), True, None, ONE_WRITE),
        (Operation(kind=Kind.DELETE, partition_key="p", row_key="r"), False, None, 495),
        (
            transaction((write(Kind.INSERT), write(Kind.UPDATE_MERGE, row="s"))),
            False,
            None,
            3 * ONE_WRITE,
        ),
        (query(), False, 30, QUERY_PAGE + 30 * 100),
        (query(), False, 10, QUERY_PAGE + 10 * 100 + 20 * SCANNED_ENTITY),
        # Nobody knows what the filter lets pass: at most everything.
        (query(), False, None, QUERY_PAGE + 30 * 100),
        # The first five of ten in 30: it has scanned 15.
        (query(top=5), False, 10, QUERY_PAGE + 5 * 100 + 10 * SCANNED_ENTITY),
        (query(2500), False, 2500, 3 * QUERY_PAGE + 2500 * 100),
        (query(1, key=WHOLE_TABLE), False, 1, 3 * QUERY_PAGE + 100),
    ],
)
def test_an_operation_is_charged_by_kind_and_size(
    operation: Operation, creates: bool, matching: int | None, hundredths: int
) -> None:
    """As the model says, which the stand-in follows too."""
    seen = load(operation, creates=creates, matching=matching)
    assert seen.each == pytest.approx(hundredths / 100)
    assert seen.per_s == pytest.approx(10 * hundredths / 100)


def test_a_large_entity_costs_more_than_a_small_one() -> None:
    """Entities of the same shape are looked at once; those of another size are not."""
    small, large = (write(Kind.INSERT, row="r" * rows) for rows in (1, 900))
    assert load(large).each > load(small).each
    assert load(small, small).each == load(small).each


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=300), st.integers(1, 12))
def test_shares_are_shares(keys: list[str], physical: int) -> None:
    """Those of the operations add up to all; none is more than all, and none is negative."""
    operations = [write(Kind.INSERT, key) for key in keys] + [query(key=WHOLE_TABLE)]
    throughput = Throughput(ru_per_s=18_000, physical_partitions=physical)
    seen = load(*operations, throughput=throughput)
    assert sum(kind.share for kind in seen.kinds) == pytest.approx(1.0)
    assert 0.0 <= seen.shares.hottest_share <= 1.0
    assert 1 / physical <= seen.hottest_share <= 1.0 + 1e-9
    assert seen.reached_per_s is not None
    assert seen.reached_per_s <= 18_000


def test_one_key_heats_one_physical_partition() -> None:
    """All of its load, however many others there are; and a third of the throughput is reached."""
    seen = load(*[write(Kind.INSERT, "hot")] * 200)
    assert (seen.shares.hottest_share, seen.physical_share) == (1.0, 1.0)
    assert seen.reached_per_s == 6_000


def test_many_keys_spread_as_the_stand_in_spreads_them() -> None:
    """The share of the hottest is that of the keys that the same hash puts there."""
    keys = [f"k{number}" for number in range(3000)]
    seen = load(*(write(Kind.INSERT, key) for key in keys))
    physical = PhysicalPartitions.even(3)
    counts = [sum(physical.of(key) == number for key in keys) for number in range(3)]
    assert seen.physical_share == pytest.approx(max(counts) / 3000, abs=0.03)
    assert max(counts) / 3000 < 0.4


def test_without_the_provisioned_throughput_only_one_key_is_known() -> None:
    """Nothing says how many physical partitions there are."""
    operations = [write(Kind.INSERT, key) for key in ("a", "b") * 100]
    seen = load(*operations, throughput=Throughput())
    assert seen.hottest_share == pytest.approx(0.5)
    assert seen.reached_per_s == pytest.approx(20_000)


def made(settings: dict[str, Any]) -> Seen:
    return observe(profile_of(settings), SAMPLE, COSMOS).seen()


WRITES = {"mix.insert": 1.0}
PROVISIONED = {"endpoint.provisioned_ru_per_s": 18_000.0, "endpoint.physical_partitions": 3}
KEYS = {"fields.key.values": 2000, "keys.partition_key": "{key}"}
SPREAD = {**KEYS, "keys.rows_per_partition": 2, **WRITES, **PROVISIONED}
HOT = {"keys.rows_per_partition": 10, **WRITES, **PROVISIONED}


def test_a_partition_key_is_full_after_20_gb() -> None:
    """As many inserts of as many bytes as one PartitionKey takes, until 20 GB are reached."""
    seen = made({**HOT, "load.operations_per_s": 500.0})
    assert seen.charges is not None
    size = seen.charges.entity_bytes
    assert size is not None
    hours = (20e9 - 10 * size) / (500 * size) / 3600
    why = look_of("large-partitions", seen).why
    assert f"is full (20 GB) after {hours:,.1f} hours" in why
    full = dataclasses.replace(seen, largest=30_000_000)
    assert severity_of("large-partitions", full) is OFFENDS


def test_what_is_stored_needs_physical_partitions() -> None:
    """175 GB need four, although the throughput needs three: each then has a fourth of it."""
    rows = {**SPREAD, "fields.key.values": 300, "keys.rows_per_partition": 600_000}
    seen = made({**rows, "load.operations_per_s": 500.0})
    charges = seen.charges
    assert charges is not None
    assert charges.entity_bytes is not None
    stored = 180_000_000 * charges.entity_bytes
    assert charges.throughput.stored_bytes == stored
    assert charges.throughput.fewest_partitions == -(-stored // (50 * 10**9)) == 4
    assert charges.throughput.partition_ru_per_s == 4_500
    assert charges.grown_per_s == pytest.approx(500 * charges.entity_bytes)
    look = look_of("data-volume", seen)
    assert look.severity is CONSIDER
    days = 50e9 / (500 * charges.entity_bytes) / 86_400
    assert f"one more is needed every {days:,.1f} days" in look.why
    assert severity_of("data-volume", made(SPREAD)) is FINE


def test_a_change_of_the_key_is_a_copy() -> None:
    """Every row is read in a full page and inserted, at what is provisioned."""
    seen = made({**SPREAD, "keys.rows_per_partition": 100_000})
    charges = seen.charges
    assert charges is not None
    assert charges.entity_bytes is not None
    assert seen.profile is not None
    properties = len(seen.profile.entity.factory("r").properties("p", "r", 0))
    each = copy_charge(charges.entity_bytes, properties)
    assert each == 100 + charge(Kind.INSERT, charges.entity_bytes, properties=properties)
    copied = 200_000_000 * each / 100
    assert charges.copied == pytest.approx(copied)
    look = look_of("key-choice", seen)
    assert look.severity is CONSIDER
    assert f"{copied / 18_000 / 86_400:,.1f} days of the provisioned 18,000 RU/s" in look.why
    assert severity_of("key-choice", made(SPREAD)) is FINE


def test_a_random_suffix_makes_reads_dear() -> None:
    """A point query for each suffix; a calculated one needs no more than one."""
    reads = {"mix.point_query": 1.0, **PROVISIONED, "keys.rows_per_partition": 10}
    spread = made({**reads, "keys.partition_key": "day.{row:random300}"})
    assert "300 partitions (300 RU instead of 1.0" in look_of("partition-queries", spread).why
    calculated = made({**reads, "keys.partition_key": "day.{row:bucket300}"})
    assert severity_of("partition-queries", calculated) is FINE


def test_a_run_that_filled_a_key_is_advised_another_one() -> None:
    """The verdict names the limit, and the advice is not to retry and not to provision."""
    record = of_cosmos()
    first = record.partitions[0]
    answers = {**first.attempts_by_status, "403 PartitionKeyQuotaOverLimit": 9}
    parts = (first.model_copy(update={"attempts_by_status": answers}), *record.partitions[1:])
    verdict = record.verdict.model_copy(update={"result": "failing", "limited_by": "size"})
    full = record.model_copy(update={"partitions": parts, "verdict": verdict})
    (advice,) = with_advice(full).verdict.advice
    assert advice.practice == "full-key"
    assert f"partition {first.key!r} were refused" in advice.why


def test_a_row_key_has_less_room_than_a_partition_key() -> None:
    """255 bytes in UTF-8, whatever the characters."""
    seen = made(SPREAD)
    assert seen.charges is not None
    for length, severity in ((255, FINE), (256, OFFENDS)):
        charges = dataclasses.replace(seen.charges, longest_row_key=length)
        longer = dataclasses.replace(seen, charges=charges)
        assert severity_of("key-bytes", longer) is severity
        problem = refused_keys(longer, COSMOS_EMULATOR)
        assert (problem is not None) is (severity is OFFENDS)
        assert problem is None or "RowKey of the load has 256 bytes" in problem


def test_each_service_has_its_own_practices() -> None:
    """None of 2,000 entities/s for Cosmos DB, and none of request units for Storage."""
    seen = made(HOT)
    of_cosmos = {finding.practice.name for finding in findings_of(seen)}
    of_storage = {
        finding.practice.name for finding in findings_of(dataclasses.replace(seen, charges=None))
    }
    assert not {"hot-partition", "account-target", "hot-range", "entity-size"} & of_cosmos
    assert {"request-units", "hot-partition-key"} <= of_cosmos
    assert (
        not {practice.name for practice in PRACTICES if practice.applies == UNIT_LIMITS}
        & of_storage
    )
    (constant,) = [finding for finding in findings_of(seen) if "constant" in finding.practice.name]
    assert "6,000 RU/s" in constant.look.why


def of_cosmos() -> RunRecord:
    """The kept record, as if Cosmos DB had answered and charged."""
    record = kept()
    charged = 900.0

    def units(total: float) -> RequestUnitsPart:
        return RequestUnitsPart(total=total, per_s=RatesPart(best_1s=total / 10))

    partitions = tuple(
        part.model_copy(update={"request_units": units(charged / (1 + number))})
        for number, part in enumerate(record.partitions)
    )
    operations = tuple(
        part.model_copy(update={"request_units": units(part.count * 2.0)})
        for part in record.operations
    )
    endpoint = record.endpoint.model_copy(update={"kind": "cosmos-emulator"})
    total = sum(part.request_units.total for part in partitions if part.request_units)
    return record.model_copy(
        update={
            "endpoint": endpoint,
            "partitions": partitions,
            "operations": operations,
            "request_units": units(total),
        }
    )


def test_a_run_is_compared_by_what_it_was_charged() -> None:
    """The best second, the mean of each operation and the hottest key, from its record."""
    record = of_cosmos()
    assert record.request_units is not None
    charges = seen_in(record).charges
    assert charges is not None
    assert charges.per_s == pytest.approx(record.request_units.per_s.best_1s)
    assert {kind.each for kind in charges.kinds} == {2.0}
    hottest = record.partitions[0]
    assert charges.shares.hottest == hottest.key
    assert charges.shares.hottest_share == pytest.approx(900 / record.request_units.total)


def test_the_load_of_a_run_is_that_of_its_report() -> None:
    """Request units, in both parts of a check."""
    record = kept("run-v1-cosmos.json")
    seen, most = seen_in(record), hottest(record)
    assert most is not None
    assert seen.charges is not None
    for shares in (seen.shares, seen.charges.shares):
        assert (shares.hottest, shares.hottest_share) == (most.key, hottest_share(record))


def test_a_run_whose_service_told_no_charges_has_none() -> None:
    """It is held against the limits of Cosmos DB all the same, of which nothing is known."""
    record = of_cosmos().model_copy(update={"request_units": None})
    seen = seen_in(record)
    assert seen.limited_in is LimitUnit.REQUEST_UNITS
    assert seen.charges is not None
    assert seen.charges.per_s is None
    assert seen_in(kept()).charges is None


def test_folded_keys_hide_the_physical_partitions() -> None:
    """Keys without a row may be in any of them, and may be long: nothing is claimed of either."""
    whole = kept("run-v1-cosmos.json")
    folded = whole.partitions[-1].model_copy(update={"key": "(other)"})
    for record, known in (
        (whole, True),
        (whole.model_copy(update={"partitions_folded": folded}), False),
    ):
        seen = seen_in(record)
        assert seen.charges is not None
        assert (seen.charges.physical_share is not None) is known
        findings = {finding.practice.name: finding.look for finding in findings_of(seen)}
        for name in ("physical-partitions", "key-bytes"):
            assert ("not every partition has a row" in findings[name].why) is not known
        page = Page(width=100)
        shown = page.render(*charges_shown(seen.charges, page, measured=True))
        assert ("hottest physical partition" in shown) is known


KNOWN = ("--set", "endpoint.provisioned_ru_per_s=18000", "--set", "endpoint.physical_partitions=3")


def test_the_commands_know_the_kind(command: Command) -> None:
    """By the option, the host or the settings of the profile; else it is Storage."""
    check = command.words("check", "single-partition", *KNOWN)
    assert "the 6,000 RU/s of a physical partition, at 6,000 RU/s in total: 33% of" in check
    assert "1 of 3: 100%" in check
    assert "target" not in check
    plan = command.words("plan", "single-partition", "--host-kind", "cosmos")
    assert "Azure Cosmos DB for Table; no request is sent" in plan
    assert "the 10,000 RU/s of one PartitionKey" in plan
    assert "billable transactions" not in plan
    host = 'hosts=["https://orders.table.cosmos.azure.com"]'
    assert "RU each" in command.words("check", "single-partition", "--set", host)
    assert "RU each" not in command.words("check", "single-partition")
    command.refused("check", "--record", "run.json", "--host-kind", "cosmos")


def test_the_check_as_json_has_the_request_units(command: Command) -> None:
    """With the charge of each operation, and the first limit."""
    said = command("check", "single-partition", "--json", *KNOWN)
    units = json.loads(said)["request_units"]
    assert units["operations"]["point_query"]["each"] == 1.0
    assert units["first_limit_at_ru_per_s"] == 6_000
    assert charge(Kind.POINT_QUERY, 1000) == 100
