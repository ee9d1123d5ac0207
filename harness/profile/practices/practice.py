"""A documented practice: what asks for it, and how a profile or a run is compared with it.

Where documents disagree, those that advise otherwise are cited beside the others.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable

from harness.model.figures import counted
from harness.model.services.service import LimitUnit
from harness.profile.checks.seen import Seen


class Severity(enum.StrEnum):
    """How bad it is, worst first."""

    OFFENDS = "offends"
    CONSIDER = "consider"
    """It depends on what the application needs, or the documents disagree."""
    FINE = "fine"
    UNTOLD = "untold"
    """The record of the run does not say."""


class Document(enum.StrEnum):
    """A source of practices; the value is the document's title."""

    PARTITIONING = "Design a scalable partitioning strategy for Azure Table storage"
    BLOG = "Optimal PartitionKey & RowKey Design for Blog Posts"
    KEYS = "Best Practices for PartitionKey and RowKey in Azure Table Storage"
    CHECKLIST = "Performance and scalability checklist for Table storage"
    STRATEGIES = "Data partitioning strategies"
    COSMOS = "Partitioning and horizontal scaling in Azure Cosmos DB"
    COSMOS_FAQ = "Frequently asked questions about Azure Cosmos DB for Table"
    UNITS = "Request Units in Azure Cosmos DB"
    DATA_MODEL = "Understanding the Table service data model"
    ACCOUNTS = "docs/accounts.md"
    PROFILES = "docs/profiles.md"
    SESSIONS = "docs/sessions.md"
    WATCH = "docs/watch.md"


PARTITIONING, BLOG, KEYS, CHECKLIST, STRATEGIES, COSMOS, COSMOS_FAQ, UNITS, *_OTHERS = Document
DATA_MODEL, ACCOUNTS, PROFILES, SESSIONS, WATCH = _OTHERS


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A section of a document in our own words; ``otherwise`` it advises what we advise against."""

    document: Document
    section: str
    says: str
    otherwise: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Assessment:
    """What a profile does about a practice.

    Attributes:
        why: What the profile does, and the consequence.
        setting: The setting that decides it; empty in a check for that of the practice.
        change: What to change; empty in a check for that of the practice.
    """

    severity: Severity
    why: str
    setting: str = ""
    change: str = ""


offends, consider, fine, untold = (functools.partial(Assessment, severity) for severity in Severity)
Check = Callable[[Seen], Assessment | None]

SCATTER = "Begin the key with a value that separates neighbours"
GROUP = "Group entities that are queried together under one PartitionKey."

ENTITY_LIMITS = frozenset((LimitUnit.ENTITIES,))
UNIT_LIMITS = frozenset((LimitUnit.REQUEST_UNITS,))
TABLES = ENTITY_LIMITS | UNIT_LIMITS
"""Where practices apply: services with limits in entities, in request units, or in either."""
MESSAGE_LIMITS = frozenset((LimitUnit.MESSAGES,))
WITHOUT_ROWS = frozenset((LimitUnit.UNDOCUMENTED,))
EVERYWHERE = TABLES | WITHOUT_ROWS | MESSAGE_LIMITS


@dataclasses.dataclass(frozen=True, slots=True)
class Practice:
    """A check, which compares what was seen with the practice, and its decorators.

    Attributes:
        applies: What the limits of the services count that it is about.
        relieves: The limits of a run (`Seen.limits`) that it bears on: where one of them held the
            run back, and the practice is violated, the report advises it.
    """

    check: Check
    title: str = ""
    setting: str = ""
    change: str = ""
    sources: tuple[Source, ...] = ()
    applies: frozenset[LimitUnit] = TABLES
    relieves: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its identifier, also in ``docs/checklist.md``."""
        return self.check.__name__.replace("_", "-")

    def look(self, seen: Seen) -> Assessment | None:
        """What was seen of the practice; None if the practice does not apply."""
        if seen.limited_in not in self.applies:
            return None
        look = self.check(seen)
        if look is None:
            return None
        setting = seen.setting(look.setting or self.setting)
        bad = look.severity in (Severity.OFFENDS, Severity.CONSIDER)
        change = (look.change or self.change) if bad else ""
        return Assessment(look.severity, look.why, setting, change)


Decorator = Callable[[Check | Practice], Practice]


def practice(
    title: str,
    setting: str = "",
    *,
    applies: frozenset[LimitUnit] = TABLES,
    relieves: tuple[str, ...] = (),
) -> Decorator:
    """Make the practice of a check, which has its name; ``setting`` usually decides it."""
    return lambda of: dataclasses.replace(
        _practice(of), title=title, setting=setting, applies=applies, relieves=relieves
    )


def says(document: Document, section: str, what: str, *, otherwise: bool = False) -> Decorator:
    """Cite a section that asks for the practice."""

    def cite(of: Check | Practice) -> Practice:
        made = _practice(of)
        source = Source(document, section, what, otherwise)
        return dataclasses.replace(made, sources=(source, *made.sources))

    return cite


disagrees = functools.partial(says, otherwise=True)
"""Cites a section that advises what the practice advises against."""


def remedy(change: str) -> Decorator:
    return lambda of: dataclasses.replace(_practice(of), change=change)


def _practice(of: Check | Practice) -> Practice:
    return of if isinstance(of, Practice) else Practice(of)


def share_of(count: int, of: int, one: str, more: str | None = None) -> str:
    """A count of all, in words: ``3 of 20 queries``."""
    return f"{count:,} of {counted(of, one, more)}"
