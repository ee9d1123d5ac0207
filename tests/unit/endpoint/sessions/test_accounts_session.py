"""A session over several accounts sends each operation to the account of its partition."""

from __future__ import annotations

from typing import Any, cast

from harness.endpoint.accounts import AccountsSession
from harness.endpoint.session import TableSession
from harness.model.operation import Kind, Operation
from harness.model.partition import account_of
from harness.workload.budget import Budgets


class Recorder:
    """Keeps what it is asked to do."""

    def __init__(self, in_use: int) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.connections_in_use = in_use
        self.calls: list[str] = []

    def execute(self, operation: Operation, due_s: float | None = None, *, keep: bool) -> None:
        self.asked.append((operation, due_s, keep))

    def abandon(self) -> None:
        self.calls.append("abandon")

    def close(self) -> None:
        self.calls.append("close")


def test_each_operation_goes_to_the_account_of_its_partition() -> None:
    """Whatever its table and its kind, with its due time; the others do not see it."""
    accounts = [Recorder(in_use) for in_use in (2, 7, 1)]
    session = AccountsSession([cast(TableSession, account) for account in accounts])
    sent = [
        Operation(kind=kind, partition_key=f"p{number}", row_key="r", table=table)
        for number in range(20)
        for kind in (Kind.INSERT, Kind.POINT_QUERY)
        for table in ("", "Index")
    ]
    for place, operation in enumerate(sent):
        session.execute(operation, float(place), keep=False)
    for number, account in enumerate(accounts):
        assert account.asked == [
            (operation, float(place), False)
            for place, operation in enumerate(sent)
            if account_of(operation.partition_key, 3) == number
        ]
        assert account.asked
    session.abandon()
    session.close()
    assert [account.calls for account in accounts] == [["abandon", "close"]] * 3
    assert session.connections_in_use == 7


def test_the_first_budget_that_is_used_up_ends_the_load() -> None:
    """Each account has its own; what one leaves is not for another."""
    budgets = Budgets([None, 2, 5])
    assert budgets.each[1].take()
    assert not budgets.exhausted
    assert budgets.each[1].take()
    assert budgets.exhausted
    assert not budgets.each[1].take()
    assert budgets.spent == (0, 2, 0)
    budgets.grant([None, 3, None])
    assert not budgets.exhausted
