"""Makes the record of a run from its last snapshot."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from harness.measure.conditions import ConditionResult
from harness.measure.generator import GeneratorView
from harness.measure.latency import LatencyView
from harness.measure.record import (
    SCHEMA_VERSION,
    AccountPart,
    ConditionPart,
    CountsPart,
    EndpointPart,
    EntityPart,
    EstimatePart,
    GeneratorPart,
    LatencyPart,
    LoadingPart,
    OperationPart,
    PartitionPart,
    RatesPart,
    RunRecord,
    SeriesPart,
    VerdictPart,
)
from harness.measure.snapshot import PartitionView, Rates, SeriesPoint, Snapshot, throttled_of
from harness.measure.tally import AttemptKey
from harness.measure.verdict import Verdict
from harness.model.operation import WHOLE_TABLE
from harness.model.outcome import Outcome, Scope
from harness.model.target import Targets

MOST_SERIES_POINTS = 1200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a snapshot does not know about its run. Times are ISO 8601, UTC."""

    harness_version: str
    run_id: str
    profile: dict[str, Any]
    endpoint: EndpointPart
    session: str
    started_at: str
    ended_at: str
    ended_by: str
    workers: int
    users: int
    complete: bool
    waiting: int
    in_flight: int
    billable_transactions: int
    entity: EntityPart
    loading: LoadingPart


