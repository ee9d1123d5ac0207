"""What the keys of one table look like, and where its new rows go."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterable

from harness.model.entity import characters
from harness.model.operation import Kind, Operation, over_partitions

_MOST_KEYS = 5_000
_MOST_ROWS = 1_000
_FEWEST_CREATED = 20
_MOSTLY = 0.9
_NEIGHBOURS = 0.05
"""Rows so near to each other in key order, as a share of it, are at one place."""
_GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_DATE = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?(?!\d)")
_PLAIN = frozenset(string.ascii_letters + string.digits + "-._~!$&()*+,;=:@")
"""What stands in a path as it is (RFC 3986, section 3.3), but for the quote that OData doubles."""


class TableKeys:
    """Keys of one table.

    Args:
        complete: Whether every loaded partition is told by `load`, and not a choice of them.

    Attributes:
        created: How many new rows came.
    """

    __slots__ = ("_complete", "_created", "_loaded", "_partitions", "_rows", "created")

    def __init__(self, *, complete: bool = True) -> None:
        self.created = 0
        self._complete = complete
        self._loaded: dict[str, None] = {}
        self._created: list[str] = []
        self._partitions: dict[str, None] = {}
        self._rows: dict[tuple[str, str], None] = {}

    def load(self, partition_key: str) -> None:
        """A loaded partition."""
        self._loaded[partition_key] = None

    def load_rows(self, operation: Operation) -> None:
        """Some of the loaded rows."""
        for part in operation.parts or (operation,):
            self._rows[part.partition_key, part.row_key] = None

    def add(self, operation: Operation) -> None:
        """The keys that an operation names."""
        if over_partitions(operation.partition):
            return
        for part in operation.parts or (operation,):
            if part.kind is not Kind.QUERY and len(self._rows) < _MOST_ROWS:
                self._rows[part.partition_key, part.row_key] = None
            if self._creates(part):
                self.created += 1
                if len(self._created) < _MOST_KEYS:
                    self._created.append(part.partition_key)
        if len(self._partitions) < _MOST_KEYS:
            self._partitions[operation.partition_key] = None

    def _creates(self, part: Operation) -> bool:
        if part.kind is Kind.INSERT:
            return True
        # Of an upsert nobody knows, but where nothing was before it makes a row.
        upserts = part.kind in (Kind.UPSERT_MERGE, Kind.UPSERT_REPLACE)
        known = part.partition_key in self._loaded or part.partition_key in self._partitions
        return upserts and self._complete and not known

    @property
    def partitions(self) -> list[str]:
        """PartitionKeys that are loaded or touched, in key order."""
        return sorted({*self._loaded, *self._partitions})

    @property
    def creates(self) -> bool:
        """Whether new rows come, enough of them to tell where they go."""
        return len(self._created) >= _FEWEST_CREATED

    @property
    def growth(self) -> int:
        """1 where new rows come at ever later keys, -1 at ever earlier ones, 0 for neither.

        That is so where each new row is a neighbour of the one before it, in key order, and they
        go on to partitions that were not there, or to the first or last that was.
        """
        if not self.creates:
            return 0
        order = {key: place for place, key in enumerate(sorted({*self._loaded, *self._created}))}
        ends = (min(self._loaded, default=""), max(self._loaded, default=""))
        wandering = [key not in self._loaded or key in ends for key in self._created]
        places = [order[key] for key in self._created]
        steps = [later - earlier for earlier, later in itertools.pairwise(places)]
        near = max(1.0, _NEIGHBOURS * len(order))
        neighbours = sum(abs(step) <= near for step in steps)
        one_place = neighbours >= _MOSTLY * len(steps)
        if len(order) < 2 or not one_place or sum(wandering) < _MOSTLY * len(wandering):
            return 0
        if (direction := sum((step > 0) - (step < 0) for step in steps)) != 0:
            return 1 if direction > 0 else -1
        return 1 if self._created[0] == max(order) else -1

    @property
    def dates_lead(self) -> bool:
        """Whether PartitionKeys begin with a date."""
        return _mostly(bool(_DATE.match(key)) for key in self.partitions)

    @property
    def guid_partitions(self) -> bool:
        """Whether PartitionKeys are GUIDs."""
        return _mostly(bool(_GUID.fullmatch(key)) for key in self.partitions)

    @property
    def guid_rows(self) -> bool:
        """Whether RowKeys are GUIDs."""
        return _mostly(bool(_GUID.fullmatch(row)) for _, row in self._rows)

    @property
    def longest(self) -> str:
        """The longest key."""
        keys = itertools.chain(self._loaded, self._partitions, (row for _, row in self._rows))
        return max(keys, key=characters, default="")

    @property
    def escaped(self) -> str:
        """A key that cannot stand in an address as it is; one beyond ASCII if there is any."""
        keys = itertools.chain(self._loaded, self._partitions, (row for _, row in self._rows))
        odd = [key for key in keys if not _PLAIN.issuperset(key)]
        return next((key for key in odd if not key.isascii()), odd[0] if odd else "")

    @property
    def unpadded(self) -> tuple[str, str] | None:
        """Two PartitionKeys whose numbers sort otherwise than they count; None where none do.

        Such are "p9" and "p10": text is compared character by character.
        """
        numbers: dict[str, str] = {}
        for key in self.partitions:
            head = key.rstrip(string.digits)
            number = key[len(head) :]
            if not number:
                continue
            before = numbers.get(head)
            if before is not None and int(before) > int(number):
                return f"{head}{number}", f"{head}{before}"
            numbers[head] = number
        return None


def _mostly(answers: Iterable[bool]) -> bool:
    known = list(answers)
    return bool(known) and sum(known) >= _MOSTLY * len(known)
