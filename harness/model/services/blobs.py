"""Append blobs, whose lines are what entities are elsewhere. The documents name no target."""

from __future__ import annotations

from harness.model.services.service import CountedUnit, LimitUnit, Service

READ_BYTES = 4 * 1024 * 1024
"""The most bytes of a blob that one request of ours reads: as many as an append of the oldest
versions of the service may write."""
AZURITE_BLOBS = Service(
    name="azurite-blobs",
    described="Azurite's blobs (emulator: its figures are emulator capacity, not Azure's)",
    unit=CountedUnit("line", "lines"),
    store="container",
    partitions="blobs",
    layout="each is a line of an append blob, and each partition is a blob",
    same_as="A line of a blob counts as an entity of a table.",
    page_bytes=READ_BYTES,
    targets=None,
    limits=LimitUnit.UNDOCUMENTED,
    throttles=False,
    emulated=True,
    server="blob",
    origin="Emulator.",
    selectable=False,
    session="blob",
)
