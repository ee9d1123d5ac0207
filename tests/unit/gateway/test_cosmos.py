"""The limits of Cosmos DB in simulated time: shares, bursts, splits, charges, refusals."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.key_ranges import index_range
from harness.gateway.limits import GatewayLimits, RequestUnitLimits, limits_path, load_limits
from harness.gateway.model import Decision, Model
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked, RowWrite, Weight, batch_parts, read_request, weights_in
from harness.gateway.rules.splitting import SplittingRule
from harness.model.errors import SetupError
from harness.model.operation import Kind
from harness.model.outcome import Scope
from harness.model.physical_partitions import PhysicalPartitions
from harness.model.request_units import MISSING, QUERY_PAGE, RU, charge

DONE = Answered(status=204)
INSERT_RU = charge(Kind.INSERT, 1024)


def model_of(**settings: Any) -> Model:
    """A model with limits of Cosmos DB: 300 RU/s over three physical partitions."""
    given = {"provisioned_ru_per_s": 300.0, "physical_partitions": 3, **settings}
    return Model(GatewayLimits(cosmos=RequestUnitLimits(**given)), 0.0)


def write(key: str, row: str, kind: Kind = Kind.INSERT, size: int = 1024) -> Asked:
    """A write of one entity."""
    rows = (RowWrite(key, row, kind is not Kind.DELETE),)
    return Asked(
        kind=kind,
        table="table",
        partition_key=key,
        entities=1,
        row_key=row,
        rows=rows,
        weights=(Weight(size),),
    )


def charged(model: Model) -> int:
    """All request units that were charged, in hundredths."""
    assert model.units is not None
    total: int = model.units.page()["request_units_hundredths"]
    return total


def served(model: Model, asked: Asked, at_s: float, answered: Answered = DONE) -> Decision:
    """The decision about a request, which the endpoint answers if it passes."""
    decision = model.decide(asked, at_s)
    if not decision.rule:
        model.answered(asked, answered, at_s)
    return decision


def offered(model: Model, keys: list[str], per_s: int, seconds: int) -> list[Decision]:
    """Inserts of these keys by turns, evenly over time."""
    turns = itertools.cycle(keys)
    return [
        served(model, write(next(turns), str(number)), number / per_s)
        for number in range(per_s * seconds)
    ]


def keys_of_each(count: int) -> list[str]:
    """One PartitionKey of each of ``count`` physical partitions."""
    partitions = PhysicalPartitions.even(count)
    found = {partitions.of(str(number)): str(number) for number in range(1000)}
    return [found[number] for number in range(count)]


def test_one_key_gets_a_third_of_what_is_provisioned() -> None:
    """One key is held to the share of its physical partition, to within what one request takes."""
    model = model_of()
    decisions = offered(model, ["hot"], 200, 10)
    assert 10 * 100 * RU <= charged(model) <= 10 * 100 * RU + INSERT_RU
    refused = [decision for decision in decisions if decision.rule]
    assert {(one.status, one.rule, one.scope) for one in refused} == {
        (429, "throughput", Scope.PARTITION)
    }
    assert all(0 < one.retry_after_ms <= 1000 for one in refused)


def test_spread_keys_get_all_that_is_provisioned() -> None:
    """Keys of every physical partition get three times as much, and not more."""
    model = model_of()
    offered(model, keys_of_each(3), 200, 10)
    assert 10 * 300 * RU <= charged(model) <= 10 * 300 * RU + 3 * INSERT_RU


def test_a_physical_partition_has_10000_ru_per_s_at_most() -> None:
    """More than 10,000 RU/s of a partition are not served, whatever is provisioned."""
    model = model_of(provisioned_ru_per_s=90_000.0)
    model.decide(write("hot", "1"), 0.0)
    assert model.units is not None
    assert model.units.page()["share_ru_per_s"] == 10_000


def test_the_wait_that_a_refusal_names_is_enough() -> None:
    """After the named wait the same request passes, and a millisecond before it does not."""
    model = model_of()
    large = write("hot", "0", size=2 * 1024 * 1024)
    assert not served(model, large, 0.25).rule
    refused = served(model, write("hot", "1"), 0.5)
    # 1,250 RU, of which the first share of 100 RU and those of twelve more seconds pay for all.
    assert refused.retry_after_ms == 11_500
    early, due = 0.5 + (refused.retry_after_ms - 1) / 1000, 0.5 + refused.retry_after_ms / 1000
    assert served(model, write("hot", "1"), early).rule
    assert not served(model, write("hot", "1"), due).rule


@given(
    st.lists(
        st.tuples(st.floats(0, 3), st.sampled_from("abcdef"), st.integers(0, 60_000)), max_size=60
    ),
    st.floats(0, 300),
)
def test_no_second_serves_more_than_shares_allow(
    steps: list[tuple[float, str, int]], burst_s: float
) -> None:
    """A partition that served more than its share in a second passes nothing until it is paid."""
    model = model_of(burst_capacity_s=burst_s, burst_ru_per_s=250.0)
    now_s, total = 0.0, 0
    for number, (wait_s, key, size) in enumerate(steps):
        now_s += wait_s
        asked = write(key, str(number), size=size)
        before = charged(model)
        passed = served(model, asked, now_s).rule == ""
        assert charged(model) - before == (charge(Kind.INSERT, size) if passed else 0)
        total += charged(model) - before
    most = 300 * RU * (int(now_s) + 1)
    assert total == charged(model) <= most + 3 * charge(Kind.INSERT, 60_000)


def test_burst_capacity_is_off_unless_asked_for() -> None:
    """With it, a partition uses for a while what it left, at 3,000 RU/s at most."""
    for seconds, most in ((0.0, 100), (300.0, 3000)):
        model = model_of(burst_capacity_s=seconds)
        served(model, write("hot", "first"), 0.0)
        before = charged(model)
        for number in range(1000):
            served(model, write("hot", str(number)), 400.0 + number / 1000)
        used = charged(model) - before
        assert most * RU <= used <= most * RU + 2 * INSERT_RU
    kept = 300 * 100 * RU
    for second, number in itertools.product(range(401, 500), range(700)):
        served(model, write("hot", f"{second}-{number}"), second + number / 700)
    # The share of each second, and what was kept before.
    assert charged(model) - before == pytest.approx(kept + 100 * 100 * RU, rel=0.02)


def test_partitions_of_3000_ru_per_s_do_not_burst() -> None:
    """A share of 3,000 RU/s or more has no burst capacity."""
    model = model_of(provisioned_ru_per_s=9000.0, burst_capacity_s=300.0)
    served(model, write("hot", "first"), 0.0)
    before = charged(model)
    for number in range(1500):
        served(model, write("hot", str(number)), 400.0 + number / 1500)
    assert charged(model) - before <= 3000 * RU + INSERT_RU


def test_autoscale_names_the_scale_and_changes_no_refusal() -> None:
    """The scale follows the busiest partition, and is never below a tenth of the maximum."""
    plain, scaled = model_of(), model_of(autoscale=True)
    assert scaled.units is not None
    assert scaled.units.page()["autoscaled_to_ru_per_s"] == 30
    assert offered(plain, ["hot"], 10, 3) == offered(scaled, ["hot"], 10, 3)
    assert scaled.units.page()["autoscaled_to_ru_per_s"] == pytest.approx(148.5)
    assert plain.units is not None
    assert "autoscaled_to_ru_per_s" not in plain.units.page()


def test_a_partition_that_grows_is_split_and_every_share_becomes_smaller() -> None:
    """A split refuses nothing, adds a partition that takes over keys, and divides anew."""
    model = model_of(provisioned_ru_per_s=30_000.0, partition_bytes=100_000)
    decisions = offered(model, [str(number) for number in range(50)], 100, 4)
    assert all(one.rule == "" for one in decisions)
    assert model.units is not None
    page = model.units.page()
    count = len(page["physical_partitions"])
    assert count == 3 + len(page["splits"]) > 4
    assert page["share_ru_per_s"] == pytest.approx(30_000 / count, abs=0.01)
    assert all(one["stored_bytes"] <= 101_024 for one in page["physical_partitions"])
    assert sum(one["stored_bytes"] for one in page["physical_partitions"]) == 400 * 1024
    of_each = [one["request_units_hundredths"] for one in page["physical_partitions"]]
    assert sum(of_each) == page["request_units_hundredths"] == 400 * INSERT_RU


def test_one_large_key_is_not_split() -> None:
    """A logical partition stays whole: no number of splits would make it smaller."""
    rule = SplittingRule(RequestUnitLimits(partition_bytes=10_000))
    assert not any(rule.grew("large", 1000, 0.0) for _ in range(100))
    assert rule.count == 0
    for _ in range(90):
        assert not rule.grew("large", -1000, 0.0)
    assert rule.stored_bytes(rule.partitions.of("large")) == 10_000
    # A second key beside it can be told apart.
    keys = (str(number) for number in range(1000))
    beside = next(key for key in keys if rule.partitions.of(key) == rule.partitions.of("large"))
    assert any(rule.grew(beside, 1000, 0.0) for _ in range(10))
    assert rule.partitions.of(beside) != rule.partitions.of("large")


def test_an_upsert_of_a_known_row_costs_twice() -> None:
    """The rows that passed are known: an upsert is charged as the insert or update that it is."""
    model = model_of()
    assert model.answered(write("k", "1", Kind.UPSERT_MERGE), DONE, 0.0).charged == INSERT_RU
    assert model.answered(write("k", "1", Kind.UPSERT_MERGE), DONE, 0.0).charged == 2 * INSERT_RU
    assert model.answered(write("k", "1", Kind.DELETE), DONE, 0.0).charged == INSERT_RU
    assert model.answered(write("k", "1", Kind.UPSERT_REPLACE), DONE, 0.0).charged == INSERT_RU


@pytest.mark.parametrize(
    ("status", "cost"), [(404, MISSING), (409, MISSING), (412, MISSING), (500, 0)]
)
def test_a_refused_write_costs_a_look(status: int, cost: int) -> None:
    """What the endpoint refuses because of a row costs a look at it; an error costs nothing."""
    model = model_of()
    assert model.answered(write("k", "1"), Answered(status=status), 0.0).charged == cost
    without_table = Answered(status=404, error_code="TableNotFound")
    assert model.answered(write("k", "1"), without_table, 0.0).charged == 0


def test_a_query_over_all_partitions_asks_each_of_them() -> None:
    """A query of one key asks one physical partition, others ask all, and one 429 refuses it."""
    model = model_of()
    one = Asked(kind=Kind.QUERY, table="table", partition_key="k", keys=index_range(""))
    every = one._replace(partition_key=None)
    page = Answered(status=200, found={"k": 2}, body_bytes=2048)
    assert model.answered(one, page, 0.0).charged == QUERY_PAGE + 2 * RU
    assert model.answered(every, page, 0.0).charged == 3 * QUERY_PAGE + 2 * RU
    offered(model, ["hot"], 100, 1)
    assert model.decide(every, 0.99).rule == "throughput"


def test_patch_and_long_keys_are_refused_before_anything_is_charged() -> None:
    """PATCH is no verb of Cosmos DB, and keys have limits in bytes of UTF-8."""
    model = model_of(partition_key_bytes=101)
    patch = read_request("PATCH", "/a/table(PartitionKey='k',RowKey='1')", {}, b"{}")
    merge = read_request(
        "POST", "/a/table(PartitionKey='k',RowKey='1')", {"X-HTTP-Method": "MERGE"}, b"{}"
    )
    refused = model.decide(patch, 0.0)
    assert (refused.rule, refused.status, refused.scope) == ("verb", 405, Scope.NONE)
    assert not model.decide(merge, 0.0).rule
    for key, row, rule in (
        ("k" * 101, "r" * 255, ""),
        ("k" * 102, "r", "key_length"),
        ("k", "r" * 256, "key_length"),
        ("ä" * 51, "r", "key_length"),
    ):
        decision = model.decide(write(key, row), 1.0)
        assert (decision.rule, not rule or decision.status == 400) == (rule, True)
    assert charged(model) == 0


def test_the_entities_of_a_transaction_have_a_limit_together() -> None:
    """Two entities that fit alone are refused together, above 2 MB in all."""
    model = model_of(request_bytes=2000)
    one = write("k", "1", size=1000)
    two = one._replace(kind=Kind.TRANSACTION, kinds=(Kind.INSERT,) * 2, rows=one.rows * 2)
    assert not model.decide(one, 0.0).rule
    for sizes, rule in (((1000, 1000), ""), ((1000, 1001), "request_size")):
        asked = two._replace(weights=tuple(map(Weight, sizes)))
        refused = model.decide(asked, 5.0)
        assert refused.rule == rule
        if rule:
            assert (refused.status, refused.scope) == (413, Scope.NONE)


def test_parts_of_a_transaction_are_weighed_and_read_by_their_verb() -> None:
    """POST with X-HTTP-Method in a part is a merge; annotations are no properties."""
    part = (
        b"--c\r\nContent-Type: application/http\r\n\r\n"
        b"POST http://localhost/a/table(PartitionKey='k',RowKey='1') HTTP/1.1\r\n"
        b"X-HTTP-Method: MERGE\r\n\r\n"
        b'{"PartitionKey":"k","RowKey":"1","A":"1","A@odata.type":"Edm.Int64","odata.etag":"x"}'
    )
    body = (
        b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + part + b"\r\n--c--\r\n--b--"
    )
    assert [one.method for one in batch_parts(body)] == ["MERGE"]
    asked = read_request("POST", "/a/$batch", {}, body)
    assert asked.kinds == (Kind.UPSERT_MERGE,)
    (weight,) = weights_in(asked, body)
    assert weight == Weight(85, 1)


def test_the_shipped_limits_are_the_defaults() -> None:
    """The shipped file says what holds where a file says nothing but ``[cosmos]``."""
    assert load_limits(limits_path("cosmos")).cosmos == RequestUnitLimits()


def test_limits_of_both_services_are_refused(tmp_path: Path) -> None:
    """A file has the limits of Storage or those of Cosmos DB; faults go with both."""
    file = tmp_path / "mine.toml"
    file.write_text("[cosmos]\n[partition]\nentities_per_s = 1.0\n[faults]\nreset = 0.1\n")
    with pytest.raises(SetupError, match=r"leave out \[partition\]"):
        load_limits(file)
    file.write_text("[cosmos]\n[faults]\nreset = 0.1\n")
    assert load_limits(file).unlimited
