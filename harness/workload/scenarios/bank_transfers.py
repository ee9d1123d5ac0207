"""Bank transfers."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue, Int64
from harness.model.errors import SetupError
from harness.model.operation import KeyRange, Operation
from harness.workload.keys.row_keys import GuidRows
from harness.workload.operation_source import Steps
from harness.workload.scenarios.scenario import Recent, Scenario, Setting

ACCOUNTS = 1000
SIDES = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    transfer_id: str
    """A GUID: ascending numbers would be an append-only pattern."""
    debit: str
    credit: str
    cents: int


class BankTransfers(Scenario):
    """One partition per transfer, with a debit row and a credit row.

    The partitioning strategy, "Entity group transactions": both sides have to net to zero, so that
    one transaction writes them and they share a PartitionKey. This is the id of the transfer,
    because the two sides belong to different accounts. The statement of an account therefore scans
    the table.

    ``keys.partitions`` is the number of transfers.

    Raises:
        SetupError: ``rows`` is not 2.
    """

    actions: ClassVar[Mapping[str, float]] = {
        "transfer": 60,
        "read_transfer": 35,
        "read_debit": 5,
        "statement_of_account": 0.3,
    }

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if setting.rows != SIDES:
            raise SetupError(
                "bank-transfers: keys.rows_per_partition has to be "
                f"{SIDES}, the debit and the credit of a transfer, not {setting.rows}; "
                "keys.partitions is the number of transfers"
            )
        self._ids = GuidRows()
        self._done: Recent[Transfer] = Recent()

    def loading(self) -> Iterator[Operation]:
        return (
            self.transaction(self._sides(self._loaded(number)))
            for number in range(self.setting.partitions)
        )

    def transfer(self, rng: random.Random) -> Steps:
        """Both sides of a new transfer by one transaction."""
        setting, number = self.setting, self.new_number()
        new = Transfer(
            transfer_id=self._ids.inserted(setting.worker, number, setting.partitions),
            debit=_account(rng.randrange(ACCOUNTS)),
            credit=_account(rng.randrange(ACCOUNTS)),
            cents=1 + rng.randrange(100_000),
        )
        result = yield self.transaction(self._sides(new), name="transfer")
        if result.outcome.succeeded:
            self._done.add(new)

    def read_transfer(self, rng: random.Random) -> Operation:
        """Both sides of a transfer: its partition."""
        both = KeyRange(entities=SIDES, exact=True)
        return self.query(self._any(rng).transfer_id, name="read_transfer", key_range=both)

    def read_debit(self, rng: random.Random) -> Operation:
        found = self._any(rng)
        return self.get(found.transfer_id, f"DEBIT:{found.debit}", name="read_debit")

    def statement_of_account(self, rng: random.Random) -> Operation:
        """All rows of an account: a table scan, because the account is in no key."""
        rows = self.loaded_rows + SIDES * self._done.written
        return self.query(
            None,
            name="statement_of_account",
            filter=f"Account eq '{_account(rng.randrange(ACCOUNTS))}'",
            key_range=KeyRange(entities=rows, exact=not self.does("transfer")),
        )

    def _any(self, rng: random.Random) -> Transfer:
        return self._done.sometimes(rng) or self._loaded(self.pick(rng))

    def _loaded(self, number: int) -> Transfer:
        return Transfer(
            transfer_id=self._ids.loaded(0, 0, number),
            debit=_account(number % ACCOUNTS),
            credit=_account((number * 7 + 1) % ACCOUNTS),
            cents=100 + number,
        )

    def _sides(self, of: Transfer) -> tuple[Operation, Operation]:
        debit: dict[str, EdmValue] = {"Account": of.debit, "Cents": Int64(-of.cents)}
        credit: dict[str, EdmValue] = {"Account": of.credit, "Cents": Int64(of.cents)}
        return (
            self.insert(of.transfer_id, f"DEBIT:{of.debit}", debit),
            self.insert(of.transfer_id, f"CREDIT:{of.credit}", credit),
        )


def _account(number: int) -> str:
    return f"account-{number:04d}"
