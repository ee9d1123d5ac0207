"""What the dashboard shows: its panels, row by row."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from dashboards.generator import queries as q
from dashboards.generator.details import generator, key_ranges, latency
from dashboards.generator.making import About, Query, bars, lines, number, words
from dashboards.generator.words import (
    ATTEMPTS_PER_S,
    CLOSED,
    COUNT,
    ENTITIES_PER_S,
    NO_DATA,
    NO_TARGET,
    OPERATIONS_PER_S,
    SHARE,
)
from harness.model.target import PUBLISHED

_ABOVE = 1.1
"""An axis reaches so many times its target, so that the line of the target is always seen."""


def rows() -> list[tuple[str, list[Panel]]]:
    """Titles of the rows, and their panels."""
    return [
        ("The run", _run()),
        ("Entities a second, held against the published targets", _rates()),
        ("Throttling", _throttling()),
        ("Latency in the measured window", latency()),
        ("Key ranges", key_ranges()),
        ("The generator", generator()),
    ]


def _run() -> list[Panel]:
    def about(title: str, description: str, unit: str, absent: str = NO_DATA) -> About:
        return About(
            title=title, description=description, unit=unit, absent=absent, width=4, height=4
        )

    return [
        words(
            about("Phase", "How far the run has come.", "none", "No run"),
            Query(q.PHASE, "{{phase}}"),
            instant=True,
        ),
        words(
            about(
                "Verdict",
                "What the run found, and which side was the limit. The annotation at its end has "
                "the whole sentence.",
                "none",
                "Comes at the end",
            ),
            Query(q.VERDICT, "{{verdict}} {{limited_by}}"),
            instant=False,
        ),
        number(
            about("Entities/s now", "Of all partitions together.", ENTITIES_PER_S),
            Query(q.ENTITIES, "account"),
        ),
        number(
            about(
                "Hottest partition",
                "Its share of one partition's target. From 100 % on it may throttle.",
                SHARE,
                NO_TARGET,
            ),
            Query(q.HOTTEST, "share of target"),
            at=1.0,
        ),
        number(
            about(
                "Throttled attempts",
                "Share of all HTTP requests that were answered with 503, 429, or 500 "
                "OperationTimedOut. Without a number nothing was throttled so far.",
                SHARE,
                "None",
            ),
            Query(q.THROTTLED_RATIO, "throttled"),
            at=0.01,
        ),
        number(
            about(
                "Budget left",
                "Billable transactions that the run may still make, as a share of "
                "limits.billable_transactions. At 0 the run ends.",
                SHARE,
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
                description=f"Held against {PUBLISHED.partition:,.0f} entities/s, the published "
                "target of one partition, for entities of 1 KiB. Every entity that is inserted, "
                "updated, deleted or scanned counts. 200 partitions are told apart, the rest is "
                "(other), queries over a whole table are (table). For Cosmos DB the line does not "
                "hold.",
                unit=ENTITIES_PER_S,
                absent=NO_DATA,
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
                description=f"All partitions together, held against {PUBLISHED.account:,.0f} "
                "entities/s, the published target of a storage account. For Cosmos DB the line "
                "does not hold.",
                unit=ENTITIES_PER_S,
                absent=NO_DATA,
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
                description="What a partition takes now, as a share of one partition's target. "
                "Without a target, as for Cosmos DB, there is none.",
                unit=SHARE,
                absent=NO_TARGET,
                width=8,
            ),
            Query(q.HOTTEST_TEN, "{{partition}}"),
            at=1.0,
        ),
        lines(
            About(
                title="Offered against achieved",
                description="What the load asks for, and what was served. Achieved below offered "
                "means that something is the limit: look at throttling, then at the generator. "
                "Nothing is offered where a load takes what comes.",
                unit=ENTITIES_PER_S,
                absent=NO_DATA,
                width=8,
            ),
            Query(q.OFFERED, "offered"),
            Query(q.ENTITIES, "achieved"),
        ),
        lines(
            About(
                title="Operations by outcome",
                description="How operations ended, retries included. One that succeeded on its "
                "third attempt is one success here, and two throttled attempts below.",
                unit=OPERATIONS_PER_S,
                absent=NO_DATA,
                width=8,
            ),
            Query(q.OUTCOMES, "{{outcome}}"),
        ),
        lines(
            About(
                title="Backlog",
                description="Operations that are due and not sent, and those that are sent and not "
                "answered. A backlog that grows means that the schedule cannot be kept. A closed "
                "load has none.",
                unit=COUNT,
                absent=CLOSED,
                width=12,
            ),
            Query(q.WAITING, "waiting"),
            Query(q.IN_FLIGHT, "in flight"),
        ),
        lines(
            About(
                title="Dropped operations",
                description="Operations that were given up unsent, because they were later than "
                "load.give_up_after_s or because the budget was spent.",
                unit=OPERATIONS_PER_S,
                absent=NO_DATA,
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
                description=f"{meaning} Every HTTP request counts, those behind a retry that "
                "succeeded too. The scope tells a limit of the partition from one of the account. "
                "Without lines there was none.",
                unit=ATTEMPTS_PER_S,
                absent=f"No {status}",
                width=8,
            ),
            Query(q.throttled(status), "{{partition}} ({{scope}})"),
        )

    return [
        by_status(503, "503 ServerBusy: a limit was met."),
        by_status(500, "500 OperationTimedOut: a limit was met, or a partition is being moved."),
        by_status(429, "429 TooManyRequests: Cosmos DB asks for less; Table storage never does."),
        lines(
            About(
                title="Throttled attempts by scope",
                description="A limit of one partition asks for other keys; one of the account "
                "for a lower rate or another account.",
                unit=ATTEMPTS_PER_S,
                absent="Nothing was throttled",
                width=12,
            ),
            Query(q.THROTTLED_BY_SCOPE, "{{scope}}"),
        ),
        lines(
            About(
                title="Hidden throttling: attempts per operation",
                description="HTTP requests that one operation takes. Above 1 retries hide "
                "failures from the application, which feels them as latency; further pages of a "
                "query are attempts too.",
                unit=COUNT,
                absent=NO_DATA,
                width=12,
            ),
            Query(q.ATTEMPTS_PER_OPERATION, "attempts per operation"),
            at=1.0,
        ),
    ]
