"""The quantities that `harness compare` compares, and how far each of them could be off.

A figure is a ratio of sums over the seconds of the measured window.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from harness.measure.record.measured import AT_LEAST, AT_MOST, SeriesPart
from harness.measure.record.over_time import HeatPart, LatencyCoursePart
from harness.measure.record.record import RunRecord, share_sign
from harness.measure.scatter import Batch, margin
from harness.measure.verdict.verdict import THROTTLED_FROM
from harness.model.figures import milliseconds, number, percent
from harness.report.columns import at, has_rates
from harness.report.limits import (
    account_limit,
    account_rate,
    counted_unit,
    has_enforced,
    judged_sign,
    least,
    of_limit,
)
from harness.report.sentences import hottest, hottest_share

_ROW_HEIGHT = 10**0.1
"""Of a `LatencyCoursePart`."""

Range = tuple[float, float]
"""The interval as factors of the figure, such as 0.9 and 1.1."""
Scatter = Callable[[RunRecord], Range | None]
"""The interval of a figure in one run; None if the record does not tell."""


def unknown(_record: RunRecord) -> None:
    """The scatter of a figure that records do not have over time."""


def _inside(record: RunRecord, start: int, width_s: int) -> bool:
    end = record.window_start + record.measured_s
    return record.window_start <= start and start + width_s <= end


def of_ratio(of: Callable[[SeriesPart], Batch | None]) -> Scatter:
    """The scatter of a ratio that each point of the time series has; a point may lack it."""

    def scatter(record: RunRecord) -> Range | None:
        points = (one for one in record.series if _inside(record, one.t, one.width_s))
        return _around([batch for batch in map(of, points) if batch is not None])

    return scatter


def of_key(record: RunRecord, key: str, *, share: bool) -> Range | None:
    """The scatter of a partition's rate, or of its share of all entities."""
    heat = record.heat
    row = next((one for one in heat.ranges if one.first == one.last == key), None) if heat else None
    if heat is None or row is None:
        return None
    columns = [*_columns(record, heat)]
    everything = [sum(part.entities[column] for part in heat.ranges) for column in columns]
    batches = zip((row.entities[column] for column in columns), everything, strict=True)
    return _around([(one, of if share else 1.0) for one, of in batches])


def of_quantile(part: str, share: float) -> Scatter:
    """The scatter of a latency that ``share`` of the operations did not exceed.

    Of how many exceeded it the scatter is known, and by that of the latency (Woodruff's interval).
    """

    def scatter(record: RunRecord) -> Range | None:
        course: LatencyCoursePart | None = getattr(record, part)
        if course is None:
            return None
        columns = [*_columns(record, course)]
        rows = [[row[column] for column in columns] for row in course.rows]
        upto = [*itertools.accumulate(map(sum, rows))]
        if not upto or not upto[-1]:
            return None
        place, within = _place(upto, share)
        above = [sum(counts[place + 1 :]) for counts in zip(*rows, strict=True)]
        batches = [
            (more + (1 - within) * at, sum(counts))
            for more, at, counts in zip(above, rows[place], zip(*rows, strict=True), strict=True)
        ]
        error = margin(batches)
        if error is None:
            return None
        # In logits, which stay shares however wide the interval is.
        odds = math.exp(error / (share * (1 - share)))
        low, high = (share / (share + (1 - share) * by) for by in (odds, 1 / odds))
        height = math.log(_ROW_HEIGHT)
        at, least, most = (sum(_place(upto, one)) for one in (share, low, high))
        return math.exp(height * (least - at)), math.exp(height * (most - at))

    return scatter


def _place(upto: Sequence[int], share: float) -> tuple[int, float]:
    """The row of a quantile, and how far up in the row it is."""
    rank = share * upto[-1]
    place = min(bisect.bisect_left(upto, rank), len(upto) - 1)
    before = upto[place - 1] if place else 0
    return place, (rank - before) / ((upto[place] - before) or 1)


def _columns(record: RunRecord, part: HeatPart | LatencyCoursePart) -> Sequence[int]:
    starts = (part.start + column * part.width_s for column in range(part.columns))
    return [n for n, start in enumerate(starts) if _inside(record, start, part.width_s)]


def _around(batches: Sequence[Batch]) -> Range | None:
    error = margin(batches)
    if error is None:
        return None
    above, below = (sum(part) for part in zip(*batches, strict=True))
    relative = error * below / above if above else 0.0
    return 1 - relative, 1 + relative


