"""What every query of the dashboard and every rule has to give, read off a run's record."""

from __future__ import annotations

import bisect
import dataclasses
import datetime as dt
import itertools
from collections.abc import Callable

from harness.measure.counts.latency import BUCKETS_S
from harness.metrics.exposition import OVER_S
from harness.report.answers import other_answers
from tests.support.scraped_run import Figures, Seen

RATE_S = 15
"""Of the rates that rules record."""
_BOUNDS_S = (0.0, *BUCKETS_S, 120.0)


def near(value: float, figure: float) -> bool:
    """Within 10 %, or within one where so little was counted."""
    return abs(value - figure) <= max(0.1 * abs(figure), 1.0)


def within_10_percent(value: float, figure: float) -> bool:
    """Within 10 %, however little it is."""
    return abs(value - figure) <= 0.1 * abs(figure)


def same_moment(value: float, figure: float) -> bool:
    """The same second, of times in milliseconds."""
    return abs(value - figure) < 1000


def same_bucket(value: float, figure: float) -> bool:
    """In the bucket of the histogram that the figure is in, 10 % over its edges at most."""
    place = bisect.bisect_left(_BOUNDS_S, figure)
    return _BOUNDS_S[place - 1] * 0.9 <= value <= _BOUNDS_S[place] * 1.1


@dataclasses.dataclass(frozen=True, slots=True)
class Expected:
    """How a query is asked, what the record says to it, and when the two agree."""

    ask: Callable[[Seen, str], Figures]
    record: Callable[[Seen], Figures]
    agree: Callable[[float, float], bool] = within_10_percent


def one(figure: Callable[[Seen], float]) -> Callable[[Seen], Figures]:
    """A figure of the whole run."""
    return lambda seen: {(): figure(seen)}


def utc_s(text: str) -> float:
    """Unix time of a record's text."""
    return dt.datetime.fromisoformat(text).timestamp()


def _rates(seen: Seen) -> Figures:
    return {(part.key,): part.entities_per_s.mean for part in seen.record.partitions}


def _shares(seen: Seen) -> Figures:
    return {key: rate / 2000 for key, rate in _rates(seen).items()}


def _throttled(status: int) -> Expected:
    def counted(seen: Seen) -> Figures:
        found: Figures = {
            (part.key, name.split()[-1]): float(count)
            for part in seen.record.partitions
            for name, count in part.attempts_by_status.items()
            if name.startswith(f"{status} ") and name.endswith(("partition", "account"))
        }
        return found

    def grown(seen: Seen, expr: str) -> Figures:
        """Without the partitions that were not throttled, whose series are 0."""
        return {key: count for key, count in seen.grown(expr).items() if count}

    return Expected(grown, counted, near)


def _other_answers(seen: Seen) -> Figures:
    found: dict[tuple[str, ...], float] = {}
    for name, count in other_answers(seen.record.attempts_by_status):
        status, _, code = name.partition(" ")
        place = (code, status) if status.isdecimal() else (status, "0")
        found[place] = found.get(place, 0.0) + count
    labels = 'scope="",status!~"2.."'
    return seen.since_first(found, "aztables_attempts_total", labels, "error_code", "status")


def _by_scope(seen: Seen) -> Figures:
    return {(scope,): float(count) for scope, count in seen.record.throttled.items()}


def _outcomes(seen: Seen) -> Figures:
    found: Figures = {(name,): float(count) for name, count in seen.record.outcomes.items()}
    return seen.since_first(found, "aztables_operations_total", "", "outcome")


def _attempts(seen: Seen) -> float:
    found: Figures = {(): float(seen.record.counts.attempts)}
    return seen.since_first(found, "aztables_attempts_total", "")[()]


def _operations(seen: Seen) -> float:
    found: Figures = {(): float(seen.record.counts.operations)}
    return seen.since_first(found, "aztables_operations_total", "")[()]


def _tries_by_partition(seen: Seen) -> Figures:
    found = {}
    for place, name in enumerate(
        ("aztables_attempts_total", "aztables_partition_operations_total")
    ):
        counts: Figures = {
            (part.key,): (sum(part.attempts_by_status.values()), part.operations)[place]
            for part in seen.record.partitions
        }
        found[name] = seen.since_first(counts, name, "", "partition")
    attempts, operations = found.values()
    return {key: attempts[key] / operations[key] for key in operations}


