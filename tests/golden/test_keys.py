"""The keys of each documented design must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the file anew.
"""

from __future__ import annotations

import random

from tests.support.golden import check
from tests.support.keys import NAMES, sized


def test_keys_are_spelled_as_documented() -> None:
    """Keys stay the same from version to version.

    Below each design of 120 partitions with 4 rows stand the first loaded key, and the second that
    worker 3 inserts.
    """
    lines: list[str] = []
    for name in NAMES:
        design = sized(name, 120)
        drawn = design.picker(3)(random.Random(1))
        first, new = design.key(0, 0), design.new(drawn, 3, 2)
        copies = [*design.copies(0, 0), *design.new_copies(drawn, 3, 2)]
        lines.append(f"# {name}")
        lines += [repr((key.partition_key, key.row_key)) for key in (first, new)]
        lines += [f"{table}: {(key.partition_key, key.row_key)!r}" for table, key in copies]
        lines.append("")
    check("keys.txt", "\n".join(lines))
