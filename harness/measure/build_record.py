"""Makes the record of a run from its last snapshot."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from harness.measure.conditions import ConditionResult, parse_condition
from harness.measure.figures import counted
from harness.measure.findings import (
    AdvicePart,
    AuditPart,
    ConditionPart,
    GapPart,
    MachinePart,
    PointersPart,
    PredictionPart,
    SearchPart,
    ThrottlingPart,
    VerdictPart,
)
from harness.measure.generator import GeneratorView
from harness.measure.record import (
    SCHEMA_VERSION,
    AccountPart,
    CountsPart,
    EndpointPart,
    EntityPart,
    GeneratorPart,
    LoadingPart,
    OperationPart,
    RunRecord,
)
from harness.measure.recorded import (
    attempts_by_status,
    heat_part,
    latency_course_part,
    latency_part,
    partition_part,
    rates_part,
    rounded,
    series_parts,
    share,
)
from harness.measure.snapshot import Snapshot, throttled_of
from harness.measure.verdict import Verdict
from harness.model.operation import over_partitions
from harness.model.outcome import Outcome, Scope
from harness.model.target import Targets


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
    pointers: tuple[PointersPart, ...] = ()
    search: SearchPart | None = None
    audit: AuditPart | None = None
    prediction: PredictionPart | None = None
    connections: int | None = None
    connections_in_use: int | None = None
    redacted: bool = False
    machine: MachinePart | None = None


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
        ended = counted(defects, "operation")
        broken.append(f"{ended} ended in a defect of the harness or of its user class")
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
        service_ms=latency_part(snapshot.service),
        response_ms=latency_part(snapshot.response),
        account=AccountPart(
            entities_per_s=rates_part(snapshot.entities_per_s),
            reads_per_s=rounded(snapshot.reads_per_s),
            writes_per_s=rounded(snapshot.writes_per_s),
            transactions_per_s=rounded(attempts_in_window / length if length > 0 else 0.0),
            target=account_target,
            ratio=share(snapshot.entities_per_s.mean, account_target),
        ),
        partitions=tuple(
            partition_part(view, None if over_partitions(view.key) else partition_target)
            for view in snapshot.partitions
        ),
        partitions_folded=(
            None if snapshot.folded is None else partition_part(snapshot.folded, None)
        ),
        operations=tuple(
            OperationPart(
                kind=view.label,
                type=str(view.kind),
                count=view.operations,
                entities=view.entities,
                entities_returned=view.returned,
                entities_estimated=view.estimated,
                uncertain=view.uncertain,
                entities_per_s=rates_part(view.entities_per_s),
                outcomes={str(outcome): count for outcome, count in sorted(view.outcomes.items())},
                service_ms=latency_part(view.service),
                response_ms=latency_part(view.response),
            )
            for view in snapshot.kinds
        ),
        series=series_parts(snapshot.series, generator),
        heat=heat_part(snapshot.course.heat),
        service_over_time=latency_course_part(snapshot.course.service),
        response_over_time=latency_course_part(snapshot.course.response),
        redacted=facts.redacted,
        machine=facts.machine,
        generator=GeneratorPart(
            cpu_percent_max=rounded(generator.cpu_percent_max),
            cpu_percent_mean=rounded(generator.cpu_percent_mean),
            busy_share=rounded(generator.busy_share),
            machine_percent_max=rounded(generator.machine_percent_max),
            machine_busy_share=rounded(generator.machine_busy_share),
            lag_s_max=rounded(generator.lag_s_max),
            cpu_percents=tuple(rounded(percent) for percent in generator.cpu_percents),
            connections=facts.connections,
            connections_in_use=facts.connections_in_use,
        ),
        verdict=VerdictPart(
            result=str(verdict.result),
            limited_by=verdict.limited_by,
            sentence=verdict.sentence,
            evidence=verdict.evidence,
            advice=tuple(
                AdvicePart(text=one.text, document=one.document, section=one.section)
                for one in verdict.advice
            ),
        ),
        conditions=tuple(
            ConditionPart(
                text=result.text,
                value=result.value,
                passed=result.passed,
                note=result.note,
                unit=str(parse_condition(result.text).unit),
            )
            for result in conditions
        ),
        pointers=facts.pointers,
        throttling=ThrottlingPart(
            **{
                **dataclasses.asdict(verdict.throttling),
                "gaps": tuple(
                    GapPart(**dataclasses.asdict(gap)) for gap in verdict.throttling.gaps
                ),
            }
        ),
        search=facts.search,
        audit=facts.audit,
        prediction=facts.prediction,
    )
