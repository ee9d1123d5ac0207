"""The gateway's model in simulated time: what passes, what is refused, what is moved."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.demand import Demand
from harness.gateway.limits import (
    Faults,
    GatewayLimits,
    InjectedFault,
    Moving,
    Rate,
    Servers,
    Window,
)
from harness.gateway.model import Decision, Model
from harness.gateway.reading import Answered
from harness.gateway.requests import Asked, RowWrite
from harness.gateway.rules.bucket import Bucket
from harness.gateway.rules.ranges import MOST_RANGES
from harness.gateway.storage import StorageLimits
from harness.model.operation import Kind
from harness.model.outcome import Scope
from tests.support.asked import query
from tests.support.gateways import ranges_of

WIDE = Rate(entities_per_s=1e9)


def limits(**parts: Any) -> GatewayLimits:
    """Limits of which only the named ones are met."""
    wide = {
        "partition": WIDE,
        "account": WIDE,
        "servers": Servers(entities_per_s=1e9),
        "moving": Moving(hot_after_s=86_400.0),
    }
    return GatewayLimits(**{**wide, **parts})


def upsert(key: str, entities: int = 1) -> Asked:
    """An upsert, or a transaction of more."""
    kind = Kind.UPSERT_MERGE if entities == 1 else Kind.TRANSACTION
    return Asked(
        kind=kind,
        table="table",
        partition_key=key,
        entities=entities,
        rows=tuple(RowWrite(key, str(number)) for number in range(entities)),
    )


DONE = Answered(status=204)


def served(model: Model, asked: Asked, at_s: float) -> Decision:
    """The decision about a request, which the endpoint executes if it passes."""
    decision = model.decide(asked, at_s)
    if not decision.rule:
        model.answered(asked, DONE, at_s)
    return decision


def offered(
    model: Model, keys: Iterable[str], per_s: float, seconds: float
) -> list[tuple[float, Decision]]:
    """The decisions about upserts of these keys, evenly over time."""
    times = (number / per_s for number in range(int(per_s * seconds)))
    return [
        (at_s, served(model, upsert(key), at_s)) for at_s, key in zip(times, keys, strict=False)
    ]


def passed(decisions: Iterable[tuple[float, Decision]]) -> int:
    """How many passed."""
    return sum(not decision.rule for _, decision in decisions)


@given(
    st.floats(1.0, 5000.0),
    st.floats(0.01, 5.0),
    st.lists(st.tuples(st.floats(0.0, 2.0), st.integers(1, 100)), max_size=200),
)
def test_no_stretch_of_time_gets_more_than_rate_and_burst(
    per_s: float, burst_s: float, steps: list[tuple[float, int]]
) -> None:
    """Whatever is asked when, no interval sees more than rate x time + burst + one request."""
    bucket = Bucket(per_s, burst_s, 0.0)
    now_s, taken = 0.0, []
    for wait_s, entities in steps:
        now_s += wait_s
        if bucket.allows(entities, now_s):
            bucket.take(entities, now_s)
            taken.append((now_s, entities))
    most_over = max((entities for _, entities in taken), default=0)
    for first in range(len(taken)):
        total = 0
        for at_s, entities in taken[first:]:
            total += entities
            bound = per_s * (at_s - taken[first][0]) + per_s * burst_s + most_over
            assert total <= bound + 1e-6 * bound


@given(st.integers(1, 100), st.integers(0, 3))
def test_what_is_asked_within_the_rate_always_passes(entities: int, seed: int) -> None:
    """Below its target a partition refuses nothing, whatever the size of the transactions."""
    model = Model(GatewayLimits(), 0.0)
    rng = random.Random(seed)
    every_s = entities / 2000.0
    for number in range(200):
        at_s = number * every_s * 1.0001 + rng.random() * 1e-9
        assert not model.decide(upsert("p", entities), at_s).rule


def test_a_partition_serves_its_published_rate() -> None:
    """Of 4,000 entities/s to one partition 2,000 pass, after a second's burst."""
    decisions = offered(Model(GatewayLimits(), 0.0), itertools.repeat("p"), 4000.0, 10.0)
    assert passed(decisions) == pytest.approx(2000 * 11, rel=0.01)
    refusals = [decision for _, decision in decisions if decision.rule]
    assert {(refusal.scope, refusal.rule) for refusal in refusals} == {
        (Scope.PARTITION, "partition")
    }