@dataclasses.dataclass(frozen=True, slots=True)
class Measure:
    """A quantity that is compared.

    Attributes:
        name: As ``--fail-if`` writes it.
        label: In the table.
        noun: In a sentence. In both, ``{unit}`` and ``{limit}`` stand for the words of the runs.
        unit: ``""``, ``"ms"``, or ``"%"`` for a share.
        scatter: How far the value of one run could be off.
        more_is_better: None where neither is.
        least: A difference up to this counts as none, whatever share it is.
        charged: Whether only runs against Cosmos DB have it: see `harness.model.request_units`.
    """

    name: str
    label: str
    noun: str
    unit: str
    read: Callable[[RunRecord], float | None]
    scatter: Scatter = unknown
    more_is_better: bool | None = None
    least: float = 0.0
    charged: bool = False

    @property
    def timed(self) -> bool:
        """Whether it is a time, which other load of the machine makes longer."""
        return self.unit == "ms"

    def sign(self, record: RunRecord) -> str:
        """Before a lower bound ``≥``, before an upper bound ``≤``, else empty."""
        return _SIGNS.get(self.name, unbounded)(record)

    def named_for(self, records: Iterable[RunRecord]) -> Measure:
        """The measure with the unit of the runs, and the word for what they were held against."""
        runs = list(records)
        limit = "limit" if any(map(has_enforced, runs)) else "target"
        name = functools.partial(str.format, unit=counted_unit(runs), limit=limit)
        return dataclasses.replace(self, label=name(self.label), noun=name(self.noun))

    def show(self, value: float) -> str:
        """A value as outputs write it, without a latency's unit."""
        writers: dict[str, Callable[[float], str]] = {"%": percent, "ms": milliseconds}
        return writers.get(self.unit, number)(value)

    def show_in_full(self, value: float) -> str:
        return f"{self.show(value)}{' ms' if self.unit == 'ms' else ''}"


def _per_s(figure: str) -> Scatter:
    """The scatter of a rate that the time series has."""
    return of_ratio(lambda point: _batch(getattr(point, figure), 1.0))


def _batch(above: float | None, below: float | None) -> Batch | None:
    return None if above is None or below is None else (above, below)


def _throttled(scope: str) -> Measure:
    def read(record: RunRecord) -> float | None:
        attempts = record.counts.attempts
        throttled = record.throttled[scope] if scope else sum(record.throttled.values())
        return throttled / attempts if attempts else None

    def scatter(record: RunRecord) -> Range | None:
        # The time series does not tell the scopes apart.
        if scope and record.throttled[scope] < sum(record.throttled.values()):
            return None
        return of_ratio(lambda point: (point.throttled, point.attempts))(record)

    label = f"  for the {scope}" if scope else "throttled attempts"
    noun = f"share of attempts throttled{f' for the {scope}' if scope else ''}"
    name = f"throttled_ratio({scope})" if scope else "throttled_ratio"
    return Measure(name, label, noun, "%", read, scatter, False, THROTTLED_FROM)


def _billable(record: RunRecord) -> float | None:
    # Each attempt is billed once. Loading and cleaning are not part of the load, and left out.
    counts = record.counts
    return counts.attempts / counts.entities * 1000 if counts.entities else None


def _hot_ratio(record: RunRecord) -> float | None:
    part = hottest(record)
    if part is None or not has_enforced(record):
        return None if part is None else part.ratio
    return of_limit(record, part)


def _rate(path: str) -> Callable[[RunRecord], float | None]:
    """Reads a figure of the measured window; None where it did not open."""
    return lambda record: at(path)(record) if has_rates(record) else None


def _of_hottest(*, share: bool) -> Scatter:
    def scatter(record: RunRecord) -> Range | None:
        part = hottest(record)
        charged = record.request_units is not None
        return None if part is None or charged else of_key(record, part.key, share=share)

    return scatter


def _of_limit(record: RunRecord) -> float | None:
    limit, ratio = account_limit(record), _rate("account.ratio")(record)
    if ratio is None or limit is None or not has_enforced(record):
        return ratio
    return account_rate(record) / limit


def _hottest_units(record: RunRecord) -> float | None:
    return _OF_UNITS(hottest(record))


def _units_each(record: RunRecord) -> float | None:
    units, operations = record.request_units, record.counts.operations
    return units.total / operations if units is not None and operations else None


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


def _sustained(record: RunRecord) -> float | None:
    search = record.search
    if search is None or search.limit is None:
        return None if search is None else search.rate_per_s
    return search.limit.per_s


def unbounded(_record: RunRecord) -> str:
    """The sign of a figure that is exact."""
    return ""


def _sign_of_search(record: RunRecord) -> str:
    search = record.search
    return AT_LEAST if search is not None and search.limit is None and search.at_least else ""


_SIGNS: dict[str, Callable[[RunRecord], str]] = {
    "entities_per_s": least,
    "entities_per_s(best_1s)": least,
    "limit_ratio(partition)": lambda record: judged_sign(record, hottest(record)),
    "limit_ratio(account)": judged_sign,
    "hottest_share": lambda record: share_sign(record, hottest(record)),
    "sustained_per_s": _sign_of_search,
    "billable_per_1000": lambda record: AT_MOST if least(record) else "",
}


def _latency(of: str, share: int) -> Measure:
    name, noun = f"p{share}({of})", f"p{share} of {of} latency"
    read, scatter = at(f"{of}_ms.p{share}"), of_quantile(f"{of}_over_time", share / 100)
    return Measure(name, f"p{share} {of}, ms", noun, "ms", read, scatter, False)


