"""The record of a run, of a watched application, or of recorded traffic, from its last snapshot."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from harness import __version__
from harness.measure.counts.generator import SampledGenerator
from harness.measure.counts.snapshot import SeriesPoint, Snapshot, attempts_by_status
from harness.measure.record.findings import ConditionPart, VerdictPart, rounded
from harness.measure.record.measured import (
    AccountLoadPart,
    AccountPart,
    CountsPart,
    GeneratorPart,
    LatencyPart,
    OperationPart,
    PartitionPart,
    RatesPart,
    SeriesPart,
    share,
)
from harness.measure.record.record import (
    SCHEMA_VERSION,
    EntityPart,
    LoadingPart,
    RunRecord,
    TargetsPart,
)
from harness.measure.verdict.conditions import ConditionResult
from harness.measure.verdict.evidence import Evidence
from harness.measure.verdict.verdict import exit_code
from harness.model.figures import counted
from harness.model.operation import Kind
from harness.model.outcome import THROTTLING_STATUSES, Outcome, Scope, throttled_of

MOST_SERIES_POINTS = 1200
_MEANS = ("entities", "operations", "attempts", "waiting", "dropped", "retrying")


@dataclasses.dataclass(frozen=True, slots=True)
class Unfinished:
    """Operations that had no outcome when the load ended.

    Attributes:
        waiting: Those that were due and neither sent nor dropped.
    """

    waiting: int = 0
    in_flight: int = 0
    attempts_in_flight: int = 0


NOTHING_UNFINISHED = Unfinished()


def assembled(
    evidence: Evidence,
    verdict: VerdictPart,
    conditions: Sequence[ConditionResult] = (),
    *,
    span_s: tuple[float, float],
    enough: bool = True,
    unfinished: Unfinished = NOTHING_UNFINISHED,
    billable_transactions: int = 0,
    hosts: Sequence[str] = (),
    **known: Any,
) -> RunRecord:
    """The record of whatever was counted: a run, a watched application, recorded traffic.

    Args:
        span_s: When the load began and ended, UTC.
        enough: Whether it was long enough to decide the conditions.
        hosts: Those of the accounts of the snapshot.
        known: What the evidence does not tell: all other fields of a `RunRecord` that have to be
            there, and those that are known better, such as the size of an entity.
    """
    snapshot, generator = evidence.snapshot, evidence.generator
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "started_at": iso_instant(span_s[0]),
        "ended_at": iso_instant(span_s[1]),
        "users": evidence.users,
        "complete": evidence.all_reported and not evidence.cut_short_by,
        "invariants": (),
        "exit_code": exit_code(
            invariants_hold=not known.get("invariants"),
            enough=enough,
            verdict=verdict,
            conditions=conditions,
        ),
        "entity": EntityPart(
            stored_bytes=evidence.entity_bytes, wire_bytes=bytes_of_entity(snapshot)
        ),
        "loading": LoadingPart(entities=0, seconds=0.0, attempts=0),
        "counts": CountsPart(
            **dataclasses.asdict(snapshot.counts),
            **dataclasses.asdict(unfinished),
            billable_transactions=billable_transactions,
        ),
        "generator": GeneratorPart.recorded(
            generator,
            # Shown in milliseconds with three digits.
            lag_s_max=round(generator.lag_s_max, 6),
            connections=evidence.connections,
            connections_in_use=evidence.connections_in_use,
        ),
        "watched": evidence.watched,
        "verdict": verdict,
        "conditions": tuple(ConditionPart.recorded(part, value=part.value) for part in conditions),
        "throttling": evidence.throttling,
        "light_ms": evidence.light_latency_s and rounded(evidence.light_latency_s * 1000),
    }
    held = {"targets": TargetsPart.raised(evidence.targets)}
    known["endpoint"] = known["endpoint"].model_copy(update=held)
    return RunRecord(**fields | measured_fields(evidence, hosts) | known)


def iso_instant(utc_s: float) -> str:
    """An instant as records have it: ISO 8601 with milliseconds, in UTC."""
    moment = dt.datetime.fromtimestamp(utc_s, tz=dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def broken_invariants(
    snapshot: Snapshot, unfinished: Unfinished = NOTHING_UNFINISHED, *, defects: int = 0
) -> tuple[str, ...]:
    """The violations of conservation, a sentence each.

    ``defects`` are operations that ended in an exception of the harness.
    """
    counts, waiting, in_flight = snapshot.counts, unfinished.waiting, unfinished.in_flight
    attempts_in_flight = unfinished.attempts_in_flight
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


def measured_fields(evidence: Evidence, hosts: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of a `RunRecord` that a snapshot gives, except ``counts``.

    ``hosts`` are those of the accounts of the snapshot.
    """
    snapshot, targets, throughput = evidence.snapshot, evidence.targets, evidence.throughput
    account_target = None if targets is None else targets.of_account
    partitions = []
    for part in snapshot.partitions:
        several = part.partition.whole_table
        target = part.partition.target(targets)
        units = part.request_units
        partitions.append(
            PartitionPart.recorded(
                part,
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
        "service_ms": snapshot.service_ms and LatencyPart.recorded(snapshot.service_ms),
        "response_ms": snapshot.response_ms and LatencyPart.recorded(snapshot.response_ms),
        "account": _account_part(snapshot, account_target),
        "accounts": tuple(
            AccountLoadPart.recorded(
                part,
                host=host,
                target=account_target,
                ratio=share(part.entities_per_s.mean, account_target),
                throttled_ratio=part.throttled_ratio,
                request_units=part.request_units and part.request_units.held_against(provisioned),
            )
            for part, host in zip(snapshot.accounts, hosts, strict=True)
        ),
        "partitions": tuple(partitions),
        "partitions_folded": folded
        and PartitionPart.recorded(folded, throttled_ratio=folded.throttled_ratio),
        "operations": tuple(OperationPart.recorded(part) for part in snapshot.operations),
        "request_units": whole
        and whole.held_against(provisioned and provisioned * max(1, len(snapshot.accounts))),
        "series": series_parts(
            snapshot.series,
            evidence.generator,
            charged=whole is not None,
            messages=snapshot.has_messages,
        ),
        "heat": snapshot.heat,
        "service_over_time": snapshot.service_over_time,
        "response_over_time": snapshot.response_over_time,
    }


def _account_part(snapshot: Snapshot, of_each: float | None) -> AccountPart:
    target = None if of_each is None else of_each * max(1, len(snapshot.accounts))
    attempts = sum(
        point.attempts for point in snapshot.series if snapshot.start <= point.second < snapshot.end
    )
    return AccountPart(
        entities_per_s=RatesPart.recorded(snapshot.entities_per_s),
        reads_per_s=rounded(snapshot.reads_per_s),
        writes_per_s=rounded(snapshot.writes_per_s),
        transactions_per_s=rounded(attempts / snapshot.length_s if snapshot.length_s > 0 else 0.0),
        target=target,
        ratio=share(snapshot.entities_per_s.mean, target),
    )


def series_parts(
    points: Sequence[SeriesPoint],
    generator: SampledGenerator,
    *,
    charged: bool = False,
    messages: bool = False,
) -> tuple[SeriesPart, ...]:
    """The time series with at most `MOST_SERIES_POINTS` points, all of the same width.

    Every point has request units if the service ``charged`` any, and the backlog of queues if
    ``messages`` were counted.
    """
    width = -(-len(points) // MOST_SERIES_POINTS) or 1
    groups = [points[first : first + width] for first in range(0, len(points), width)]
    parts = tuple(_series_part(group, generator, charged=charged) for group in groups)
    if not messages:
        return parts
    backlogs = itertools.accumulate(sum(point.kept for point in group) for group in groups)
    ages = (max(point.oldest_ms for point in group) for group in groups)
    return tuple(
        part.model_copy(update={"backlog": backlog, "oldest_ms": age})
        for part, backlog, age in zip(parts, backlogs, ages, strict=True)
    )


def second_part(
    point: SeriesPoint, generator: SampledGenerator, *, charged: bool, backlog: int | None
) -> SeriesPart:
    """One second of a run in progress: which partition is the costliest of the window is open.

    ``backlog`` is what queues hold at its end; None where no messages were counted.
    """
    part = _series_part((point,), generator, charged=charged)
    oldest_ms = None if backlog is None else point.oldest_ms
    known = {"costliest_request_units": None, "backlog": backlog, "oldest_ms": oldest_ms}
    return part.model_copy(update=known)


def _series_part(
    points: Sequence[SeriesPoint], generator: SampledGenerator, *, charged: bool
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
        **{name: mean(name) for name in _MEANS},
        failed=mean("unsuccessful"),
        throttled=rounded(sum(throttled.values())),
        throttled_by_status=throttled,
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
    """Mean bytes on the wire of a written entity, at most: all sent, reads and refusals too."""
    writes = [part for part in snapshot.operations if not Kind(part.type).reads]
    entities = sum(part.entities for part in writes)
    return round(snapshot.counts.bytes_sent / entities) if entities else 0