def test_an_account_serves_its_published_rate() -> None:
    """Of 60,000 entities/s 20,000 pass, after a second's burst, and refusals name the account."""
    model = Model(limits(account=GatewayLimits().account), 0.0)
    keys = (f"p{number % 50}" for number in itertools.count())
    decisions = offered(model, keys, 60_000.0, 1.0)
    assert passed(decisions) == pytest.approx(20_000 * 2, rel=0.05)
    assert {d.scope for _, d in decisions if d.rule} == {Scope.ACCOUNT}


def test_a_refused_request_takes_nothing() -> None:
    """However often a partition is refused, the account and other partitions have all they had."""
    model = Model(limits(partition=Rate(entities_per_s=10), account=Rate(entities_per_s=30)), 0.0)
    for _ in range(1000):
        model.decide(upsert("hot"), 0.0)
    others = [model.decide(upsert(f"p{number}", 10), 0.0).rule for number in range(2)]
    assert others == ["", ""]
    assert model.decide(upsert("last"), 0.0).scope is Scope.ACCOUNT


def test_a_query_is_charged_for_what_it_scanned() -> None:
    """The entities of an answered query are owed by their partition before anything else passes."""
    model = Model(limits(partition=Rate(entities_per_s=100)), 0.0)
    scan = query("PartitionKey eq 'p'")
    assert not model.decide(scan, 0.0).rule
    model.answered(scan, Answered(status=200, found={"p": 1000}), 0.0)
    assert model.decide(upsert("p"), 8.9).rule
    assert not model.decide(upsert("p"), 9.1).rule


def test_a_query_that_scans_nothing_takes_nothing() -> None:
    """However many of them pass: each gives back the entity that it took on arrival."""
    model = Model(limits(partition=Rate(entities_per_s=10), account=Rate(entities_per_s=10)), 0.0)
    for asked in (query("PartitionKey eq 'p'"), query("PartitionKey gt 'p'")) * 500:
        assert not model.decide(asked, 0.0).rule
        model.answered(asked, Answered(status=200), 0.0)
    assert not model.decide(upsert("p", 10), 0.0).rule


ONE_SERVER = Servers(count=8, entities_per_s=500.0, keys_per_range=8)


def growing() -> Iterable[str]:
    """Keys that only ever grow."""
    return (f"{number:08d}" for number in itertools.count())


def shrinking() -> Iterable[str]:
    """Keys that only ever shrink."""
    return (f"{10**8 - number:08d}" for number in itertools.count())


@pytest.mark.parametrize("keys", [growing, shrinking])
def test_growing_or_shrinking_keys_meet_one_server(keys: Callable[[], Iterable[str]]) -> None:
    """Append-only and prepend-only keys get one server's rate, however many they are."""
    decisions = offered(Model(limits(servers=ONE_SERVER), 0.0), keys(), 2000.0, 10.0)
    assert passed(decisions) == pytest.approx(500 * 11, rel=0.02)
    assert {d.rule for _, d in decisions if d.rule} == {"server"}


def test_scattered_keys_meet_all_servers() -> None:
    """Keys in no order soon spread over the servers, and get nearly the rate of all of them."""
    rng = random.Random(7)
    names = [f"{rng.getrandbits(32):08x}" for _ in range(500)]
    keys = (rng.choice(names) for _ in itertools.count())
    decisions = offered(Model(limits(servers=ONE_SERVER), 0.0), keys, 2000.0, 10.0)
    assert passed(decisions) > 0.9 * 20_000


def storage_of(model: Model) -> StorageLimits:
    assert model.storage is not None
    return model.storage


HOT = Moving(hot_after_s=5.0, cool_after_s=1.0, offline_s=2.0)


def test_a_partition_that_stays_hot_is_moved() -> None:
    """Refused for 5 s, it is gone for 2 s, and then on another server."""
    model = Model(limits(partition=Rate(entities_per_s=100), moving=HOT), 0.0)
    decisions = offered(model, itertools.repeat("p"), 200.0, 8.5)
    (move,) = model.moves
    first_refused_s = next(at_s for at_s, d in decisions if d.rule)
    assert move.at_s == pytest.approx(first_refused_s + 5.0, abs=0.02)
    assert move.to_server != move.from_server
    offline = [d for at_s, d in decisions if move.at_s < at_s < move.until_s]
    assert {d.rule for d in offline} == {"moving"}
    afterwards = [d.rule for at_s, d in decisions if at_s >= move.until_s]
    assert not afterwards[0]


