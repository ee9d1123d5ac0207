"""The operations of a trace, and how large their entities were as far as its bytes tell.

A reader delivers them in batches of columns, because an object for each of millions of operations
takes most of the time of a calculation. What many operations have in common is one `TracedShape`.
None always means that a source did not say it: logs know fewer keys than a recording.

Some traces count whole requests and answers, others their bodies: see `TraceHead.counts_whole`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.model.operation import Kind
from harness.model.outcome import Outcome
from harness.trace.head import RUN, TraceHead

UNKNOWN = "(unknown)"
"""In place of a PartitionKey that the source of the trace did not say."""
ASSUMED_PROPERTIES = 5
"""Properties of a written entity besides the keys. Assumed: a trace does not say it."""

# About what a run sends and receives beside an entity:
_HEAD_BYTES = 460
_ANSWER_HEAD_BYTES = 400
_TRANSACTION_BYTES = 260
_PART_BYTES = 465


def address_of(client: str) -> str:
    """The address with which the name of a client in a log begins; empty without one."""
    first = client.partition(" ")[0]
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(first.strip("[]"))
        return first
    return ""


class Answer(NamedTuple):
    """The answer to one attempt. ``status`` is 0 where no whole answer came."""

    status: int
    error_code: str = ""
    scope: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TracedShape:
    """What many operations have in common. A reader makes one object of equal shapes.

    Attributes:
        client: Who sent it: a worker, a user agent, an address.
        table: Its table; empty for the only table of a run.
        label: Name in counts, as in `harness.model.operation.Operation.label`.
        attempts: The answers to its attempts, oldest first; at least one.
    """

    client: str
    kind: Kind
    table: str
    label: str
    outcome: Outcome
    estimated: bool
    attempts: tuple[Answer, ...]


RecordedValues = Mapping[str, str] | None
"""Values by names of properties, of those that the trace was to have; None without any."""


class TracedQuery(NamedTuple):
    """What a query asked for. Bounds are those of `harness.model.operation.KeyRange`.

    Attributes:
        compared: Names of the properties that the filter compares without narrowing the range.
        selected: The properties to return; empty is all.
        continued_at: PartitionKey and RowKey at which a further page of a query begins, where each
            page is an operation of its own.
        equal: Names and values of properties that every row has which passes the filter, of those
            whose values the trace has.
    """

    partition_from: str | None = None
    partition_before: str | None = None
    row_from: str | None = None
    row_before: str | None = None
    compared: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()
    top: int | None = None
    continued_at: tuple[str, str] | None = None
    equal: tuple[tuple[str, str], ...] = ()

    @property
    def bounds(self) -> tuple[str | None, ...]:
        return (self.partition_from, self.partition_before, self.row_from, self.row_before)

    def full(self, returned: int) -> bool:
        """Whether it ended because it had returned as many entities as it asked for."""
        return self.top is not None and returned >= self.top


class TracedPart(NamedTuple):
    """One operation of a transaction; ``size`` are its bytes."""

    kind: Kind
    row_key: str | None
    size: int
    properties: RecordedValues = None


class TracedParts(NamedTuple):
    """The operations of a transaction, in columns, of which ``properties`` may be left out."""

    kinds: tuple[Kind, ...]
    row_keys: tuple[str | None, ...]
    sizes: tuple[int, ...]
    properties: tuple[RecordedValues, ...] = ()

    def each(self) -> Iterator[TracedPart]:
        values = self.properties or (None,) * len(self.kinds)
        return map(TracedPart, self.kinds, self.row_keys, self.sizes, values)


Detail = TracedQuery | TracedParts | None


class TracedOperation(NamedTuple):
    """One operation.

    Attributes:
        at_ms: When its first attempt was sent, milliseconds since the start of the trace.
        done_ms: When its last answer was whole.
        partition_key: `harness.model.operation.WHOLE_TABLE` for a query over several partitions;
            None if unknown.
        row_key: Empty for a query and a transaction; None if unknown.
        bytes_sent: Bytes of all attempts, with ``bytes_received``: of whole requests and answers,
            or of their bodies. The head of the trace says which.
        detail: Of a query or a transaction; None if unknown, and for other kinds.
        properties: Of an operation on one row: those that it writes, or that its row is known to
            have (`harness.trace.row_properties`).
    """

    at_ms: int
    done_ms: int
    shape: TracedShape
    partition_key: str | None
    row_key: str | None
    entities: int
    returned: int
    bytes_sent: int
    bytes_received: int
    detail: Detail
    properties: RecordedValues = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Operations in order of ``at_ms``, in columns of equal length.

    The columns are those of `TracedOperation`, in its order.
    """

    at_ms: list[int]
    done_ms: list[int]
    shapes: list[TracedShape]
    partition_keys: list[str | None]
    row_keys: list[str | None]
    entities: list[int]
    returned: list[int]
    bytes_sent: list[int]
    bytes_received: list[int]
    details: list[Detail]
    properties: list[RecordedValues]

    def __len__(self) -> int:
        return len(self.at_ms)

    def part(self, start: int, end: int) -> Batch:
        """The operations from ``start`` to before ``end``."""
        if start == 0 and end == len(self):
            return self
        return Batch(*(column[start:end] for column in self.columns()))

    def rows(self) -> Iterator[TracedOperation]:
        return map(TracedOperation._make, zip(*self.columns(), strict=True))

    def columns(self) -> tuple[list[Any], ...]:
        return tuple(getattr(self, name) for name in self.__slots__)


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
    """
    if by_page(head):
        return whole
    # A part has an equal share of all attempts.
    once = _TRANSACTION_BYTES + (_HEAD_BYTES if head.counts_whole else 0)
    around = _PART_BYTES + once // parts
    return max(0, whole // attempts - around)
