"""Answers too large to be held: they are counted while their pieces pass."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Callable, Mapping

from harness.gateway.answers import BodyRest, UpstreamBroken
from harness.gateway.truth import GONE, HALF

# Inside a text of JSON the quotes would be escaped.
_KEY = re.compile(rb'"PartitionKey"\s?:\s?("(?:[^"\\]|\\.)*")')
# A key of 1,024 characters, each written as two escapes, fits.
_LONGEST_KEY_BYTES = 16 * 1024


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


class CountedRest:
    """The pieces of a large body; the answer is counted before the last one is passed on.

    Args:
        rest: The endpoint's pieces.
        scan: Counts the entities; None for an answer without.
        count: Counts the answer: entities by PartitionKey, and what was sent in place of a
            status, or None.
    """

    def __init__(
        self,
        rest: BodyRest,
        scan: KeyScan | None,
        count: Callable[[Mapping[str | None, int], str | None], None],
    ) -> None:
        self._rest = rest
        self._scan = scan
        self._count = count
        self._next: bytes | None = None

    async def next_piece(self) -> bytes:
        """Return the next piece; empty at the end.

        Raises:
            UpstreamBroken: the endpoint broke off.
        """
        piece = await self._fetch() if self._next is None else self._next
        self._next = await self._fetch() if piece else b""
        return piece

    def close(self) -> None:
        """Give up the pieces that are left: the client is gone."""
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

    @property
    def _found(self) -> Mapping[str | None, int]:
        return {} if self._scan is None else self._scan.found
