"""Groups of rows in the files of a trace, and spans of them that are read together."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from harness.trace.schema import ROWS

_LEAST_ROWS, _PARTS_OF_ROWS = 256, 8
_LAST_ROW = 2**62
_FILE = operator.attrgetter("file")


class Group(NamedTuple):
    """A group of rows of a file, from the row ``first`` on, with its first and last instant.

    ``values`` are its rows, or the parts or attempts in them if these are more.
    """

    file: str
    first: int
    rows: int
    first_ms: int
    last_ms: int
    values: int

    def read_at_once(self) -> Iterator[Group]:
        """The group, or parts of it where its rows have many parts."""
        most = max(_LEAST_ROWS, min(ROWS, _PARTS_OF_ROWS * ROWS * self.rows // self.values))
        for start in range(0, self.rows, most):
            rows = min(most, self.rows - start)
            values = max(1, self.values * rows // self.rows)
            yield self._replace(first=self.first + start, rows=rows, values=values)


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """Groups of rows that are read together: all of several files, or some of one."""

    groups: tuple[Group, ...]

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    @property
    def first_ms(self) -> int:
        return min(group.first_ms for group in self.groups)

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


def spans_of(groups: Sequence[Group], values: int) -> list[Span]:
    """All rows in spans of about so many values, in the order of the groups."""
    rows_of = collections.Counter[str]()
    for group in groups:
        rows_of[group.file] += group.rows
    spans: list[list[Group]] = []
    room = 0
    for file, of_file in itertools.groupby(groups, _FILE):
        run = [*of_file]
        size = sum(group.values for group in run)
        whole = sum(group.rows for group in run) == rows_of[file]
        if whole and size <= room:
            spans[-1] += run
            room -= size
            continue
        # Only whole files are read together.
        room = values - size if whole else 0
        spans.append(run[:1])
        left = values - run[0].values
        for before, group in itertools.pairwise(run):
            if group.values > left or group.first != before.first + before.rows:
                spans.append([])
                left = values
            spans[-1].append(group)
            left -= group.values
    return [Span(tuple(span)) for span in spans]
