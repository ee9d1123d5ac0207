"""How large the entities in a trace were, as far as its bytes tell.

Some traces count whole requests and answers, others their bodies: see `TraceHead.counts_whole`.
"""

from __future__ import annotations

from harness.trace.members import RUN, TraceHead
from harness.trace.operations import TracedOperation

ASSUMED_PROPERTIES = 5
"""Properties of a written entity besides the keys. Assumed: a trace does not say it."""

# About what a run sends and receives beside an entity:
_HEAD_BYTES = 460
_ANSWER_HEAD_BYTES = 400
_TRANSACTION_BYTES = 260
_PART_BYTES = 465


def by_page(head: TraceHead) -> bool:
    """Whether each page of a query is an operation of its own: in all traces but those of runs."""
    return head.source != RUN


def written_bytes(row: TracedOperation, head: TraceHead) -> int:
    """About the bytes of the entity that a single write sent."""
    return sent_bytes(row.bytes_sent, len(row.shape.attempts), head)


def sent_bytes(sent: int, attempts: int, head: TraceHead) -> int:
    """About the bytes of the body of each of these attempts, which sent so many bytes together."""
    whole = sent // attempts
    return max(0, whole - _HEAD_BYTES) if head.counts_whole else whole


def read_bytes(received: int, attempts: int, head: TraceHead) -> int:
    """About the bytes of the bodies of the answers to these attempts."""
    return max(0, received - attempts * _ANSWER_HEAD_BYTES) if head.counts_whole else received


def part_bytes(whole: int, parts: int, attempts: int, head: TraceHead) -> int:
    """About the bytes of the entity that a part of a transaction sent.

    Args:
        whole: The recorded size of the part.
        parts: Parts of the transaction.
        attempts: Its attempts.
        head: That of the trace.
    """
    if by_page(head):
        return whole
    # A part has an equal share of all attempts.
    once = _TRANSACTION_BYTES + (_HEAD_BYTES if head.counts_whole else 0)
    around = _PART_BYTES + once // parts
    return max(0, whole // attempts - around)