def _in_units(
    name: str,
    label: str,
    noun: str,
    read: Callable[[RunRecord], float | None],
    scatter: Scatter = unknown,
    more_is_better: bool | None = None,
) -> Measure:
    unit = "%" if name.startswith("ru_ratio") else ""
    return Measure(name, label, noun, unit, read, scatter, more_is_better, charged=True)


_OF_THROUGHPUT = "the share of the provisioned RU/s"
_BEST = "{unit.rate} of the best second"
_OF_PARTITION = "the hottest partition's share of its {limit}"
_OF_ACCOUNT = "the account's share of its {limit}"
_OF_LOAD = "the hottest partition's share of the load"
_OF_BILL = "billable transactions per 1,000 {unit.many}"
_SENT, _RECEIVED = "bytes sent per operation", "bytes received per operation"
_SUSTAINED = "{unit.rate} that can be sustained"
_OF_SERVER = at("service_log.server_ms.p99")
_MEAN, _BEST_1S = _rate("account.entities_per_s.mean"), _rate("account.entities_per_s.best_1s")
_REQUESTS_PER_S = _rate("account.transactions_per_s")
_UNITS, _BEST_UNITS = at("request_units.per_s.mean"), at("request_units.per_s.best_1s")
_OF_UNITS = at("request_units.ratio")
_ENTITIES, _ATTEMPTS, _CHARGED = map(_per_s, ("entities", "attempts", "request_units"))
_CHARGE = of_ratio(lambda point: _batch(point.request_units, point.operations))
_BILLED = of_ratio(lambda point: (point.attempts, point.entities))
_CPU = of_ratio(lambda point: _batch(point.cpu_percent, point.operations))
_HOT, _SHARE = _of_hottest(share=False), _of_hottest(share=True)
MEASURES: tuple[Measure, ...] = (
    Measure("entities_per_s", "{unit.rate}", "{unit.rate}", "", _MEAN, _ENTITIES, True),
    Measure("entities_per_s(best_1s)", "  best 1 s", _BEST, "", _BEST_1S),
    Measure("requests_per_s", "requests/s", "requests/s", "", _REQUESTS_PER_S, _ATTEMPTS),
    Measure("sustained_per_s", "sustained/s", _SUSTAINED, "", _sustained, more_is_better=True),
    Measure("limit_ratio(partition)", "hottest, of {limit}", _OF_PARTITION, "%", _hot_ratio, _HOT),
    Measure("limit_ratio(account)", "account, of {limit}", _OF_ACCOUNT, "%", _of_limit, _ENTITIES),
    _in_units("ru_per_s", "RU/s", "RU/s", _UNITS, _CHARGED),
    _in_units("ru_per_s(best_1s)", "  best 1 s", "RU/s of the best second", _BEST_UNITS),
    _in_units("ru_per_operation", "RU/operation", "RU per operation", _units_each, _CHARGE, False),
    _in_units("ru_ratio(partition)", "hottest, of its RU/s", _OF_PARTITION, _hottest_units),
    _in_units("ru_ratio(account)", "of provisioned RU/s", _OF_THROUGHPUT, _OF_UNITS, _CHARGED),
    Measure("hottest_share", "hottest, of the load", _OF_LOAD, "%", hottest_share, _SHARE, False),
    *map(_throttled, ("", "partition", "account")),
    *(_latency(of, share) for of in ("service", "response") for share in (50, 99)),
    Measure("p99(server)", "p99 server, ms", "p99 of server latency", "ms", _OF_SERVER),
    Measure("sent_bytes", "bytes sent /operation", _SENT, "", _sent, unknown, False),
    Measure(
        "received_bytes", "bytes received /operation", _RECEIVED, "", _received, unknown, False
    ),
    Measure("cpu_ms", "CPU /operation, ms", "CPU time per operation", "ms", _cpu_ms, _CPU, False),
    Measure(
        "billable_per_1000", "billable /1,000 {unit.many}", _OF_BILL, "", _billable, _BILLED, False
    ),
)


_MOST_OPERATIONS = 6


def measures_of(records: Sequence[RunRecord]) -> tuple[Measure, ...]:
    """All measures, and the latency of each operation that all records have, if there are several.

    Of many operations, those that were sent most in the first record.
    """
    first, *others = ({part.kind: part.count for part in one.operations} for one in records)
    common = [name for name in first if all(name in other for other in others)]
    common = sorted(common, key=lambda name: -first[name])[:_MOST_OPERATIONS]
    each = map(_median_of, common) if len(first) > 1 else ()
    return (*(one.named_for(records) for one in MEASURES), *each)


def _median_of(name: str) -> Measure:
    def read(record: RunRecord) -> float | None:
        parts = (part.service_ms for part in record.operations if part.kind == name)
        return getattr(next(parts, None), "p50", None)

    noun = f"P50 of the service latency of {name}"
    return Measure(
        f"p50(service, {name})", f"p50 {name}, ms", noun, "ms", read, more_is_better=False
    )
