"""Heavy hitters: the heaviest of many keys, by sketches of fixed memory with a known error."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf

from datasketches import frequent_items_error_type, frequent_strings_sketch

from harness.measure.record.measured import EstimatePart

SKETCH_LOG2 = 12
"""4,096 counters: the error of an estimate is at most 0.09 % of the sum over all keys."""
_HEAVY_SHARE = 0.001
"""A key with this share of the sum over all keys is heavy."""
_THROTTLED_SHARE = 10
"""One row in this many goes to the most throttled keys, the others to the most accessed."""
_MOST_SWAPS = 20
_NO_FALSE_NEGATIVES = frequent_items_error_type.NO_FALSE_NEGATIVES


class Weights:
    """The weights of keys: accessed entities and throttled attempts."""

    __slots__ = ("_accessed", "_seen_accessed", "_seen_throttled", "_throttled")

    def __init__(self) -> None:
        self._seen_accessed = frequent_strings_sketch(SKETCH_LOG2)
        self._seen_throttled = frequent_strings_sketch(SKETCH_LOG2)
        self._start()

    def _start(self) -> None:
        self._accessed = frequent_strings_sketch(SKETCH_LOG2)
        self._throttled = frequent_strings_sketch(SKETCH_LOG2)

    def access(self, key: str, entities: int) -> None:
        self._accessed.update(key, entities)

    def access_all(self, entities: Mapping[str, int]) -> None:
        update = self._accessed.update
        for key, count in entities.items():
            update(key, count)

    def throttle(self, key: str) -> None:
        self._throttled.update(key, 1)

    def drain(self) -> tuple[bytes, bytes]:
        """Accessed and throttled since the last drain, for `merge`."""
        self._seen_accessed.merge(self._accessed)
        self._seen_throttled.merge(self._throttled)
        drained = self._accessed.serialize(), self._throttled.serialize()
        self._start()
        return drained

    def merge(self, accessed: bytes, throttled: bytes) -> None:
        self._seen_accessed.merge(frequent_strings_sketch.deserialize(accessed))
        self._seen_throttled.merge(frequent_strings_sketch.deserialize(throttled))

    def bounds(self, key: str) -> EstimatePart:
        """The entities of ``key`` accessed up to the last drain."""
        sketch = self._seen_accessed
        return EstimatePart(
            at_least=int(sketch.get_lower_bound(key)), at_most=int(sketch.get_upper_bound(key))
        )

    def heaviest(self, count: int) -> dict[str, EstimatePart]:
        """The entities of the ``count`` most accessed keys, the heaviest first."""
        self.drain()
        return {key: self.bounds(key) for key in _heaviest(self._seen_accessed, count)}

    def swaps(self, tracked: Collection[str], cap: int) -> list[tuple[str, str]]:
        """Pairs of a light key of ``tracked`` and a heavy key that should get its row."""
        places = cap // _THROTTLED_SHARE
        throttled = _heaviest(self._seen_throttled, places)
        accessed = _heaviest(self._seen_accessed, cap - places)
        weight = self._seen_accessed.get_upper_bound
        lightest = sorted((weight(key), key) for key in tracked if key not in throttled | accessed)
        newcomers = [(inf, key) for key in throttled if key not in tracked]
        newcomers += [
            (lower, key)
            for key, lower in accessed.items()
            if key not in tracked and key not in throttled
        ]
        pairs = zip(newcomers[:_MOST_SWAPS], lightest, strict=False)
        return [
            (loser, winner) for (at_least, winner), (at_most, loser) in pairs if at_least > at_most
        ]


def _heaviest(sketch: frequent_strings_sketch, count: int) -> dict[str, int]:
    """Lower bounds of the weights of the ``count`` heaviest keys, the heaviest first.

    Keys below `_HEAVY_SHARE` are left out: many equally light keys would swap rows to no use.
    """
    items = sorted(sketch.get_frequent_items(_NO_FALSE_NEGATIVES), key=lambda item: -item[1])
    least = sketch.total_weight * _HEAVY_SHARE
    return {key: int(lower) for key, _, lower, _ in items[:count] if lower >= least}
