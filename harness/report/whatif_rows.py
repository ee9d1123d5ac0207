"""The rows in which schemes are shown side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from harness.measure.record.measured import ABOUT
from harness.measure.record.whatif import (
    PeakPart,
    SchemePart,
    WhatIfRecord,
    peak_over,
)
from harness.measure.verdict.ranking import billable_of, marked, met_if_it_lasts
from harness.model.figures import duration, multiple, number, percent
from harness.model.partition import MADE_UP
from harness.report.names import partition_name

_IN_UNITS = {
    "hottest partition": "hottest PartitionKey",
    "its share of all entities": "its share of all RU",
    "partitions": "PartitionKeys",
    "account": "all together",
}
"""Labels of rows where Cosmos DB has other terms."""
_FIRST_LIMIT = "first limit met at"


@dataclasses.dataclass(frozen=True, slots=True)
class SchemeRow:
    """A row of the table.

    Attributes:
        say: The cell of a scheme; empty where it has none.
        share: The share of a limit that the cell shows as a bar; None without a limit.
        always: Shown even if the cells of all schemes are the same nothing.
        bounded: A lower bound where the entities that queries scan are one.
    """

    label: str
    say: Callable[[WhatIfRecord, SchemePart], str]
    _: dataclasses.KW_ONLY
    share: Callable[[WhatIfRecord, SchemePart], float] | None = None
    bad: Callable[[WhatIfRecord, SchemePart], bool] = lambda found, part: False
    always: bool = True
    bounded: bool = False

    def text(self, found: WhatIfRecord, part: SchemePart) -> str:
        """The cell of a scheme, with the sign of a lower bound."""
        said = self.say(found, part)
        return marked(part, said) if self.bounded and said else said


def rows(found: WhatIfRecord) -> list[SchemeRow]:
    """The rows that have something to say of any scheme."""
    every = [*_peak_rows(found), *_ROWS]
    every = [
        dataclasses.replace(row, label=row.label.replace("best 10 s", over_10s(found)))
        for row in every
    ]
    if found.rate != 1:
        # Multiples are of the recorded traffic, not of the asked one.
        asked = f"{_FIRST_LIMIT} (x {multiple(found.rate)} asked)"
        every = [
            dataclasses.replace(row, label=row.label.replace(_FIRST_LIMIT, asked)) for row in every
        ]
    if found.physical is not None:
        every = [dataclasses.replace(row, label=_in_units(row.label)) for row in every]
    return [
        row
        for row in every
        if row.always or any(row.say(found, part) not in ("", "0") for part in found.schemes)
    ]


def _in_units(label: str) -> str:
    first, comma, rest = label.partition(", ")
    return _IN_UNITS.get(first, first) + comma + rest


def over_10s(found: WhatIfRecord) -> str:
    """What a rate over 10 s is of: all of the traffic, if that is shorter."""
    seconds = found.seconds / found.rate
    return "best 10 s" if seconds >= 10 else f"mean of {duration(seconds)}"


def _peak_rows(found: WhatIfRecord) -> list[SchemeRow]:
    recorded, physical = found.schemes[0], found.physical
    limited: list[tuple[str, Callable[[SchemePart], Sequence[PeakPart]]]] = [
        (
            "hottest partition" if physical is None else "hottest PartitionKey",
            lambda part: part.partition_peaks,
        )
    ]
    if physical is not None:
        limited.append(("hottest physical partition", lambda part: part.physical_peaks))
    return [
        _peak_row(label, place, peak, peaks, found.partition_per_s)
        for label, peaks in limited
        for place, peak in _apart(found, peaks(recorded))
    ]


def _apart(found: WhatIfRecord, peaks: Sequence[PeakPart]) -> Iterator[tuple[int, PeakPart]]:
    """Peaks with their places: of those that are wider than the traffic only the narrowest."""
    seconds = found.seconds / found.rate
    for place, peak in enumerate(peaks):
        if not place or peaks[place - 1].width_s < seconds:
            yield place, peak


def _peak_row(
    label: str,
    place: int,
    peak: PeakPart,
    peaks: Callable[[SchemePart], Sequence[PeakPart]],
    limit: float,
) -> SchemeRow:
    width = "minute" if peak.width_s == 60 else f"{peak.width_s} s"
    return SchemeRow(
        f"{label}, best {width}",
        lambda _, part: number(peaks(part)[place].per_s),
        share=lambda _, part: peaks(part)[place].per_s / limit,
        bad=lambda _, part: peaks(part)[place].per_s > limit,
        bounded=True,
    )


def share_of(part: int, whole: int) -> str:
    return percent(part / whole) if whole and part else "0"


def _partitions(found: WhatIfRecord, part: SchemePart) -> str:
    return f"{'about ' if part.partitions_estimated else ''}{part.partitions:,}"


def _hottest_share(found: WhatIfRecord, part: SchemePart) -> str:
    if not part.hot:
        return "below 0.1%" if peak_over(10, part.partition_peaks).per_s else "n/a"
    hottest, sign = part.hot[0], ABOUT * part.price.scanned_is_lower_bound
    least, most = percent(hottest.at_least, sign), percent(hottest.at_most, sign)
    return least if least == most else f"{least} to {most}"


def _hottest_name(found: WhatIfRecord, part: SchemePart) -> str:
    peak = peak_over(10, part.partition_peaks)
    if MADE_UP in peak.partition:
        return "(not in the trace)"
    return partition_name(peak.partition) if peak.per_s else ""


def account_10s(found: WhatIfRecord, part: SchemePart) -> float:
    return peak_over(10, part.account_peaks).per_s


def first_limit_text(found: WhatIfRecord, part: SchemePart) -> str:
    bounded = part.price.scanned_is_lower_bound
    if not found.most_factor:
        return ""
    if (first := part.first_limit) is None:
        return "not known" if bounded else f"none up to x {multiple(found.most_factor)}"
    if not first.factor:
        return f"at any rate, {first.rule}"
    # The more the queries scan, the earlier is the limit met.
    return f"{'≤ ' if bounded else ''}x {multiple(first.factor)}, {first.rule}"


def _between(part: SchemePart, least: str, most: str) -> str:
    """A figure that chance decides; of a lower bound, only its least."""
    return least if part.price.scanned_is_lower_bound or least == most else f"{least} to {most}"


def _billable(found: WhatIfRecord, part: SchemePart) -> str:
    least, most = billable_of(part)
    return _between(part, f"{least:,}", f"{most:,}")


def _throttled(found: WhatIfRecord, part: SchemePart) -> str:
    least, most = part.draws or (part.retried, part.retried)
    return _between(part, percent(least.ratio), percent(most.ratio))


def _failed(found: WhatIfRecord, part: SchemePart) -> str:
    least, most = part.draws or (part.retried, part.retried)
    sent = _sent(part)
    return _between(part, share_of(least.failed, sent), share_of(most.failed, sent))


def _total(found: WhatIfRecord, part: SchemePart) -> str:
    # Of Storage, every scheme has the same entities.
    return "" if found.physical is None else f"{part.total:,}"


def _by_rule(found: WhatIfRecord, part: SchemePart) -> str:
    if found.physical is not None:
        # There is one rule.
        return ""
    by_rule = sorted(part.once.by_rule.items(), key=lambda item: -item[1])
    return ", ".join(f"{rule} {share_of(count, part.once.throttled)}" for rule, count in by_rule)


def _sent(part: SchemePart) -> int:
    """Operations, where a query over several partitions is as many."""
    return part.price.operations - part.price.spread + part.price.needed


def _collisions(found: WhatIfRecord, part: SchemePart) -> str:
    price = part.price
    about = price.collisions_estimated and price.collisions
    return f"{'about ' if about else ''}{price.collisions:,}"


def _spread(found: WhatIfRecord, part: SchemePart) -> str:
    price = part.price
    if not price.spread:
        return "0"
    mean = price.needed / price.spread
    return f"{share_of(price.spread, price.queries)}, {mean:,.0f} partitions each"


def _price_row(
    label: str,
    count: str,
    of: str = "operations",
    say: Callable[[WhatIfRecord, SchemePart], str] | None = None,
) -> SchemeRow:
    """A row that is shown if a scheme has to pay this price, and is bad news for the scheme.

    ``count`` and ``of`` are the names of two counts of a `PricePart`; the cell is their ratio.
    """

    def ratio(_: WhatIfRecord, part: SchemePart) -> str:
        return share_of(getattr(part.price, count), getattr(part.price, of))

    return SchemeRow(
        label, say or ratio, bad=lambda _, part: getattr(part.price, count) > 0, always=False
    )


_ROWS = (
    SchemeRow("hottest partition", _hottest_name),
    SchemeRow("its share of all entities", _hottest_share),
    SchemeRow("partitions", _partitions),
    SchemeRow(
        "account, best 10 s",
        lambda found, part: number(account_10s(found, part)),
        share=lambda found, part: account_10s(found, part) / found.account_per_s,
        bad=lambda found, part: account_10s(found, part) > found.account_per_s,
        bounded=True,
    ),
    SchemeRow("request units in all", _total, always=False, bounded=True),
    SchemeRow(
        "billable requests",
        _billable,
        always=False,
        bounded=True,
    ),
    SchemeRow(
        "entities scanned by queries",
        lambda found, part: f"{part.price.scanned:,}",
        always=False,
        bounded=True,
    ),
    SchemeRow(
        "throttled, without retries",
        lambda found, part: percent(part.once.ratio),
        bad=lambda found, part: part.once.throttled > 0,
        bounded=True,
    ),
    SchemeRow("by the limit of", _by_rule, always=False),
    SchemeRow(
        "throttled attempts, with back-off",
        _throttled,
        bad=lambda found, part: part.retried.throttled > 0,
        bounded=True,
    ),
    SchemeRow(
        "operations that fail nevertheless",
        _failed,
        bad=lambda found, part: part.retried.failed > 0,
        bounded=True,
    ),
    SchemeRow(
        "moves of hot partitions", lambda found, part: f"{part.retried.moves:,}", always=False
    ),
    SchemeRow(
        _FIRST_LIMIT,
        first_limit_text,
        bad=lambda found, part: bool(met_if_it_lasts(found, part)),
        always=False,
    ),
    _price_row("entities that collide", "collisions", say=_collisions),
    _price_row("operations with invalid keys", "refused"),
    _price_row("transactions split", "split", "transactions"),
    _price_row("queries over several partitions", "spread", say=_spread),
    _price_row("queries over a range of partitions", "ranged", "queries"),
    _price_row("queries that scan the table", "scans", "queries"),
    _price_row("range queries that scan a partition", "unbounded", "queries"),
    _price_row("operations not matched", "unmatched"),
    _price_row("operations left out: key unknown", "unknown"),
    _price_row("operations on rows of unknown properties", "unvalued"),
    _price_row("writes that move an entity", "moved"),
)
