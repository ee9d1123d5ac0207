"""CRC-32 of many keys at once: those of the parts of a key give that of the whole.

A screening tells partitions apart by these digests, and never makes most of the keys.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

_BITS, _BYTES = 8, 4
_POLYNOMIAL = 0xEDB88320


class Digests(NamedTuple):
    """The CRC-32 of texts in UTF-8, and their lengths in bytes: arrays, or of one text."""

    crc: Array
    length: Array

    def at(self, places: Array) -> Digests:
        return Digests(self.crc[places], self.length[places])

    def where(self, chosen: Array, other: Digests) -> Digests:
        """These where ``chosen`` is true, others elsewhere."""
        return Digests(
            np.where(chosen, self.crc, other.crc), np.where(chosen, self.length, other.length)
        )


def digests_of(texts: Sequence[str]) -> Digests:
    try:
        encoded = list(map(str.encode, texts))
    except UnicodeEncodeError:
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return Digests(
        np.fromiter(map(zlib.crc32, encoded), np.uint32, len(encoded)),
        np.fromiter(map(len, encoded), np.uint32, len(encoded)),
    )


def joined(first: Digests, then: Digests) -> Digests:
    """The digests of two texts, one behind the other, for each pair."""
    lengths = np.flatnonzero(np.bincount(then.length))
    if len(lengths) == 1:
        moved = _moved(first.crc, int(lengths[0]))
    else:
        crc, length = np.broadcast_arrays(first.crc, then.length)
        moved = np.empty(crc.shape, np.uint32)
        for one in lengths.tolist():
            chosen = length == one
            moved[chosen] = _moved(crc[chosen], one)
    return Digests(moved ^ then.crc, first.length + then.length)


def scattered(crc: Array) -> Array:
    """Digests spread evenly over 32 bits: different ones stay different."""
    mixed = (crc ^ (crc >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    found: Array = mixed ^ (mixed >> np.uint32(16))
    return found


def _moved(crc: Array, length: int) -> Array:
    """What a digest adds to that of a text which is so many bytes longer."""
    tables = _tables(length)
    moved: Array = tables[0][crc & np.uint32(0xFF)]
    for place in range(1, _BYTES):
        moved = moved ^ tables[place][(crc >> np.uint32(_BITS * place)) & np.uint32(0xFF)]
    return moved


@functools.lru_cache(4096)
def _tables(length: int) -> tuple[Array, ...]:
    """What each value of each byte of a digest becomes after so many zero bytes."""
    values = [
        np.arange(256, dtype=np.uint32) << np.uint32(_BITS * place) for place in range(_BYTES)
    ]
    if length == 1:
        bytewise = _of_bytes()
        return tuple((one >> np.uint32(_BITS)) ^ bytewise[one & np.uint32(0xFF)] for one in values)
    if length > 1:
        half = length // 2
        values = [_moved(_moved(one, half), length - half) for one in values]
    return tuple(values)


@functools.cache
def _of_bytes() -> Array:
    values = np.arange(256, dtype=np.uint32)
    for _ in range(_BITS):
        odd = (values & np.uint32(1)).astype(bool)
        values = np.where(odd, (values >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), values >> 1)
    return values.astype(np.uint32)
