"""Files that must not change by accident."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
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


def changes(plain: str, shown: Mapping[str, str]) -> str:
    """Each text below its name, as the lines that it has in place of those of ``plain``."""
    lines: list[str] = []
    for name, text in shown.items():
        lines += [f"# {name}", *_difference(plain.splitlines(), text.splitlines()), ""]
    return "\n".join(lines)


def _difference(plain: list[str], changed: list[str]) -> Iterator[str]:
    """The lines that come, and of lines that go the first one."""
    matcher = difflib.SequenceMatcher(None, plain, changed, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        gone = [f"-{line}" for line in plain[start:end] if line]
        yield from gone[:1]
        if gone[1:]:
            yield f"- and {len(gone) - 1} more"
        yield from (f"+{line}" for line in changed[new_start:new_end])
