"""Bodies too large to be held, of requests and of answers, which pass piece by piece.

Answers are counted on their way, and their links changed.
"""

from __future__ import annotations

import asyncio
import collections
import json
import re
from collections.abc import Callable, Mapping

from harness.gateway.answers import BodyRest, ClientBroke, UpstreamBroken
from harness.gateway.counters import GONE, HALF
from harness.gateway.reading import MESSAGE_START

# Inside a text of JSON the quotes would be escaped.
_KEY = re.compile(rb'"PartitionKey"\s?:\s?("(?:[^"\\]|\\.)*")')
# A key of 1,024 characters, each written as two escapes, fits.
_LONGEST_KEY_BYTES = 16 * 1024


HELD_BYTES = 256 * 1024
"""Of the body of a request that passes unread, so much is held until it is passed on."""


class Signal:
    """What one task waits for until something else in the same event loop sets it."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[None] | None = None

    @property
    def expected(self) -> bool:
        return self._future is not None

    def expect(self) -> asyncio.Future[None]:
        """Return what ends when it is set from now on."""
        self._future = asyncio.get_running_loop().create_future()
        return self._future

    async def wait(self) -> None:
        """Wait until it is set if it is expected."""
        if self._future is not None:
            await self._future

    def set(self) -> None:
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_result(None)


class KeyScan:
    """Counts the entities of a query's answer by PartitionKey, piece by piece."""

    def __init__(self) -> None:
        self.found: collections.Counter[str | None] = collections.Counter()
        self._tail = b""

    def add(self, piece: bytes) -> None:
        """Count the entities whose key ends in this piece."""
        text, end = self._tail + piece, 0
        for match in _KEY.finditer(text):
            end = match.end()
            try:
                self.found[json.loads(match[1])] += 1
            except ValueError:
                self.found[None] += 1
        self._tail = text[max(end, len(text) - _LONGEST_KEY_BYTES) :]


class MessageScan:
    """Counts the messages in an answer, piece by piece."""

    def __init__(self) -> None:
        self.found: collections.Counter[str | None] = collections.Counter()
        self._tail = b""

    def add(self, piece: bytes) -> None:
        """Count the messages that begin in this piece."""
        text = self._tail + piece
        self.found[None] += text.count(MESSAGE_START)
        self._tail = text[1 - len(MESSAGE_START) :]


class CountedRest:
    """The pieces of a large body; the answer is counted before the last one is passed on.

    Args:
        scan: Counts the entities; None for an answer without.
        count: Counts the answer: entities by PartitionKey, and what was sent in place of a
            status, or None.
    """

    def __init__(
        self,
        rest: BodyRest,
        scan: KeyScan | MessageScan | None,
        count: Callable[[Mapping[str | None, int], str | None], None],
    ) -> None:
        self._rest = rest
        self._scan = scan
        self._found = {} if scan is None else scan.found
        self._count = count
        self._next: bytes | None = None

    async def next_piece(self) -> bytes:
        piece = await self._fetch() if self._next is None else self._next
        self._next = await self._fetch() if piece else b""
        return piece

    def close(self) -> None:
        """Discard the pieces that are left: the client is gone."""
        self._rest.close()
        if self._next != b"":
            self._count(self._found, GONE)

    async def _fetch(self) -> bytes:
        try:
            piece = await self._rest.next_piece()
        except UpstreamBroken:
            self._next = b""
            self._count(self._found, HALF)
            raise
        if self._scan is not None:
            self._scan.add(piece)
        if not piece:
            self._count(self._found, None)
        return piece


class ReplacedRest:
    """The pieces of a large body in which matches of at most ``longest`` bytes are replaced."""

    def __init__(
        self,
        rest: BodyRest,
        pattern: re.Pattern[bytes],
        replacement: Callable[[re.Match[bytes]], bytes],
        longest: int,
    ) -> None:
        self._rest = rest
        self._pattern = pattern
        self._replacement = replacement
        self._longest = longest
        self._tail = b""
        self._ended = False

    def replace(self, piece: bytes) -> bytes:
        """Return the next bytes of the changed body; the end of a piece comes with the next one."""
        text, done, changed = self._tail + piece, 0, []
        for match in self._pattern.finditer(text):
            changed += [text[done : match.start()], self._replacement(match)]
            done = match.end()
        # The rest of the text may hold the beginning of a match.
        end = max(done, len(text) - self._longest)
        self._tail = text[end:]
        return b"".join([*changed, text[done:end]])

    async def next_piece(self) -> bytes:
        while not self._ended:
            piece = await self._rest.next_piece()
            self._ended = not piece
            if changed := self.replace(piece):
                return changed
        tail, self._tail = self._tail, b""
        return tail

    def close(self) -> None:
        self._rest.close()


class ArrivingBody:
    """The rest of a large body: a `RequestRest`. ``resume`` is called when there is room again."""

    def __init__(self, resume: Callable[[], None]) -> None:
        self.passed = 0
        self.complete = False
        self._resume = resume
        self._pieces: collections.deque[bytes] = collections.deque()
        self._held_bytes = 0
        self._broken = self._closed = False
        self._arrived = Signal()

    @property
    def full(self) -> bool:
        return self._held_bytes > HELD_BYTES

    def add(self, piece: bytes) -> None:
        if not self._closed:
            self._pieces.append(piece)
            self._held_bytes += len(piece)
            self._arrived.set()

    def end(self, *, broken: bool = False) -> None:
        """There is no further piece; ``broken``: although the body is not complete."""
        self._broken = broken
        self.complete = not broken
        self._arrived.set()

    async def next_piece(self) -> bytes:
        while not self._pieces:
            if self._broken:
                raise ClientBroke
            if self.complete or self._closed:
                return b""
            await self._arrived.expect()
        was_full, piece = self.full, self._pieces.popleft()
        self._held_bytes -= len(piece)
        self.passed += len(piece)
        if was_full and not self.full:
            self._resume()
        return piece

    def close(self) -> None:
        self._closed = True
        self._pieces.clear()
        self._held_bytes = 0
        self._arrived.set()
        self._resume()
