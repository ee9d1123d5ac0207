"""The services that the harness knows. A further one is a file here, and an entry below.

Code outside of this package that needs one of them takes it by its part in the harness.
"""

from __future__ import annotations

import functools

from harness.model.services.blobs import AZURE_BLOBS, AZURITE_BLOBS
from harness.model.services.cosmos import COSMOS, COSMOS_ALONE, COSMOS_EMULATOR
from harness.model.services.queues import (
    AZURITE_QUEUES,
    QUEUE_GATEWAY,
    QUEUE_GATEWAY_ALONE,
    QUEUES,
)
from harness.model.services.service import Server, Service
from harness.model.services.storage import AZURITE, GATEWAY, GATEWAY_ALONE, STORAGE

SERVICES = (
    *(STORAGE, AZURITE, GATEWAY, GATEWAY_ALONE),
    *(AZURE_BLOBS, AZURITE_BLOBS),
    *(QUEUES, AZURITE_QUEUES, QUEUE_GATEWAY, QUEUE_GATEWAY_ALONE),
    *(COSMOS, COSMOS_EMULATOR, COSMOS_ALONE),
)
USUAL = STORAGE
"""The service of a profile, a log or a host that tells nothing else."""
EMBEDDED = AZURITE
"""What the harness starts where no endpoint is given, and what answers on this machine."""

BESIDE = tuple(one for one in SERVICES if one.beside and not one.emulated)
"""What an account may have beside its tables, and so an application that is watched."""


def service_beside(table: str) -> Service | None:
    """What of `BESIDE` has this in place of a table; None for a table."""
    return next((one for one in BESIDE if one.beside == table), None)


@functools.lru_cache(maxsize=256)
def beside_at(host: str) -> Service | None:
    """What of `BESIDE` has an endpoint with this value of Host: in Azure, or of an emulator."""
    host = host.lower()
    name = host.partition(":")[0]
    for one in BESIDE:
        part = f".{one.server}."
        if part in host and name.endswith((f"{part}localhost", *one.hosts)):
            return one
    return None


def server_answering(header: str) -> Server | None:
    """The server that gives its answers a header ``Server``; None for one that is unknown."""
    header = header.lower()
    known = (one for one in SERVICES if one.server_header)
    return next((one.server for one in known if header.startswith(one.server_header)), None)


def service_named(name: str) -> Service:
    """The service of a name; for one of a later version of the harness, one without targets."""
    unknown = Service(name=name, described=name, targets=None)
    return next((one for one in SERVICES if one.name == name), unknown)


def service_described(text: str) -> Service:
    """The service with that name in outputs; the usual one where none has it."""
    return next((one for one in SERVICES if one.described == text), USUAL)


def service_of_session(kind: str, *, emulated: bool = True) -> Service | None:
    """The only service that a kind of session sends to; None for those that send to tables.

    It is the one that the embedded Azurite stands in with, if ``emulated``; else the one in Azure.
    """
    of_kind = (one for one in SERVICES if one.session and one.session == kind)
    return next((one for one in of_kind if one.emulated == emulated), None)


def server_of_session(kind: str) -> Server:
    """The server that a kind of session sends to."""
    only = service_of_session(kind)
    return USUAL.server if only is None else only.server


def service_of(server: Server, *, emulated: bool) -> Service:
    """The usual service of a server, or its emulator."""
    return next(one for one in SERVICES if (one.server, one.emulated) == (server, emulated))


def service_provisioned(*, in_units: bool) -> Service:
    """The service of a profile without hosts, by whether request units are provisioned for it."""
    return COSMOS if in_units else USUAL


def service_throttling(
    server: Server, *, in_units: bool, keeps_writes: bool = True
) -> Service | None:
    """What a server of Azurite is behind the gateway; None where the gateway has no such limits.

    ``in_units`` tells that its limits are in request units; ``keeps_writes``, that Azurite is
    there.
    """
    models = (one for one in SERVICES if one.models_targets)
    behind = (COSMOS_EMULATOR, COSMOS_ALONE) if in_units else models
    found = (one for one in behind if one.server == server and one.keeps_writes is keeps_writes)
    return next(found, None)
