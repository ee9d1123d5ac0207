"""The documented practices, and what a profile or a run does about each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import ModuleType

from harness.measure.record.findings import AdvicePart
from harness.measure.record.record import RunRecord
from harness.profile.checks.recorded import seen_in
from harness.profile.checks.seen import Seen
from harness.profile.practices import (
    cosmos,
    generator,
    keys,
    load,
    partitions,
    queries,
    retries,
    writes,
)
from harness.profile.practices.practice import Assessment, Practice, Severity


def _in(*modules: ModuleType) -> tuple[Practice, ...]:
    values = (value for module in modules for value in vars(module).values())
    return tuple(value for value in values if isinstance(value, Practice))


_OF_KEYS = _in(keys, partitions)
PRACTICES = (*_OF_KEYS, *_in(queries, writes, retries, load, generator, cosmos))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A practice, and what was seen of it."""

    practice: Practice
    look: Assessment

    @property
    def severity(self) -> Severity:
        return self.look.severity

    @property
    def advice(self) -> AdvicePart:
        """The same for a report: what to change, why, and the first document that asks for it."""
        source = self.practice.sources[0]
        return AdvicePart(
            text=self.look.change,
            why=self.look.why,
            document=source.document.value,
            section=source.section,
            practice=self.practice.name,
        )


def findings_of(seen: Seen) -> tuple[Finding, ...]:
    """What was seen of every practice that applies, worst first."""
    looks = [
        (practice, practice.look(seen)) for practice in (_OF_KEYS if seen.keys_only else PRACTICES)
    ]
    found = [
        Finding(practice=practice, look=look)
        for practice, look in looks
        if look is not None and not (seen.keys_only and look.severity is Severity.UNTOLD)
    ]
    order = list(Severity)
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def of_severity(findings: Sequence[Finding], severity: Severity) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.severity is severity)


def with_advice(record: RunRecord) -> RunRecord:
    """The record with its advice: what is violated and bears on a limit of the run.

    What bears on the most important limit comes first.
    """
    seen = seen_in(record)
    violated = of_severity(findings_of(seen), Severity.OFFENDS) if seen.limits else ()
    chosen = {
        finding.advice: None
        for limit in seen.limits
        for finding in violated
        if limit in finding.practice.relieves
    }
    verdict = record.verdict.model_copy(update={"advice": tuple(chosen)})
    return record.model_copy(update={"verdict": verdict})
