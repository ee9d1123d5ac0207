"""Digests of many keys at once: those of the parts of a key give that of the whole.

A screening tells partitions apart by these digests, and never makes most of the keys. The digest of
a text is the remainder of its bytes in UTF-8, as one number, by a prime of 32 bits.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

_PRIME = 4_089_900_877
_COMPARED = 50_000
"""Entities that are compared."""


class Digests(NamedTuple):
    """The digests of texts, and by what each text multiplies that of a text before it."""

    value: Array
    factor: Array

    def at(self, places: Array) -> Digests:
        return Digests(self.value[places], self.factor[places])


def digests_of(texts: Sequence[str]) -> Digests:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    values = [number % _PRIME for number in map(int.from_bytes, encoded)]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    longest = int(lengths.max(initial=0))
    factors = np.array([pow(256, length, _PRIME) for length in range(longest + 1)], np.uint64)
    return Digests(np.array(values, np.uint64), factors[lengths])


def joined(first: Array, then: Digests) -> Array:
    """The digests of two texts, one behind the other, for each pair."""
    found: Array = (first * then.factor + then.value) % np.uint64(_PRIME)
    return found


def checksums_of(texts: Sequence[str]) -> Array:
    """The CRC-32 of texts: functions of templates divide it, such as ``bucket16``."""
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    return np.fromiter(map(zlib.crc32, encoded), np.uint32, len(texts))


def scattered(digests: Array) -> Array:
    """Digests spread evenly over 32 bits: different ones stay different."""
    mixed = digests.astype(np.uint32)
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    found: Array = mixed ^ (mixed >> np.uint32(16))
    return found


class Collisions:
    """Entities that would share both keys with another one.

    Exact for up to 50,000 entities. Of more, a part chosen by hash is tracked, and its number is
    scaled up.

    Attributes:
        mask: Entities whose digest has one of these bits are not tracked.
    """

    def __init__(self) -> None:
        self._bits = 0
        self.mask = 0
        self._tracked: dict[tuple[str, str], set[tuple[str, str]]] = {}

    @property
    def estimated(self) -> bool:
        return self._bits > 0

    @property
    def count(self) -> int:
        found = sum(len(recorded) - 1 for recorded in self._tracked.values())
        return found << self._bits

    def add(self, new: tuple[str, str], recorded: tuple[str, str]) -> None:
        """Note an entity that is tracked."""
        self._tracked.setdefault(new, set()).add(recorded)
        while len(self._tracked) > _COMPARED:
            self._bits += 1
            self.mask = mask = (1 << self._bits) - 1
            self._tracked = {
                new: found
                for new, found in self._tracked.items()
                if not digest_of(new[1], digest_of(new[0])) & mask
            }


def digest_of(text: str, start: int = 0) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), start)
