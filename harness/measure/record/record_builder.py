"""Makes the record of a run from its last snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.measure.counts.snapshot import SeriesPoint, Snapshot, attempts_by_status
from harness.measure.record.findings import ConditionPart, VerdictPart, rounded
from harness.measure.record.measured import AccountPart, GeneratorPart, share
from harness.measure.record.over_time import SeriesPart
from harness.measure.verdict.evidence import Evidence
from harness.model.figures import counted
from harness.model.operation import Kind, over_partitions
from harness.model.outcome import THROTTLING_STATUSES, Outcome, Scope, throttled_of
from harness.model.target import UNKNOWN_THROUGHPUT, Targets, Throughput

MOST_SERIES_POINTS = 1200


def broken_invariants(
    snapshot: Snapshot,
    *,
    waiting: int,
    in_flight: int,
    attempts_in_flight: int = 0,
    defects: int = 0,
) -> tuple[str, ...]:
    """The violations of conservation, a sentence each.

    Args:
        waiting: Operations that were due and neither sent nor dropped.
        in_flight: Operations that were sent and have no outcome, with ``attempts_in_flight``.
        attempts_in_flight: Their attempts.
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
    snapshot: Snapshot,
    generator: GeneratorPart,
    targets: Targets | None,
    hosts: Sequence[str] = (),
    throughput: Throughput = UNKNOWN_THROUGHPUT,
) -> dict[str, Any]:
    """The fields of a `RunRecord` that a snapshot gives, except ``counts``.

    ``hosts`` are those of the accounts of the snapshot, and ``throughput`` what was provisioned
    for each of them.
    """
    partition_target = None if targets is None else targets.partition
    account_target = None if targets is None else targets.account
    partitions = []
    for part in snapshot.partitions:
        several = over_partitions(part.key)
        target = None if several else partition_target
        units = part.request_units
        partitions.append(
            part.recorded(
                target=target,
                ratio=share(part.entities_per_s.mean, target),
                throttled_ratio=part.throttled_ratio,
                request_units=units
                and units.held_against(None if several else throughput.partition_ru_per_s),
            )
        )
    folded, whole = snapshot.folded, snapshot.request_units
    provisioned = throughput.ru_per_s
    return {
        "window_start": snapshot.start,
        "measured_s": max(0, snapshot.length_s),
        "outcomes": {str(outcome): count for outcome, count in sorted(snapshot.outcomes.items())},
        "attempts_by_status": attempts_by_status(snapshot.attempts),
        "throttled": {
            str(scope): throttled_of(snapshot.attempts, scope)
            for scope in (Scope.PARTITION, Scope.ACCOUNT)
        },
        "throttled_ratio": snapshot.throttled_ratio,
        "service_ms": snapshot.service_ms and snapshot.service_ms.recorded(),
        "response_ms": snapshot.response_ms and snapshot.response_ms.recorded(),
        "account": _account_part(snapshot, account_target),
        "accounts": tuple(
            part.recorded(
                host=host,
                target=account_target,
                ratio=share(part.entities_per_s.mean, account_target),
                throttled_ratio=part.throttled_ratio,
                request_units=part.request_units and part.request_units.held_against(provisioned),
            )
            for part, host in zip(snapshot.accounts, hosts, strict=True)
        ),
        "partitions": tuple(partitions),
        "partitions_folded": folded and folded.recorded(throttled_ratio=folded.throttled_ratio),
        "operations": tuple(part.recorded() for part in snapshot.operations),
        "request_units": whole
        and whole.held_against(provisioned and provisioned * max(1, len(snapshot.accounts))),
        "series": series_parts(snapshot.series, generator, charged=whole is not None),
        "heat": snapshot.heat,
        "service_over_time": snapshot.service_over_time,
        "response_over_time": snapshot.response_over_time,
    }


def judged_fields(
    evidence: Evidence, verdict: VerdictPart, conditions: Iterable[ConditionPart]
) -> dict[str, Any]:
    """The fields of a `RunRecord` that hold the verdict and the conditions."""
    return {
        "verdict": verdict,
        "conditions": tuple(condition.recorded(value=condition.value) for condition in conditions),
        "throttling": evidence.throttling,
    }


def _account_part(snapshot: Snapshot, of_each: float | None) -> AccountPart:
    target = None if of_each is None else of_each * max(1, len(snapshot.accounts))
    attempts = sum(
        point.attempts for point in snapshot.series if snapshot.start <= point.second < snapshot.end
    )
    return AccountPart(
        entities_per_s=snapshot.entities_per_s.recorded(),
        reads_per_s=rounded(snapshot.reads_per_s),
        writes_per_s=rounded(snapshot.writes_per_s),
        transactions_per_s=rounded(attempts / snapshot.length_s if snapshot.length_s > 0 else 0.0),
        target=target,
        ratio=share(snapshot.entities_per_s.mean, target),
    )


def series_parts(
    points: Sequence[SeriesPoint], generator: GeneratorPart, *, charged: bool = False
) -> tuple[SeriesPart, ...]:
    """The time series with at most `MOST_SERIES_POINTS` points, all of the same width.

    If the service ``charged`` request units, they are in every point.
    """
    width = -(-len(points) // MOST_SERIES_POINTS) or 1
    return tuple(
        _series_part(points[first : first + width], generator, charged=charged)
        for first in range(0, len(points), width)
    )


def _series_part(
    points: Sequence[SeriesPoint], generator: GeneratorPart, *, charged: bool
) -> SeriesPart:
    def mean(name: str) -> float:
        if len(points) == 1:
            # The usual case, and a live page makes the whole series every other second.
            return rounded(getattr(points[0], name))
        return rounded(sum(getattr(point, name) for point in points) / len(points))

    throttled = {
        status: rounded(sum(point.throttled_by_status[status] for point in points) / len(points))
        for status in THROTTLING_STATUSES
    }
    return SeriesPart(
        t=points[0].second,
        width_s=len(points),
        entities=mean("entities"),
        operations=mean("operations"),
        failed=mean("unsuccessful"),
        attempts=mean("attempts"),
        throttled=rounded(sum(throttled.values())),
        throttled_by_status=throttled,
        waiting=mean("waiting"),
        dropped=mean("dropped"),
        retrying=mean("retrying"),
        offered=_known_mean(generator.offered, points),
        cpu_percent=_known_mean(generator.cpu_by_second, points),
        machine_percent=_known_mean(generator.machine_by_second, points),
        others_percent=_known_mean(generator.others_by_second, points),
        request_units=rounded(mean("charges") / 100) if charged else None,
        costliest_request_units=rounded(mean("costliest") / 100) if charged else None,
    )


def _known_mean(values: Mapping[int, float], points: Sequence[SeriesPoint]) -> float | None:
    known = [values[point.second] for point in points if point.second in values]
    return rounded(sum(known) / len(known)) if known else None


def bytes_of_entity(snapshot: Snapshot) -> int:
    """Mean bytes on the wire of a written entity, about: the bodies of all requests over them."""
    writes = [part for part in snapshot.operations if not Kind(part.type).reads]
    entities = sum(part.entities for part in writes)
    return round(snapshot.counts.bytes_sent / entities) if entities else 0
