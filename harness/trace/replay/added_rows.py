"""How many rows have to be added to ranges of keys, so that queries find what they found.

Between two neighbouring bounds of the queried ranges lies an interval of keys. With S(k) as the
number of rows before the bound k, a query of the range from a to b that found n rows says S(b) -
S(a) = n, and the known rows of each interval say S(k+1) - S(k) >= known. These are difference
constraints: the least solution is the longest path from the first bound, found by relaxing until
nothing changes (Bellman and Ford).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Sequence

from harness.model.entity import sort_key
from harness.model.partition import MADE_UP

_MOST_SWEEPS = 60
"""Constraints that contradict each other would be relaxed for ever."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """Rows that a query found between the bounds with the numbers ``first`` and ``end``.

    ``exact``: False if there may be more of them.
    """

    first: int
    end: int
    rows: int
    exact: bool = True


def fill(known: Sequence[int], wanted: Sequence[Wanted]) -> list[int]:
    """Rows to add to each interval, which has the ``known`` ones anyway.

    If no numbers satisfy all queries, each query finds at least the rows that it found.
    """
    # The narrowest range first: fewer sweeps.
    ordered = sorted(wanted, key=lambda one: one.end - one.first)
    possible = [
        one for one in ordered if not one.exact or sum(known[one.first : one.end]) <= one.rows
    ]
    before = _relaxed(known, possible)
    if before is None:
        least = [dataclasses.replace(one, exact=False) for one in ordered]
        before = _relaxed(known, least)
        assert before is not None
    return [
        end - first - there for first, end, there in zip(before, before[1:], known, strict=False)
    ]


def _relaxed(known: Sequence[int], wanted: Sequence[Wanted]) -> list[int] | None:
    """The least numbers of rows before each bound; None if there seem to be none."""
    before = [0] * (len(known) + 1)
    # In the order of their ends, so that one sweep carries rows from the first bound to the last.
    ending: dict[int, list[Wanted]] = {}
    for one in wanted:
        ending.setdefault(one.end, []).append(one)
    for _ in range(_MOST_SWEEPS):
        changed = False
        for place, rows in enumerate(known):
            if before[place + 1] < before[place] + rows:
                before[place + 1] = before[place] + rows
                changed = True
            for one in ending.get(place + 1, ()):
                if before[one.end] < before[one.first] + one.rows:
                    before[one.end] = before[one.first] + one.rows
                    changed = True
                if one.exact and before[one.first] < before[one.end] - one.rows:
                    before[one.first] = before[one.end] - one.rows
                    changed = True
        if not changed:
            return before
    return None


def keys_between(
    start: str, end: str | None, number: int, taken: Container[str], mark: str = MADE_UP
) -> list[str]:
    """New keys from ``start`` on and before ``end``, at most ``number``: fewer if none fit.

    The start itself comes first, because queries often begin at a row.
    """
    keys = [start] if start and start not in taken else []
    width = len(str(number))
    for place in range(number - len(keys)):
        key = f"{start}{mark}{place:0{width}}"
        if end is not None and sort_key(key) >= sort_key(end):
            break
        if key not in taken:
            keys.append(key)
    return keys
