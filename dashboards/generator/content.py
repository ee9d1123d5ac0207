"""What the dashboard shows: its panels, row by row."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from dashboards.generator import queries as q
from dashboards.generator.panels import About, Query, bars, heat, lines, number, words
from harness.measure.counts.generator import BUSY_PERCENT
from harness.model.target import PUBLISHED

_ENTITIES_PER_S = "suffix: entities/s"
_ATTEMPTS_PER_S = "suffix: attempts/s"
_OPERATIONS_PER_S = "suffix: operations/s"
_SECONDS = "s"
_COUNT = "short"
_SHARE = "percentunit"

_NO_DATA = "No data for this run and these partitions in this time range"
_NO_TARGET = "This endpoint has no target in entities/s"
_CLOSED = "No data: closed-loop load, or the run has not begun"
_ABOVE = 1.1
"""The upper end of an axis, in targets, so that the line of the target is always visible."""


def rows() -> list[tuple[str, list[Panel]]]:
    """Titles of the rows, and their panels."""
    return [
        ("The run", _run()),
        ("Entities per second and the published targets", _rates()),
        ("Throttling", _throttling()),
        ("Latency in the measured window", _latency()),
        ("Key ranges", _key_ranges()),
        ("The generator", _generator()),
    ]


def _run() -> list[Panel]:
    def about(title: str, description: str, unit: str, absent: str = _NO_DATA) -> About:
        return About(
            title=title, description=description, unit=unit, absent=absent, width=4, height=4
        )

    return [
        words(
            about("Phase", "The current phase of the run.", "none", "No run"),
            Query(q.PHASE, "{{phase}}"),
            instant=True,
        ),
        words(
            about(
                "Verdict",
                "The result of the run, and what limited the rate. The annotation at the end of "
                "the run has the whole sentence.",
                "none",
                "Available at the end of the run",
            ),
            Query(q.VERDICT, "{{verdict}} {{limited_by}}"),
            instant=False,
        ),
        number(
            about("Entities/s now", "The sum of all partitions.", _ENTITIES_PER_S),
            Query(q.ENTITIES, "account"),
        ),
        number(
            about(
                "Hottest partition",
                "Its rate as a share of the target of one partition. Above 100 % the partition may "
                "be throttled.",
                _SHARE,
                _NO_TARGET,
            ),
            Query(q.HOTTEST, "share of target"),
            at=1.0,
        ),
        number(
            about(
                "Throttled attempts",
                "Share of HTTP requests answered with 503, 429, or 500 OperationTimedOut. No value "
                "means that no request was throttled.",
                _SHARE,
                "None",
            ),
            Query(q.THROTTLED_RATIO, "throttled"),
            at=0.01,
        ),
        number(
            about(
                "Budget left",
                "Billable transactions left, as a share of limits.billable_transactions. The run "
                "ends at 0.",
                _SHARE,
                "No budget is set",
            ),
            Query(q.BUDGET_LEFT, "left"),
        ),
    ]


def _rates() -> list[Panel]:
    return [
        lines(
            About(
                title="Entities/s per partition",
                description=f"The line is {PUBLISHED.partition:,.0f} entities/s, the published "
                "target of one partition for entities of 1 KiB. Every entity that is inserted, "
                "updated, deleted or scanned counts. 200 partitions are shown separately; (other) "
                "is the sum of the rest, (table) is queries over a whole table. The line does not "
                "apply to Cosmos DB.",
                unit=_ENTITIES_PER_S,
                absent=_NO_DATA,
                width=12,
                height=10,
            ),
            Query(q.ENTITIES_BY_PARTITION, "{{partition}}"),
            at=PUBLISHED.partition,
            up_to=PUBLISHED.partition * _ABOVE,
        ),
        lines(
            About(
                title="Entities/s of the account",
                description=f"The sum of all partitions. The line is {PUBLISHED.account:,.0f} "
                "entities/s, the published target of a storage account. It does not apply to "
                "Cosmos DB.",
                unit=_ENTITIES_PER_S,
                absent=_NO_DATA,
                width=12,
                height=10,
            ),
            Query(q.ENTITIES, "account"),
            at=PUBLISHED.account,
            up_to=PUBLISHED.account * _ABOVE,
        ),
        bars(
            About(
                title="Share of the target, ten hottest partitions",
                description="The current rate of a partition as a share of the target of one "
                "partition. Cosmos DB has no such target.",
                unit=_SHARE,
                absent=_NO_TARGET,
                width=8,
            ),
            Query(q.HOTTEST_TEN, "{{partition}}"),
            at=1.0,
        ),
        lines(
            About(
                title="Offered and achieved",
                description="The requested rate and the rate served. If achieved stays below "
                "offered, look at throttling first, then at the generator. A closed-loop load "
                "without a limit has no offered rate.",
                unit=_ENTITIES_PER_S,
                absent=_NO_DATA,
                width=8,
            ),
            Query(q.OFFERED, "offered"),
            Query(q.ENTITIES, "achieved"),
        ),
        lines(
            About(
                title="Operations by outcome",
                description="Results of operations after all retries. An operation that succeeded "
                "on its third attempt is one success here and two throttled attempts below.",
                unit=_OPERATIONS_PER_S,
                absent=_NO_DATA,
                width=8,
            ),
            Query(q.OUTCOMES, "{{outcome}}"),
        ),
        lines(
            About(
                title="Backlog",
                description="Operations that are due and not sent, and operations that are sent "
                "and not answered. A growing backlog means that the load is behind its schedule. A "
                "closed-loop load has no backlog.",
                unit=_COUNT,
                absent=_CLOSED,
                width=12,
            ),
            Query(q.WAITING, "waiting"),
            Query(q.IN_FLIGHT, "in flight"),
        ),
        lines(
            About(
                title="Dropped operations",
                description="Operations dropped unsent, because they were overdue by more than "
                "load.give_up_after_s or because the budget was spent.",
                unit=_OPERATIONS_PER_S,
                absent=_NO_DATA,
                width=12,
            ),
            Query(q.DROPPED, "dropped"),
        ),
    ]


def _throttling() -> list[Panel]:
    def by_status(status: int, meaning: str) -> Panel:
        return lines(
            About(
                title=f"{status} per partition",
                description=f"{meaning} Every HTTP request counts, also if a retry succeeded. The "
                "scope is the limit that was exceeded: that of the partition or of the account.",
                unit=_ATTEMPTS_PER_S,
                absent=f"No {status}",
                width=8,
            ),
            Query(q.throttled(status), "{{partition}} ({{scope}})"),
        )

    return [
        by_status(503, "503 ServerBusy: a limit was exceeded."),
        by_status(
            500, "500 OperationTimedOut: a limit was exceeded, or a partition is being moved."
        ),
        by_status(429, "429 TooManyRequests: Cosmos DB only."),
        lines(
            About(
                title="Throttled attempts by scope",
                description="A partition limit calls for other keys, an account limit for a lower "
                "rate or another account.",
                unit=_ATTEMPTS_PER_S,
                absent="Nothing was throttled",
                width=12,
            ),
            Query(q.THROTTLED_BY_SCOPE, "{{scope}}"),
        ),
        lines(
            About(
                title="Hidden throttling: attempts per operation",
                description="HTTP requests per operation. Above 1, retries hide failures from the "
                "application, which sees them as latency. Further pages of a query are attempts "
                "too.",
                unit=_COUNT,
                absent=_NO_DATA,
                width=12,
            ),
            Query(q.ATTEMPTS_PER_OPERATION, "attempts per operation"),
            at=1.0,
        ),
    ]


_RANGES = (
    "A row is a range of PartitionKeys, named by its first key, in key order from the bottom up. "
    "Queries over a whole table have a row of their own. A horizontal line is a hot key, a "
    "diagonal an append-only load, an even area an even spread. There are at most 64 ranges: "
    "neighbours are merged as keys are added, and the row of a merged range ends."
)


def _latency() -> list[Panel]:
    """Both latencies as a heat map, as percentiles over time, and as exact percentiles."""
    panels = []
    for of, means in (
        ("service", "from the first attempt to the complete answer, retries included."),
        (
            "response",
            "from the moment the operation was due to the complete answer: what an application "
            "would see. It includes the wait in the backlog. A closed-loop load has none.",
        ),
    ):
        absent = "No data yet" if of == "service" else _CLOSED
        panels += [
            heat(
                About(
                    title=f"{of.capitalize()} latency",
                    description=f"Operations by latency, {means}",
                    unit=_OPERATIONS_PER_S,
                    absent=absent,
                    width=10,
                    height=10,
                ),
                Query(q.buckets(of), "{{le}}"),
                axis_unit=_SECONDS,
                buckets=True,
            ),
            lines(
                About(
                    title=f"{of.capitalize()} latency, percentiles",
                    description=f"Latency {means} Interpolated from the buckets of a histogram; "
                    "the panel of the window has exact percentiles.",
                    unit=_SECONDS,
                    absent=absent,
                    width=10,
                    height=10,
                ),
                *(
                    Query(q.quantile(share, of), f"p{share * 100:.0f}")
                    for share in (0.5, 0.9, 0.99)
                ),
            ),
            number(
                About(
                    title=f"{of.capitalize()} latency, window",
                    description="Exact percentiles of the measured window so far, as the record "
                    "will have them.",
                    unit=_SECONDS,
                    absent=absent,
                    width=4,
                    height=10,
                ),
                Query(q.percentiles(of), "{{quantile}}"),
            ),
        ]
    return panels


def _key_ranges() -> list[Panel]:
    """The heat map of keys, for entities and for throttled attempts."""
    return [
        heat(
            About(
                title="Entities/s by key range",
                description=_RANGES,
                unit=_ENTITIES_PER_S,
                absent=_NO_DATA,
                width=12,
                height=12,
            ),
            # Grafana would sort a name that is a number as a number, not as a key.
            Query(q.RANGE_ENTITIES, "from {{range}}"),
            axis_unit="none",
            buckets=False,
        ),
        heat(
            About(
                title="Throttled attempts by key range",
                description=f"The key ranges that are throttled. {_RANGES}",
                unit=_ATTEMPTS_PER_S,
                absent=_NO_DATA,
                width=12,
                height=12,
            ),
            Query(q.RANGE_THROTTLED, "from {{range}}"),
            axis_unit="none",
            buckets=False,
        ),
    ]


def _generator() -> list[Panel]:
    """Whether the generator was the limit, and what its requests cost."""
    return [
        lines(
            About(
                title="Generator CPU",
                description=f"CPU of each process that generates load, in percent of one core. "
                f"From {BUSY_PERCENT:.0f} % on the generator may limit the rate: add --processes "
                "or machines.",
                unit="percent",
                absent=_NO_DATA,
                width=8,
            ),
            Query(q.CPU, "{{worker}}"),
            at=BUSY_PERCENT,
            up_to=100.0,
        ),
        lines(
            About(
                title="Workers and users",
                description="Processes that generate load, and the simulated users of all of them.",
                unit=_COUNT,
                absent=_NO_DATA,
                width=8,
            ),
            Query(q.WORKERS, "workers"),
            Query(q.USERS, "users"),
        ),
        lines(
            About(
                title="Billable transactions",
                description="Requests that the account is charged for, with loading, retries, "
                "further pages and cleaning. A transaction of 100 is billed once.",
                unit="suffix: transactions/s",
                absent=_NO_DATA,
                width=8,
            ),
            Query(q.BILLED, "billable"),
        ),
    ]