def test_a_partition_that_cools_between_is_not_moved() -> None:
    """Refusals with pauses of more than the cooling time never make a partition hot."""
    model = Model(limits(partition=Rate(entities_per_s=100), moving=HOT), 0.0)
    for second in range(0, 30, 3):
        for _ in range(300):
            model.decide(upsert("p"), float(second))
    assert model.move_count == 0


def test_a_moved_range_comes_to_the_emptiest_server() -> None:
    """Of three servers, one busy with another table, the hot range takes the idle one."""
    servers = Servers(count=3, entities_per_s=1e9)
    model = Model(limits(partition=Rate(entities_per_s=100), moving=HOT, servers=servers), 0.0)
    busy = Asked(kind=Kind.INSERT, table="another", partition_key="q", entities=1)
    for number in range(2000):
        at_s = number / 200.0
        served(model, upsert("p"), at_s)
        served(model, busy, at_s)
        if model.moves:
            break
    homes = {table: server for table, _, server in ranges_of(storage_of(model))}
    assert homes["table"] not in (homes["another"], model.moves[0].from_server)


def test_a_query_over_a_border_ends_there() -> None:
    """A query of all keys meets the first key that lives on another server; a point query none."""
    model = Model(limits(servers=Servers(count=4, entities_per_s=1e9, keys_per_range=4)), 0.0)
    names = [f"p{number:02d}" for number in range(40)]
    for name in names:
        served(model, upsert(name), 0.0)
    ranges = ranges_of(storage_of(model))
    servers = {key: server for table, key, server in ranges if table == "table"}
    assert len(set(servers.values())) > 1

    def cut(text: str, keys: Sequence[str | None]) -> int | None:
        return model.cut(query(text), Answered(status=200, keys=tuple(keys)))

    first = cut("", names)
    assert first is not None
    assert names[first] == next(key for key in servers if key and servers[key] != servers[""])
    assert cut("PartitionKey lt 'p00'", ()) is None
    assert cut("PartitionKey eq 'p05'", ["p05"]) is None
    assert cut("", [*names[:-1], None]) is None


SHARES = st.floats(0.0, 1.0 / 7.0)


@given(st.integers(0, 10**6), st.lists(SHARES, min_size=7, max_size=7))
def test_the_same_seed_gives_the_same_faults(seed: int, shares: list[float]) -> None:
    """Two models of the same limits fail the same requests in the same way."""
    names = ("error_500", "error_503", "reset", "half_answer", "slow_answer", "lost_answer")
    drawn: dict[str, Any] = dict(zip(names, shares[:6], strict=True))
    faults = Faults(
        seed=seed,
        unapplied_write=shares[6],
        **drawn,
    )
    one, other = (Model(limits(faults=faults), 0.0) for _ in range(2))
    assert [one.decide(upsert("p"), 1.0) for _ in range(50)] == [
        other.decide(upsert("p"), 1.0) for _ in range(50)
    ]


@pytest.mark.parametrize("fault", list(InjectedFault))
def test_each_fault_has_its_share(fault: InjectedFault) -> None:
    """A share of 10 % of one fault is a tenth of the writes, and nothing else goes wrong."""
    share: dict[str, Any] = {fault.value: 0.1}
    model = Model(limits(faults=Faults(**share)), 0.0)
    drawn = [model.decide(upsert("p"), 0.0).fault for _ in range(5000)]
    assert set(drawn) == {None, fault}
    assert drawn.count(fault) / len(drawn) == pytest.approx(0.1, abs=0.02)


def test_reads_lose_no_write() -> None:
    """A read is neither lost after it was applied nor acknowledged without being done."""
    faults = Faults(lost_answer=0.5, unapplied_write=0.5)
    model = Model(limits(faults=faults), 0.0)
    read = Asked(kind=Kind.POINT_QUERY, table="table", partition_key="p", entities=1)
    assert {model.decide(read, 0.0).fault for _ in range(100)} == {None}


def test_a_stall_holds_what_comes_until_its_end() -> None:
    """A request in the middle of a stall waits for the rest of it, others do not wait."""
    faults = Faults(stalls=(Window(at_s=10.0, for_s=4.0),))
    model = Model(limits(faults=faults), 100.0)
    delays = [model.decide(upsert("p"), at_s).delay_s for at_s in (109.9, 111.0, 114.0)]
    assert delays == [0.0, pytest.approx(3.0), 0.0]


def test_requests_about_tables_meet_no_limit() -> None:
    """Making a table in an account that is over its limit passes."""
    model = Model(limits(account=Rate(entities_per_s=1)), 0.0)
    model.decide(upsert("p"), 0.0)
    assert model.decide(upsert("p"), 0.0).rule
    assert not model.decide(Asked(kind=None), 0.0).rule


