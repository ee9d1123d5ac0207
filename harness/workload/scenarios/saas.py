"""A multi-tenant application: the tenant is the PartitionKey, the entity's id the RowKey.

The key design for blog posts, "Pattern B: Multi-tenant SaaS". Tenants are apart, and as unequal
as ``keys.distribution`` says: one that is busy makes its own partition hot, not the others'.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import ClassVar

from harness.model.operation import KeyRange, Operation
from harness.workload.operation_source import Steps, Task
from harness.workload.scenarios.scenario import Recent, Scenario, Setting

IMPORTED = 20
"""Entities of one import."""

_Key = tuple[str, str]


class Saas(Scenario):
    """A multi-tenant application: one partition per tenant.

    ``keys.partitions`` is the number of tenants,
    ``keys.rows_per_partition`` the number of entities of a tenant.
    """

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
        self._width = len(str(setting.partitions - 1))
        self._total = setting.partitions * setting.rows
        self._moving = self.does("create_entity", "delete_entity", "import_entities")
        self._created: Recent[_Key] = Recent()

    def loading(self) -> Iterator[Operation]:
        """Tenant by tenant."""
        return self.batched(
            self._new(self._loaded(tenant, number))
            for tenant in range(self.setting.partitions)
            for number in range(self.setting.rows)
        )

    def read_entity(self, rng: random.Random) -> Operation:
        """One entity of a tenant."""
        return self.get(*self._any(rng), name="read_entity")

    def edit_entity(self, rng: random.Random) -> Steps:
        """Read an entity, then change it, unless somebody else did meanwhile."""
        change = {"Title": f"Edited {self.new_number()}"}
        return self.edit(*self._any(rng), change, name="edit_entity")

    def create_entity(self, rng: random.Random) -> Steps:
        """One more entity of a tenant."""
        key = self._tenant(self.pick(rng)), self.new_id(after=self._total)
        result = yield self._new(key, "create_entity")
        if result.outcome.succeeded:
            self._created.add(key)

    def delete_entity(self, rng: random.Random) -> Task:
        """Delete the oldest entity that the worker created; without one, create one."""
        key = self._created.take()
        return self.create_entity(rng) if key is None else self.delete(*key, name="delete_entity")

    def import_entities(self, rng: random.Random) -> Operation:
        """Many entities of one tenant by one transaction."""
        tenant = self._tenant(self.pick(rng))
        parts = [self._new((tenant, self.new_id(after=self._total))) for _ in range(IMPORTED)]
        return self.transaction(parts, name="import_entities")

    def list_tenant(self, rng: random.Random) -> Operation:
        """All entities of a tenant, their titles only."""
        return self.query(
            self._tenant(self.pick(rng)),
            name="list_tenant",
            select=("Title",),
            key_range=KeyRange(entities=self.setting.rows, exact=not self._moving),
        )

    def _tenant(self, number: int) -> str:
        return f"tenant-{number:0{self._width}d}"

    def _any(self, rng: random.Random) -> _Key:
        """Key of an entity that is there."""
        new = self._created.sometimes(rng)
        return new or self._loaded(self.pick(rng), rng.randrange(self.setting.rows))

    def _loaded(self, tenant: int, number: int) -> _Key:
        return self._tenant(tenant), f"{tenant * self.setting.rows + number:08d}"

    def _new(self, key: _Key, name: str = "") -> Operation:
        return self.insert(*key, {"Title": f"Entity {key[1]}"}, name=name)
