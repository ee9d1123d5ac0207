"""Makes the record of a run from its last snapshot."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from harness.measure.counts.generator import GeneratorView
from harness.measure.counts.heatmap import HeatView
from harness.measure.counts.snapshot import SeriesPoint, Snapshot, attempts_by_status
from harness.measure.counts.time_course import LatencyCourseView
from harness.measure.figures import counted
from harness.measure.record.findings import (
    AdvicePart,
    ConditionPart,
    ThrottlingPart,
    VerdictPart,
)
from harness.measure.record.over_time import (
    HeatPart,
    KeyRangePart,
    LatencyCoursePart,
    SeriesPart,
    row_of,
)
from harness.measure.record.record import (
    AccountPart,
    CountsPart,
    GeneratorPart,
    LatencyPart,
    rounded,
    share,
)
from harness.measure.verdict.conditions import ConditionResult, parse_condition
from harness.measure.verdict.verdict import Verdict
from harness.model.operation import over_partitions
from harness.model.outcome import THROTTLING_STATUSES, Outcome, Scope, throttled_of
from harness.model.target import Targets

MOST_SERIES_POINTS = 1200


def broken_invariants(
    snapshot: Snapshot,
    *,
    waiting: int,
    in_flight: int,
    attempts_in_flight: int = 0,
    defects: int = 0,
) -> tuple[str, ...]:
    """Every law that the run broke, as sentences.

    Args:
        snapshot: The last one.
        waiting: Operations that were due and neither sent nor dropped.
        in_flight: Operations that were sent and have no outcome.
        attempts_in_flight: Attempts that these operations have had.
        defects: Operations that ended in an exception of the harness.
    """
    counts = snapshot.counts
    broken = []
    if counts.due != counts.sent + waiting + counts.dropped:
        broken.append(
            f"due {counts.due} is not sent {counts.sent} + waiting {waiting} + dropped "
            f"{counts.dropped}"
        )
    outcomes = sum(snapshot.outcomes.values())
    if counts.sent != outcomes + in_flight:
        broken.append(f"sent {counts.sent} is not outcomes {outcomes} + in flight {in_flight}")
    if counts.attempts != counts.attempts_ended + attempts_in_flight:
        broken.append(
            f"attempts {counts.attempts} are not {counts.attempts_ended} of operations that ended "
            f"+ {attempts_in_flight} of those in flight"
        )
    defects += snapshot.outcomes.get(Outcome.DEFECT, 0)
    if defects:
        ended = counted(defects, "operation")
        broken.append(f"{ended} ended in a defect of the harness or of its user class")
    return tuple(broken)


def measured_fields(
    snapshot: Snapshot, generator: GeneratorView, targets: Targets | None
) -> dict[str, Any]:
    """The fields of a `RunRecord` that a snapshot gives, but for ``counts``."""
    length = snapshot.end - snapshot.start
    partition_target = None if targets is None else targets.partition
    folded = snapshot.folded
    return {
        "window_start": snapshot.start,
        "measured_s": max(0, length),
        "outcomes": {str(outcome): count for outcome, count in sorted(snapshot.outcomes.items())},
        "attempts_by_status": attempts_by_status(snapshot.attempts),
        "throttled": {
            str(scope): throttled_of(snapshot.attempts, scope)
            for scope in (Scope.PARTITION, Scope.ACCOUNT)
        },
        "throttled_ratio": snapshot.throttled_ratio,
        "service_ms": _rounded(snapshot.service_ms),
        "response_ms": _rounded(snapshot.response_ms),
        "account": _account_part(snapshot, None if targets is None else targets.account),
        "partitions": tuple(
            part.recorded(None if over_partitions(part.key) else partition_target)
            for part in snapshot.partitions
        ),
        "partitions_folded": None if folded is None else folded.recorded(None),
        "operations": tuple(part.recorded() for part in snapshot.operations),
        "series": series_parts(snapshot.series, generator),
        "heat": heat_part(snapshot.course.heat),
        "service_over_time": latency_course_part(snapshot.course.service),
        "response_over_time": latency_course_part(snapshot.course.response),
    }


def counts_part(
    snapshot: Snapshot,
    *,
    waiting: int,
    in_flight: int,
    attempts_in_flight: int = 0,
    billable_transactions: int,
) -> CountsPart:
    """The counts of a snapshot, with what a snapshot does not know."""
    return CountsPart(
        waiting=waiting,
        in_flight=in_flight,
        attempts_in_flight=attempts_in_flight,
        billable_transactions=billable_transactions,
        **dataclasses.asdict(snapshot.counts),
    )


def generator_part(
    generator: GeneratorView, *, connections: int | None, connections_in_use: int | None
) -> GeneratorPart:
    """The generator over the measured window."""
    return GeneratorPart(
        cpu_percent_max=rounded(generator.cpu_percent_max),
        cpu_percent_mean=rounded(generator.cpu_percent_mean),
        busy_share=rounded(generator.busy_share),
        machine_percent_max=rounded(generator.machine_percent_max),
        machine_busy_share=rounded(generator.machine_busy_share),
        lag_s_max=rounded(generator.lag_s_max),
        cpu_percents=tuple(map(rounded, generator.cpu_percents)),
        connections=connections,
        connections_in_use=connections_in_use,
    )


def judged_fields(verdict: Verdict, conditions: Iterable[ConditionResult]) -> dict[str, Any]:
    """The fields of a `RunRecord` that hold the verdict and the conditions."""
    return {
        "verdict": VerdictPart(
            result=str(verdict.result),
            limited_by=verdict.limited_by,
            sentence=verdict.sentence,
            evidence=verdict.evidence,
            advice=tuple(AdvicePart(**dataclasses.asdict(one)) for one in verdict.advice),
        ),
        "conditions": tuple(
            ConditionPart(
                text=result.text,
                value=result.value,
                passed=result.passed,
                note=result.note,
                unit=str(parse_condition(result.text).unit),
            )
            for result in conditions
        ),
        "throttling": ThrottlingPart(**dataclasses.asdict(verdict.throttling)),
    }


def _account_part(snapshot: Snapshot, target: float | None) -> AccountPart:
    length = snapshot.end - snapshot.start
    attempts = sum(
        point.attempts for point in snapshot.series if snapshot.start <= point.second < snapshot.end
    )
    return AccountPart(
        entities_per_s=snapshot.entities_per_s.rounded(),
        reads_per_s=rounded(snapshot.reads_per_s),
        writes_per_s=rounded(snapshot.writes_per_s),
        transactions_per_s=rounded(attempts / length if length > 0 else 0.0),
        target=target,
        ratio=share(snapshot.entities_per_s.mean, target),
    )


def _rounded(part: LatencyPart | None) -> LatencyPart | None:
    return None if part is None else part.rounded()


def series_parts(
    points: tuple[SeriesPoint, ...], generator: GeneratorView
) -> tuple[SeriesPart, ...]:
    """The time series with at most `MOST_SERIES_POINTS` points, all of one width."""
    width = -(-len(points) // MOST_SERIES_POINTS) if points else 1
    parts = []
    for first in range(0, len(points), width):
        group = points[first : first + width]

        def mean(name: str, group: tuple[SeriesPoint, ...] = group) -> float:
            if len(group) == 1:
                # As most are: a live page has all of them made again every other second.
                return rounded(getattr(group[0], name))
            return rounded(sum(getattr(point, name) for point in group) / len(group))

        throttled = {
            status: rounded(sum(point.throttled_by_status[status] for point in group) / len(group))
            for status in THROTTLING_STATUSES
        }
        parts.append(
            SeriesPart(
                t=group[0].second,
                width_s=len(group),
                entities=mean("entities"),
                operations=mean("operations"),
                failed=mean("unsuccessful"),
                attempts=mean("attempts"),
                throttled=rounded(sum(throttled.values())),
                throttled_by_status=throttled,
                waiting=mean("waiting"),
                dropped=mean("dropped"),
                offered=_known_mean(generator.offered, group),
                cpu_percent=_known_mean(generator.cpu_by_second, group),
            )
        )
    return tuple(parts)


def heat_part(view: HeatView | None) -> HeatPart | None:
    """The heat map; None where nothing was counted."""
    if view is None:
        return None
    return HeatPart(
        start=view.start,
        width_s=view.width_s,
        columns=view.columns,
        ranges=tuple(
            KeyRangePart(
                first=row.first,
                last=row.last,
                entities=row_of(row.entities),
                throttled=row_of(row.throttled),
            )
            for row in view.ranges
        ),
    )


def latency_course_part(view: LatencyCourseView | None) -> LatencyCoursePart | None:
    """Latencies over time; None where nothing was measured."""
    if view is None:
        return None
    return LatencyCoursePart(
        start=view.start,
        width_s=view.width_s,
        columns=len(view.rows[0]),
        bounds_ms=tuple(rounded(bound * 1000) for bound in view.bounds_s),
        rows=tuple(row_of(row) for row in view.rows),
    )


def _known_mean(values: Mapping[int, float], points: tuple[SeriesPoint, ...]) -> float | None:
    known = [values[point.second] for point in points if point.second in values]
    return rounded(sum(known) / len(known)) if known else None
