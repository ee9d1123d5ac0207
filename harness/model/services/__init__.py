"""The services that the harness knows. A further one is a file here, and an entry below."""

from __future__ import annotations

from harness.model.services.blobs import AZURITE_BLOBS
from harness.model.services.cosmos import COSMOS, COSMOS_EMULATOR
from harness.model.services.service import Service
from harness.model.services.storage import AZURITE, GATEWAY, STORAGE

SERVICES = (STORAGE, AZURITE, AZURITE_BLOBS, GATEWAY, COSMOS, COSMOS_EMULATOR)


def service_named(name: str) -> Service:
    """The service of a name; for one of a later version of the harness, one without targets."""
    unknown = Service(name=name, described=name, targets=None)
    return next((one for one in SERVICES if one.name == name), unknown)
