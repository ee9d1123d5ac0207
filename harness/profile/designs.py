"""What the head of a profile says, and the documented key designs among the shipped profiles.

A profile begins with its question, as a comment. If documents advise its keys, or warn of them, a
paragraph of the head begins with ``Source:``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import tomllib
from typing import Any

from harness.model.files import shipped

_SOURCE = "Source: "


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Documented:
    """A key design of the documents: a shipped profile.

    Attributes:
        name: Name of the profile.
        question: What a run answers.
        source: Which documents advise it, or warn of it.
        toml: Its fields and keys.
    """

    name: str
    question: str
    source: str
    toml: str

    @property
    def settings(self) -> dict[str, Any]:
        return tomllib.loads(self.toml)


def question_of(text: str) -> str:
    """The question in the first line of a profile, a comment; empty if there is none."""
    first = text.split("\n", 1)[0]
    return first.lstrip("# ").strip() if first.startswith("#") else ""


@functools.cache
def documented_designs() -> tuple[Documented, ...]:
    """All of them, by name."""
    found = []
    for path in sorted(shipped("profiles").glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        head = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
        paragraphs = "\n".join(line.lstrip("# ") for line in head).split("\n\n")
        for paragraph in paragraphs:
            if paragraph.startswith(_SOURCE):
                found.append(
                    Documented(
                        name=path.stem,
                        question=question_of(text),
                        source=" ".join(paragraph.removeprefix(_SOURCE).split()),
                        toml=_keys_of(text),
                    )
                )
    return tuple(found)


def _keys_of(text: str) -> str:
    """The sections of a profile that are about fields and keys."""
    sections = text.split("\n[")
    kept = [one.strip() for one in sections[1:] if one.startswith(("fields.", "keys"))]
    return "\n\n".join(f"[{one}" for one in kept)
