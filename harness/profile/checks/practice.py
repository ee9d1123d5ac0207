"""What a practice is, which document asks for it, and what looking at a profile can tell of it.

A practice that a profile gives no occasion for is not looked at, so that nothing is advised
without a cause. Where documents disagree, those that advise otherwise are named beside the others.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable

from harness.profile.checks.observed import Observed


class Severity(enum.StrEnum):
    """How bad it is, worst first."""

    OFFENDS = "offends"
    CONSIDER = "consider"
    """It depends on what the application needs, or the documents disagree."""
    FINE = "fine"


class Document(enum.StrEnum):
    """Where a practice is from; the value is the document's title."""

    PARTITIONING = "Design a scalable partitioning strategy for Azure Table storage"
    BLOG = "Optimal PartitionKey & RowKey Design for Blog Posts"
    KEYS = "Best Practices for PartitionKey and RowKey in Azure Table Storage"
    CHECKLIST = "Performance and scalability checklist for Table storage"
    STRATEGIES = "Data partitioning strategies"

    def says(self, section: str, what: str) -> Source:
        """What a section says, in the harness's own words."""
        return Source(self, section, what)

    def says_otherwise(self, section: str, what: str) -> Source:
        """The same of a section that advises what the practice advises against."""
        return Source(self, section, what, otherwise=True)


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A place in a document.

    Attributes:
        section: Title of the section.
        says: What it says, in the harness's own words.
        otherwise: True where it advises what the practice advises against.
    """

    document: Document
    section: str
    says: str
    otherwise: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen of a practice in a profile.

    Attributes:
        setting: What in the profile it hangs on.
        why: What was seen, and what comes of it.
        change: What to change, and to what; empty where nothing need be.
    """

    severity: Severity
    setting: str
    why: str
    change: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """One practice.

    Attributes:
        name: Its identifier, on the page of the checklist too.
        title: What to do, in a few words.
        sources: Who says so, and who says otherwise.
        look: What is seen of it; None where the profile gives no occasion for it.
    """

    name: str
    title: str
    sources: tuple[Source, ...]
    look: Callable[[Observed], Look | None]


def practice(
    name: str, title: str, *sources: Source
) -> Callable[[Callable[[Observed], Look | None]], Practice]:
    """Makes the practice of the function that looks for it."""

    def made(look: Callable[[Observed], Look | None]) -> Practice:
        return Practice(name=name, title=title, sources=sources, look=look)

    return made


def offends(setting: str, why: str, change: str) -> Look:
    """The practice is not followed."""
    return Look(severity=Severity.OFFENDS, setting=setting, why=why, change=change)


def consider(setting: str, why: str, change: str) -> Look:
    """Whether it is followed depends on what the application needs."""
    return Look(severity=Severity.CONSIDER, setting=setting, why=why, change=change)


def fine(setting: str, why: str) -> Look:
    """The practice is followed."""
    return Look(severity=Severity.FINE, setting=setting, why=why)
