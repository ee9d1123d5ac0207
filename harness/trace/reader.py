"""Reads a trace file in the order of its instants, with memory that does not grow with its length.

The headers of the members are read first. Then blocks are unpacked in the order of their first
instants, and operations are delivered as soon as no later block can have an earlier one.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from harness.model.figures import counted
from harness.trace.blocks import Shapes, decode, joined, part_of
from harness.trace.members import (
    BLOCK,
    END,
    HEAD,
    PREFIX_BYTES,
    Prefix,
    TraceError,
    TraceHead,
    next_member,
    unpack,
)
from harness.trace.operations import Batch, TracedOperation

_SEARCHED_BYTES = 1024 * 1024


_Block = tuple[int, Prefix]
"""Where a block begins in the file, and what its header says."""


@dataclasses.dataclass(slots=True)
class Damage:
    """What cannot be read.

    Attributes:
        bytes: Bytes of the file that belong to no member.
        cut: The file ends within a member.
        blocks: Blocks whose header can be read, but not their content.
        operations: Operations of these blocks.
        ended: The recording ended regularly; of several in one file, the last one.
        broke_off: An earlier one did not.
        lost: Operations that the recording itself could not keep.
        headless: There is no head, so that what it says is unknown.
    """

    bytes: int = 0
    cut: bool = False
    blocks: int = 0
    operations: int = 0
    ended: bool = False
    broke_off: bool = False
    lost: int = 0
    headless: bool = False

    def sentences(self) -> list[str]:
        said = []
        if self.bytes:
            said.append(f"{self.bytes:,} bytes of the file are damaged and were left out.")
        if self.headless:
            said.append("The head of the file is missing: it said whether keys are aliases.")
        if self.cut:
            said.append("The file is cut: its last block is incomplete and was left out.")
        if self.blocks:
            said.append(
                f"{counted(self.blocks, 'damaged block')} with {self.operations:,} operations "
                "cannot be read."
            )
        if self.broke_off or not (self.ended or self.cut):
            said.append("The recording broke off: what followed is missing.")
        if self.lost:
            said.append(f"{self.lost:,} operations could not be recorded.")
        return said


class Trace:
    """One trace file.

    ``damage`` is complete after all operations were read. ``notes`` are sentences about what the
    source of the trace left out.

    Raises:
        TraceError: the file is not a trace, or of a later version.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage = Damage()
        self.notes: list[str] = []
        self._blocks: list[_Block] = []
        self._shapes: Shapes = {}
        self.bytes = path.stat().st_size
        with path.open("rb") as file:
            self.head = self._index(file)
        self._blocks.sort(key=lambda block: block[1].first_ms)
        self.operations = sum(prefix.operations for _, prefix in self._blocks)

    def batches(self) -> Iterator[Batch]:
        """The operations in order of their instants. Equal ones keep the order of recording."""
        # Each with the place of the first operation that was not delivered.
        waiting: list[tuple[Batch, int]] = []
        self.damage.blocks = self.damage.operations = 0
        with self.path.open("rb") as file:
            for number, (offset, prefix) in enumerate(self._blocks, 1):
                try:
                    content = unpack(_member(file, offset, prefix))
                    batch = decode(content, self.head.started_ms, self._shapes)
                    waiting.append((batch, 0))
                except TraceError:
                    self.damage.blocks += 1
                    self.damage.operations += prefix.operations
                until_ms = None
                if number < len(self._blocks):
                    until_ms = self._blocks[number][1].first_ms - self.head.started_ms
                ready, waiting = _split(waiting, until_ms)
                if ready:
                    yield ready[0] if len(ready) == 1 else joined(ready)

    def rows(self) -> Iterator[TracedOperation]:
        """The same one by one."""
        for batch in self.batches():
            yield from batch.rows()

    def blocks(self) -> Iterator[bytes]:
        """The blocks as members of the file, without the damaged ones."""
        with self.path.open("rb") as file:
            for offset, prefix in self._blocks:
                member = _member(file, offset, prefix)
                with contextlib.suppress(TraceError):
                    unpack(member)
                    yield member

    def _index(self, file: IO[bytes]) -> TraceHead:
        head = None
        for offset, prefix in self._members(file):
            if prefix.kind == BLOCK:
                self._blocks.append((offset, prefix))
                continue
            try:
                content = unpack(_member(file, offset, prefix))
            except TraceError:
                self.damage.bytes += prefix.size
                continue
            if prefix.kind == HEAD:
                if head is not None and not self.damage.ended:
                    self.damage.broke_off = True
                later = TraceHead.decode(content)
                head = later if head is None else head.joined(later)
                self.damage.ended = False
            elif prefix.kind == END:
                self.damage.ended = True
                lost = content.get("lost")
                self.damage.lost += lost if isinstance(lost, int) else 0
                notes = content.get("notes")
                self.notes += map(str, notes if isinstance(notes, list) else ())
        if head is None and not self._blocks:
            if self.damage.cut and self.bytes > PREFIX_BYTES:
                raise TraceError("it is cut before its first operation")
            raise TraceError("it is not a trace of the harness")
        # Clocks of workers differ, and the entries of a log are not in order.
        first_ms = min((prefix.first_ms for _, prefix in self._blocks), default=None)
        started_ms = None if first_ms is None else first_ms // 1000 * 1000
        if head is None:
            assert started_ms is not None
            self.damage.headless = True
            return TraceHead(started_ms=started_ms, source="unknown")
        if started_ms is not None and started_ms < head.started_ms:
            return dataclasses.replace(head, started_ms=started_ms)
        return head

    def _members(self, file: IO[bytes]) -> Iterator[tuple[int, Prefix]]:
        """Offset and prefix of each whole member; everything between is noted as damage."""
        offset = 0
        while offset < self.bytes:
            file.seek(offset)
            prefix = Prefix.read(file.read(PREFIX_BYTES))
            if prefix is not None and offset + prefix.size <= self.bytes:
                yield offset, prefix
                offset += prefix.size
                continue
            found = _search(file, offset + 1, self.bytes)
            if found == self.bytes and (prefix is not None or found - offset < PREFIX_BYTES):
                self.damage.cut = True
            else:
                self.damage.bytes += found - offset
            offset = found


def _member(file: IO[bytes], offset: int, prefix: Prefix) -> bytes:
    file.seek(offset)
    return file.read(prefix.size)


def has_member(path: Path) -> bool:
    """Whether any part of a trace is in a file."""
    with path.open("rb") as file:
        size = path.stat().st_size
        return _search(file, 0, size) < size


def _search(file: IO[bytes], since: int, size: int) -> int:
    """Where the next member begins; the end of the file if none does."""
    offset = since
    while offset < size:
        file.seek(offset)
        data = file.read(_SEARCHED_BYTES)
        place = next_member(data)
        if place >= 0:
            return offset + place
        if len(data) <= PREFIX_BYTES:
            break
        # A header may lie across the end of what was read.
        offset += len(data) - PREFIX_BYTES
    return size


def _split(
    waiting: list[tuple[Batch, int]], until_ms: int | None
) -> tuple[list[Batch], list[tuple[Batch, int]]]:
    """The operations before an instant, and the batches that have others."""
    ready, later = [], []
    for batch, start in waiting:
        end = len(batch) if until_ms is None else bisect.bisect_left(batch.at_ms, until_ms)
        if end > start:
            ready.append(part_of(batch, start, end))
        if end < len(batch):
            later.append((batch, max(start, end)))
    return ready, later
