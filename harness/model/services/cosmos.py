"""Azure Cosmos DB for Table, which counts request units, and its stand-in."""

from __future__ import annotations

import dataclasses

from harness.model.entity import SURE_KEY_CHARACTERS
from harness.model.physical_partitions import MAX_LOGICAL_PARTITION_BYTES
from harness.model.services.service import LimitUnit, Service

_TABLES, _DOCUMENTS = (
    tuple(f".{part}.azure.{cloud}" for part in parts for cloud in ("com", "us", "cn"))
    for parts in (("table.cosmos", "table.cosmosdb"), ("documents",))
)

COSMOS = Service(
    name="cosmos",
    described="Azure Cosmos DB for Table",
    targets=None,
    partition_bytes=MAX_LOGICAL_PARTITION_BYTES,
    limits=LimitUnit.REQUEST_UNITS,
    hosts=_TABLES,
    other_hosts=_DOCUMENTS,
    merges_by_post=True,
    audience="cosmos",
    role="Cosmos DB Built-in Data Contributor on the account",
)
COSMOS_EMULATOR = dataclasses.replace(
    COSMOS,
    name="cosmos-emulator",
    described="Cosmos DB stand-in (emulator: Azurite behind a model)",
    emulated=True,
    key_characters=SURE_KEY_CHARACTERS,
    hosts=(),
    other_hosts=(),
    origin="Stand-in for Cosmos DB.",
    # azure-data-tables takes any other name, and port 10002, for Table storage.
    sdk_host="localhost",
)
COSMOS_ALONE = dataclasses.replace(
    COSMOS_EMULATOR,
    name="cosmos-alone",
    described="Stand-in for Cosmos DB, with nothing behind it",
    keeps_writes=False,
    origin="Stand-in for Cosmos DB, with nothing behind it.",
    selectable=False,
)
