"""What keys look like, and where new rows go in key order."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from harness.model.entity import characters

FEWEST_CREATED = 20
"""New rows from which on their places show whether a table grows at an end."""
_MOSTLY = 0.9
_NEIGHBOURS = 0.05
"""Largest distance of neighbours, as a share of the key order."""
_GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_DATE = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?(?!\d)")
_PLAIN = frozenset(string.ascii_letters + string.digits + "-._~!$&()*+,;=:@")
"""Needs no escaping in a path (RFC 3986, section 3.3). The quote does: OData doubles it."""


_FEWEST_KEYS = 3
"""With fewer keys, neighbours are no sign of growth unless the other partitions are known."""


def mostly(answers: Iterable[object]) -> bool:
    """Whether nine of ten answers are yes; of no answers, False."""
    known = [bool(answer) for answer in answers]
    return bool(known) and sum(known) >= _MOSTLY * len(known)


def are_dates(keys: Iterable[str]) -> bool:
    """Whether keys begin with a date: ``2024-05`` or ``2024-05-31``."""
    return mostly(map(_DATE.match, keys))


def are_guids(keys: Iterable[str]) -> bool:
    return mostly(map(_GUID.fullmatch, keys))


def needs_escaping(key: str) -> bool:
    return not _PLAIN.issuperset(key)


def unpadded(keys: Iterable[str]) -> tuple[str, str] | None:
    """Two of the sorted ``keys`` whose numbers have the opposite order."""
    numbers: dict[str, str] = {}
    for key in keys:
        head = key.rstrip(string.digits)
        if not (number := key[len(head) :]):
            continue
        if head in numbers and int(numbers[head]) > int(number):
            return f"{head}{numbers[head]}", key
        numbers[head] = number
    return None


def shapes_of(partition_keys: Collection[str], row_keys: Collection[str]) -> dict[str, Any]:
    """What keys look like, as fields of a `TableBehaviourPart`; PartitionKeys are sorted."""
    every = [*partition_keys, *row_keys]
    return {
        "dates": are_dates(partition_keys),
        "guids": are_guids(partition_keys),
        "row_guids": are_guids(row_keys),
        "unpadded": unpadded(partition_keys) is not None,
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
