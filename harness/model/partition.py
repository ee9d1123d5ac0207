"""Partitions: how they are named, how many are counted exactly, and the account of each.

With several storage accounts a partition belongs to one, which a hash of its PartitionKey chooses:
the same account in every process, in every run, and for every table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, Self, TypeVar

from harness.model.operation import WHOLE_TABLE, Operation
from harness.model.services import BESIDE, service_beside
from harness.model.services.service import Service, Targets

_T = TypeVar("_T", bound=Targets | None)
EXACT_PARTITIONS = 200
"""So many partitions are counted one by one, by a ledger as by a gateway."""
MADE_UP = "!rows"
"""In keys of rows of which a trace shows how many were there, and not where."""
_DIGEST_BYTES = 8


def is_beside(table: str) -> bool:
    """Whether it is no table, but a service beside tables: see `Service.beside`."""
    return table.startswith("(")


def store_beside(name: str) -> str:
    """The key of the requests about a whole store of blobs; in others the blob follows."""
    return f"{name}/"


def limit_at(table: str, per_s: float, beside: Sequence[Service] = BESIDE) -> float:
    """The limit of a partition of ``table`` where that of a partition of a table is ``per_s``.

    ``table`` may stand for one of the services ``beside`` tables: ``(queues)``, ``(queues)/NAME``.
    """
    name = table.partition("/")[0]
    return next((one.limit(per_s) for one in beside if one.beside == name), per_s)


class Partition(NamedTuple):
    """A partition, or what stands in counts for several of them.

    Attributes:
        table: Ending of the table's name; empty for the first table of a workload.
        key: The PartitionKey; `WHOLE_TABLE` for the queries over several partitions of the table.
            Of a blob it is its container, a slash, and its name, which may have slashes.
    """

    table: str
    key: str

    @classmethod
    def named(cls, name: str) -> Self:
        """The partition that counts know by ``name``, as of `Operation.partition`."""
        if is_beside(name) and "/" in name:
            return cls(*name.split("/", 1))
        table, slash, key = name.partition("/")
        # The name of the first table is empty, and `WHOLE_TABLE` a slash.
        return cls(table, key) if table and slash else cls("", name)

    @property
    def name(self) -> str:
        """The name in counts: the PartitionKey, after the table if there is one."""
        return f"{self.table}/{self.key}" if self.table else self.key

    @property
    def whole_table(self) -> bool:
        """Whether it stands for several partitions of the table."""
        return self.key == WHOLE_TABLE

    @property
    def documented(self) -> bool:
        """Whether documents name a target for what it is a partition of."""
        beside = service_beside(self.table)
        return beside is None or beside.documented

    @property
    def targeted(self) -> bool:
        """Whether a target can be for it, which is so of one partition alone."""
        return self.documented and not self.whole_table

    def held_to(self, targets: _T) -> Targets | _T:
        """The targets of its service beside tables; else ``targets``, those of the endpoint."""
        beside = service_beside(self.table)
        return (beside and beside.targets) or targets

    def target(self, targets: Targets | None) -> float | None:
        """The figure that it is held to, likewise; None where no document names one."""
        held = self.held_to(targets) if self.targeted else None
        return None if held is None else held.partition

    def limit(self, targets: Targets | None, enforced_per_s: float | None) -> float | None:
        """The limit in force: its target, unless limits are enforced.

        ``enforced_per_s`` is what they allow to a partition of the endpoint.
        """
        if enforced_per_s is None or not self.targeted:
            return self.target(targets)
        return limit_at(self.table, enforced_per_s)


def account_of(partition_key: str, accounts: int) -> int:
    """The number of the account that a PartitionKey belongs to, from 0 to below ``accounts``.

    A cryptographic hash spreads keys evenly that differ in one character; a checksum may not.
    """
    if accounts == 1:
        return 0
    key = partition_key.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()
    return int.from_bytes(digest) % accounts


def spread_problem(operation: Operation) -> str | None:
    """Why ``operation`` cannot be sent to one of several accounts; None where it can."""
    if operation.partition_key != WHOLE_TABLE:
        return None
    return (
        f"the operation {operation.label!r} queries several partitions, which several accounts "
        "hold: an application would query each account and merge the answers. Use one account, or "
        "only operations on one partition"
    )
