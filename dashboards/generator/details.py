"""The panels of latency, of key ranges, and of the generator."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from dashboards.generator import queries as q
from dashboards.generator.making import About, Query, heat, lines, number
from dashboards.generator.words import (
    ATTEMPTS_PER_S,
    CLOSED,
    COUNT,
    ENTITIES_PER_S,
    NO_DATA,
    OPERATIONS_PER_S,
    SECONDS,
)
from harness.measure.generator import BUSY_PERCENT

_RANGES = (
    "A row is a range of PartitionKeys, named by its first key, in key order from the bottom up; "
    "queries over a whole table are a row of their own. A line is a hot key, a diagonal a load "
    "that only appends, an even field a good spread. There are at most 64 ranges: neighbours are "
    "joined as keys come, and the row of a range that was joined ends."
)


def latency() -> list[Panel]:
    """Both latencies: as a heat map, as percentiles over time, and exactly."""
    panels = []
    for of, means in (
        ("service", "from the first attempt's leaving to the whole answer, retries included."),
        (
            "response",
            "from when the operation was due to the whole answer: what an application would have "
            "felt. It holds the wait in the backlog. A closed load has none.",
        ),
    ):
        absent = "Nothing measured yet" if of == "service" else CLOSED
        panels += [
            heat(
                About(
                    title=f"{of.capitalize()} latency",
                    description=f"Operations by latency, {means}",
                    unit=OPERATIONS_PER_S,
                    absent=absent,
                    width=10,
                    height=10,
                ),
                Query(q.buckets(of), "{{le}}"),
                axis_unit=SECONDS,
                buckets=True,
            ),
            lines(
                About(
                    title=f"{of.capitalize()} latency, percentiles",
                    description=f"Latency {means} Read off buckets, so that a percentile is as "
                    "exact as its bucket is narrow; those of the window are exact.",
                    unit=SECONDS,
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
                    description="Exact percentiles of the measured window so far: what the record "
                    "has in the end.",
                    unit=SECONDS,
                    absent=absent,
                    width=4,
                    height=10,
                ),
                Query(q.percentiles(of), "{{quantile}}"),
            ),
        ]
    return panels


def key_ranges() -> list[Panel]:
    """The heat map of keys, for entities and for throttled attempts."""
    return [
        heat(
            About(
                title="Entities/s by key range",
                description=_RANGES,
                unit=ENTITIES_PER_S,
                absent=NO_DATA,
                width=12,
                height=12,
            ),
            # A name that is a number would be sorted as one, not as a key.
            Query(q.RANGE_ENTITIES, "from {{range}}"),
            axis_unit="none",
            buckets=False,
        ),
        heat(
            About(
                title="Throttled attempts by key range",
                description=f"Where it throttles. {_RANGES}",
                unit=ATTEMPTS_PER_S,
                absent=NO_DATA,
                width=12,
                height=12,
            ),
            Query(q.RANGE_THROTTLED, "from {{range}}"),
            axis_unit="none",
            buckets=False,
        ),
    ]


def generator() -> list[Panel]:
    """Whether the generator was the limit, and what its requests cost."""
    return [
        lines(
            About(
                title="Generator CPU",
                description=f"CPU of each process that makes load, of one core. From "
                f"{BUSY_PERCENT:.0f} % on the generator may be the limit, and figures are its own: "
                "add --processes or machines.",
                unit="percent",
                absent=NO_DATA,
                width=8,
            ),
            Query(q.CPU, "{{worker}}"),
            at=BUSY_PERCENT,
            up_to=100.0,
        ),
        lines(
            About(
                title="Workers and users",
                description="Processes that make load, and simulated users of all of them.",
                unit=COUNT,
                absent=NO_DATA,
                width=8,
            ),
            Query(q.WORKERS, "workers"),
            Query(q.USERS, "users"),
        ),
        lines(
            About(
                title="Billable transactions",
                description="Requests that an account is charged for: loading, retries, further "
                "pages and cleaning included. A transaction of 100 is billed once.",
                unit="suffix: transactions/s",
                absent=NO_DATA,
                width=8,
            ),
            Query(q.BILLED, "billable"),
        ),
    ]