def _throttled_ratio(seen: Seen) -> float:
    return sum(_by_scope(seen).values()) / _attempts(seen)


def _billed(seen: Seen) -> float:
    found: Figures = {(): float(seen.record.counts.billable_transactions)}
    return seen.since_first(found, "aztables_billable_transactions_total", "")[()]


def _budget_left(seen: Seen) -> float:
    """As a share; one of it stands for what was spent when nothing is left."""
    limit = seen.record.profile["limits"]["billable_transactions"]
    return float(max(0, limit - seen.record.counts.billable_transactions) / limit)


def _all_buckets(seen: Seen, expr: str) -> Figures:
    """What the highest bucket grew by, of buckets that are all there and in order."""
    grown = seen.grown(expr)
    ordered = [grown[str(bound),] for bound in BUCKETS_S] + [grown["+Inf",]]
    assert len(grown) == len(ordered)
    # What was before the first look a rate guesses, for each bucket by itself.
    slack = 0.01 * ordered[-1]
    assert all(one <= other + slack for one, other in itertools.pairwise(ordered)), ordered
    return {("+Inf",): grown["+Inf",]}


def _busiest(seen: Seen, expr: str) -> Figures:
    """Of all workers the one with the most."""
    return seen.level(f"max({expr})")


def _by_range(name: str) -> Expected:
    """A range is the mean of its last seconds: looked at from when these lie in the window."""
    return Expected(
        lambda seen, expr: seen.mean(expr, from_s=OVER_S),
        lambda seen: seen.ranges(name, over_s=OVER_S),
    )


def _seconds(name: str, field: str) -> Callable[[Seen], float]:
    """A percentile of the record in seconds."""
    return lambda seen: float(getattr(seen.latency(name), field)) / 1000


def _latency(name: str) -> dict[str, Expected]:
    def counted(seen: Seen) -> Figures:
        found: Figures = {("+Inf",): float(seen.latency(name).count)}
        labels = f'latency="{name}",le="+Inf"'
        bucket = "aztables_operation_duration_seconds_bucket"
        return seen.since_first(found, bucket, labels, "le")

    title = f"{name.capitalize()} latency"
    percentiles = {
        f"{title}, percentiles {letter}": Expected(
            Seen.whole,
            one(_seconds(name, field)),
            same_bucket,
        )
        for letter, field in (("A", "p50"), ("B", "p90"), ("C", "p99"))
    }
    exact = Expected(
        Seen.last,
        lambda seen: {
            (name, share): getattr(seen.latency(name), field) / 1000
            for share, field in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"))
        },
    )
    return {
        f"{title} A": Expected(_all_buckets, counted),
        **percentiles,
        f"{title}, window A": exact,
    }


ACCOUNT = Expected(Seen.mean, one(lambda seen: seen.record.account.entities_per_s.mean))