def broken_invariants(
    snapshot: Snapshot, *, waiting: int, in_flight: int, defects: int = 0
) -> tuple[str, ...]:
    """Every law that the run broke, as sentences.

    Args:
        snapshot: The last one.
        waiting: Operations that were due and neither sent nor dropped.
        in_flight: Operations that were sent and have no outcome.
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
    defects += snapshot.outcomes.get(Outcome.DEFECT, 0)
    if defects:
        broken.append(f"{defects} operations ended in a defect of the harness or of its user class")
    return tuple(broken)


def build_record(
    facts: RunFacts,
    snapshot: Snapshot,
    generator: GeneratorView,
    verdict: Verdict,
    conditions: Iterable[ConditionResult],
    *,
    targets: Targets | None,
    invariants: tuple[str, ...],
    exit_code: int,
) -> RunRecord:
    """The record of a run that has ended."""
    counts = snapshot.counts
    account_target = None if targets is None else targets.account
    partition_target = None if targets is None else targets.partition
    attempts_in_window = sum(
        point.attempts for point in snapshot.series if snapshot.start <= point.second < snapshot.end
    )
    length = snapshot.end - snapshot.start
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        harness_version=facts.harness_version,
        run_id=facts.run_id,
        profile=facts.profile,
        endpoint=facts.endpoint,
        session=facts.session,
        started_at=facts.started_at,
        ended_at=facts.ended_at,
        ended_by=facts.ended_by,
        window_start=snapshot.start,
        measured_s=max(0, length),
        workers=facts.workers,
        users=facts.users,
        complete=facts.complete,
        invariants=invariants,
        exit_code=exit_code,
        entity=facts.entity,
        loading=facts.loading,
        counts=CountsPart(
            due=counts.due,
            sent=counts.sent,
            waiting=facts.waiting,
            dropped=counts.dropped,
            in_flight=facts.in_flight,
            operations=counts.operations,
            attempts=counts.attempts,
            transactions=counts.transactions,
            entities=counts.entities,
            entities_returned=counts.entities_returned,
            entities_estimated=counts.entities_estimated,
            billable_transactions=facts.billable_transactions,
            bytes_sent=counts.bytes_sent,
            bytes_received=counts.bytes_received,
        ),
        outcomes={str(outcome): count for outcome, count in sorted(snapshot.outcomes.items())},
        attempts_by_status=attempts_by_status(snapshot.attempts),
        throttled={
            "partition": throttled_of(snapshot.attempts, Scope.PARTITION),
            "account": throttled_of(snapshot.attempts, Scope.ACCOUNT),
        },
        throttled_ratio=snapshot.throttled_ratio,
        service_ms=_latency(snapshot.service),
        response_ms=_latency(snapshot.response),
        account=AccountPart(
            entities_per_s=_rates(snapshot.entities_per_s),
            reads_per_s=_rounded(snapshot.reads_per_s),
            writes_per_s=_rounded(snapshot.writes_per_s),
            transactions_per_s=_rounded(attempts_in_window / length if length > 0 else 0.0),
            target=account_target,
            ratio=_share(snapshot.entities_per_s.mean, account_target),
        ),
        partitions=tuple(
            _partition(view, None if view.key == WHOLE_TABLE else partition_target)
            for view in snapshot.partitions
        ),
        partitions_folded=(None if snapshot.folded is None else _partition(snapshot.folded, None)),
        operations=tuple(
            OperationPart(
                kind=str(view.kind),
                count=view.operations,
                entities=view.entities,
                entities_per_s=_rates(view.entities_per_s),
                outcomes={str(outcome): count for outcome, count in sorted(view.outcomes.items())},
                service_ms=_latency(view.service),
                response_ms=_latency(view.response),
            )
            for view in snapshot.kinds
        ),
        series=_series(snapshot.series),
        generator=GeneratorPart(
            cpu_percent_max=_rounded(generator.cpu_percent_max),
            cpu_percent_mean=_rounded(generator.cpu_percent_mean),
            busy_share=_rounded(generator.busy_share),
            machine_percent_max=_rounded(generator.machine_percent_max),
            machine_busy_share=_rounded(generator.machine_busy_share),
            lag_s_max=_rounded(generator.lag_s_max),
        ),
        verdict=VerdictPart(
            result=str(verdict.result), limited_by=verdict.limited_by, sentence=verdict.sentence
        ),
        conditions=tuple(
            ConditionPart(text=result.text, value=result.value, passed=result.passed)
            for result in conditions
        ),
    )


def attempts_by_status(attempts: Mapping[AttemptKey, int]) -> dict[str, int]:
    """Attempts by what answered: ``204``, ``503 ServerBusy partition``, ``connection_reset``."""
    named: dict[str, int] = {}
    for (status, code, scope), count in sorted(attempts.items()):
        parts = [str(status) if status else "", code, str(scope)]
        name = " ".join(part for part in parts if part)
        named[name] = named.get(name, 0) + count
    return named


def _partition(view: PartitionView, target: float | None) -> PartitionPart:
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
        entities_by_kind={str(kind): n for kind, n in sorted(view.entities_by_kind.items())},
        entities_per_s=_rates(view.entities_per_s),
        target=target,
        ratio=_share(view.entities_per_s.mean, target),
        attempts_by_status=attempts_by_status(view.attempts),
        throttled_ratio=view.throttled_ratio,
        service_ms=_latency(view.service),
        response_ms=_latency(view.response),
    )


def _series(points: tuple[SeriesPoint, ...]) -> tuple[SeriesPart, ...]:
    """The time series with at most `MOST_SERIES_POINTS` points, all of one width."""
    width = -(-len(points) // MOST_SERIES_POINTS) if points else 1
    parts = []
    for first in range(0, len(points), width):
        group = points[first : first + width]

        def mean(name: str, group: tuple[SeriesPoint, ...] = group) -> float:
            return _rounded(sum(getattr(point, name) for point in group) / len(group))

        parts.append(
            SeriesPart(
                t=group[0].second,
                width_s=len(group),
                entities=mean("entities"),
                operations=mean("operations"),
                failed=mean("failed"),
                attempts=mean("attempts"),
                throttled=_rounded(
                    mean("throttled_503") + mean("throttled_500") + mean("throttled_429")
                ),
                throttled_503=mean("throttled_503"),
                throttled_500=mean("throttled_500"),
                throttled_429=mean("throttled_429"),
            )
        )
    return tuple(parts)


def _rates(rates: Rates) -> RatesPart:
    return RatesPart(
        mean=_rounded(rates.mean),
        best_1s=_rounded(rates.best_1s),
        best_10s=_rounded(rates.best_10s),
    )


def _latency(view: LatencyView | None) -> LatencyPart | None:
    if view is None:
        return None
    return LatencyPart(
        count=view.count,
        mean=_rounded(view.total_s / view.count * 1000),
        p50=_rounded(view.p50_s * 1000),
        p90=_rounded(view.p90_s * 1000),
        p99=_rounded(view.p99_s * 1000),
        max=_rounded(view.max_s * 1000),
    )


def _share(value: float, target: float | None) -> float | None:
    return None if target is None else round(value / target, 4)


def _rounded(value: float) -> float:
    return round(value, 3)
