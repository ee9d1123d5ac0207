"""Tenants and users: each is a partition."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.entity import EdmValue
from harness.model.errors import SetupError
from harness.model.operation import KeyRange, Operation
from harness.workload.operation_source import Steps, Task
from harness.workload.scenarios.scenario import Recent, Scenario, Setting

IMPORTED = 20
"""Entities of one import."""

_Key = tuple[str, str]


class Saas(Scenario):
    """A multi-tenant application: one partition per tenant.

    The key design for blog posts, "Pattern B: Multi-tenant SaaS". ``distribution`` decides how
    unequal the tenants are: a busy tenant makes only its own partition hot.

    ``fields.tenant.values`` is the number of tenants,
    ``keys.rows_per_partition`` the number of entities of a tenant.
    """

    field = "tenant"
    actions: ClassVar[Mapping[str, float]] = {
        "read_entity": 50,
        "edit_entity": 20,
        "create_entity": 10,
        "delete_entity": 8,
        "import_entities": 2,
        "list_tenant": 5,
    }

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._moving = self.does("create_entity", "delete_entity", "import_entities")
        self._created: Recent[_Key] = Recent()

    def loading(self) -> Iterator[Operation]:
        return self.batched(self._insert(self._loaded(*place)) for place in self.places())

    def read_entity(self, rng: random.Random) -> Operation:
        return self.get(*self._any(rng), name="read_entity")

    def edit_entity(self, rng: random.Random) -> Steps:
        """Read an entity, then change it if it has not changed since."""
        change = {"Title": f"Edited {self.new_number()}"}
        return self.edit(*self._any(rng), change, name="edit_entity")

    def create_entity(self, rng: random.Random) -> Steps:
        key = self._new_key(self.pick(rng))
        result = yield self._insert(key, "create_entity")
        if result.outcome.succeeded:
            self._created.add(key)

    def delete_entity(self, rng: random.Random) -> Task:
        """Delete the oldest entity that the worker created; if there is none, create one."""
        key = self._created.take()
        return self.create_entity(rng) if key is None else self.delete(*key, name="delete_entity")

    def import_entities(self, rng: random.Random) -> Operation:
        """Several new entities of one tenant by one transaction."""
        tenant = self.pick(rng)
        parts = [self._insert(self._new_key(tenant)) for _ in range(IMPORTED)]
        return self.transaction(parts, name="import_entities")

    def list_tenant(self, rng: random.Random) -> Operation:
        """The titles of all entities of a tenant."""
        return self.query(
            self.named("tenant", self.pick(rng)),
            name="list_tenant",
            select=("Title",),
            key_range=KeyRange(entities=self.setting.rows, exact=not self._moving),
        )

    def _any(self, rng: random.Random) -> _Key:
        return self._created.sometimes(rng) or self._loaded(*self.place(rng))

    def _loaded(self, tenant: int, number: int) -> _Key:
        return self.named("tenant", tenant), f"{tenant * self.setting.rows + number:08d}"

    def _new_key(self, tenant: int) -> _Key:
        return self.named("tenant", tenant), self.new_id(after=self.loaded_rows)

    def _insert(self, key: _Key, name: str = "") -> Operation:
        return self.insert(*key, {"Title": f"Entity {key[1]}"}, name=name)


class UserProfiles(Scenario):
    """User profiles: one partition per user, with one entity.

    The performance checklist, "Tables and partitions": the user id of a website makes a good
    PartitionKey. The data partitioning strategies: an entity with one natural key has this as
    PartitionKey, and an empty RowKey.

    ``fields.user.values`` is the number of users.
    """

    field = "user"
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
                f"{setting.rows}; fields.user.values is the number of users"
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
