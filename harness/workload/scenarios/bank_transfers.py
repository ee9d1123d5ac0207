"""Bank transfers: debit and credit of one transfer are two rows of one transaction.

The partitioning strategy, "Entity group transactions": both sides have to net to zero, so that
they are written atomically and share a PartitionKey. As they are of different accounts, it cannot
be the account; it is the id of the transfer. What an account did is then a scan of the table.
"""

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
    """So many cents go from one account to another.

    Attributes:
        transfer_id: A GUID: numbers that ascend would be an append-only pattern.
    """

    transfer_id: str
    debit: str
    credit: str
    cents: int


class BankTransfers(Scenario):
    """One partition per transfer, with a debit row and a credit row.

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
                "bank-transfers: a transfer has a debit and a credit, so that "
                f"keys.rows_per_partition is {SIDES} and not {setting.rows}; keys.partitions says "
                "how many transfers there are"
            )
        self._ids = GuidRows()
        self._done: Recent[Transfer] = Recent()

    def loading(self) -> Iterator[Operation]:
        """Transfer by transfer, each as it was made."""
        return (
            self.transaction(self._sides(self._loaded(number)))
            for number in range(self.setting.partitions)
        )

    def transfer(self, rng: random.Random) -> Steps:
        """Debit and credit by one transaction: there are both or none."""
        number = self.new_number()
        new = Transfer(
            transfer_id=self._ids.inserted(
                self.setting.worker, number, loaded=self.setting.partitions
            ),
            debit=_account(rng.randrange(ACCOUNTS)),
            credit=_account(rng.randrange(ACCOUNTS)),
            cents=1 + rng.randrange(100_000),
        )
        result = yield self.transaction(self._sides(new), name="transfer")
        if result.outcome.succeeded:
            self._done.add(new)

    def read_transfer(self, rng: random.Random) -> Operation:
        """Both sides of a transfer: its partition."""
        return self.query(
            self._any(rng).transfer_id,
            name="read_transfer",
            key_range=KeyRange(entities=SIDES, exact=True),
        )

    def read_debit(self, rng: random.Random) -> Operation:
        """One side of a transfer."""
        found = self._any(rng)
        return self.get(found.transfer_id, f"DEBIT:{found.debit}", name="read_debit")

    def statement_of_account(self, rng: random.Random) -> Operation:
        """Whatever an account did: it is in no key, so that the whole table is walked."""
        still = not self.does("transfer")
        return self.query(
            None,
            name="statement_of_account",
            filter=f"Account eq '{_account(rng.randrange(ACCOUNTS))}'",
            key_range=KeyRange(
                entities=SIDES * (self.setting.partitions + self._done.written), exact=still
            ),
        )

    def _any(self, rng: random.Random) -> Transfer:
        """A transfer that was made."""
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
