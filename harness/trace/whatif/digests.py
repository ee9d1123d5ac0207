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
