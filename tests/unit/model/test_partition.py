"""A partition has one name and one of several accounts, over which all spread evenly."""

from __future__ import annotations

import collections
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.operation import WHOLE_TABLE, Kind, Operation
from harness.model.partition import Partition, account_of, limit_at, spread_problem
from harness.model.services.blobs import AZURE_BLOBS
from harness.model.services.service import PUBLISHED, UNLIMITED_PER_S, Targets
from harness.model.services.storage import STORAGE
from tests.support.keys import NAMES, sized

PARTITIONS = 1000


@given(
    table=st.sampled_from(["", "t", "Orders"]),
    key=st.text(st.characters(exclude_characters="/")) | st.just(WHOLE_TABLE),
)
def test_a_name_is_that_of_one_partition(table: str, key: str) -> None:
    """Table and key are read from the name that an operation has in counts, the empty key too."""
    operation = Operation(kind=Kind.QUERY, partition_key=key, table=table)
    partition = Partition.named(operation.partition)
    assert partition == (table, key)
    assert partition.name == operation.partition
    assert partition.whole_table == (key == WHOLE_TABLE)


def test_a_key_that_a_service_refuses_stays_in_its_table() -> None:
    """An application may send a key with a slash, which has no table of its own."""
    assert Partition.named("orders/a/b") == ("orders", "a/b")


@given(key=st.text(), accounts=st.integers(min_value=1, max_value=50))
def test_every_key_has_one_account(key: str, accounts: int) -> None:
    """Any key, of any characters, has an account of those there are, and always the same one."""
    account = account_of(key, accounts)
    assert 0 <= account < accounts
    assert account_of(key, accounts) == account


@pytest.mark.parametrize("accounts", [2, 3, 7])
@pytest.mark.parametrize("name", sorted({*NAMES} - {"compare-single"}))
def test_the_keys_of_each_design_spread_evenly(name: str, accounts: int) -> None:
    """No account has a share far from the equal one: five standard deviations at most."""
    made = sized(name, PARTITIONS, 1)
    keys = {made.partition_key(number) for number in range(made.count)}
    shares = collections.Counter(account_of(key, accounts) for key in keys)
    equal = len(keys) / accounts
    deviation = (equal * (1 - 1 / accounts)) ** 0.5
    assert set(shares) == set(range(accounts))
    assert all(abs(share - equal) < 5 * deviation for share in shares.values())


def test_the_account_of_a_key_never_changes() -> None:
    """A later version that spread keys otherwise could not read what an earlier one wrote."""
    assert [account_of(f"p{n}", 3) for n in range(8)] == [0, 2, 1, 1, 2, 0, 2, 0]


def test_queries_over_several_partitions_have_no_account() -> None:
    """They would have to go to each account; everything else has its partition."""
    scan = Operation(kind=Kind.QUERY, partition_key=WHOLE_TABLE)
    assert "'full_table_scan' queries several partitions" in str(spread_problem(scan))
    indexed = Operation(kind=Kind.QUERY, partition_key=WHOLE_TABLE, table="Index")
    assert spread_problem(indexed) is not None
    assert spread_problem(Operation(kind=Kind.QUERY, partition_key="p")) is None


@given(st.floats(0.1, 1e8), st.floats(1.0, 1e5))
def test_enforced_limits_are_the_same_share_of_the_target_of_each_service(
    per_s: float, target: float
) -> None:
    """They are stated for partitions of tables; raised targets change nothing of them."""
    service = dataclasses.replace(STORAGE, targets=Targets(partition=target))
    raised = dataclasses.replace(
        service, targets=Targets(partition=2 * target, published=service.targets)
    )
    beside = [dataclasses.replace(service, beside="(files)")]
    for table in ("(files)", "(files)/share"):
        assert limit_at(table, per_s, beside) == beside[0].limit(per_s)
    assert limit_at("files", per_s, beside) == limit_at("", per_s, beside) == per_s
    for one in (service, raised):
        assert one.limit(per_s) / target == pytest.approx(per_s / PUBLISHED.partition)
        assert one.limit(UNLIMITED_PER_S) == UNLIMITED_PER_S
    assert AZURE_BLOBS.limit(per_s) == per_s
    assert Partition("", "p").limit(PUBLISHED, per_s) == per_s
    assert Partition("(queues)", "q").limit(PUBLISHED, per_s) == pytest.approx(per_s)
    assert Partition("(blobs)", "c/b").limit(PUBLISHED, per_s) is None
    assert Partition("t", WHOLE_TABLE).limit(PUBLISHED, per_s) is None
