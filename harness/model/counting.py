"""The counting rule that the published targets use.

"Each entity that is inserted, updated, deleted, or scanned counts" (performance checklist,
"Entities per second (storage account)"): a transaction of 100 counts 100, a query that scans
1,000 and returns 5 counts 1,000, a point query counts 1 whether or not it found its entity.

The harness counts by it what its operations did, the gateway what requests of any client did.
"""

from __future__ import annotations

from harness.model.operation import Kind, Operation
from harness.model.outcome import SUCCESS, Outcome

_QUERY, _POINT_QUERY = Kind.QUERY, Kind.POINT_QUERY
_NOT_FOUND = Outcome.NOT_FOUND


def entity_count(operation: Operation, outcome: Outcome, scanned: int = 0) -> int:
    """Entities that ``operation`` counts for.

    Args:
        operation: What was asked.
        outcome: How it ended. Writes count when they were answered with success, once.
        scanned: Entities a query walked. Counted even where a later page failed.
    """
    return counted(
        operation.kind,
        operation.entities_asked,
        succeeded=outcome is SUCCESS or outcome.succeeded,
        missing=outcome is _NOT_FOUND,
        scanned=scanned,
    )


def scanned(operation: Operation, returned: int, *, whole: bool) -> tuple[int, bool]:
    """Entities that a query walked, and whether that is an estimate.

    A client sees what is returned. What was walked it knows only of a key range that this run
    filled and nobody is writing; else the least it can be is counted and marked.

    Args:
        operation: The query.
        returned: Entities it brought.
        whole: False where it was given up before its last page.
    """
    present = operation.key_range.entities
    if present is None:
        return returned, True
    sure = operation.key_range.exact and whole and returned <= present
    cut = operation.top is not None and returned >= operation.top
    if not operation.filter:
        # All that was walked was returned; less than there are without a reason is no sure count.
        return returned, not (sure and (cut or returned == present))
    if cut or not whole:
        # Where in the range it stopped cannot be seen.
        return returned, True
    return max(present, returned), not sure


def counted(
    kind: Kind, asked: int, *, succeeded: bool, missing: bool = False, scanned: int = 0
) -> int:
    """Entities that anything of this kind counts for.

    Args:
        kind: What was asked.
        asked: Entities it counts for if it succeeds.
        succeeded: Whether the service did it.
        missing: Whether the service found nothing under the key.
        scanned: Entities a query walked.
    """
    if kind is _QUERY:
        return scanned
    if kind is _POINT_QUERY:
        return 1 if succeeded or missing else 0
    return asked if succeeded else 0
