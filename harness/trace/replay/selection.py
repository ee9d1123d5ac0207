"""Which operations of a trace are sent, and under which keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.entity import key_problem
from harness.model.operation import WHOLE_TABLE
from harness.trace.members import TraceHead
from harness.trace.operations import TracedOperation, TracedParts
from harness.trace.replay.operations import why_left_out
from harness.trace.replay.rekeyed import RekeyedOperations
from harness.trace.whatif.scheme import Scheme


class Selection:
    """Decides about each operation of a trace.

    Args:
        head: That of the trace.
        scheme: Makes other keys; None for the recorded ones.
    """

    def __init__(self, head: TraceHead, scheme: Scheme | None = None) -> None:
        self._head = head
        self.rekeyed = None if scheme is None else RekeyedOperations(scheme)

    def why_left_out(self, row: TracedOperation) -> str:
        """Why an operation is not sent; empty if it is."""
        if reason := why_left_out(row, self._head):
            return reason
        if self.rekeyed is not None:
            for new in self.rekeyed.of(row):
                for key in _keys(new):
                    if problem := key_problem(key):
                        return f"a new key {problem}"
        return ""

    def sent(self, row: TracedOperation) -> Sequence[TracedOperation]:
        """The operations that are sent for one that is not left out; one with recorded keys."""
        return (row,) if self.rekeyed is None else tuple(self.rekeyed.of(row))


def _keys(row: TracedOperation) -> Iterator[str]:
    if row.partition_key != WHOLE_TABLE:
        yield row.partition_key or ""
    yield row.row_key or ""
    if isinstance(row.detail, TracedParts):
        yield from (key or "" for key in row.detail.row_keys)
