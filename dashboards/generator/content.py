"""The panels of the dashboard, row by row."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from dashboards.generator import queries as q
from dashboards.generator.panels import bars, heat, lines, number, words
from harness.measure.counts.generator import BUSY_PERCENT
from harness.measure.counts.latency import SPANS
from harness.model.outcome import THROTTLING_ANSWERS, ThrottlingAnswer
from harness.model.partition import EXACT_PARTITIONS
from harness.model.services.service import PUBLISHED

_ENTITIES_PER_S = "suffix: entities/s"
_ATTEMPTS_PER_S = "suffix: attempts/s"
_OPERATIONS_PER_S = "suffix: operations/s"
_UNITS_PER_S = "suffix: RU/s"
_SECONDS = "s"
_COUNT = "short"
_SHARE = "percentunit"

_NO_TARGET = "This endpoint has no target in entities/s"
_NO_UNITS = "Only Cosmos DB charges request units"
_CLOSED = "No data: closed-loop load, or the run has not begun"
_ABOVE = 1.1
"""The upper end of an axis, in targets, so that the line of the target is always visible."""
_RANGES = (
    "A row is a range of PartitionKeys, named by its first key, in key order from the bottom up. "
    "Queries over a whole table have a row of their own. A horizontal line is a hot key, a "
    "diagonal an append-only load, an even area an even spread. There are at most 64 ranges: "
    "neighbours are merged as keys are added, and the row of a merged range ends."
)


def rows() -> list[tuple[str, list[Panel]]]:
    """Titles of the rows, and their panels."""
    return [
        ("The run", _run()),
        ("Entities per second and the published targets", _rates()),
        ("Throttling", _throttling()),
        ("Latency in the measured window", [*_latency("service"), *_latency("response")]),
        ("Key ranges", _key_ranges()),
        ("The generator", _generator()),
        ("Request units (Azure Cosmos DB only)", _request_units()),
    ]


def _run() -> list[Panel]:
    return [
        words(
            title="Phase",
            description="The current phase of the run.",
            queries={"{{phase}}": q.PHASE},
            instant=True,
            unit="none",
            no_value="No run",
            width=4,
            height=4,
        ),
        words(
            title="Verdict",
            description="The result of the run, and what limited the rate. The annotation at the "
            "end of the run has the full sentence.",
            queries={"{{verdict}} {{limited_by}}": q.VERDICT},
            instant=False,
            unit="none",
            no_value="Available at the end of the run",
            width=4,
            height=4,
        ),
        number(
            title="Entities/s now",
            description="The sum of all partitions.",
            queries={"account": q.ENTITIES},
            unit=_ENTITIES_PER_S,
            width=4,
            height=4,
        ),
        number(
            title="Hottest partition",
            description="Its rate as a share of the target of one partition. Above 100 % the "
            "partition may be throttled.",
            queries={"share of target": q.HOTTEST},
            at=1.0,
            unit=_SHARE,
            no_value=_NO_TARGET,
            width=4,
            height=4,
        ),
        number(
            title="Throttled attempts",
            description="Share of throttled HTTP requests "
            f"({', '.join(answer.label for answer in THROTTLING_ANSWERS)}). No value means that "
            "no request was throttled.",
            queries={"throttled": q.THROTTLED_RATIO},
            at=0.01,
            unit=_SHARE,
            no_value="None",
            width=4,
            height=4,
        ),
        number(
            title="Budget left",
            description="Billable transactions left, as a share of limits.billable_transactions. "
            "The run ends at 0.",
            queries={"left": q.BUDGET_LEFT},
            unit=_SHARE,
            no_value="No budget is set",
            width=4,
            height=4,
        ),
    ]


def _rates() -> list[Panel]:
    return [
        lines(
            title="Entities/s per partition",
            description=f"The line is {PUBLISHED.partition:,.0f} entities/s, the published target "
            "of one partition for entities of 1 KiB. Every entity that is inserted, updated, "
            f"deleted or scanned counts. {EXACT_PARTITIONS} partitions are shown separately; "
            "(other) is the sum of the rest, (table) is queries over a whole table. The line does "
            "not apply to Cosmos DB.",
            queries={"{{partition}}": q.ENTITIES_BY_PARTITION},
            at=PUBLISHED.partition,
            up_to=PUBLISHED.partition * _ABOVE,
            unit=_ENTITIES_PER_S,
            width=12,
            height=10,
        ),
        lines(
            title="Entities/s of the account",
            description=f"The sum of all partitions. The line is {PUBLISHED.account:,.0f} "
            "entities/s, the published target of a storage account. It does not apply to Cosmos "
            "DB.",
            queries={"account": q.ENTITIES},
            at=PUBLISHED.account,
            up_to=PUBLISHED.account * _ABOVE,
            unit=_ENTITIES_PER_S,
            width=12,
            height=10,
        ),
        bars(
            title="Share of the target, ten hottest partitions",
            description="The current rate of a partition as a share of the target of one "
            "partition. Cosmos DB has no such target.",
            queries={"{{partition}}": q.HOTTEST_TEN},
            at=1.0,
            unit=_SHARE,
            no_value=_NO_TARGET,
            width=8,
        ),
        lines(
            title="Offered and achieved",
            description="The rate that the load asks for, and the rate that the endpoint "
            "serves. If achieved stays below offered, look at throttling first, then at the "
            "generator. A closed-loop load without a limit has no offered rate.",
            queries={"offered": q.OFFERED, "achieved": q.ENTITIES},
            unit=_ENTITIES_PER_S,
            width=8,
        ),
        lines(
            title="Operations by outcome",
            description="Results of operations after all retries. An operation that succeeded on "
            "its third attempt is one success here and two throttled attempts below.",
            queries={"{{outcome}}": q.OUTCOMES},
            unit=_OPERATIONS_PER_S,
            width=8,
        ),
        lines(
            title="Backlog",
            description="Operations that are due but not sent, and operations that are sent but "
            "not answered. A growing backlog means that the load is behind its schedule. A "
            "closed-loop load has no backlog.",
            queries={"waiting": q.WAITING, "in flight": q.IN_FLIGHT},
            unit=_COUNT,
            no_value=_CLOSED,
            width=12,
        ),
        lines(
            title="Dropped operations",
            description="Operations dropped unsent, because they were overdue by more than "
            "load.give_up_after_s or because the budget was spent.",
            queries={"dropped": q.DROPPED},
            unit=_OPERATIONS_PER_S,
            width=12,
        ),
    ]


def _throttling() -> list[Panel]:
    return [
        *map(_throttled, THROTTLING_ANSWERS),
        lines(
            title="Throttled attempts by scope",
            description="A partition limit calls for other keys, an account limit for a lower "
            "rate or another account.",
            queries={"{{scope}}": q.THROTTLED_BY_SCOPE},
            unit=_ATTEMPTS_PER_S,
            no_value="Nothing was throttled",
            width=12,
        ),
        lines(
            title="Other answers",
            description="Attempts that neither succeeded nor were throttled, by status and error "
            "code. Without a complete answer the status is 0, and the code says why: read_timeout "
            "is a time-out of the client. 404, 409 and 412 may be regular answers about the stored "
            "data.",
            queries={"{{status}} {{error_code}}": q.OTHER_ANSWERS},
            unit=_ATTEMPTS_PER_S,
            no_value="None",
            width=12,
        ),
        lines(
            title="Hidden throttling: attempts per operation",
            description="HTTP requests per operation. Above 1, retries hide failures from the "
            "application, which sees them as latency. Further pages of a query are attempts too.",
            queries={"attempts per operation": q.ATTEMPTS_PER_OPERATION},
            at=1.0,
            unit=_COUNT,
            width=12,
        ),
        lines(
            title="Hidden throttling per partition",
            description="HTTP requests per operation of each partition. A partition far above the "
            "others is the one whose refusals the retries hide.",
            queries={"{{partition}}": q.ATTEMPTS_PER_OPERATION_BY_PARTITION},
            at=1.0,
            unit=_COUNT,
            width=12,
        ),
    ]


def _throttled(answer: ThrottlingAnswer) -> Panel:
    return lines(
        title=f"{answer.status} per partition",
        description=f"{answer.label}: {answer.meaning}. Every HTTP request counts, even if a retry "
        "succeeded. The scope is the limit that was exceeded: that of the partition or of the "
        "account.",
        queries={"{{partition}} ({{scope}})": q.throttled(answer.status)},
        unit=_ATTEMPTS_PER_S,
        no_value=f"No {answer.status}",
        width=24 // len(THROTTLING_ANSWERS),
    )


def _latency(of: str) -> list[Panel]:
    """A latency as a heat map, as percentiles over time, and as exact percentiles."""
    means = f"{SPANS[of]}."
    no_value = "No data yet"
    if of == "response":
        means = (
            f"{SPANS[of]}: what an application would see. It includes the wait in the backlog. A "
            "closed-loop load has none."
        )
        no_value = _CLOSED
    title = f"{of.capitalize()} latency"
    return [
        heat(
            title=title,
            description=f"Operations by latency, {means}",
            queries={"{{le}}": q.buckets(of)},
            axis_unit=_SECONDS,
            buckets=True,
            unit=_OPERATIONS_PER_S,
            no_value=no_value,
            width=10,
            height=10,
        ),
        lines(
            title=f"{title}, percentiles",
            description=f"Latency {means} Interpolated from the buckets of a histogram; the panel "
            "of the window has exact percentiles.",
            queries={f"p{share * 100:.0f}": q.quantile(share, of) for share in (0.5, 0.9, 0.99)},
            unit=_SECONDS,
            no_value=no_value,
            width=10,
            height=10,
        ),
        number(
            title=f"{title}, window",
            description="Exact percentiles of the measured window so far, as the record will "
            "have them.",
            queries={"{{quantile}}": q.percentiles(of)},
            unit=_SECONDS,
            no_value=no_value,
            width=4,
            height=10,
        ),
    ]


def _key_ranges() -> list[Panel]:
    """The heat map of keys, for entities and for throttled attempts."""
    return [
        heat(
            title=title,
            description=description,
            # Grafana would sort a name that is a number as a number, not as a key.
            queries={"from {{range}}": expr},
            axis_unit="none",
            buckets=False,
            unit=unit,
            width=12,
            height=12,
        )
        for title, description, expr, unit in (
            ("Entities/s by key range", _RANGES, q.RANGE_ENTITIES, _ENTITIES_PER_S),
            (
                "Throttled attempts by key range",
                f"The key ranges that are throttled. {_RANGES}",
                q.RANGE_THROTTLED,
                _ATTEMPTS_PER_S,
            ),
        )
    ]


def _generator() -> list[Panel]:
    """Whether the generator was the limit, and what its requests cost."""
    return [
        lines(
            title="Generator CPU",
            description="CPU of each process that generates load, in percent of one core. From "
            f"{BUSY_PERCENT:.0f} % on the generator may limit the rate: add --processes or "
            "machines.",
            queries={"{{worker}}": q.CPU},
            at=BUSY_PERCENT,
            up_to=100.0,
            unit="percent",
            width=8,
        ),
        lines(
            title="Workers and users",
            description="Processes that generate load, and the simulated users of all of them.",
            queries={"workers": q.WORKERS, "users": q.USERS},
            unit=_COUNT,
            width=8,
        ),
        lines(
            title="Billable transactions",
            description="Requests that are billed to the account, including loading, retries, "
            "further pages and clean-up. A transaction of 100 entities is billed once.",
            queries={"billable": q.BILLED},
            unit="suffix: transactions/s",
            width=8,
        ),
    ]


def _request_units() -> list[Panel]:
    """What Cosmos DB charged, and its limits."""
    return [
        lines(
            title="RU/s per partition",
            description="Request units of each partition, throttled attempts included, and what "
            "one partition can have: 10,000 RU/s, or its even share of what is provisioned. A "
            "partition at that line is hot, however much of the throughput is unused.",
            queries={"{{partition}}": q.UNITS_BY_PARTITION, "limit of a partition": q.UNIT_LIMIT},
            unit=_UNITS_PER_S,
            no_value=_NO_UNITS,
            width=12,
            height=10,
        ),
        lines(
            title="RU/s of the account",
            description="Request units of all partitions, and what is provisioned, if "
            "endpoint.provisioned_ru_per_s says it.",
            queries={"used": q.UNITS, "provisioned": q.PROVISIONED},
            unit=_UNITS_PER_S,
            no_value=_NO_UNITS,
            width=12,
            height=10,
        ),
        bars(
            title="Share of the RU/s of a partition, ten hottest partitions",
            description="The current rate of a partition as a share of what one partition can "
            "have.",
            queries={"{{partition}}": q.COSTLIEST_TEN},
            at=1.0,
            unit=_SHARE,
            no_value=_NO_UNITS,
            width=8,
        ),
        lines(
            title="RU/s by operation",
            description="Request units of each operation, retries and further pages included.",
            queries={"{{op}}": q.UNITS_BY_OPERATION},
            unit=_UNITS_PER_S,
            no_value=_NO_UNITS,
            width=8,
        ),
        lines(
            title="RU of an operation",
            description="Mean request units of an operation, retries and further pages included.",
            queries={"{{op}}": q.UNITS_EACH},
            unit="suffix: RU",
            no_value=_NO_UNITS,
            width=8,
        ),
    ]
