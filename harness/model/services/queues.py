"""Queue Storage, whose messages are what entities are elsewhere, and Azurite's queues.

A queue is one partition, which one server holds ("Data partitioning strategies", "Partitioning
Azure storage queues"). So a queue has a target, and a larger rate needs more queues.
"""

from __future__ import annotations

import dataclasses
import re

from harness.model.services.service import CountedUnit, LimitUnit, Service, Targets
from harness.model.services.storage import CLOUDS, GATEWAY_ALONE

MAX_MESSAGE_BYTES = 64 * 1024
"""The most bytes of a message's text as the service stores it, so after Base64. Source: as above,
"The maximum size of an individual message is 64 KB"."""
MAX_MESSAGES = 32
"""The most messages that one get or peek returns ("Get Messages" of the Queue service)."""
MAX_NAME_LENGTH = 63
_NAME = re.compile(r"[a-z0-9](?:-?[a-z0-9])*")


def queue_name_problem(name: str) -> str | None:
    """Why the Queue service would refuse the name of a queue; None where it would not."""
    if not 3 <= len(name) <= MAX_NAME_LENGTH:
        return f"{len(name)} characters, and the name of a queue has 3 to {MAX_NAME_LENGTH}"
    if _NAME.fullmatch(name) is None:
        return "the name of a queue has only lower-case letters, digits and single hyphens"
    return None


QUEUES = Service(
    name="queues",
    described="Azure Queue Storage",
    unit=CountedUnit("message", "messages"),
    store="queue",
    partitions="queues",
    store_each=True,
    name_problem=queue_name_problem,
    uncompressed="entity.compress makes bytes, and a message has a text",
    layout="each is a message, and each partition is a queue",
    same_as="A message of a queue counts as an entity of a table.",
    # No document names a target of the account in messages/s.
    targets=Targets(partition=2000.0),
    limits=LimitUnit.MESSAGES,
    server="queue",
    port=10001,
    beside="(queues)",
    beside_as="(queues)/NAME is a queue, and its messages count as entities",
    session="queue",
    hosts=tuple(f".queue.{cloud}" for cloud in CLOUDS),
    server_header="windows-azure-queue",
    role="Storage Queue Data Contributor on the account. Owner, Contributor and Reader give no "
    "access to data, and Storage Queue Data Reader, Message Sender and Message Processor each "
    "allow only a part of what a run does",
    sas_rights="rwdlacup",
)
AZURITE_QUEUES = dataclasses.replace(
    QUEUES,
    name="azurite-queues",
    described="Azurite's queues (emulator: its figures are emulator capacity, not Azure's)",
    throttles=False,
    emulated=True,
    machine="the machine, which also runs the emulator,",
    origin="Emulator.",
    hosts=(),
    server_header="azurite-queue",
)
QUEUE_GATEWAY = dataclasses.replace(
    AZURITE_QUEUES,
    name="queue-gateway",
    described="Azurite's queues behind a gateway of the harness",
    throttles=True,
    models_targets=True,
    origin="Azurite's queues behind a gateway of the harness.",
    selectable=False,
    server_header="",
)
QUEUE_GATEWAY_ALONE = dataclasses.replace(
    QUEUE_GATEWAY,
    name="queue-gateway-alone",
    described=GATEWAY_ALONE.described,
    keeps_writes=False,
    origin=GATEWAY_ALONE.origin,
)
