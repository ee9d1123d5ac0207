"""Azure Table storage, its emulator, and the emulator behind a model of the limits."""

from __future__ import annotations

import dataclasses

from harness.model.entity import SURE_KEY_CHARACTERS
from harness.model.services.service import Service

CLOUDS = (
    "core.windows.net",
    "core.chinacloudapi.cn",
    "core.usgovcloudapi.net",
    "storage.azure.net",
)

STORAGE = Service(
    name="storage",
    described="Azure Table storage",
    hosts=tuple(f".table.{cloud}" for cloud in CLOUDS),
    server_header="windows-azure-table",
)
AZURITE = Service(
    name="azurite",
    described="Azurite (emulator: its figures are emulator capacity, not Azure's)",
    throttles=False,
    emulated=True,
    key_characters=SURE_KEY_CHARACTERS,
    machine="the machine, which also runs the emulator,",
    origin="Emulator.",
    server_header="azurite-table",
)
GATEWAY = Service(
    name="gateway",
    described="Azurite behind a gateway of the harness",
    models_targets=True,
    emulated=True,
    key_characters=SURE_KEY_CHARACTERS,
    origin="Azurite behind a gateway of the harness.",
    selectable=False,
)
GATEWAY_ALONE = dataclasses.replace(
    GATEWAY,
    name="gateway-alone",
    described="Gateway of the harness, with nothing behind it",
    keeps_writes=False,
    origin="Gateway of the harness, with nothing behind it.",
)
