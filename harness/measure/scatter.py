"""How far a ratio of sums over the seconds of a run could be off.

Seconds in a row are alike, so that their scatter alone would promise too much: the ratio is taken
of batches of 1, 2, 4 ... of them (batch means), and the widest interval counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

CONFIDENCE = 0.998
"""Of one interval. A comparison looks at about ten figures, and few pairs of equal runs may differ
in any of them."""
_FEWEST_BATCHES = 6
_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)

Batch = tuple[float, float]
"""Numerator and denominator of the figure in a second, or in several in a row."""


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
