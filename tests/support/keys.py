"""Key schemes of a given size."""

from __future__ import annotations

import itertools

from harness.workload.keys.scheme import KeyScheme, RowCounts
from harness.workload.keys.schemes import SCHEMES


def sized(name: str, partitions: int, rows: int = 4) -> KeyScheme:
    """A scheme of this name with about so many partitions, or with one."""
    for count, each, periods in itertools.product((partitions, 1), (rows, 1), (3, 1)):
        of = RowCounts(count, each)
        if not any(SCHEMES[name].problems(of, periods, None)):
            return SCHEMES[name](of, prefix="p", periods=periods, row_keys=None)
    raise AssertionError(f"{name} takes nothing")
