"""The published figures an observed rate is held against, and which endpoint they hold for."""

from __future__ import annotations

import dataclasses
import enum


class EndpointKind(enum.StrEnum):
    """Who answers. The kind decides which targets hold."""

    STORAGE = "storage"
    AZURITE = "azurite"
    GATEWAY = "gateway"
    COSMOS = "cosmos"

    @property
    def described(self) -> str:
        """How outputs name it, so that an emulator is never taken for the service."""
        return _DESCRIBED[self]

    @property
    def emulated(self) -> bool:
        """True where an emulator answers, which shares the machine with its generator."""
        return self in (EndpointKind.AZURITE, EndpointKind.GATEWAY)


_DESCRIBED = {
    EndpointKind.STORAGE: "Azure Table storage",
    EndpointKind.AZURITE: "Azurite (emulator: its figures are emulator capacity, not Azure's)",
    EndpointKind.GATEWAY: "Azurite behind a model of the published limits",
    EndpointKind.COSMOS: "Azure Cosmos DB for Table",
}

TARGET_ENTITY_BYTES = 1024
"""The targets are published for entities of 1 KB."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Entities a second that one partition and one account are published to serve."""

    partition: float
    account: float


PUBLISHED = Targets(partition=2000.0, account=20000.0)
"""Source: performance checklist for Table storage, "Targets for data operations"."""


def targets_for(kind: EndpointKind) -> Targets | None:
    """The targets an endpoint is held against; None for Cosmos DB, which counts request units."""
    return None if kind is EndpointKind.COSMOS else PUBLISHED
