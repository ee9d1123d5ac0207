"""How far a figure of one run could be off, by the scatter of its own seconds.

A figure is a ratio of sums over the seconds of the measured window. Seconds in a row are alike, so
that their scatter alone would promise too much: the ratio is taken of batches of 1, 2, 4 ... of
them (batch means), and the widest interval counts.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

from harness.measure.record.measured import HeatPart, LatencyCoursePart, SeriesPart
from harness.measure.record.record import RunRecord

CONFIDENCE = 0.998
"""Of one interval. A comparison looks at about ten figures, and few pairs of equal runs may differ
in any of them."""
_FEWEST_BATCHES = 6
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
_ROW_HEIGHT = 10**0.1
"""Of a `LatencyCoursePart`."""

Batch = tuple[float, float]
"""Numerator and denominator of the figure in a second, or in several in a row."""
Range = tuple[float, float]
"""The interval as factors of the figure, such as 0.9 and 1.1."""
Scatter = Callable[[RunRecord], Range | None]
"""The interval of a figure in one run; None if the record does not tell."""


def unknown(_record: RunRecord) -> None:
    """The scatter of a figure that records do not have over time."""


def student(freedom: int) -> float:
    """Quantile of Student's distribution, with which an interval has `CONFIDENCE`.

    By the expansion of Fisher and Cornish: within 3 % from 4 degrees of freedom on.
    """
    terms = (
        (_Z**3 + _Z) / 4,
        (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96,
        (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / 384,
    )
    more: float = sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))
    return _Z + more


def margin(batches: Sequence[Batch]) -> float | None:
    """How far the ratio of the sums could be off; None if there are too few batches."""
    widest = None
    while len(batches) >= _FEWEST_BATCHES:
        above, below = (sum(part) for part in zip(*batches, strict=True))
        if below <= 0:
            return None
        residual = math.hypot(*(one - above / below * of for one, of in batches))
        freedom = len(batches) - 1
        error = residual * math.sqrt(len(batches) / freedom) / below
        widest = max(widest or 0.0, student(freedom) * error)
        pairs = zip(batches[::2], batches[1::2], strict=False)
        batches = [(a + c, b + d) for (a, b), (c, d) in pairs]
    return widest


def _inside(record: RunRecord, start: int, width_s: int) -> bool:
    end = record.window_start + record.measured_s
    return record.window_start <= start and start + width_s <= end


def of_ratio(of: Callable[[SeriesPart], Batch | None]) -> Scatter:
    """The scatter of a ratio that each point of the time series has; a point may lack it."""

    def scatter(record: RunRecord) -> Range | None:
        points = (one for one in record.series if _inside(record, one.t, one.width_s))
        return _around([batch for batch in map(of, points) if batch is not None])

    return scatter


def of_key(record: RunRecord, key: str, *, share: bool) -> Range | None:
    """The scatter of a partition's rate, or of its share of all entities."""
    heat = record.heat
    row = next((one for one in heat.ranges if one.first == one.last == key), None) if heat else None
    if heat is None or row is None:
        return None
    columns = [*_columns(record, heat)]
    everything = [sum(part.entities[column] for part in heat.ranges) for column in columns]
    batches = zip((row.entities[column] for column in columns), everything, strict=True)
    return _around([(one, of if share else 1.0) for one, of in batches])


def of_quantile(part: str, share: float) -> Scatter:
    """The scatter of a latency that ``share`` of the operations did not exceed.

    Of how many exceeded it the scatter is known, and by that of the latency (Woodruff's interval).
    """

    def scatter(record: RunRecord) -> Range | None:
        course: LatencyCoursePart | None = getattr(record, part)
        if course is None:
            return None
        columns = [*_columns(record, course)]
        rows = [[row[column] for column in columns] for row in course.rows]
        upto = [*itertools.accumulate(map(sum, rows))]
        if not upto or not upto[-1]:
            return None
        place, within = _place(upto, share)
        above = [sum(counts[place + 1 :]) for counts in zip(*rows, strict=True)]
        batches = [
            (more + (1 - within) * at, sum(counts))
            for more, at, counts in zip(above, rows[place], zip(*rows, strict=True), strict=True)
        ]
        error = margin(batches)
        if error is None:
            return None
        # In logits, which stay shares however wide the interval is.
        odds = math.exp(error / (share * (1 - share)))
        low, high = (share / (share + (1 - share) * by) for by in (odds, 1 / odds))
        height = math.log(_ROW_HEIGHT)
        at, least, most = (sum(_place(upto, one)) for one in (share, low, high))
        return math.exp(height * (least - at)), math.exp(height * (most - at))

    return scatter


def _place(upto: Sequence[int], share: float) -> tuple[int, float]:
    """The row of a quantile, and how far up in the row it is."""
    rank = share * upto[-1]
    place = min(bisect.bisect_left(upto, rank), len(upto) - 1)
    before = upto[place - 1] if place else 0
    return place, (rank - before) / ((upto[place] - before) or 1)


def _columns(record: RunRecord, part: HeatPart | LatencyCoursePart) -> Sequence[int]:
    starts = (part.start + column * part.width_s for column in range(part.columns))
    return [n for n, start in enumerate(starts) if _inside(record, start, part.width_s)]


def _around(batches: Sequence[Batch]) -> Range | None:
    error = margin(batches)
    if error is None:
        return None
    above, below = (sum(part) for part in zip(*batches, strict=True))
    relative = error * below / above if above else 0.0
    return 1 - relative, 1 + relative
