"""How far a ratio of sums over the seconds of a run could be off.

Seconds in a row are alike, so that their scatter alone would promise too much: the ratio is taken
of batches of 1, 2, 4 ... of them (batch means), and the widest interval counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

COMPARED = 0.998
"""Confidence of one interval in a comparison, which looks at about ten figures: few pairs of equal
runs may differ in any of them."""
_FEWEST_BATCHES = 6

Batch = tuple[float, float]
"""Numerator and denominator of the figure in a second, or in several in a row."""


def student(freedom: int, confidence: float = COMPARED) -> float:
    """Quantile of Student's distribution, with which an interval has this confidence.

    By the expansion of Fisher and Cornish: within 3 % from 4 degrees of freedom on.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    more: float = sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))
    return z + more


def margin(batches: Sequence[Batch], confidence: float = COMPARED) -> float | None:
    """How far the ratio of the sums could be off; None if there are too few batches."""
    widest = None
    while len(batches) >= _FEWEST_BATCHES:
        above, below = (sum(part) for part in zip(*batches, strict=True))
        if below <= 0:
            return None
        residual = math.hypot(*(one - above / below * of for one, of in batches))
        freedom = len(batches) - 1
        error = residual * math.sqrt(len(batches) / freedom) / below
        widest = max(widest or 0.0, student(freedom, confidence) * error)
        pairs = zip(batches[::2], batches[1::2], strict=False)
        batches = [(a + c, b + d) for (a, b), (c, d) in pairs]
    return widest
