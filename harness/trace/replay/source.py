"""The operations of a trace, one after the other: a source for workers, dry runs and loading."""

from __future__ import annotations

import contextlib
import itertools
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.measure.record.origin import ReplayPart
from harness.model.operation import Kind, Operation
from harness.trace.operations import TracedOperation, TracedParts
from harness.trace.reader import Trace
from harness.trace.replay.operations import MadeData, OperationMaker, units_of
from harness.trace.replay.preparation import Preparation, in_order_of_effect
from harness.trace.replay.selection import Selection
from harness.trace.sources import opened
from harness.trace.whatif.scheme import Scheme
from harness.workload.lanes import Claim

_QUERY, _POINT_QUERY = Kind.QUERY, Kind.POINT_QUERY
BY_CLIENT = "client"
_MOST_KEPT = 10_000


class DueOperation(NamedTuple):
    """A recorded operation and its place in the schedule.

    Attributes:
        place: What is due before it, in the unit of the schedule: milliseconds of the trace, or in
            the recorded order at a rate entities or operations.
        owner: A number; worker ``rank`` of ``count`` sends it if ``owner % count`` is its rank.
    """

    place: int
    owner: int
    row: TracedOperation


class ReplaySource:
    """The operations of one trace, for one process.

    Args:
        by_operation: Whether a rate counts operations instead of entities.
        preparation: The rows to load; needed by the process that loads them.

    Raises:
        SetupError: the trace cannot be read.
    """

    adds_rows = True

    def __init__(
        self,
        path: Path,
        part: ReplayPart,
        run_id: str,
        *,
        scheme: Scheme | None = None,
        by_operation: bool = False,
        preparation: Preparation | None = None,
    ) -> None:
        self.part = part
        self._preparation = preparation
        self._by_operation = by_operation
        # A log becomes a temporary trace, which lasts as long as this object.
        self._files = contextlib.ExitStack()
        self._trace: Trace = self._files.enter_context(
            opened(path, rows=scheme is not None and bool(scheme.properties))
        )
        self._make = OperationMaker(self._trace.head, part.tables, part.compared, MadeData(run_id))
        self._selection = Selection(self._trace.head, scheme)
        rows = self._kept()
        # A check looks at more operations than a short trace has.
        self._rows = itertools.cycle(rows) if part.operations <= _MOST_KEPT else rows

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.part.tables.values()))

    @property
    def loaded_entities(self) -> int:
        return self.part.loaded_entities

    @property
    def loading_requests(self) -> int:
        return self.part.loading_requests

    @property
    def units(self) -> int:
        """All units of the schedule: places are below."""
        part = self.part
        if part.speed is not None:
            return part.last_ms - part.first_ms + 1
        return part.operations if self._by_operation else part.units

    def loading(self) -> Iterator[Operation]:
        assert self._preparation is not None
        return self._preparation.loading(self._make)

    def partitions(self) -> Iterator[str]:
        """Names of the partitions of the trace, loaded or not."""
        assert self._preparation is not None
        return self._preparation.partitions()

    def next_task(self, rng: random.Random) -> Operation:
        """The next operation; after the last one the first."""
        row = next(self._rows, None)
        if row is None:
            self._rows = self._kept()
            row = next(self._rows)
        return self._make.of(row)

    def due(self) -> Iterator[DueOperation]:
        """All operations in their order, with their places in the schedule."""
        timed, by_client = self.part.speed is not None, self.part.share == BY_CLIENT
        first_ms, units = self.part.first_ms, 0
        for row in self._kept():
            shape = row.shape
            name = shape.client if by_client else f"{shape.table.lower()}/{row.partition_key}"
            owner = zlib.crc32(name.encode("utf-8", "surrogatepass"))
            yield DueOperation(row.at_ms - first_ms if timed else units, owner, row)
            units += 1 if self._by_operation else units_of(row)

    def operation(self, row: TracedOperation) -> Operation:
        return self._make.of(row)

    def claim(self, row: TracedOperation) -> Claim:
        """What the operation accesses, for its order among others."""
        kind, detail = row.shape.kind, row.detail
        lane = row.shape.table.lower(), row.partition_key or ""
        if kind is _QUERY:
            return Claim(lane, scans=True)
        if kind is _POINT_QUERY:
            return Claim(lane, reads=(row.row_key or "",))
        if isinstance(detail, TracedParts):
            changes = not all(kind.updates for kind in detail.kinds)
            return Claim(lane, writes=tuple(key or "" for key in detail.row_keys), changes=changes)
        return Claim(lane, writes=(row.row_key or "",), changes=not kind.updates)

    def close(self) -> None:
        """Let go of the files, and of the operations that are read already."""
        self._rows = iter(())
        self._files.close()

    def _kept(self) -> Iterator[TracedOperation]:
        selection = self._selection
        for row in in_order_of_effect(self._trace.rows()):
            if not selection.why_left_out(row):
                yield from selection.sent(row)
