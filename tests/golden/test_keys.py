"""The keys of each scheme must not change by accident.

`UPDATE_GOLDEN=1 pytest tests/golden` writes the file anew.
"""

from __future__ import annotations

from harness.workload.keys.schemes import SCHEMES
from tests.support.golden import check
from tests.support.keys import sized


def test_keys_are_spelled_as_documented() -> None:
    """Keys stay the same from version to version.

    Below each scheme of 120 partitions with 4 rows stand the first loaded key, and the second that
    worker 3 inserts when 1 was drawn.
    """
    lines: list[str] = []
    for name in SCHEMES:
        scheme = sized(name, 120)
        new = scheme.inserted(min(1, scheme.count - 1), 3, 2)
        first = scheme.partition_key(0), scheme.row_key(0, 0)
        lines += [f"# {name}", *map(repr, (first, (new.partition_key, new.row_key))), ""]
    check("keys.txt", "\n".join(lines))
