"""Append blobs, whose lines are what entities are elsewhere. The documents name no target."""

from __future__ import annotations

import dataclasses

from harness.model.services.service import CountedUnit, LimitUnit, Service
from harness.model.services.storage import CLOUDS

READ_BYTES = 4 * 1024 * 1024
"""The most bytes of a blob that one request of ours reads: as many as an append of the oldest
versions of the service may write."""
AZURE_BLOBS = Service(
    name="azure-blobs",
    described="Azure Blob Storage",
    unit=CountedUnit("line", "lines"),
    store="container",
    partitions="blobs",
    uncompressed="entity.compress makes lines of different lengths, and a range of lines is read "
    "as a range of bytes",
    layout="each is a line of an append blob, and each partition is a blob",
    same_as="A line of a blob counts as an entity of a table.",
    page_bytes=READ_BYTES,
    # The first append to a blob creates it, and the first read learns the length of a line.
    requests_each=2,
    targets=None,
    limits=LimitUnit.UNDOCUMENTED,
    server="blob",
    port=10000,
    beside="(blobs)",
    beside_as="(blobs)/CONTAINER/NAME is a blob: a request about it counts as one, and in no sum "
    "of entities",
    beside_unit=CountedUnit("request", "requests"),
    selectable=False,
    session="blob",
    hosts=tuple(f".blob.{cloud}" for cloud in CLOUDS),
    server_header="windows-azure-blob",
    role=(
        "Storage Blob Data Contributor on the account. Owner, Contributor and Reader give no "
        "access to data, and Storage Blob Data Reader does not write"
    ),
    sas_rights="rwdlac",
)
AZURITE_BLOBS = dataclasses.replace(
    AZURE_BLOBS,
    name="azurite-blobs",
    described="Azurite's blobs (emulator: its figures are emulator capacity, not Azure's)",
    throttles=False,
    emulated=True,
    origin="Emulator.",
    hosts=(),
    server_header="azurite-blob",
)
