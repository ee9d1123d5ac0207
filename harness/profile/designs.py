"""What the head of a profile says, and the documented key designs among the shipped profiles.

A profile begins with its question, as a comment. If documents advise its keys, or warn of them, a
paragraph of the head begins with ``Source:``. One of a shipped profile begins with ``Group:``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import tomllib
from typing import Any

from harness.model.files import shipped

_SOURCE, _GROUP = "Source", "Group"
GROUPS = (
    "One partition or a spread",
    "Documented key designs",
    "Anti-patterns",
    "Queries",
    "Writes",
    "Retries and ramps",
    "Compression, and blobs",
    "Queues",
    "Azure Cosmos DB",
    "Standard workloads",
    "Applications",
)
"""The groups of shipped profiles, in the order in which they are listed."""


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
        if source := _in_head(text, _SOURCE):
            found.append(
                Documented(
                    name=path.stem, question=question_of(text), source=source, toml=_keys_of(text)
                )
            )
    return tuple(found)


def group_of(text: str) -> str:
    """The group of a shipped profile, one of `GROUPS`."""
    return _in_head(text, _GROUP)


def _in_head(text: str, name: str) -> str:
    """The paragraph of the head that begins with a name and a colon; empty if there is none."""
    head = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    for paragraph in "\n".join(line.lstrip("# ") for line in head).split("\n\n"):
        if paragraph.startswith(f"{name}: "):
            return " ".join(paragraph.removeprefix(f"{name}: ").split())
    return ""


def _keys_of(text: str) -> str:
    """The sections of a profile that are about fields and keys."""
    sections = text.split("\n[")
    kept = [one.strip() for one in sections[1:] if one.startswith(("fields.", "keys"))]
    return "\n\n".join(f"[{one}" for one in kept)
