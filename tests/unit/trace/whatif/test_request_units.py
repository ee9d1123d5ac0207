"""A what-if under the limits of Cosmos DB: charges, physical partitions and 429."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.limits import GatewayLimits, Rate, RequestUnitLimits
from harness.gateway.model import Model
from harness.measure.record.whatif import WhatIfRecord
from harness.measure.verdict.ranking import needs_more
from harness.model.operation import WHOLE_TABLE, Kind, Operation, transaction
from harness.model.outcome import Attempt, Outcome, Result
from harness.model.physical_partitions import PhysicalPartitions
from harness.model.request_units import MISSING, QUERY_PAGE, RU, UNKNOWN_BYTES, charge
from harness.report.terminal.page import Page
from harness.report.web.key_pages import whatif_page
from harness.report.whatif import best_of, whatif_text
from harness.report.whatif_rows import rows
from harness.trace.operations import ASSUMED_PROPERTIES
from harness.trace.reader import Trace
from harness.trace.whatif.rekeying import Rekeying
from harness.trace.whatif.rows import KnownRows
from harness.trace.whatif.scheme import as_recorded, parse_scheme
from harness.trace.whatif.units import RequestUnits
from harness.trace.whatif.whatif import what_if
from tests.support.results import done
from tests.support.traced import STARTED_S, trace_of
from tests.unit.trace.whatif.test_simulation import Drawn, retried, simulated

THREE = RequestUnitLimits(provisioned_ru_per_s=300.0, physical_partitions=3)
LIMITS = GatewayLimits(cosmos=THREE)
BUCKETS = parse_scheme(
    "buckets", {"keys": {"partition_key": "{partition_key}-{row_key:bucket64}"}}, "buckets.toml"
)
INSERTED = charge(Kind.INSERT, 1000, properties=ASSUMED_PROPERTIES)


def recorded(folder: Path, results: list[Result], source: str = "watch") -> Trace:
    return trace_of(folder / "made.parquet", results, source)


def answered(
    operation: Operation, at_s: float = 0.0, *, statuses: tuple[int, ...] = (200,), **said: Any
) -> Result:
    sent_s = STARTED_S + at_s
    attempts = tuple(Attempt(status=status, sent_s=sent_s, latency_s=0.004) for status in statuses)
    bytes_of = {"bytes_sent": 1000, "bytes_received": 300}
    return done(operation, sent_s, 0.004, attempts=attempts, **{**bytes_of, **said})


def of(kind: Kind, row_key: str = "r", partition_key: str = "p") -> Operation:
    return Operation(kind=kind, partition_key=partition_key, row_key=row_key)


TRANSACTION = Operation(
    kind=Kind.TRANSACTION,
    partition_key="p",
    parts=(of(Kind.INSERT, "a"), of(Kind.DELETE, "b")),
)
UPSERT = of(Kind.UPSERT_MERGE)
QUERY = Operation(kind=Kind.QUERY, partition_key="p")


@pytest.mark.parametrize(
    ("results", "charged"),
    [
        ([answered(of(Kind.INSERT))], INSERTED),
        ([answered(UPSERT)], INSERTED),
        ([answered(UPSERT), answered(UPSERT)], 3 * INSERTED),
        (
            [answered(of(Kind.POINT_QUERY), bytes_received=4096), answered(UPSERT)],
            charge(Kind.POINT_QUERY, 4096) + 2 * INSERTED,
        ),
        ([answered(of(Kind.INSERT), statuses=(429, 201), bytes_sent=2000)], INSERTED),
        ([answered(of(Kind.INSERT), outcome=Outcome.THROTTLED, statuses=(503,))], INSERTED),
        ([answered(of(Kind.DELETE), bytes_sent=0)], charge(Kind.DELETE, UNKNOWN_BYTES)),
        (
            [answered(of(Kind.POINT_QUERY), outcome=Outcome.NOT_FOUND, statuses=(404,))],
            MISSING,
        ),
        ([answered(of(Kind.INSERT), outcome=Outcome.REJECTED, statuses=(400,))], 0),
        (
            [
                answered(
                    QUERY,
                    entities=30,
                    entities_returned=10,
                    bytes_received=20_480,
                    statuses=(200, 200),
                )
            ],
            QUERY_PAGE + charge(Kind.QUERY, 20_480, scanned=30, returned=10),
        ),
        (
            [
                answered(
                    Operation(kind=Kind.QUERY, partition_key=WHOLE_TABLE),
                    entities=5,
                    entities_returned=5,
                    bytes_received=5120,
                )
            ],
            charge(Kind.QUERY, 5120, scanned=5, returned=5, physical=3),
        ),
    ],
    ids=[
        "insert",
        "new upsert",
        "upsert of a written row",
        "upsert of a read row",
        "two attempts",
        "throttled when recorded",
        "delete",
        "missing",
        "invalid",
        "two pages",
        "scan",
    ],
)
def test_charges_follow_from_the_recorded_bytes(
    results: list[Result], charged: int, tmp_path: Path
) -> None:
    """They are those of `harness.model.request_units` for entities of that size."""
    trace = recorded(tmp_path, results)
    rekeying = Rekeying(as_recorded(), RequestUnits(THREE, trace.head))
    assert sum(sum(rekeying.loads(batch).amounts) for batch in trace.batches()) == charged


@pytest.mark.parametrize(("source", "more"), [("watch", 0), ("run", 465 + (460 + 260) // 2)])
def test_a_transaction_is_charged_for_its_parts(source: str, more: int, tmp_path: Path) -> None:
    """By the size of each; the trace of a run has the whole requests."""
    result = answered(TRANSACTION, entities=2, bytes_sent=2 * (1000 + more), statuses=(202,))
    trace = recorded(tmp_path, [result], source)
    unit = RequestUnits(THREE, trace.head)
    [batch] = trace.batches()
    expected = INSERTED + charge(Kind.DELETE, UNKNOWN_BYTES)
    assert unit.amounts(batch, KnownRows().known(batch)) == [expected]
    loads = Rekeying(BUCKETS, RequestUnits(THREE, trace.head)).loads(batch)
    assert len(loads.instants) == len(set(loads.names)) == 2
    assert sum(loads.amounts) == pytest.approx(expected, abs=1)


def test_recorded_keys_that_cosmos_db_refuses_are_counted(tmp_path: Path) -> None:
    """Azure Storage took them; a scheme that keeps RowKeys keeps the problem, and a part counts."""
    written = [
        Operation(kind=Kind.INSERT, partition_key="p", row_key="r" * length)
        for length in (64, 255, 256, 1000)
    ]
    together = transaction((written[0], written[2], written[3]))
    query = Operation(kind=Kind.QUERY, partition_key="q" * 102)
    operations = [*written, together, query]
    trace = recorded(
        tmp_path, [answered(operation, at_s) for at_s, operation in enumerate(operations)]
    )
    kept = parse_scheme("kept", {"keys": {"partition_key": "x{partition_key}"}}, "kept.toml")
    found = what_if(trace, [kept], LIMITS, name="made", limits_name="cosmos")
    assert [part.price.refused for part in found.schemes] == [3, 3]
    assert all("has 256 bytes; Cosmos DB allows 255" in part.refused for part in found.schemes)
    said = whatif_text(found, Page(width=200))
    assert "as recorded: the service would refuse the keys of 3 operations (RowKey 'rrr" in said
    of_storage = what_if(trace, [kept], GatewayLimits(), name="made", limits_name="none")
    assert [part.price.refused for part in of_storage.schemes] == [0, 0]


def inserts(rate: int, seconds: int, keys: list[str]) -> list[Result]:
    return [
        answered(of(Kind.INSERT, f"r{place:06}", keys[place % len(keys)]), place / rate)
        for place in range(rate * seconds)
    ]


def calculated(trace: Trace, limits: GatewayLimits = LIMITS, rate: float = 1.0) -> WhatIfRecord:
    return what_if(
        trace,
        [BUCKETS],
        limits,
        name="made",
        limits_name="test",
        rate=rate,
        most_factor=10_000.0,
        version="1",
    )


def test_a_hot_key_meets_the_share_of_its_physical_partition(tmp_path: Path) -> None:
    """It can use a third of what is provisioned, buckets more: every output says so."""
    found = calculated(recorded(tmp_path, inserts(38, 12, ["hot"])))
    as_they_are, buckets = found.schemes
    wanted = 38 * INSERTED / RU
    assert (found.unit, found.partition_per_s, found.account_per_s) == ("RU", 100, 300)
    assert as_they_are.physical_peaks[0].per_s == pytest.approx(wanted)
    assert as_they_are.partition_peaks[0].per_s == pytest.approx(wanted)
    assert as_they_are.account_peaks[1].per_s == pytest.approx(wanted)
    assert as_they_are.once.ratio == pytest.approx(1 - 100 / wanted, abs=0.03)
    assert buckets.physical_peaks[0].per_s < as_they_are.physical_peaks[0].per_s / 2
    assert as_they_are.total == buckets.total == 38 * 12 * INSERTED // RU
    assert best_of(found) is buckets
    assert as_they_are.first_limit is not None
    assert as_they_are.first_limit.factor == pytest.approx(100 / wanted, rel=0.2)
    assert as_they_are.first_limit.rule == "throughput"
    text = " ".join(whatif_text(found, Page(width=110)).split())
    assert "300 RU/s over 3 physical partitions with 100 each. " in text
    assert "Best: buckets, for no price in this traffic: its" in text
    assert "of the 100 RU/s that it can serve" in text
    assert "Request units are estimated" in text
    assert "entities/s" not in text
    assert WhatIfRecord.model_validate_json(found.model_dump_json()) == found
    assert "as recorded: RU/s by key range and time" in whatif_page(found)


def test_keys_that_spread_leave_the_provisioned_throughput_as_the_limit(tmp_path: Path) -> None:
    """The outputs say that no keys help."""
    found = calculated(recorded(tmp_path, inserts(90, 11, [f"p{place}" for place in range(45)])))
    text = " ".join(whatif_text(found, Page(width=110)).split())
    assert "The keys are not what limits it: the busiest 10 s ask for 536 RU/s, and 300 are" in text


def test_keys_are_a_limit_where_one_is_hot(tmp_path: Path) -> None:
    """More is asked for than is provisioned, and half of it of one key."""
    keys = [f"p{place}" if place % 2 else "hot" for place in range(90)]
    trace = recorded(tmp_path, inserts(90, 11, keys))
    found = what_if(trace, [], LIMITS, name="made", limits_name="test")
    text = " ".join(whatif_text(found, Page(width=110)).split())
    assert "not what limits it" not in text
    assert "Besides, the busiest 10 s ask for 536 RU/s, and 300 are provisioned." in text


def test_throughput_that_is_nearly_used_up_is_a_share(tmp_path: Path) -> None:
    """Less than what is provisioned proves nothing by its figure."""
    found = calculated(recorded(tmp_path, inserts(90, 11, [f"p{place}" for place in range(45)])))
    ample = found.model_copy(update={"account_per_s": 580.0})
    assert needs_more(ample, found.schemes[0]) == (
        "the busiest 10 s ask for 92% of the provisioned 580 RU/s"
    )


def test_limits_of_storage_know_no_request_units(tmp_path: Path) -> None:
    """No output mentions them."""
    low = GatewayLimits(partition=Rate(entities_per_s=30.0), account=Rate(entities_per_s=300.0))
    found = calculated(recorded(tmp_path, inserts(20, 5, ["hot"])), low)
    said = whatif_text(found, Page(width=110)) + found.model_dump_json()
    assert "RU" not in said
    assert "physical" not in said
    assert all("RU" not in row.label for row in rows(found))


def test_retries_wait_as_long_as_they_are_told(tmp_path: Path) -> None:
    """A partition in debt for seconds is not asked again before it has paid."""
    big = answered(of(Kind.INSERT, "big"), 0.1, bytes_sent=1_000_000)
    small = [answered(of(Kind.INSERT, f"r{place}"), 0.2 + place / 100) for place in range(10)]
    found = calculated(recorded(tmp_path, [big, *small])).schemes[0]
    assert found.once.throttled == 10
    # The debt of 626 RU takes six seconds; back-off alone would give up before.
    assert found.retried.failed == 0


@given(
    st.integers(0, 2**32),
    st.sampled_from([(), (0.5,), (0.25, 0.75, 1.5)]),
    st.sampled_from([1000, 4000, 9000]),
)
def test_requests_are_decided_about_as_one_by_one(
    seed: int, waits: tuple[float, ...], most: int
) -> None:
    """Although physical partitions that have enough for a second pass as a whole."""
    rng = random.Random(seed)
    keys: list[str | None] = [*"abcdefgh", None]
    drawn: Drawn = [
        (place / 16 + rng.random() / 64, rng.choice(keys), rng.randint(1, most))
        for place in range(16 * 6)
    ]
    assert simulated(drawn, waits, LIMITS) == retried(drawn, waits, LIMITS)


def test_loads_of_physical_partitions_add_up() -> None:
    """A key belongs to one of them; a scan is divided among all."""
    model = Model(LIMITS, 0.0, stored=False)
    assert model.units is not None
    loads = model.units.loads({("t", "a"): 70, ("u", "a"): 30, ("t", None): 200})
    number = PhysicalPartitions.even(3).of("a")
    assert sum(loads.values()) == 300
    assert loads[number] in (166, 167)
