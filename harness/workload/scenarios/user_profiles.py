"""Profiles of users: the user's id is the whole key.

The performance checklist, "Tables and partitions": the user id of a popular website makes a good
PartitionKey. The data partitioning strategies: an entity with one natural key has it as
PartitionKey, and an empty RowKey. Each user is a partition, and nothing is asked of two together.
"""

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
                f"user-profiles: a user has one profile, so that keys.rows_per_partition is 1 and "
                f"not {setting.rows}; keys.partitions says how many users there are"
            )
        self._new: Recent[str] = Recent()

    def loading(self) -> Iterator[Operation]:
        """User by user, each by a request of its own: no two are of one partition."""
        return (self._profile(f"user-{user:08d}") for user in range(self.setting.partitions))

    def read_profile(self, rng: random.Random) -> Operation:
        """A whole profile."""
        return self.get(self._any(rng), "", name="read_profile")

    def read_name(self, rng: random.Random) -> Operation:
        """What a page shows of another user: two properties (projection)."""
        return self.get(self._any(rng), "", name="read_name", select=("Name", "Picture"))

    def note_visit(self, rng: random.Random) -> Operation:
        """One property is merged, without asking whether there is anything yet."""
        return self.merge(self._any(rng), "", {"Visits": self.new_number()}, name="note_visit")

    def edit_profile(self, rng: random.Random) -> Steps:
        """Read a profile, then change it, unless it was changed meanwhile."""
        change = {"Name": f"Name {self.new_number()}"}
        return self.edit(self._any(rng), "", change, name="edit_profile")

    def sign_up(self, rng: random.Random) -> Steps:
        """A new user."""
        user = f"user-{self.new_id(after=self.setting.partitions)}"
        result = yield self._profile(user, "sign_up")
        if result.outcome.succeeded:
            self._new.add(user)

    def _any(self, rng: random.Random) -> str:
        """A user who is there."""
        return self._new.sometimes(rng) or f"user-{self.pick(rng):08d}"

    def _profile(self, user: str, name: str = "") -> Operation:
        content: dict[str, EdmValue] = {
            "Name": f"Name of {user}",
            "Picture": f"{user}.png",
            "Visits": 0,
        }
        return self.insert(user, "", content, name=name)
