"""Made data for the entities of a replay: a trace holds their sizes, never their contents."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from harness.model.entity import EdmValue
from harness.trace.sizes import ASSUMED_PROPERTIES
from harness.workload.entity_factory import RUN_PROPERTY, wire_bytes

GROUPS = 1000
"""Rows have one of so many numbers in each property that filters compare, so that a filter returns
about any share of them."""
_TEXT_CHARACTERS = 30_000
_LEAST_TEXT = 40
"""Bytes of a text property as sent, beside its text."""


class MadeData:
    """Makes properties of about a wanted size as sent, marked with the run id."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._fixed = wire_bytes("", "", {RUN_PROPERTY: run_id})
        self._each = wire_bytes("", "", {"": 0}) - wire_bytes("", "", {})

    def properties(
        self, partition_key: str, row_key: str, compared: Sequence[str], sent_bytes: int
    ) -> dict[str, EdmValue]:
        """The properties of one entity.

        Args:
            compared: Names of the properties that filters compare.
            sent_bytes: Wanted size of the entity in a request, keys included. Smaller entities than
                the least possible have that.
        """
        made: dict[str, EdmValue] = {RUN_PROPERTY: self._run_id}
        group = group_of(row_key)
        missing = sent_bytes - self._fixed - len(partition_key) - len(row_key)
        for name in compared:
            made[name] = group
            missing -= self._each + len(name) + 2
        # As many properties as request units are estimated for, where they have room.
        texts = max(1, min(ASSUMED_PROPERTIES - len(made), missing // (2 * _LEAST_TEXT)))
        number = 0
        while missing > _LEAST_TEXT:
            length = min(missing // max(1, texts - number) - _LEAST_TEXT, _TEXT_CHARACTERS)
            made.setdefault(f"Text{number}", "x" * length)
            missing -= length + _LEAST_TEXT
            number += 1
        return made


def group_of(row_key: str) -> int:
    """The number of a row in the properties that filters compare."""
    return zlib.crc32(row_key.encode("utf-8", "surrogatepass")) % GROUPS


def filter_for(compared: Sequence[str], returned: int, walked: int) -> str:
    """A filter on these properties that returns about ``returned`` of ``walked`` rows."""
    share = 1.0 if walked <= 0 else min(1.0, returned / walked)
    first, *others = compared
    terms = [f"{first} lt {round(share * GROUPS)}", *(f"{name} ge 0" for name in others)]
    return " and ".join(terms)
