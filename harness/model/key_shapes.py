"""What is said of the keys of a table, and where new rows go in key order.

What keys are made of is found by `harness.model.key_tokens`.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from harness.model.entity import characters
from harness.model.key_notations import SortOrder, TokenKind, number_value
from harness.model.key_tokens import KeyShape, tokens_of

_DAY_S = 24 * 60 * 60
_PERIODS = {"mm": 0, "HH": 1 / 24, "dd": 1, "MM": 31, "yyyy": 366}
"""Days of the smallest part of a date; what has none of these changes at every instant."""
FEWEST_CREATED = 20
"""New rows from which on their places show whether a table grows at an end."""
_MOSTLY = 0.9
_NEIGHBOURS = 0.05
"""Largest distance of neighbours, as a share of the key order."""
_PLAIN = frozenset(string.ascii_letters + string.digits + "-._~!$&()*+,;=:@")
"""Needs no escaping in a path (RFC 3986, section 3.3). The quote does: OData doubles it."""


_FEWEST_KEYS = 3
"""With fewer keys, neighbours are no sign of growth unless the other partitions are known."""


def mostly(answers: Iterable[object]) -> bool:
    """Whether nine of ten answers are yes; of no answers, False."""
    known = [bool(answer) for answer in answers]
    return bool(known) and sum(known) >= _MOSTLY * len(known)


def begins_with_date(shape: KeyShape) -> bool:
    """Whether the first part of keys that is not equal in all of them is a date or an hour."""
    return shape.leading is not None and shape.leading.kind is TokenKind.DATE


def is_guid(shape: KeyShape) -> bool:
    """Whether keys are a GUID, besides what all keys have."""
    return shape.whole(TokenKind.GUID)


def needs_escaping(key: str) -> bool:
    return not _PLAIN.issuperset(key)


def unpadded(keys: Collection[str], shape: KeyShape | None = None) -> tuple[str, str] | None:
    """Two of the sorted ``keys`` that differ in a number, and whose numbers have another order."""
    shape = tokens_of(keys) if shape is None else shape
    for layout in (shape, *shape.others):
        for place, token in enumerate(layout.tokens):
            if token.kind is TokenKind.NUMBER and token.order is SortOrder.BROKEN:
                split = ((key, layout.split(key)) for key in keys)
                known = ((key, texts) for key, texts in split if texts is not None)
                if (pair := _falling(known, place)) is not None:
                    return pair
    return None


def period_s(shape: KeyShape) -> float:
    """Seconds in which a date or a time in keys stays the same; inf for keys without one."""
    form = "".join(token.form for token in shape.tokens if token.timed)
    if not form:
        return math.inf
    return next((days * _DAY_S for part, days in _PERIODS.items() if part in form), 0.0)


def _falling(keys: Iterable[tuple[str, tuple[str, ...]]], place: int) -> tuple[str, str] | None:
    """Two keys with the same beginning, of whose tokens at ``place`` the first is larger."""
    before: dict[tuple[str, ...], tuple[tuple[int, str], str]] = {}
    for key, texts in keys:
        head, number = texts[:place], number_value(texts[place])
        if head in before and before[head][0] > number:
            return before[head][1], key
        before[head] = (number, key)
    return None


def shapes_of(partition_keys: Collection[str], row_keys: Collection[str]) -> dict[str, Any]:
    """What keys look like, as fields of a `TableBehaviourPart`; PartitionKeys are sorted."""
    every = [*partition_keys, *row_keys]
    shape, row_shape = tokens_of(partition_keys), tokens_of(row_keys)
    return {
        "dates": shape.mostly(begins_with_date),
        "guids": shape.mostly(is_guid),
        "row_guids": row_shape.mostly(is_guid),
        "unpadded": unpadded(partition_keys, shape) is not None,
        "row_unpadded": unpadded(sorted(row_keys), row_shape) is not None,
        "longest_key": max(map(characters, every), default=0),
        "escaped": sum(map(needs_escaping, every)) / (len(every) or 1),
        "foreign": sum(not key.isascii() for key in every) / (len(every) or 1),
    }


def growth_of(created: Sequence[str], known: Collection[str] = ()) -> int:
    """1 if new rows come at ever later keys, -1 if at ever earlier keys, else 0.

    A table grows at an end if each new row is a neighbour of the one before it, in key order, and
    the partitions are new, or the first or last of the ``known`` ones.

    Args:
        created: PartitionKeys of new rows, in order of time.
    """
    if len(created) < FEWEST_CREATED:
        return 0
    order = {key: place for place, key in enumerate(sorted({*known, *created}))}
    ends = (min(known, default=""), max(known, default=""))
    wandering = [key not in known or key in ends for key in created]
    places = [order[key] for key in created]
    steps = [later - earlier for earlier, later in itertools.pairwise(places)]
    near = max(1.0, _NEIGHBOURS * len(order))
    one_place = mostly(abs(step) <= near for step in steps)
    if len(order) < 2 or not one_place or not mostly(wandering):
        return 0
    if not known and (len(order) < _FEWEST_KEYS or not _one_way(steps)):
        return 0
    if (direction := sum((step > 0) - (step < 0) for step in steps)) != 0:
        return 1 if direction > 0 else -1
    return 1 if created[0] == max(order) else -1


def _one_way(steps: Sequence[int]) -> bool:
    later, earlier = (sum(sign * step > 0 for step in steps) for sign in (1, -1))
    return abs(later - earlier) * 2 >= later + earlier
