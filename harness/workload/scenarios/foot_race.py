"""Registrations for foot races."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.operation import KeyRange, Operation
from harness.workload.operation_source import Steps
from harness.workload.scenarios.scenario import Recent, Scenario, Setting

FIRST_YEAR = 2011
DISTANCES = ("Full", "Half", "10K")
RUNNERS = (("John", "M"), ("Mary", "F"), ("Wei", "M"), ("Olga", "F"), ("Amir", "M"), ("Ines", "F"))
YOUNGEST = 18
AGES = 60


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

    ``keys.partitions`` is the number of races,
    ``keys.rows_per_partition`` the number of registrations of a race.
    """

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
        new = Registration(
            race=self._race(self.pick(rng)),
            bib=self.new_id(after=self.loaded_rows),
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
            bib=f"{race * self.setting.rows + runner + 1:05d}",
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
