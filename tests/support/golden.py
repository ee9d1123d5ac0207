"""Files that must not change by accident."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"
MAKE_IT = "UPDATE_GOLDEN=1 pytest tests/golden"


def check(name: str, text: str) -> None:
    """``text`` is what the golden file holds; with ``UPDATE_GOLDEN=1`` it is written anew."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{name} is not there yet: make it with {MAKE_IT}, read it, and add it"
    assert text == path.read_text(encoding="utf-8"), f"{name} changed; if it should: {MAKE_IT}"
