"""How many examples property tests try: a fifth by default, all by `make test-thorough`."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

ALL = "TEST_EXAMPLES"
"""Variable that is ``all`` where every property tries all of its examples."""
_LEAST = 5


def tried(most: int) -> int:
    """Of so many examples those that are tried now."""
    return most if os.environ.get(ALL) == "all" else max(_LEAST, most // 5)


def examples(most: int, **more: Any) -> settings:
    """The settings of a property that tries at most so many examples."""
    return settings(max_examples=tried(most), **more)
