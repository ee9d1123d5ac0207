"""Profiles of users."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.errors import SetupError
from harness.model.operation import Operation
from harness.workload.operation_source import Steps
from harness.workload.scenarios.scenario import Recent, Scenario, Setting


class UserProfiles(Scenario):
    """User profiles: one partition per user, with one entity.

    The performance checklist, "Tables and partitions": the user id of a website makes a good
    PartitionKey. The data partitioning strategies: an entity with one natural key has this as
    PartitionKey, and an empty RowKey.

    ``keys.partitions`` is the number of users.

    Raises:
        SetupError: ``rows`` is not 1.
    """

    actions: ClassVar[Mapping[str, float]] = {
        "read_profile": 60,
        "read_name": 15,
        "note_visit": 15,
        "edit_profile": 5,
        "sign_up": 5,
    }

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if setting.rows != 1:
            raise SetupError(
                f"user-profiles: keys.rows_per_partition has to be 1, the profile of a user, not "
                f"{setting.rows}; keys.partitions is the number of users"
            )
        self._new: Recent[str] = Recent()

    def loading(self) -> Iterator[Operation]:
        """One request for each user: a transaction stays in one partition."""
        return (self._profile(f"user-{user:08d}") for user in range(self.setting.partitions))

    def read_profile(self, rng: random.Random) -> Operation:
        return self.get(self._any(rng), "", name="read_profile")

    def read_name(self, rng: random.Random) -> Operation:
        """What a page shows of another user: two properties (projection)."""
        return self.get(self._any(rng), "", name="read_name", select=("Name", "Picture"))

    def note_visit(self, rng: random.Random) -> Operation:
        """Merge one property, without reading first."""
        return self.merge(self._any(rng), "", {"Visits": self.new_number()}, name="note_visit")

    def edit_profile(self, rng: random.Random) -> Steps:
        """Read a profile, then change it if it has not changed since."""
        change = {"Name": f"Name {self.new_number()}"}
        return self.edit(self._any(rng), "", change, name="edit_profile")

    def sign_up(self, rng: random.Random) -> Steps:
        user = f"user-{self.new_id(after=self.loaded_rows)}"
        result = yield self._profile(user, "sign_up")
        if result.outcome.succeeded:
            self._new.add(user)

    def _any(self, rng: random.Random) -> str:
        return self._new.sometimes(rng) or f"user-{self.pick(rng):08d}"

    def _profile(self, user: str, name: str = "") -> Operation:
        content: dict[str, EdmValue] = {
            "Name": f"Name of {user}",
            "Picture": f"{user}.png",
            "Visits": 0,
        }
        return self.insert(user, "", content, name=name)
