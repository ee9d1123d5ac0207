"""Every documented key scheme, by the name that the documents give it.

A scheme is a class; its docstring says what it is, and which document advises it or warns of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness.workload.keys.row_keys import RowKeys
from harness.workload.keys.scheme import KeyScheme, RowCounts
from harness.workload.keys.schemes.dates import (
    CustomerMonth,
    CustomerYear,
    Date,
    DeviceDate,
    PublishMonth,
)
from harness.workload.keys.schemes.indexed import IndexTable
from harness.workload.keys.schemes.numbered import (
    Category,
    Composite,
    Customer,
    Device,
    RegionCategory,
    Single,
    Spread,
    Tenant,
)
from harness.workload.keys.schemes.scattered import NaturalKey, Unique
from harness.workload.keys.schemes.sequences import (
    AppendOnly,
    AppendOnlyUnpadded,
    HashPrefix,
    PrependOnly,
)

_ALL: tuple[type[KeyScheme], ...] = (
    Single,
    Spread,
    Unique,
    AppendOnly,
    PrependOnly,
    AppendOnlyUnpadded,
    HashPrefix,
    Composite,
    NaturalKey,
    Date,
    DeviceDate,
    CustomerMonth,
    CustomerYear,
    RegionCategory,
    PublishMonth,
    Tenant,
    Device,
    Customer,
    Category,
    IndexTable,
)

SCHEMES: Mapping[str, type[KeyScheme]] = MappingProxyType({one.name: one for one in _ALL})
"""All schemes by name."""


def scheme_of(
    name: str, rows: RowCounts, *, prefix: str, periods: int, row_keys: RowKeys | None
) -> KeyScheme:
    """The scheme that is called ``name``.

    Args:
        name: One of `SCHEMES`.
        rows: How many partitions are loaded, and with how many rows each.
        prefix: What every PartitionKey starts with, where the scheme has no names of its own.
        periods: How many days, months or years each thing has, where keys are made of both.
        row_keys: How rows are named; None is what the scheme is documented with.

    Raises:
        ValueError: there is no such scheme with these arguments; the sentence names the setting.
    """
    return SCHEMES[name](rows, prefix=prefix, periods=periods, row_keys=row_keys)
