"""Recorded keys that another service refuses: Azure Storage takes longer ones than Cosmos DB."""

from __future__ import annotations

from harness.model.errors import echoed
from harness.model.operation import Kind
from harness.trace.operations import Batch, TracedParts
from harness.trace.whatif.units import ENTITIES, LoadUnit

_QUERY, _TRANSACTION = Kind.QUERY, Kind.TRANSACTION


def refused_as_recorded(batch: Batch, unit: LoadUnit) -> list[str]:
    """Why the service refuses operations as they were recorded, for each that it refuses."""
    if unit is ENTITIES:
        # Recorded keys are those that Azure Storage takes.
        return []
    keys = batch.partition_keys, batch.row_keys
    longest = max(max(map(len, filter(None, one)), default=0) for one in keys)
    together = any(shape.kind is _TRANSACTION for shape in set(batch.shapes))
    if longest <= unit.sure_length and not together:
        return []
    found = []
    for shape, partition_key, row_key, detail in zip(
        batch.shapes, *keys, batch.details, strict=True
    ):
        if shape.kind is _QUERY:
            continue
        row_keys = detail.row_keys if isinstance(detail, TracedParts) else (row_key,)
        problems = [_problem(key, unit, row=True) for key in row_keys]
        problems.append(_problem(partition_key, unit, row=False))
        if any(problems):
            found.append(max(problems, key=bool))
    return found


def _problem(key: str | None, unit: LoadUnit, *, row: bool) -> str:
    if key is None or len(key) <= unit.sure_length:
        return ""
    problem = unit.key_problem(key, row=row)
    return f"{'RowKey' if row else 'PartitionKey'} {echoed(key)} {problem}" if problem else ""
