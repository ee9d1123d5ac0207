"""Values of a field in a CSV file: with weights, or as often as each is used."""

from __future__ import annotations

import csv
import dataclasses
import functools
import itertools
import math
import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import TextIO

from harness.model.entity import key_problem
from harness.model.errors import SetupError, cut, did_you_mean, echoed
from harness.model.figures import counted
from harness.workload.keys.fields import Packed

MOST_VALUES = 1_000_000
_MOST_BYTES = 200 << 20
_MOST_LISTED = 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FoundValues:
    """The values of a file, and the weight of each."""

    values: Packed
    weights: array[float]


def read_values(path: str, column: str | None = None, weights: str | None = None) -> FoundValues:
    """The values of a file; it is read again only if it changed.

    Columns are divided by commas, semicolons or tabs. A file with one column has no header, a file
    with several has one. With two columns, and none named, the second has the weights. Without
    weights a value weighs as much as it occurs. A `SetupError` names lines that are invalid.
    """
    try:
        stat = os.stat(path)
    except OSError as error:
        raise SetupError(f"values {cut(path)} cannot be read: {error.strerror}") from error
    if not S_ISREG(stat.st_mode) or stat.st_size > _MOST_BYTES:
        raise SetupError(
            f"values {cut(path)} cannot be read: no file of {_MOST_BYTES >> 20} MiB or less"
        )
    return _read(path, column, weights, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _read(
    path: str, column: str | None, weights: str | None, size: int, changed: int
) -> FoundValues:
    counts: dict[str, float] = {}
    wrong: list[str] = []
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            for problem in _count(file, column, weights, counts):
                wrong.append(problem)
                if len(wrong) == _MOST_LISTED:
                    break
    except UnicodeDecodeError as error:
        raise SetupError(f"values {cut(path)}: the file is not UTF-8 text") from error
    except (OSError, csv.Error) as error:
        raise SetupError(f"values {cut(path)} cannot be read: {error}") from error
    except ValueError as error:
        raise SetupError(f"values {cut(path)}: {error}") from error
    if not counts and not wrong:
        wrong.append("there are no values in it")
    if not wrong and not 0 < sum(counts.values()) < math.inf:
        wrong.append("the sum of the weights has to be above 0, and finite")
    if wrong:
        raise SetupError("\n  ".join((f"values {cut(path)}:", *wrong)))
    return FoundValues(values=Packed(counts), weights=array("d", counts.values()))


def _count(
    file: TextIO, column: str | None, weights: str | None, counts: dict[str, float]
) -> Iterator[str]:
    """Add the weight of each value to ``counts``; yield what is wrong, with the line."""
    start = [file.readline(), file.readline()]
    reader = csv.reader(itertools.chain(start, file), delimiter=_delimiter(start))
    first = next(filter(None, reader), None)
    if first is None:
        return
    width, of_value, of_weight = len(first), _place(first, column, 0), None
    alone = width == 1 and column is None and weights is None
    if weights is not None or (width == 2 and column is None):
        of_weight = _place(first, weights, 1)
    # A million lines pass here: what a line need not do is left out.
    for row in itertools.chain((first,) if alone else (), reader):
        if len(row) != width:
            if row and not alone:
                what = f"it has {counted(len(row), 'column')}, and the header has {width}"
                yield f"line {reader.line_num}: {what}"
            if not row or not alone:
                continue
            row = [",".join(row)]
        value, weight = row[of_value], 1.0
        if of_weight is not None:
            weight = _weight(row[of_weight])
            if not 0 <= weight < math.inf:
                what = f"the weight {echoed(row[of_weight])} is not a number from 0 on"
                yield f"line {reader.line_num}: {what}"
                continue
        if value in counts:
            counts[value] += weight
        elif problem := key_problem(value):
            yield f"line {reader.line_num}: {echoed(value)} {problem}"
        elif len(counts) >= MOST_VALUES:
            yield f"line {reader.line_num}: there are more than {MOST_VALUES:,} values"
        else:
            counts[value] = weight


def _delimiter(lines: Sequence[str]) -> str:
    """That of the first line; not a comma only if the second line has as many columns."""
    for one in ",;\t":
        widths = [len(row) for row in csv.reader(lines, delimiter=one) if row]
        if widths and widths[0] > 1 and (one == "," or widths[1:] == widths[:1]):
            return one
    return ","


def _weight(text: str) -> float:
    """The number that a text is; nan for another text. Python takes 1_000 for a number."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _place(header: list[str], column: str | None, default: int) -> int:
    if column is None:
        return default
    if column not in header:
        near = did_you_mean(column, header)
        raise ValueError(f"there is no column {echoed(column)}; it has {', '.join(header)}{near}")
    return header.index(column)
