"""The quantities that `harness compare` compares."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import THROTTLED_FROM
from harness.model.figures import milliseconds, number, percent
from harness.report.limits import account_limit, account_rate, has_enforced, of_limit, worded
from harness.report.sentences import hottest, hottest_share


@dataclasses.dataclass(frozen=True, slots=True)
class Measure:
    """A quantity that is compared.

    Attributes:
        name: As ``--fail-if`` writes it.
        label: In the table.
        noun: In a sentence.
        unit: ``""``, ``"ms"``, or ``"%"`` for a share.
        read: The value in one run; None where it was not measured.
        more_is_better: None where neither is.
        least: A difference up to this counts as none, whatever share it is.
        charged: Whether only runs against Cosmos DB have it: see `harness.model.request_units`.
    """

    name: str
    label: str
    noun: str
    unit: str
    read: Callable[[RunRecord], float | None]
    more_is_better: bool | None = None
    least: float = 0.0
    charged: bool = False

    def show(self, value: float) -> str:
        """A value as outputs write it, without a latency's unit."""
        return {"%": percent, "ms": milliseconds}.get(self.unit, number)(value)

    def show_in_full(self, value: float) -> str:
        return f"{self.show(value)}{' ms' if self.unit == 'ms' else ''}"


def _figure(part: str, figure: str) -> Callable[[RunRecord], float | None]:
    return lambda record: getattr(getattr(record, part), figure, None)


def _rate(figure: str) -> Callable[[RunRecord], float | None]:
    return lambda record: getattr(record.account.entities_per_s, figure)


def _throttled(scope: str) -> Measure:
    def read(record: RunRecord) -> float | None:
        attempts = record.counts.attempts
        throttled = record.throttled[scope] if scope else sum(record.throttled.values())
        return throttled / attempts if attempts else None

    label = f"  for the {scope}" if scope else "throttled attempts"
    noun = f"share of attempts throttled{f' for the {scope}' if scope else ''}"
    name = f"throttled_ratio({scope})" if scope else "throttled_ratio"
    return Measure(name, label, noun, "%", read, False, THROTTLED_FROM)


def _billable(record: RunRecord) -> float | None:
    # Each attempt is billed once. Loading and cleaning are not part of the load, and left out.
    counts = record.counts
    return counts.attempts / counts.entities * 1000 if counts.entities else None


def _hottest_ratio(record: RunRecord) -> float | None:
    part = hottest(record)
    if part is None or not has_enforced(record):
        return None if part is None else part.ratio
    return of_limit(record, part)


def _account_ratio(record: RunRecord) -> float | None:
    limit = account_limit(record)
    if record.account.ratio is None or limit is None or not has_enforced(record):
        return record.account.ratio
    return account_rate(record) / limit


def _units(figure: str) -> Callable[[RunRecord], float | None]:
    return lambda record: getattr(getattr(record.request_units, "per_s", None), figure, None)


def _units_each(record: RunRecord) -> float | None:
    units, operations = record.request_units, record.counts.operations
    return units.total / operations if units is not None and operations else None


def _hottest_units_ratio(record: RunRecord) -> float | None:
    return getattr(getattr(hottest(record), "request_units", None), "ratio", None)


def _bytes(way: str) -> Callable[[RunRecord], float | None]:
    def read(record: RunRecord) -> float | None:
        operations = record.counts.operations
        moved: int = getattr(record.counts, way)
        return moved / operations if operations else None

    return read


_sent, _received = _bytes("bytes_sent"), _bytes("bytes_received")


def _cpu_ms(record: RunRecord) -> float | None:
    """CPU time of the workers, compression included."""
    capacity = record.generator.capacity
    made = 0.0 if capacity is None else capacity.operations_per_cpu_s
    return 1000 / made if made else None


_OF_THROUGHPUT = "the share of the provisioned RU/s"
_BEST = "entities/s of the best second"
_OF_PARTITION = "the hottest partition's share of its target"
_OF_ACCOUNT = "the account's share of its target"
_OF_LOAD = "the hottest partition's share of the load"
_OF_BILL = "billable transactions per 1,000 entities"
_REQUESTS_PER_S = _figure("account", "transactions_per_s")
MEASURES: tuple[Measure, ...] = (
    Measure("entities_per_s", "entities/s", "entities/s", "", _rate("mean"), True),
    Measure("entities_per_s(best_1s)", "  best 1 s", _BEST, "", _rate("best_1s")),
    Measure("requests_per_s", "requests/s", "requests/s", "", _REQUESTS_PER_S),
    Measure("limit_ratio(partition)", "hottest, of target", _OF_PARTITION, "%", _hottest_ratio),
    Measure("limit_ratio(account)", "account, of target", _OF_ACCOUNT, "%", _account_ratio),
    Measure("ru_per_s", "RU/s", "RU/s", "", _units("mean"), charged=True),
    Measure(
        "ru_per_s(best_1s)",
        "  best 1 s",
        "RU/s of the best second",
        "",
        _units("best_1s"),
        charged=True,
    ),
    Measure(
        "ru_per_operation", "RU/operation", "RU per operation", "", _units_each, False, charged=True
    ),
    Measure(
        "ru_ratio(partition)",
        "hottest, of its RU/s",
        _OF_PARTITION,
        "%",
        _hottest_units_ratio,
        charged=True,
    ),
    Measure(
        "ru_ratio(account)",
        "of provisioned RU/s",
        _OF_THROUGHPUT,
        "%",
        _figure("request_units", "ratio"),
        charged=True,
    ),
    Measure("hottest_share", "hottest, of the load", _OF_LOAD, "%", hottest_share, False),
    *map(_throttled, ("", "partition", "account")),
    *(
        Measure(
            f"{figure}({latency})",
            f"{figure} {latency}, ms",
            f"{figure} of {latency} latency",
            "ms",
            _figure(f"{latency}_ms", figure),
            False,
        )
        for latency in ("service", "response")
        for figure in ("p50", "p99")
    ),
    Measure("sent_bytes", "bytes sent /operation", "bytes sent per operation", "", _sent, False),
    Measure(
        "received_bytes",
        "bytes received /operation",
        "bytes received per operation",
        "",
        _received,
        False,
    ),
    Measure("cpu_ms", "CPU /operation, ms", "CPU time per operation", "ms", _cpu_ms, False),
    Measure("billable_per_1000", "billable /1,000 entities", _OF_BILL, "", _billable, False),
)


_MOST_OPERATIONS = 6


def measures_of(records: Sequence[RunRecord]) -> tuple[Measure, ...]:
    """All measures, and the latency of each operation that all records have, if there are several.

    Of many operations, those that were sent most in the first record.
    """
    first, *others = ({part.kind: part.count for part in one.operations} for one in records)
    common = [name for name in first if all(name in other for other in others)]
    common = sorted(common, key=lambda name: -first[name])[:_MOST_OPERATIONS]
    measures = (*MEASURES, *(map(_median_of, common) if len(first) > 1 else ()))
    return tuple(
        dataclasses.replace(one, label=_said(one.label, records), noun=_said(one.noun, records))
        for one in measures
    )


def _said(text: str, records: Sequence[RunRecord]) -> str:
    if any(map(has_enforced, records)):
        text = text.replace("target", "limit")
    return worded(text, *records)


def _median_of(name: str) -> Measure:
    def read(record: RunRecord) -> float | None:
        parts = (part.service_ms for part in record.operations if part.kind == name)
        return getattr(next(parts, None), "p50", None)

    noun = f"P50 of the service latency of {name}"
    return Measure(f"p50(service, {name})", f"p50 {name}, ms", noun, "ms", read, False)
