"""The counts of each of several accounts."""

from __future__ import annotations

from harness.measure.counts.ledger import Ledger
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Result, Scope
from harness.model.partition import account_of
from tests.support.results import done

START = 1_700_000_000
NAMES = ("a", "b", "c")
OK = (204, "", Scope.NONE)
BUSY = (503, "ServerBusy", Scope.ACCOUNT)


def result_of(key: str, second: int, entities: int, refused: int, reported: int = 0) -> Result:
    """A write that was throttled so many times before it succeeded."""
    at_s = float(START + second)
    status, code, scope = BUSY
    busy = Attempt(status=status, error_code=code, scope=scope, sent_s=at_s, latency_s=0.0)
    last = Attempt(status=204, sent_s=at_s, latency_s=0.0)
    return done(
        Operation(kind=Kind.UPSERT_MERGE, partition_key=key),
        at_s,
        0.0,
        attempts=(busy,) * refused + (last,),
        entities=entities,
        reported=reported,
    )


def test_an_index_table_has_the_account_of_the_same_key() -> None:
    """The account is one of the PartitionKey alone, whatever the table."""
    ledger = Ledger(accounts=NAMES)
    operation = Operation(kind=Kind.POINT_QUERY, partition_key="k3", row_key="r", table="Index")
    attempt = Attempt(status=200, sent_s=float(START), latency_s=0.0)
    ledger.add_attempt(operation, attempt)
    [row] = ledger.snapshot(start=START, end=START + 1).partitions
    assert (row.key, row.account) == ("Index/k3", NAMES[account_of("k3", 3)])


def test_a_failed_attempt_names_its_account() -> None:
    """The support of the service asks for it."""
    ledger = Ledger(accounts=NAMES)
    ledger.add(result_of("k3", 0, 5, refused=1))
    [error], _ = ledger.errors()
    assert error["account"] == NAMES[account_of("k3", 3)]


def test_a_single_account_is_not_counted_apart() -> None:
    """It is the whole run, which is counted already."""
    ledger = Ledger(accounts=("only",))
    ledger.add(result_of("k3", 0, 5, refused=1))
    snapshot = ledger.snapshot(start=START, end=START + 10)
    assert snapshot.accounts == ()
    assert snapshot.account_rates == snapshot.entities_per_s
    assert snapshot.partitions[0].account == ""
    assert "account" not in ledger.errors()[0][0]
