"""Values of a field in a CSV file: with weights, or as often as each is used."""

from __future__ import annotations

import collections
import csv
import dataclasses
import functools
import math
import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_ISREG

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

    A file with one column has no header, a file with several has one. With two columns, and none
    named, the second has the weights. Without weights a value weighs as much as it occurs.

    Raises:
        SetupError: the file cannot be read, or is invalid; the message names lines.
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
    counts: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = _rows(file, column, weights)
            for line, value, weight, problem in rows:
                if not problem and len(counts) >= MOST_VALUES and value not in counts:
                    problem = f"there are more than {MOST_VALUES:,} values"
                if problem:
                    wrong.append(f"line {line}: {problem}")
                    if len(wrong) == _MOST_LISTED:
                        break
                    continue
                counts[value] += weight  # type: ignore[assignment]
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


def _rows(
    file: Iterable[str], column: str | None, weights: str | None
) -> Iterator[tuple[int, str, float, str]]:
    """Line number, value, weight and problem of each row."""
    reader = csv.reader(file)
    first = next(reader, None)
    if first is None:
        return
    if len(first) == 1 and column is None and weights is None:
        yield 1, first[0], 1, _problem(first[0])
        for row in filter(None, reader):
            value = ",".join(row)
            yield reader.line_num, value, 1, _problem(value)
        return
    of_value, of_weight = _place(first, column, 0), None
    if weights is not None or (len(first) == 2 and column is None):
        of_weight = _place(first, weights, 1)
    for row in filter(None, reader):
        if len(row) != len(first):
            what = counted(len(row), "column")
            yield reader.line_num, "", 0, f"it has {what}, and the header has {len(first)}"
            continue
        value, weight, problem = row[of_value], 1.0, _problem(row[of_value])
        if of_weight is not None:
            try:
                weight = float(row[of_weight])
            except ValueError:
                weight = math.nan
            if not 0 <= weight < math.inf:
                problem = f"the weight {echoed(row[of_weight])} is not a number from 0 on"
        yield reader.line_num, value, weight, problem


def _place(header: list[str], column: str | None, default: int) -> int:
    if column is None:
        return default
    if column not in header:
        near = did_you_mean(column, header)
        raise ValueError(f"there is no column {echoed(column)}; it has {', '.join(header)}{near}")
    return header.index(column)


def _problem(value: str) -> str:
    """Why a value cannot be used; empty if it can."""
    problem = key_problem(value)
    return f"{echoed(value)} {problem}" if problem else ""
