"""Azure Cosmos DB for Table, which counts request units, and its stand-in."""

from __future__ import annotations

import dataclasses

from harness.model.services.service import Service

COSMOS = Service(name="cosmos", described="Azure Cosmos DB for Table", targets=None, charges=True)
COSMOS_EMULATOR = dataclasses.replace(
    COSMOS,
    name="cosmos-emulator",
    described="Cosmos DB stand-in (emulator: Azurite behind a model)",
    emulated=True,
    origin="Stand-in for Cosmos DB.",
)
