"""Latencies: mergeable histograms of fixed memory, and what is read off them.

Percentiles are always read off a merged histogram, never averaged.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from hdrh.histogram import HdrHistogram

from harness.measure.record.record import LatencyPart

Wire = dict[str, Any]

_LOWEST_US = 1
_HIGHEST_US = 120_000_000

BUCKETS_S = (
    0.001, 0.002, 0.004, 0.006, 0.01, 0.015, 0.025, 0.04, 0.06, 0.1,
    0.15, 0.25, 0.4, 0.6, 1.0, 1.5, 2.5, 4.0, 6.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper bounds, in seconds, of the buckets that metrics export."""


class LatencyHistogram:
    """Latencies from 1 microsecond to 120 seconds; longer ones count as 120 seconds.

    Args:
        digits: Significant decimal digits that are kept.
    """

    __slots__ = ("_bits", "_histogram", "digits", "total_us")

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.total_us = 0
        self._histogram = HdrHistogram(_LOWEST_US, _HIGHEST_US, digits)
        # A place of the histogram is told by so many leading bits of a value, and where they are.
        self._bits: int = self._histogram.sub_bucket_half_count_magnitude

    def record(self, latencies_s: Iterable[float]) -> None:
        """Count latencies, in seconds."""
        # What the histogram's own `record_value` does, in a third of the time.
        histogram, bits = self._histogram, self._bits
        counts, lowest, highest = histogram.counts, histogram.min_value, histogram.max_value
        number = 0
        for seconds in latencies_s:
            microseconds = int(seconds * 1e6)
            if microseconds < _LOWEST_US:
                microseconds = _LOWEST_US
            elif microseconds > _HIGHEST_US:
                microseconds = _HIGHEST_US
            self.total_us += microseconds
            shift = microseconds.bit_length() - bits - 1
            if shift < 0:
                shift = 0
            counts[(shift << bits) + (microseconds >> shift)] += 1
            number += 1
            if microseconds > highest:
                highest = microseconds
            if microseconds < lowest:
                lowest = microseconds
        histogram.total_count += number
        histogram.min_value, histogram.max_value = lowest, highest

    def merge(self, other: LatencyHistogram) -> None:
        """Add every latency of ``other``, which must keep as many digits."""
        self.total_us += other.total_us
        self._histogram.add(other._histogram)

    @property
    def count(self) -> int:
        """How many latencies were recorded."""
        return int(self._histogram.get_total_count())

    def since(self, earlier: LatencyHistogram | None) -> LatencyHistogram:
        """What was recorded after ``earlier``, which is a copy of this one as it was then."""
        later = LatencyHistogram(self.digits)
        later.merge(self)
        if earlier is not None:
            later.total_us -= earlier.total_us
            counts = later._histogram.counts
            for index, count in enumerate(earlier._histogram.counts[:]):
                if count:
                    counts[index] -= count
            later._histogram.total_count -= earlier._histogram.total_count
        return later

    def encode(self) -> tuple[int, bytes]:
        """Its content for the wire."""
        return self.total_us, self._histogram.encode()

    def merge_encoded(self, encoded: tuple[int, bytes]) -> None:
        """Add what `encode` gave."""
        total_us, content = encoded
        self.total_us += total_us
        self._histogram.decode_and_add(content)

    def view(self) -> LatencyPart | None:
        """Percentiles and buckets; None where nothing was recorded."""
        count = self.count
        if count == 0:
            return None
        histogram = self._histogram
        # What lies above the highest latency is empty, and there is much of it.
        last = _place(histogram.max_value, self._bits)
        cumulated = list(itertools.accumulate(histogram.counts[: last + 1]))

        def at(percentile: float) -> float:
            # The smallest recorded value that at least so many latencies do not exceed.
            rank = max(1, -(-count * percentile // 100))
            return self._value_ms(bisect.bisect_left(cumulated, rank))

        return LatencyPart(
            count=count,
            mean=self.total_us / count / 1e3,
            p50=at(50),
            p90=at(90),
            p99=at(99),
            max=histogram.get_max_value() / 1e3,
            buckets=tuple(cumulated[min(place, last)] for place in _bucket_places(self._bits)),
        )

    def _value_ms(self, index: int) -> float:
        histogram = self._histogram
        value = histogram.get_value_from_index(index)
        return float(histogram.get_highest_equivalent_value(value)) / 1e3


def _place(microseconds: int, bits: int) -> int:
    """Where in a histogram a value is counted."""
    shift = max(0, microseconds.bit_length() - bits - 1)
    return (shift << bits) + (microseconds >> shift)


@functools.cache
def _bucket_places(bits: int) -> tuple[int, ...]:
    """Where the last value of each of `BUCKETS_S` is counted."""
    return tuple(_place(int(bound * 1e6), bits) for bound in BUCKETS_S)


class Latencies:
    """Service and response latencies of one group. Memory is taken at the first latency."""

    __slots__ = ("_digits", "response", "service")

    def __init__(self, digits: int) -> None:
        self._digits = digits
        self.service: LatencyHistogram | None = None
        self.response: LatencyHistogram | None = None

    def record(self, service_s: Sequence[float], response_s: Sequence[float]) -> None:
        """Count latencies of operations; those of a closed loop have no response latency."""
        if service_s:
            if self.service is None:
                self.service = LatencyHistogram(self._digits)
            self.service.record(service_s)
        if response_s:
            if self.response is None:
                self.response = LatencyHistogram(self._digits)
            self.response.record(response_s)

    def merge(self, other: Latencies) -> None:
        """Add every latency of ``other``."""
        for name in ("service", "response"):
            theirs = getattr(other, name)
            if theirs is not None:
                self._own(name).merge(theirs)

    def encode(self) -> Wire:
        """Its content for the wire."""
        return {
            name: list(histogram.encode())
            for name in ("service", "response")
            if (histogram := getattr(self, name)) is not None
        }

    @classmethod
    def decode(cls, digits: int, content: Wire) -> Latencies:
        """What `encode` gave."""
        made = cls(digits)
        for name, encoded in content.items():
            made._own(name).merge_encoded((encoded[0], encoded[1]))
        return made

    def _own(self, name: str) -> LatencyHistogram:
        histogram: LatencyHistogram | None = getattr(self, name)
        if histogram is None:
            histogram = LatencyHistogram(self._digits)
            setattr(self, name, histogram)
        return histogram
