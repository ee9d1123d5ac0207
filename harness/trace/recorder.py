"""Recording: results become blocks in the process that counts them, and blocks a trace file.

An operation is recorded when it ends, and a trace is in the order in which operations begin. So
the operations of a block are sorted, and those that took much longer than others have blocks of
their own: otherwise a reader would have to keep many blocks to bring a trace into order.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.gateway.filters import compared_properties
from harness.model.errors import SetupError, cut
from harness.model.figures import counted
from harness.model.operation import Kind, Operation
from harness.model.outcome import Attempt, Result, Scope
from harness.trace.blocks import MOST_OPERATIONS, BlockColumns, parts_detail, query_detail, renamed
from harness.trace.members import BLOCK, END, Prefix, TraceHead, pack, unpack
from harness.trace.operations import UNKNOWN, TracedQuery

LATE_MS = 2000
"""An operation that began this much before the latest one goes to the late blocks."""
KEPT_S = 4.0
"""An operation is in a block after this time, and in the file with the next report."""
# Looked up once: access to a member of an enumeration takes several times as long as a plain name.
_QUERY, _NO_SCOPE = Kind.QUERY, Scope.NONE


class Recorder:
    """Records results; `drain` returns the blocks that are to be appended to the file."""

    def __init__(self) -> None:
        self._recent = BlockColumns()
        self._late = BlockColumns()
        self._since_s = 0.0
        self._newest_ms = 0
        self._blocks: list[bytes] = []

    def add(self, result: Result, client: str, detail: list[Any] | None = None) -> None:
        """Record one result.

        Args:
            result: The result. A key that is `UNKNOWN` itself is recorded as unknown.
            detail: What `detail_of` makes of a query or a transaction; None makes it of the
                operation.
        """
        operation = result.operation
        at_ms = int(result.sent_s * 1000)
        columns = self._recent
        if at_ms > self._newest_ms:
            self._newest_ms = at_ms
        elif at_ms < self._newest_ms - LATE_MS:
            columns = self._late
        if detail is None and (operation.kind is _QUERY or operation.parts):
            detail = detail_of(operation, result.bytes_sent)
        if detail is not None:
            columns.details[len(columns.at)] = detail
        done_ms = int(result.done_s * 1000)
        partition_key, row_key = operation.partition_key, operation.row_key
        columns.at.append(at_ms)
        columns.done.append(done_ms if done_ms > at_ms else at_ms)
        columns.numbers.append(_shape_number(columns, result, client))
        columns.keys.append(None if partition_key is UNKNOWN else partition_key)
        columns.rows.append(None if row_key is UNKNOWN else row_key)
        columns.entities.append(result.entities)
        columns.returned.append(result.entities_returned)
        columns.sent.append(result.bytes_sent)
        columns.received.append(result.bytes_received)
        if len(columns.at) >= MOST_OPERATIONS:
            self._pack()

    def drain(self, now_s: float, *, final: bool = False) -> list[bytes]:
        """The blocks that are complete, or have been kept for `KEPT_S`; all if it is ``final``."""
        if final or now_s >= self._since_s + KEPT_S:
            self._since_s = now_s
            self._pack(whole=False)
        blocks, self._blocks = self._blocks, []
        return blocks

    def _pack(self, *, whole: bool = True) -> None:
        """Make blocks of the operations; of a full block's worth only if ``whole``."""
        least = MOST_OPERATIONS if whole else 1
        if len(self._recent.at) >= least:
            self._blocks.append(self._recent.encode())
            self._recent = BlockColumns()
        if len(self._late.at) >= least:
            self._blocks.append(self._late.encode())
            self._late = BlockColumns()


def _shape_number(columns: BlockColumns, result: Result, client: str) -> int:
    """The place of the result's shape among those of the block."""
    operation, attempts = result.operation, result.attempts
    last = attempts[-1]
    plain = len(attempts) == 1 and not last.error_code and last.scope is _NO_SCOPE
    # By identity where nothing else can be equal: an enumeration takes long to hash.
    known = (
        client,
        id(operation.kind),
        operation.table,
        operation.label,
        id(result.outcome),
        result.estimated,
        last.status if plain else _answers(attempts),
    )
    number = columns.shape_keys.get(known)
    if number is None:
        number = columns.shape_keys[known] = len(columns.shapes)
        columns.shapes.append(
            (
                client,
                operation.kind._value_,
                operation.table,
                operation.label,
                result.outcome._value_,
                result.estimated,
                _answers(attempts),
            )
        )
    return number


