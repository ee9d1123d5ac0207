"""The limit of a throttled service, by what it served while it throttled.

While a service refuses a part of the load, it serves what its limit lets through, however much more
is sent. The rate that it served then is its limit. Before the first refusals a burst may have been
served on top: those seconds do not count. The interval comes from batch means, since throttled
seconds depend on each other: after a second that served more, a bucket has less for the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from harness.measure.record.findings import LimitPart
from harness.measure.scatter import margin

CONFIDENCE = 0.99
_MET_FROM = 0.05
"""Share of throttled attempts in a second, or in several, from which the limit was met. A service
may refuse few attempts for other reasons."""
_THROUGHOUT = 0.8
"""Share of the batches."""
_MOST_BATCHES = 16
_TIMED = 0.005
"""Share by which counts by the seconds of other clocks may be off."""
_REQUESTS_IN_BATCH = 8
"""The fewest requests that a batch served on average: one more or less shifts it only so much."""
APART = 1.1
"""The least ratio of two rates above a limit that show whether both are served the same."""


class Second(NamedTuple):
    """The counts of one second under one rate."""

    entities: int
    attempts: int
    throttled: int


def entities_of_request(seconds: Sequence[Second]) -> float:
    """The mean size of the attempts that were not throttled; 0 if there were none."""
    attempts = sum(one.attempts - one.throttled for one in seconds)
    return sum(one.entities for one in seconds) / attempts if attempts else 0.0


def limit_in(seconds: Sequence[Second]) -> LimitPart | None:
    """The limit that was met in these seconds under one rate; None if no limit was met."""
    seconds = _after_burst(seconds)
    if not _meets(seconds) or not (batches := _batches(seconds)):
        return None
    length_s = len(seconds)
    per_s = sum(one.entities for one in seconds) / length_s
    error = margin(
        [(float(sum(one.entities for one in batch)), float(len(batch))) for batch in batches],
        CONFIDENCE,
    )
    if error is not None:
        # A request may have been served just before the first second or just after the last one.
        error += entities_of_request(seconds) / length_s + _TIMED * per_s
    return LimitPart(
        per_s=per_s,
        low_per_s=0.0 if error is None else max(per_s - error, 0.0),
        high_per_s=None if error is None else per_s + error,
        confidence=CONFIDENCE,
        measured_s=length_s,
    )


def exponent(one: Sequence[Second], other: Sequence[Second]) -> int | None:
    """The power of the rate that was served: 0 at a limit, 1 if it is the same share of any rate.

    None if the rates are less than half as far as `APART`.
    """
    counts = ([sum(each) / len(at) + 1e-9 for each in zip(*at, strict=True)] for at in (one, other))
    served, sent, _ = (math.log(b / a) for a, b in zip(*counts, strict=True))
    return round(served / sent) if 2.0 * abs(sent) > math.log(APART) else None


def throttled_throughout(seconds: Sequence[Second]) -> bool:
    """Whether more than the limit arrived nearly all the time, even if it was sent late."""
    batches = _batches(_after_burst(seconds), most=len(seconds))
    return bool(batches) and sum(map(_meets, batches)) >= _THROUGHOUT * len(batches)


def _after_burst(seconds: Sequence[Second]) -> Sequence[Second]:
    met = next((place for place, one in enumerate(seconds, 1) if _meets([one])), len(seconds))
    return seconds[met:]


def _batches(seconds: Sequence[Second], most: int = _MOST_BATCHES) -> list[Sequence[Second]]:
    """Seconds in a row with at least some served requests; empty if nothing was served."""
    entities, length_s = sum(one.entities for one in seconds), len(seconds)
    if not entities:
        return []
    requests_s = entities_of_request(seconds) * length_s / entities
    width = max(math.ceil(length_s / most), math.ceil(_REQUESTS_IN_BATCH * requests_s))
    starts = range(length_s % width - width, length_s, width)
    return [batch for at in starts if (batch := seconds[max(at, 0) : at + width])]


def _meets(seconds: Sequence[Second]) -> bool:
    attempts = sum(one.attempts for one in seconds)
    return sum(one.throttled for one in seconds) >= _MET_FROM * max(attempts, 1)
