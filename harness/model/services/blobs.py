"""Append blobs, whose lines are what entities are elsewhere. The documents name no target."""

from __future__ import annotations

from harness.model.services.service import CountedUnit, Service

AZURITE_BLOBS = Service(
    name="azurite-blobs",
    described="Azurite's blobs (emulator: its figures are emulator capacity, not Azure's)",
    unit=CountedUnit("line", "lines"),
    store="container",
    targets=None,
    emulated=True,
    origin="Emulator.",
)