def _answers(attempts: Sequence[Attempt]) -> tuple[tuple[int, str, str], ...]:
    return tuple([(made.status, made.error_code, made.scope._value_) for made in attempts])


def detail_of(
    operation: Operation,
    bytes_sent: int,
    *,
    sizes: Sequence[int] = (),
    continued_at: tuple[str, str] | None = None,
) -> list[Any] | None:
    """The detail of a query or a transaction, as `harness.trace.blocks` writes it.

    Args:
        sizes: Bytes of each part of a transaction; empty takes them to be equal.
        continued_at: Where a further page of a query begins.
    """
    parts = operation.parts
    if parts:
        return parts_detail(
            [part.kind._value_ for part in parts],
            [part.row_key for part in parts],
            sizes or [bytes_sent // len(parts)],
        )
    if operation.kind is not _QUERY:
        return None
    keys = operation.key_range
    query = TracedQuery(
        partition_from=keys.partition_from,
        partition_before=keys.partition_before,
        row_from=keys.row_from,
        row_before=keys.row_before,
        compared=compared_properties(operation.filter) if operation.filter else (),
        selected=operation.select,
        top=operation.top,
        continued_at=continued_at,
    )
    return query_detail(query)


class TraceWriter:
    """One trace file that is being written.

    A failure to write, such as a full disk, does not raise: the file ends there, and ``problem``
    says why. Recording must not harm what is recorded.

    Args:
        path: The file, which must not exist.
        alias: Makes the alias of a key; None keeps keys.

    Raises:
        SetupError: the file exists or cannot be created.
    """

    def __init__(
        self, path: Path, head: TraceHead, alias: Callable[[str], str] | None = None
    ) -> None:
        self.path = path
        self.operations = 0
        self.bytes = 0
        self.problem = ""
        self._alias = alias
        try:
            self._file = path.open("xb", buffering=0)
        except FileExistsError as error:
            raise SetupError(
                f"{cut(str(path))} exists. A trace is written to a new file: name another one"
            ) from error
        except OSError as error:
            raise SetupError(
                f"{cut(str(path))} cannot be written ({error.strerror or error})"
            ) from error
        self._write(head.encode())
        if self.problem:
            self._file.close()
            raise SetupError(f"{cut(str(path))} cannot be written ({self.problem})")

    @property
    def sentence(self) -> str:
        """What there is to say of the file at its end."""
        operations = counted(self.operations, "operation")
        if self.problem:
            return f"The trace {self.path} ends after {operations}: {self.problem}."
        return f"Trace: {self.path} ({operations}; harness trace {shlex.quote(str(self.path))})"

    def append(self, blocks: Iterable[bytes]) -> None:
        for block in blocks:
            if self.problem:
                return
            prefix = Prefix.read(block)
            assert prefix is not None
            if self._alias is not None:
                block = pack(
                    BLOCK,
                    renamed(unpack(block), self._alias),
                    operations=prefix.operations,
                    first_ms=prefix.first_ms,
                    last_ms=prefix.last_ms,
                )
            if self._write(block):
                self.operations += prefix.operations

    def close(self, *, lost: int = 0, notes: Sequence[str] = ()) -> None:
        """End the file.

        Args:
            notes: Sentences about what else is missing.
        """
        if self._file.closed:
            return
        if not self.problem:
            self._write(pack(END, {"operations": self.operations, "lost": lost, "notes": [*notes]}))
        self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()

    def _write(self, member: bytes) -> bool:
        """Write a whole member, or nothing of it."""
        before = self._file.tell()
        try:
            view = memoryview(member)
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            self.problem = error.strerror or str(error)
            # Half of a member would be reported as damage.
            os.ftruncate(self._file.fileno(), before)
            return False
        self.bytes += len(member)
        return True