def test_a_deleted_table_leaves_nothing_behind() -> None:
    """After its deletion none of a table's ranges is kept, and those of other tables are."""
    model = Model(GatewayLimits(), 0.0)
    for table in ("table", "tableau", "other"):
        for number in range(30):
            insert = Asked(
                kind=Kind.INSERT,
                table=table,
                partition_key=str(number),
                entities=1,
                rows=(RowWrite(str(number), "r"),),
            )
            served(model, insert, 0.0)
    gone = Asked(kind=None, table="table", drops_table=True)
    assert not model.decide(gone, 0.0).rule
    model.answered(gone, DONE, 0.0)
    tables = {table for table, _, _ in ranges_of(storage_of(model))}
    assert tables == {"tableau", "other"}


def bounded_after(keys: int) -> StorageLimits:
    """The limits of a model that so many keys were written to, 5,000 a second."""
    model = Model(GatewayLimits(), 0.0)
    for number in range(keys):
        served(model, upsert(f"{number * 7919 % keys:07d}"), number / 5000.0)
    return storage_of(model)


@pytest.mark.parametrize(
    "keys", [60_000, pytest.param(1_000_000, marks=(pytest.mark.long, pytest.mark.thorough))]
)
def test_old_keys_are_forgotten(keys: int) -> None:
    """Only keys of the last burst are kept, and the ranges have a cap (a million: up to 1 min)."""
    storage = bounded_after(keys)
    assert len(storage._partitions._buckets) <= 2 * 5000
    assert len(ranges_of(storage)) <= MOST_RANGES


_ONE_SERVER = {"count": 1, "keys_per_range": 1000}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("a", "b", "c")),
            st.integers(1, 5),
            st.sampled_from((200, 204, 404, 503)),
        ),
        max_size=40,
    )
)
def test_a_model_without_limits_counts_as_one_with_limits_that_nobody_reaches(
    requests: list[tuple[str, int, int]],
) -> None:
    """It keeps no buckets and no ranges, and passes and counts the same."""
    models = [
        Model(
            GatewayLimits(
                partition=Rate(entities_per_s=per_s),
                account=Rate(entities_per_s=per_s),
                servers=Servers(entities_per_s=per_s, **_ONE_SERVER),
            ),
            0.0,
        )
        for per_s in (1e9, 9e8)
    ]
    scan = query("PartitionKey ge 'a'")
    for number, (key, entities, status) in enumerate(requests):
        write = upsert(key, entities)
        assert {model.decide(write, number).rule for model in models} == {""}
        answered = Answered(status=status)
        assert len({model.answered(write, answered, number) for model in models}) == 1
        assert {model.decide(scan, number).rule for model in models} == {""}
        page = Answered(status=200)
        assert models[0].cut(scan, page) == models[1].cut(scan, page)
        assert len({model.answered(scan, page, number) for model in models}) == 1
    assert models[0].storage is None
    assert models[0].moves == models[1].moves == ()


def test_retries_in_a_second_without_traffic_meet_the_limit_of_their_partition() -> None:
    """A calm second says nothing about the partitions of a later second."""
    few = GatewayLimits(partition=Rate(entities_per_s=1000.0, burst_s=1.0))
    storage = Model(few, 0.0).storage
    assert storage is not None
    calm = Demand({("table", "calm"): 1}, 1, scans=False)
    assert not storage.serve(calm, 0, 1, {})
    passage = storage.passage(1, 2)
    rules = [passage.admit(("table", "hot"), 100, 100, 1.5) for _ in range(30)]
    assert rules.count("partition") == 20


def test_partitions_that_are_read_in_vain_do_not_split_a_range() -> None:
    """They have no rows, and no query ends between them."""
    storage = Model(GatewayLimits(), 0.0).storage
    assert storage is not None
    keys = [f"k{number:02}" for number in range(20)]
    storage.serve(Demand({("table", key): 0 for key in keys}, 0, scans=True), 0, 1, {})
    passage = storage.passage(1, 2)
    assert {passage.admit(("table", key), 1, 0, 1.5) for key in keys} == {""}
    assert {storage.admit("table", key, 1, 2.5, -1) for key in keys} == {""}
    assert not storage.borders("table", "", None)
    assert {passage.admit(("table", key), 1, 1, 1.6) for key in keys} == {""}
    assert storage.borders("table", "", None)
