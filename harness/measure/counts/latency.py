"""Mergeable latency histograms of fixed memory.

Percentiles are always read from a merged histogram, never averaged.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

from hdrh.histogram import HdrHistogram
from pydantic import PlainSerializer, PlainValidator

from harness.measure.record.measured import LatencyPart

_LOWEST_US = 1
_HIGHEST_US = 120_000_000
_ONCE = itertools.repeat(1)

BUCKETS_S = (
    0.001, 0.002, 0.004, 0.006, 0.01, 0.015, 0.025, 0.04, 0.06, 0.1,
    0.15, 0.25, 0.4, 0.6, 1.0, 1.5, 2.5, 4.0, 6.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper bounds, in seconds, of the buckets that metrics export."""

SPANS = {
    "service": "from the first attempt to the complete answer, retries included",
    "response": "from the due time to the complete answer",
}
"""What a latency covers, in words: of all operations, whatever their outcome."""


class CountedLatency(LatencyPart):
    """``buckets`` has the latencies at or below each bound of `BUCKETS_S`."""

    buckets: tuple[int, ...]


class LatencyHistogram:
    """Latencies from 1 us to 120 s, longer ones as 120 s, with so many significant digits."""

    __slots__ = ("_bits", "_histogram", "digits", "total_us")

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.total_us = 0
        self._histogram = _without_cycle(HdrHistogram(_LOWEST_US, _HIGHEST_US, digits))
        # The place of a value in the histogram follows from its leading bits and their position.
        self._bits: int = self._histogram.sub_bucket_half_count_magnitude

    def record(self, latencies_s: Iterable[float], counts: Iterable[int] = _ONCE) -> None:
        """Count each latency as often as ``counts`` says."""
        # The same as the histogram's own `record_value`, in a third of the time.
        histogram, bits = self._histogram, self._bits
        places, lowest, highest = histogram.counts, histogram.min_value, histogram.max_value
        number = total_us = 0
        for seconds, count in zip(latencies_s, counts, strict=False):
            # Rounded, because a difference of two times is not exact.
            microseconds = int(seconds * 1e6 + 0.5)
            if not lowest <= microseconds <= highest:
                microseconds = min(max(microseconds, _LOWEST_US), _HIGHEST_US)
                lowest, highest = min(lowest, microseconds), max(highest, microseconds)
            total_us += microseconds * count
            shift = microseconds.bit_length() - bits - 1
            if shift < 0:
                shift = 0
            places[(shift << bits) + (microseconds >> shift)] += count
            number += count
        self.total_us += total_us
        histogram.total_count += number
        histogram.min_value, histogram.max_value = lowest, highest

    def merge(self, other: LatencyHistogram) -> None:
        """Add all latencies of ``other``, which must have as many digits."""
        self.total_us += other.total_us
        self._histogram.add(other._histogram)

    @property
    def count(self) -> int:
        return int(self._histogram.get_total_count())

    def since(self, earlier: LatencyHistogram | None) -> LatencyHistogram:
        """The latencies recorded after ``earlier``, an earlier copy of this histogram."""
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

    def encode(self) -> tuple[int, int, bytes]:
        return self.digits, self.total_us, self._histogram.encode()

    @classmethod
    def decode(cls, encoded: tuple[int, int, bytes]) -> LatencyHistogram:
        digits, total_us, content = encoded
        made = cls(digits)
        made.total_us = total_us
        made._histogram.add(_without_cycle(HdrHistogram.decode(content)))
        return made

    def view(self) -> CountedLatency | None:
        """Percentiles and buckets; None without latencies."""
        count = self.count
        if count == 0:
            return None
        histogram = self._histogram
        # All counts above the highest latency are 0, and there are many of them.
        last = _place(histogram.max_value, self._bits)
        cumulated = list(itertools.accumulate(histogram.counts[: last + 1]))

        def at(percentile: float) -> float:
            # The smallest recorded value that at least this share of the latencies does not exceed.
            rank = max(1, -(-count * percentile // 100))
            value = histogram.get_value_from_index(bisect.bisect_left(cumulated, rank))
            return float(histogram.get_highest_equivalent_value(value)) / 1e3

        return CountedLatency(
            count=count,
            mean=self.total_us / count / 1e3,
            p50=at(50),
            p90=at(90),
            p99=at(99),
            max=histogram.get_max_value() / 1e3,
            buckets=tuple(cumulated[min(place, last)] for place in _bucket_places(self._bits)),
        )


def _without_cycle(histogram: HdrHistogram) -> HdrHistogram:
    """The histogram, whose memory is free with the last reference to it.

    Histogram and encoder refer to each other. A report of many partitions makes megabytes of them,
    but too few objects for a collection of cycles.
    """
    histogram.encoder.histogram = weakref.proxy(histogram)
    return histogram


def _place(microseconds: int, bits: int) -> int:
    shift = max(0, microseconds.bit_length() - bits - 1)
    return (shift << bits) + (microseconds >> shift)


@functools.cache
def _bucket_places(bits: int) -> tuple[int, ...]:
    """The place of the last value of each of `BUCKETS_S`."""
    return tuple(_place(int(bound * 1e6), bits) for bound in BUCKETS_S)


WireHistogram = Annotated[
    LatencyHistogram,
    PlainValidator(LatencyHistogram.decode),
    PlainSerializer(LatencyHistogram.encode),
]
"""A histogram that can be a part of a message."""


@dataclasses.dataclass(slots=True)
class Latencies:
    """Service and response latencies of one group. A histogram is made at its first latency."""

    digits: int
    service: WireHistogram | None = None
    response: WireHistogram | None = None

    def record(
        self,
        service_s: Sequence[float],
        response_s: Sequence[float],
        counts: Iterable[int] = _ONCE,
    ) -> None:
        """Count latencies of operations, each as often as ``counts`` says.

        In a closed loop there are no response latencies.
        """
        if service_s:
            if self.service is None:
                self.service = LatencyHistogram(self.digits)
            self.service.record(service_s, counts)
        if response_s:
            if self.response is None:
                self.response = LatencyHistogram(self.digits)
            self.response.record(response_s, counts)

    def items(self) -> Iterator[tuple[str, LatencyHistogram]]:
        """The histograms with latencies: ``service`` and ``response``."""
        if self.service is not None:
            yield "service", self.service
        if self.response is not None:
            yield "response", self.response

    def merge(self, other: Latencies) -> None:
        for name, histogram in other.items():
            self._own(name).merge(histogram)

    def views(self) -> dict[str, Any]:
        """Both views, each a `CountedLatency` or None, under their names in a record."""
        views = {name: histogram.view() for name, histogram in self.items()}
        return {"service_ms": views.get("service"), "response_ms": views.get("response")}

    def _own(self, name: str) -> LatencyHistogram:
        histogram: LatencyHistogram | None = getattr(self, name)
        if histogram is None:
            histogram = LatencyHistogram(self.digits)
            setattr(self, name, histogram)
        return histogram
