"""The practices of the documents, held against a profile before anything is sent.

The performance checklist and the key design practices advise; where another document disagrees,
it is cited too. What a practice is about is in `harness/profile/checks`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from harness.profile.checks import growth, keys, queries, writes
from harness.profile.checks.observed import Observed
from harness.profile.checks.practice import Look, Practice, Severity

PRACTICES: tuple[Practice, ...] = (
    *growth.PRACTICES,
    *keys.PRACTICES,
    *queries.PRACTICES,
    *writes.PRACTICES,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A practice, and what was seen of it."""

    practice: Practice
    look: Look

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.look.severity


def findings_of(seen: Observed) -> tuple[Finding, ...]:
    """What was seen of every practice that the profile gives an occasion for, worst first."""
    found = [
        Finding(practice=practice, look=look)
        for practice in PRACTICES
        if (look := practice.look(seen)) is not None
    ]
    order = list(Severity)
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def of_severity(findings: Sequence[Finding], severity: Severity) -> tuple[Finding, ...]:
    """Those of one severity."""
    return tuple(finding for finding in findings if finding.severity is severity)
