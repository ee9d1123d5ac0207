"""The published targets, the endpoints they hold for, and the rule by which they count entities.

"Each entity that is inserted, updated, deleted, or scanned counts" (performance checklist,
"Entities per second (storage account)"): a transaction of 100 counts 100, a query that scans
1,000 and returns 5 counts 1,000, a point query counts 1 whether or not it found its entity.
"""

from __future__ import annotations

import dataclasses
import enum

from harness.model.operation import Kind, Operation
from harness.model.outcome import SUCCESS, Outcome


class EndpointKind(enum.StrEnum):
    """The kind of service at an endpoint, which decides the targets."""

    STORAGE = "storage"
    AZURITE = "azurite"
    GATEWAY = "gateway"
    COSMOS = "cosmos"

    @property
    def described(self) -> str:
        """The name in outputs, which marks emulators."""
        return _DESCRIBED[self]

    @property
    def emulated(self) -> bool:
        """True for an emulator, which shares the machine with the load generator."""
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


UNLIMITED_PER_S = 1e9
"""Entities a second that no endpoint serves: a limit of a gateway that limits nothing."""


def targets_for(kind: EndpointKind) -> Targets | None:
    """The targets an endpoint is held against; None for Cosmos DB, which counts request units."""
    return None if kind is EndpointKind.COSMOS else PUBLISHED


_QUERY, _POINT_QUERY = Kind.QUERY, Kind.POINT_QUERY
_NOT_FOUND = Outcome.NOT_FOUND


def entity_count(operation: Operation, outcome: Outcome, scanned: int = 0) -> int:
    """The entity count of an operation; ``scanned`` counts even where a later page failed."""
    return counted(
        operation.kind,
        operation.entities_asked,
        succeeded=outcome is SUCCESS or outcome.succeeded,
        missing=outcome is _NOT_FOUND,
        scanned=scanned,
    )


def counted(
    kind: Kind, asked: int, *, succeeded: bool, missing: bool = False, scanned: int = 0
) -> int:
    """The entity count of an operation, or of a request of any client.

    ``asked`` is its entity count if it succeeds; ``missing``, that no entity has the key.
    """
    if kind is _QUERY:
        return scanned
    if kind is _POINT_QUERY:
        return 1 if succeeded or missing else 0
    return asked if succeeded else 0


def scanned(operation: Operation, returned: int, *, whole: bool) -> tuple[int, bool]:
    """Entities that a query scanned, and whether the number is an estimate.

    A client sees only what is returned. The number is exact for a key range that this run loaded
    and nobody writes to, if the query was read to its end (``whole``); else it is a lower bound.
    """
    present = operation.key_range.entities
    if present is None:
        return returned, True
    exact = operation.key_range.exact and whole and returned <= present
    cut = operation.top is not None and returned >= operation.top
    if not operation.filter:
        # All that was scanned was returned. Fewer than present need a reason.
        return returned, not (exact and (cut or returned == present))
    if cut or not whole:
        # Where in the range the query stopped is not visible.
        return returned, True
    return max(present, returned), not exact
