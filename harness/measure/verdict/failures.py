"""Failures that are not throttling: of attempts, also where retries hid them, and of operations.

Regular answers about the data (404, 409, 412) are no failures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from harness.measure.counts.snapshot import Snapshot, attempts_by_status
from harness.model.figures import agreed, counted, listed, percent
from harness.model.outcome import AttemptKey, Fault, Outcome, Scope, outcome_of

SAID_FROM = 0.001
"""Share of failed attempts from which every output names them."""
FAILING_FROM = 0.01
"""Share of failed attempts from which the endpoint, or the way to it, fails."""
OPERATIONS_FROM = 0.001
"""Share of failed operations from which it fails, however few attempts did."""
UNUSABLE_FROM = 0.01
"""Share of failed operations from which rates and latencies are those of failures too."""
MIXED_FROM = 0.1
"""Share of failed operations from which percentiles are not those of served ones: refusals are
quick, and of half of them the 99th percentile is the 98th of the others."""
_OF_ONE = 0.9
"""Share of the failed attempts from which they are those of one partition."""
_FEWEST_FAILED = 20
_MOST_KINDS = 3
_BY_CHANCE = 0.001
"""Probability from which it may be chance that all failures are of some operations."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The failures of a run.

    Attributes:
        by_kind: Failed attempts by the name of their answer, the most frequent first.
        by_outcome: Operations that failed, without throttled ones.
        refused: True if most failed attempts were answered that the request is not allowed, or is
            invalid.
        alone: Names one of several partitions, or else accounts, that nearly all failed attempts
            were for, or empty.
        full: Partitions that store no more, those with most such answers first; empty if most
            attempts failed for another reason.
        watched: Whether they are those of an application, whose retries may not be known as such.
    """

    attempts: int
    operations: int
    by_kind: Mapping[str, int]
    by_outcome: Mapping[Outcome, int]
    refused: bool = False
    alone: str = ""
    full: tuple[str, ...] = ()
    watched: bool = False

    @property
    def left(self) -> bool:
        """Whether an application left most failed attempts before they had their answer."""
        return self.watched and self.by_kind.get(Fault.READ_TIMEOUT, 0) * 2 > self.failed_attempts

    @property
    def failed_attempts(self) -> int:
        return sum(self.by_kind.values())

    @property
    def failed_operations(self) -> int:
        return sum(self.by_outcome.values())

    @property
    def attempt_ratio(self) -> float:
        return self.failed_attempts / self.attempts if self.attempts else 0.0

    @property
    def operation_ratio(self) -> float:
        return self.failed_operations / self.operations if self.operations else 0.0

    @property
    def said(self) -> bool:
        """Whether the sentence and the first screen name the failures."""
        return self.attempt_ratio >= SAID_FROM or self.failing

    @property
    def failing(self) -> bool:
        """Whether so much failed that the endpoint, or the way to it, fails."""
        return self.attempt_ratio >= FAILING_FROM or self.operation_ratio >= OPERATIONS_FROM

    @property
    def only_time_outs(self) -> bool:
        """Whether no attempt failed but those that the client did not wait for any longer."""
        return set(self.by_kind) <= {Fault.READ_TIMEOUT, Fault.CONNECT_TIMEOUT}

    @property
    def decisive(self) -> bool:
        """Whether a failing run says nothing else: operations failed, not attempts alone."""
        return self.operation_ratio >= UNUSABLE_FROM

    @property
    def most(self) -> bool:
        """Whether most operations failed, and not by chance: nothing more need be measured."""
        return self.operation_ratio > 0.5 and self.failed_attempts >= _FEWEST_FAILED

    @property
    def cause(self) -> str:
        """What a failing run shows, as the beginning of a sentence."""
        if self.full:
            others = f" and {counted(more, 'other')}" if (more := len(self.full) - 1) else ""
            full = f"Partition {self.full[0]!r}{others} {agreed(len(self.full), 'is', 'are')} full"
            return f"{full}, and the service refuses what would add to it"
        if self.left:
            return "The application closes connections before it has its answers"
        if self.alone:
            # What other partitions answered came from the same endpoint.
            return f"{self.alone} {'are refused' if self.refused else 'fail'}"
        if self.refused:
            return "The endpoint refuses requests"
        return "The endpoint, or the way to it, fails"

    @property
    def share(self) -> str:
        """The share of the failures, as a sentence without its full stop."""
        if self.attempt_ratio >= SAID_FROM:
            return f"{percent(self.attempt_ratio)} of the attempts failed"
        return f"{percent(self.operation_ratio)} of the operations failed"

    @property
    def brief(self) -> str:
        """Likewise, with the kinds of the failures."""
        kinds = self._kinds if self.attempt_ratio >= SAID_FROM else self._outcomes
        return f"{self.share} ({kinds})"

    @property
    def described(self) -> str:
        """Failed attempts and operations with their kinds, likewise."""
        words = (
            f"{self.failed_attempts:,} of {counted(self.attempts, 'attempt')} failed "
            f"({percent(self.attempt_ratio)}): {self._kinds}"
        )
        if not self.failed_operations:
            return f"{words}; retries hid all of these failures"
        operations = (
            f"{self.failed_operations:,} of {counted(self.operations, 'operation')} failed"
            f"{'' if self.watched else ' for good'} ({percent(self.operation_ratio)}): "
            f"{self._outcomes}"
        )
        return f"{words}; {operations}" if self.by_kind else operations

    @property
    def _kinds(self) -> str:
        shown = list(self.by_kind.items())[:_MOST_KINDS]
        if len(self.by_kind) == 1:
            return shown[0][0]
        more = len(self.by_kind) - len(shown)
        named = [f"{kind} {percent(count / self.attempts)}" for kind, count in shown]
        return listed([*named, *([counted(more, "other kind")] if more else [])])

    @property
    def _outcomes(self) -> str:
        return ", ".join(
            outcome for outcome, _ in sorted(self.by_outcome.items(), key=lambda item: -item[1])
        )


def failed_share(snapshot: Snapshot) -> float:
    """Share of the operations that failed for good, because they were throttled or otherwise."""
    failed = sum(count for outcome, count in snapshot.outcomes.items() if outcome.failed)
    return failed / (sum(snapshot.outcomes.values()) or 1)


def throttled_kinds(snapshot: Snapshot) -> str:
    """The only operations that throttling made fail for good; empty if that may be chance."""
    lost = {part.kind: part.outcomes.get(Outcome.THROTTLED, 0) for part in snapshot.operations}
    those = [part for part in snapshot.operations if lost[part.kind]]
    share = sum(part.count for part in those) / (snapshot.counts.operations or 1)
    chance = share ** sum(lost.values())
    return listed([part.kind for part in those]) if chance < _BY_CHANCE else ""


def _failed(attempts: Mapping[AttemptKey, int]) -> dict[AttemptKey, int]:
    """The attempts that failed otherwise than by throttling; answers about the data are none."""
    outcomes = {key: outcome_of(*key[:2]) for key in attempts}
    return {
        (status, code, Scope.NONE): attempts[status, code, scope]
        for (status, code, scope), outcome in outcomes.items()
        if outcome.failed and outcome is not Outcome.THROTTLED
    }


def failures_of(snapshot: Snapshot, *, watched: bool = False) -> Failures:
    failed = _failed(snapshot.attempts)
    refused = sum(count for key, count in failed.items() if not outcome_of(*key[:2]).maybe_applied)
    by_kind = attempts_by_status(failed)
    everything = sum(by_kind.values())
    each = {f"partition {part.key!r}": part.attempts for part in snapshot.single_partitions}
    accounts = {f"account {part.name}": part.attempts for part in snapshot.accounts}
    full = {part.key: _refused_as_full(part.attempts) for part in snapshot.partitions}
    if _refused_as_full(snapshot.attempts) * 2 <= everything:
        full = {}
    return Failures(
        attempts=snapshot.counts.attempts,
        operations=sum(snapshot.outcomes.values()),
        by_kind=dict(sorted(by_kind.items(), key=lambda item: -item[1])),
        by_outcome={
            outcome: count
            for outcome, count in snapshot.outcomes.items()
            if outcome.failed and outcome is not Outcome.THROTTLED
        },
        refused=refused * 2 > everything,
        alone=_alone(each, everything) or _alone(accounts, everything),
        watched=watched,
        full=tuple(sorted(filter(full.__getitem__, full), key=lambda key: -full[key])),
    )


def _alone(each: Mapping[str, Mapping[AttemptKey, int]], everything: int) -> str:
    """The requests to the one of several that nearly all failures are of; empty if none is."""
    failed = {name: sum(_failed(attempts).values()) for name, attempts in each.items()}
    most = max(failed, key=lambda name: failed[name], default="")
    if len(each) < 2 or not failed[most] >= _OF_ONE * everything > 0:
        return ""
    return f"{'Only' if failed[most] == everything else 'Nearly only'} requests to {most}"


def _refused_as_full(attempts: Mapping[AttemptKey, int]) -> int:
    """The attempts that were refused because a partition stores as much as it may."""
    return sum(
        count
        for (status, code, _), count in attempts.items()
        if outcome_of(status, code) is Outcome.PARTITION_FULL
    )
