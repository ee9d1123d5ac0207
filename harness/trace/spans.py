"""Groups of rows in the files of a trace, and spans of them that are read together."""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.trace.schema import ROWS

_LEAST_ROWS, _PARTS_OF_ROWS = 256, 8
_LAST_ROW = 2**62


class Group(NamedTuple):
    """A group of rows of a file, from the row ``first`` on, with its first and last instant.

    ``values`` are its rows, or the parts of transactions in them if these are more.
    """

    file: str
    first: int
    rows: int
    first_ms: int
    last_ms: int
    values: int

    @property
    def read_at_once(self) -> int:
        """Rows of a slice: fewer where they have many parts."""
        return max(_LEAST_ROWS, min(ROWS, _PARTS_OF_ROWS * ROWS * self.rows // self.values))


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """Groups of rows that are read together: all of several files, or some of one."""

    groups: tuple[Group, ...]

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    @property
    def place(self) -> dict[str, Any]:
        """The parameters of a query about it."""
        first, last = self.groups[0], self.groups[-1]
        if first.file != last.file:
            return {"files": self._files, "first": 0, "last": _LAST_ROW}
        return {"files": [first.file], "first": first.first, "last": last.first + last.rows - 1}

    @property
    def _files(self) -> list[str]:
        return [*dict.fromkeys(group.file for group in self.groups)]

    def parts(self) -> list[Span]:
        """A span for each file, or group of rows; none if it is only one."""
        if len(self.groups) == 1:
            return []
        by = operator.attrgetter("file" if len(self._files) > 1 else "first")
        return [Span(tuple(part)) for _, part in itertools.groupby(self.groups, by)]


def spans_of(all_groups: Sequence[Group], rows: int) -> list[Span]:
    """All rows in spans of about so many, in the order of the files."""
    spans: list[Span] = []
    room = 0
    for _, of_file in itertools.groupby(all_groups, lambda group: group.file):
        groups = [*of_file]
        whole = sum(group.rows for group in groups)
        if spans and whole <= room:
            spans[-1] = Span(spans[-1].groups + tuple(groups))
            room -= whole
            continue
        room = 0
        for group in groups:
            if group is groups[0] or group.rows > room:
                spans.append(Span((group,)))
                room = rows - group.rows
            else:
                spans[-1] = Span((*spans[-1].groups, group))
                room -= group.rows
        # Only whole files are read together.
        room = rows - whole if whole <= rows else 0
    return spans
