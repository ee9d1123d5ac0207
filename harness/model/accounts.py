"""The spread of partitions over several storage accounts.

A partition belongs to one account, which a hash of its PartitionKey chooses: the same account in
every process, in every run, and for every table.
"""

from __future__ import annotations

import hashlib

from harness.model.operation import Operation, over_partitions

_DIGEST_BYTES = 8


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
    if not over_partitions(operation.partition):
        return None
    return (
        f"the operation {operation.label!r} queries several partitions, which several accounts "
        "hold: an application would query each account and merge the answers. Use one account, or "
        "only operations on one partition"
    )