PANELS: dict[str, Expected] = {
    "Phase A": Expected(Seen.last, lambda seen: {("done",): 1.0}),
    "Verdict A": Expected(
        Seen.last,
        lambda seen: {
            (verdict.limited_by, verdict.whole, verdict.result): 1.0
            for verdict in [seen.record.verdict]
        },
    ),
    "Entities/s now A": ACCOUNT,
    "Hottest partition A": Expected(Seen.mean, one(lambda seen: max(_shares(seen).values()))),
    "Throttled attempts A": Expected(Seen.whole, one(_throttled_ratio)),
    "Budget left A": Expected(
        Seen.last, one(_budget_left), lambda value, figure: abs(value - figure) < 0.01
    ),
    "Entities/s per partition A": Expected(Seen.mean, _rates),
    "Entities/s of the account A": ACCOUNT,
    "Share of the target, ten hottest partitions A": Expected(Seen.mean, _shares),
    "Offered and achieved A": Expected(Seen.level, one(lambda seen: seen.series("offered"))),
    "Offered and achieved B": ACCOUNT,
    "Operations by outcome A": Expected(Seen.grown, _outcomes, near),
    "Backlog A": Expected(Seen.level, one(lambda seen: seen.series("waiting"))),
    # All users are busy throughout, because there is a backlog.
    "Backlog B": Expected(Seen.level, one(lambda seen: seen.record.users)),
    "Dropped operations A": Expected(
        Seen.grown,
        lambda seen: seen.since_first(
            {(): float(seen.record.counts.dropped)}, "aztables_operations_dropped_total", ""
        ),
        near,
    ),
    "503 per partition A": _throttled(503),
    "500 per partition A": _throttled(500),
    "504 per partition A": _throttled(504),
    "Other answers A": Expected(Seen.grown, _other_answers, near),
    "Throttled attempts by scope A": Expected(Seen.grown, _by_scope, near),
    "Hidden throttling: attempts per operation A": Expected(
        Seen.whole, one(lambda seen: _attempts(seen) / _operations(seen))
    ),
    "Hidden throttling per partition A": Expected(Seen.whole, _tries_by_partition),
    **_latency("service"),
    **_latency("response"),
    "Entities/s by key range A": _by_range("entities"),
    "Throttled attempts by key range A": _by_range("throttled"),
    "Generator CPU A": Expected(_busiest, one(lambda seen: seen.series("cpu_percent")), near),
    "Workers and users A": Expected(Seen.highest, one(lambda seen: seen.record.workers)),
    "Workers and users B": Expected(Seen.highest, one(lambda seen: seen.record.users)),
    "Billable transactions A": Expected(Seen.grown, one(_billed)),
    # A moment that is asked for is what the record says, to the second.
    "Run started": Expected(
        Seen.last,
        one(lambda seen: utc_s(seen.record.started_at) * 1000),
        same_moment,
    ),
    "Measured window": Expected(
        lambda seen, expr: {key: start * 1000 for key, start in seen.level(expr).items()},
        one(lambda seen: seen.record.window_start * 1000),
        same_moment,
    ),
    "Verdict": Expected(
        Seen.last,
        lambda seen: {
            (verdict.whole, verdict.result): utc_s(seen.record.ended_at) * 1000
            for verdict in [seen.record.verdict]
        },
        same_moment,
    ),
}
"""By title of the panel and letter of the query, or name of the annotation."""


def _recorded(seen: Seen, record: str) -> Figures:
    """Means of what a rule recorded, from when its 15 s lie in the window."""
    return seen.mean(f'{record}{{run="$run"}}', from_s=RATE_S)


def _sum(seen: Seen, record: str) -> Figures:
    """The same of all its series together."""
    return {(): sum(_recorded(seen, record).values())}


def _rated(name: str) -> Callable[[Seen], Figures]:
    """The same of the record's series."""
    return one(lambda seen: seen.series(name, over_s=RATE_S))


RULES: dict[str, Expected] = {
    "run_partition:aztables_entities:rate15s": Expected(
        _recorded, lambda seen: seen.ranges("entities", over_s=RATE_S)
    ),
    "run:aztables_entities:rate15s": Expected(_recorded, _rated("entities")),
    "run_partition_status_scope:aztables_attempts_throttled:rate15s": Expected(
        _sum, _rated("throttled")
    ),
    "run_scope:aztables_attempts_throttled:rate15s": Expected(_sum, _rated("throttled")),
    "run:aztables_attempts_per_operation:ratio_rate15s": Expected(
        _recorded,
        one(
            lambda seen: (
                seen.series("attempts", over_s=RATE_S) / seen.series("operations", over_s=RATE_S)
            )
        ),
    ),
    "PartitionThrottled": Expected(Seen.fired, lambda seen: {("warning",): 1.0}),
    "AccountThrottled": Expected(Seen.fired, lambda seen: {("critical",): 1.0}),
    "BudgetNearlySpent": Expected(Seen.fired, lambda seen: {("info",): 1.0}),
}
"""By name of the record or the alert; an alert has fired, with the labels that are left."""

_NO_UNITS = "Table storage, and so the gateway, charges no request units: Cosmos DB does"
EMPTY = {
    "RU/s per partition A": _NO_UNITS,
    "RU/s per partition B": _NO_UNITS,
    "RU/s of the account A": _NO_UNITS,
    "RU/s of the account B": _NO_UNITS,
    "Share of the RU/s of a partition, ten hottest partitions A": _NO_UNITS,
    "RU/s by operation A": _NO_UNITS,
    "RU of an operation A": _NO_UNITS,
    "429 per partition A": "Table storage, and so the gateway, never answers 429: Cosmos DB does",
    "HotPartition": "nobody's two cores serve 2,000 entities/s from one partition of an emulator",
    "ClientLimited": "a generator with 90 % CPU would disturb what the other panels are held to",
}
"""What may be without series, and why. `promtool test rules` has series for both alerts."""
