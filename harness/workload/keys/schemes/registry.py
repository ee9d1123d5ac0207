"""Every documented key scheme, by the name that the documents give it.

A scheme is a class; its docstring says what it is, and which document advises it or warns of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness.workload.keys.scheme import KeyScheme
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
