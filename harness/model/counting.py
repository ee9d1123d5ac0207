"""The counting rule that the published targets use.

"Each entity that is inserted, updated, deleted, or scanned counts" (performance checklist,
"Entities per second (storage account)"): a transaction of 100 counts 100, a query that scans
1,000 and returns 5 counts 1,000, a point query counts 1 whether or not it found its entity.
"""

from __future__ import annotations

from harness.model.operation import Kind, Operation
from harness.model.outcome import Outcome


def entity_count(operation: Operation, outcome: Outcome, scanned: int = 0) -> int:
    """Entities that ``operation`` counts for.

    Args:
        operation: What was asked.
        outcome: How it ended. Writes count when they were answered with success, once.
        scanned: Entities a query walked. Counted even where a later page failed.
    """
    if operation.kind is Kind.QUERY:
        return scanned
    if operation.kind is Kind.POINT_QUERY:
        return 1 if outcome in (Outcome.SUCCESS, Outcome.NOT_FOUND) else 0
    return operation.entities_asked if outcome.succeeded else 0
