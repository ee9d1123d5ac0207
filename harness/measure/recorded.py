"""Views of a snapshot as parts of a record: rounded, and in the units of the record."""

from __future__ import annotations

from collections.abc import Mapping

from harness.measure.generator import GeneratorView
from harness.measure.heatmap import HeatView
from harness.measure.latency import LatencyView
from harness.measure.latency_course import LatencyCourseView
from harness.measure.over_time import (
    HeatPart,
    KeyRangePart,
    LatencyCoursePart,
    SeriesPart,
    row_of,
)
from harness.measure.record import (
    EstimatePart,
    LatencyPart,
    PartitionPart,
    RatesPart,
)
from harness.measure.snapshot import PartitionView, Rates, SeriesPoint
from harness.measure.tally import AttemptKey

MOST_SERIES_POINTS = 1200


def attempts_by_status(attempts: Mapping[AttemptKey, int]) -> dict[str, int]:
    """Attempts by what answered: ``204``, ``503 ServerBusy partition``, ``connection_reset``."""
    named: dict[str, int] = {}
    for (status, code, scope), count in sorted(attempts.items()):
        parts = [str(status) if status else "", code, str(scope)]
        name = " ".join(part for part in parts if part)
        named[name] = named.get(name, 0) + count
    return named


def partition_part(view: PartitionView, target: float | None) -> PartitionPart:
    """One partition, or the folded ones; ``target`` is None where none holds."""
    return PartitionPart(
        key=view.key,
        exact=view.exact,
        since=view.since_s,
        estimate=(
            None
            if view.estimate is None
            else EstimatePart(at_least=view.estimate.at_least, at_most=view.estimate.at_most)
        ),
        entities=view.entities,
        entities_by_kind=dict(sorted(view.entities_by_operation.items())),
        entities_per_s=rates_part(view.entities_per_s),
        target=target,
        ratio=share(view.entities_per_s.mean, target),
        attempts_by_status=attempts_by_status(view.attempts),
        throttled_ratio=view.throttled_ratio,
        service_ms=latency_part(view.service),
        response_ms=latency_part(view.response),
    )


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

        parts.append(
            SeriesPart(
                t=group[0].second,
                width_s=len(group),
                entities=mean("entities"),
                operations=mean("operations"),
                failed=mean("failed"),
                attempts=mean("attempts"),
                throttled=rounded(
                    mean("throttled_503") + mean("throttled_500") + mean("throttled_429")
                ),
                throttled_503=mean("throttled_503"),
                throttled_500=mean("throttled_500"),
                throttled_429=mean("throttled_429"),
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


def rates_part(rates: Rates) -> RatesPart:
    """Entities a second."""
    return RatesPart(
        mean=rounded(rates.mean),
        best_1s=rounded(rates.best_1s),
        best_10s=rounded(rates.best_10s),
    )


def latency_part(view: LatencyView | None) -> LatencyPart | None:
    """Latencies in milliseconds; None where nothing was measured."""
    if view is None:
        return None
    return LatencyPart(
        count=view.count,
        mean=rounded(view.total_s / view.count * 1000),
        p50=rounded(view.p50_s * 1000),
        p90=rounded(view.p90_s * 1000),
        p99=rounded(view.p99_s * 1000),
        max=rounded(view.max_s * 1000),
    )


def share(value: float, target: float | None) -> float | None:
    """``value`` of ``target``; None where there is none."""
    return None if target is None else round(value / target, 4)


def _known_mean(values: Mapping[int, float], points: tuple[SeriesPoint, ...]) -> float | None:
    known = [values[point.second] for point in points if point.second in values]
    return rounded(sum(known) / len(known)) if known else None


def rounded(value: float) -> float:
    """To three decimal digits."""
    return round(value, 3)
