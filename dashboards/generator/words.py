"""Units, and what an empty panel says, of several panels."""

from __future__ import annotations

ENTITIES_PER_S = "suffix: entities/s"
ATTEMPTS_PER_S = "suffix: attempts/s"
OPERATIONS_PER_S = "suffix: operations/s"
SECONDS = "s"
COUNT = "short"
SHARE = "percentunit"

NO_DATA = "No data for this run and these partitions in this time range"
NO_TARGET = "No target in entities/s holds for this endpoint"
CLOSED = "Nothing: the load is closed, or the run has not begun"
