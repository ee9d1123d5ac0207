"""The documented practices, and what a profile or a run does about each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from harness.profile.checks import cosmos, keys, load, operations
from harness.profile.checks.practice import Look, Practice, Severity
from harness.profile.checks.seen import Seen

PRACTICES = tuple(
    value
    for module in (keys, operations, load, cosmos)
    for value in vars(module).values()
    if isinstance(value, Practice)
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A practice, and what was seen of it."""

    practice: Practice
    look: Look

    @property
    def severity(self) -> Severity:
        return self.look.severity


def findings_of(seen: Seen) -> tuple[Finding, ...]:
    """What was seen of every practice that applies, worst first."""
    looks = ((practice, practice.look(seen)) for practice in PRACTICES)
    found = [Finding(practice=practice, look=look) for practice, look in looks if look is not None]
    order = list(Severity)
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def of_severity(findings: Sequence[Finding], severity: Severity) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.severity is severity)
