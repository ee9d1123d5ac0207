"""How attempts were answered, by the names of responses in records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from harness.measure.counts.snapshot import answer_named, page_words
from harness.measure.record.record import LoadingPart, RunRecord
from harness.model.figures import agreed, counted, listed, number, per_operation, percent, some
from harness.model.operation import Kind
from harness.model.outcome import THROTTLING_STATUSES, Outcome, is_throttling, outcome_of


def throttled_by_status(attempts: Mapping[str, int]) -> dict[str, int]:
    """Throttled attempts by status, of attempts by the names of responses in records."""
    counts = {str(status): 0 for status in THROTTLING_STATUSES}
    for name, count in attempts.items():
        status, code = answer_named(name)
        if is_throttling(status, code):
            counts[str(status)] += count
    return counts


def other_answers(attempts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Names and counts of answers and faults but throttling and success, most frequent first."""
    others = [
        (name, count)
        for name, count in attempts.items()
        if count and not name.startswith("2") and not is_throttling(*answer_named(name))
    ]
    return sorted(others, key=lambda item: (-item[1], item[0]))


def failed_attempts(attempts: Mapping[str, int]) -> dict[str, int]:
    """Attempts that failed otherwise than by throttling, likewise by the names in records."""
    failed = {}
    for name, count in attempts.items():
        outcome = outcome_of(*answer_named(name))
        if outcome.failed and outcome is not Outcome.THROTTLED:
            failed[name] = count
    return failed


def loading_words(loading: LoadingPart) -> str:
    """What was loaded, and which attempts did not succeed: the end of a sentence, or nothing."""
    answers = loading.attempts_by_status
    throttled = {name: count for name, count in answers.items() if tone_of(name) == "bad"}
    words = []
    for kinds, one, many in (
        (throttled, "was throttled", "were throttled"),
        (failed_attempts(answers), "failed", "failed"),
    ):
        if count := sum(kinds.values()):
            words.append(f"{count:,} {agreed(count, one, many)} ({', '.join(kinds)})")
    if not loading.entities and not words:
        return ""
    lost = f"; of {counted(loading.attempts, 'attempt')}, {listed(words)}" if words else ""
    return f"; {loading.entities:,} loaded in {number(loading.seconds)} s{lost}"


@dataclasses.dataclass(frozen=True, slots=True)
class ResponseCount:
    """The attempts with one response, and their share of all attempts."""

    name: str
    count: int
    share: float


def response_counts(record: RunRecord) -> list[ResponseCount]:
    """Attempts by response, the most frequent first."""
    everything = record.counts.attempts or 1
    ordered = sorted(record.attempts_by_status.items(), key=lambda item: -item[1])
    return [ResponseCount(name, count, count / everything) for name, count in ordered]


def attempts_words(record: RunRecord) -> tuple[str, str]:
    """Attempts per operation, and how many attempts were throttled: a sentence each."""
    counts, throttled = record.counts, record.throttled
    in_flight = counts.attempts_in_flight
    ended = counts.attempts - in_flight
    each = ended / counts.operations if counts.operations else 0.0
    requests = f"{counted(ended, 'attempt')} for {counted(counts.operations, 'operation')}"
    queries = any(part.type == Kind.QUERY for part in record.operations)
    pages = page_words(record.attempts_by_status, counts.operations + counts.in_flight) * queries
    requests += f" ({per_operation(each)} per operation{pages})"
    if counts.in_flight:
        operations = counted(counts.in_flight, "operation")
        requests += f"; {f'{in_flight:,} more for ' * bool(in_flight)}{operations} still in flight"
    refused = f"throttled: {sum(throttled.values()):,} ({percent(record.throttled_ratio)})"
    if record.enforced is not None and record.enforced.refused_words:
        refused += f"; the gateway refused {record.enforced.refused_words}"
    elif record.request_units is None and record.throttled_ratio:
        # Cosmos DB does not say whose limit it was.
        refused += f", {some(throttled['account'])} of them by an account's limit"
    return requests, refused


def tone_of(name: str) -> str:
    """``bad`` for a throttled response, ``faint`` for another that did not succeed, else empty."""
    if name.startswith("2"):
        return ""
    return "bad" if is_throttling(*answer_named(name)) else "faint"
