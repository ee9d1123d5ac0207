"""Two rows for each thing, in one partition and by one transaction."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue, Int64
from harness.model.errors import SetupError
from harness.model.operation import KeyRange, Operation
from harness.workload.keys.scattering import guid, new_number, scattered
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

    ``fields.transfer.values`` is the number of transfers.
    """

    field = "transfer"
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
                "fields.transfer.values is the number of transfers"
            )
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
            transfer_id=guid(scattered(setting.partitions + new_number(setting.worker, number))),
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
            transfer_id=guid(scattered(number)),
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


FIRST_YEAR = 2011
DISTANCES = ("Full", "Half", "10K")
RUNNERS = (("John", "M"), ("Mary", "F"), ("Wei", "M"), ("Olga", "F"), ("Amir", "M"), ("Ines", "F"))
YOUNGEST = 18
AGES = 60
BIB_DIGITS = 12
"""Digits of every bib, so that bibs sort as numbers: the document's own has five, which are too few
for the new registrations of 10,000 workers."""
_WORKERS = 10_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One runner in one race: the event's name and a distance."""

    race: str
    bib: str
    name: str
    sex: str
    age: int

    @property
    def by_bib(self) -> str:
        """RowKey of the row that is found by bib."""
        return f"BIB:{self.bib}__{self.name}__{self.sex}__{self.age}"

    @property
    def by_age(self) -> str:
        """RowKey of the row that is found by age; the age has three digits to sort as a number."""
        return f"AGE:{self.age:03d}__{self.bib.lstrip('0')}__{self.name}__{self.sex}"


class FootRace(Scenario):
    """One partition per race; each registration is two entities, by bib and by age.

    The partitioning strategy, "Choose the PartitionKey value": two queries are equally dominant, so
    that one transaction inserts each registration as two rows of one partition.

    ``fields.race.values`` is the number of races,
    ``keys.rows_per_partition`` the number of registrations of a race.
    """

    field = "race"
    actions: ClassVar[Mapping[str, float]] = {
        "query_by_bib": 30,
        "point_query_by_bib": 20,
        "query_by_age": 30,
        "register": 20,
    }

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._registered: Recent[Registration] = Recent()

    def loading(self) -> Iterator[Operation]:
        return self.batched(
            row for place in self.places() for row in self._rows(self._loaded(*place))
        )

    def register(self, rng: random.Random) -> Steps:
        """Both rows of a new registration by one transaction."""
        name, sex = RUNNERS[rng.randrange(len(RUNNERS))]
        # A bib that no other worker gives, after all loaded ones.
        taken = self.loaded_rows + self.new_number() * _WORKERS
        new = Registration(
            race=self._race(self.pick(rng)),
            bib=_bib(taken + self.setting.worker),
            name=name,
            sex=sex,
            age=YOUNGEST + rng.randrange(AGES),
        )
        result = yield self.transaction(self._rows(new), name="register")
        if result.outcome.succeeded:
            self._registered.add(new)

    def query_by_bib(self, rng: random.Random) -> Operation:
        """The row of a bib, without the runner's name: a range of RowKeys that holds one row."""
        found = self._any(rng)
        bib = f"BIB:{found.bib}_"
        key_range = KeyRange(row_from=bib + "_", row_before=bib + "`", entities=1, exact=True)
        return self.query(found.race, name="query_by_bib", key_range=key_range)

    def point_query_by_bib(self, rng: random.Random) -> Operation:
        """The same row, if the runner and therefore the whole RowKey is known."""
        found = self._any(rng)
        return self.get(found.race, found.by_bib, name="point_query_by_bib")

    def query_by_age(self, rng: random.Random) -> Operation:
        """All runners of one age in one race."""
        age = rng.randrange(AGES)
        loaded = len(range(age, self.setting.rows, AGES))
        return self.query(
            self._race(self.pick(rng)),
            name="query_by_age",
            key_range=KeyRange(
                row_from=f"AGE:{YOUNGEST + age:03d}",
                row_before=f"AGE:{YOUNGEST + age + 1:03d}",
                entities=loaded,
                exact=not self.does("register"),
            ),
        )

    def _any(self, rng: random.Random) -> Registration:
        return self._registered.sometimes(rng) or self._loaded(*self.place(rng))

    def _race(self, number: int) -> str:
        year, distance = divmod(number, len(DISTANCES))
        return f"{FIRST_YEAR + year} New York City Marathon__{DISTANCES[distance]}"

    def _loaded(self, race: int, runner: int) -> Registration:
        name, sex = RUNNERS[runner % len(RUNNERS)]
        return Registration(
            race=self._race(race),
            bib=_bib(race * self.setting.rows + runner + 1),
            name=name,
            sex=sex,
            age=YOUNGEST + runner % AGES,
        )

    def _rows(self, of: Registration) -> tuple[Operation, Operation]:
        content: dict[str, EdmValue] = {
            "Bib": of.bib,
            "Name": of.name,
            "Sex": of.sex,
            "Age": of.age,
        }
        return self.insert(of.race, of.by_bib, content), self.insert(of.race, of.by_age, content)


def _bib(number: int) -> str:
    return f"{number:0{BIB_DIGITS}d}"
