"""What every output says of schemes: their order, and each figure, in a terminal and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record.whatif import PeakPart, SchemePart, WhatIfRecord
from harness.measure.verdict.ranking import RELATIVE_NOISE
from harness.model.figures import agreed, counted, duration, listed, number, percent
from harness.report.names import partition_name
from harness.report.terminal.page import Cell, Page, bar, grid, table_of

_NEAR = 0.9
"""From this share of what is provisioned on, more throughput is needed, as in a verdict."""
_IN_UNITS = {
    "hottest partition": "hottest PartitionKey",
    "its share of all entities": "its share of all RU",
    "partitions": "PartitionKeys",
    "account": "all together",
}
"""Labels of rows where Cosmos DB has other terms."""
_BAR_WIDTH = 6
_NAME_WIDTH = 28


@dataclasses.dataclass(frozen=True, slots=True)
class SchemeRow:
    """A row of the table.

    Attributes:
        say: The cell of a scheme; empty where it has none.
        share: The share of a limit that the cell shows as a bar; None without a limit.
        always: Shown even if the cells of all schemes are the same nothing.
        bounded: A lower bound where the entities that queries walk are one.
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
        return f"{_least(part)}{said}" if self.bounded and said else said


def rows(found: WhatIfRecord) -> list[SchemeRow]:
    """The rows that have something to say of any scheme."""
    every = [*_peak_rows(found), *_ROWS]
    every = [
        dataclasses.replace(row, label=row.label.replace("best 10 s", _over_10s(found)))
        for row in every
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


def _over_10s(found: WhatIfRecord) -> str:
    """What a rate over 10 s is of: all of the traffic, if that is shorter."""
    seconds = found.seconds / found.rate
    return "best 10 s" if seconds >= 10 else f"mean of {duration(seconds)}"


def _peak_rows(found: WhatIfRecord) -> list[SchemeRow]:
    recorded, physical = found.schemes[0], found.physical
    limited: list[tuple[str, Callable[[SchemePart], Sequence[PeakPart]], float]] = [
        (
            "hottest partition" if physical is None else "hottest PartitionKey",
            lambda part: part.partition_peaks,
            found.partition_per_s,
        )
    ]
    if physical is not None:
        label = "hottest physical partition"
        limited.append((label, lambda part: part.physical_peaks, physical.per_s))
    return [
        _peak_row(label, place, peak, peaks, limit)
        for label, peaks, limit in limited
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


def _best_10s(peaks: Sequence[PeakPart]) -> PeakPart:
    return next(peak for peak in peaks if peak.width_s == 10)


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole and part else "0"


def _partitions(found: WhatIfRecord, part: SchemePart) -> str:
    return f"{'about ' if part.partitions_estimated else ''}{part.partitions:,}"


def _hottest_share(found: WhatIfRecord, part: SchemePart) -> str:
    if not part.hot:
        return "below 0.1%"
    hottest = part.hot[0]
    least, most = percent(hottest.at_least), percent(hottest.at_most)
    return least if least == most else f"{least} to {most}"


def _hottest_name(found: WhatIfRecord, part: SchemePart) -> str:
    peak = _best_10s(part.partition_peaks)
    return partition_name(peak.partition) if peak.per_s else ""


def _account(found: WhatIfRecord, part: SchemePart) -> float:
    return _best_10s(part.account_peaks).per_s


def _first_limit(found: WhatIfRecord, part: SchemePart) -> str:
    if (first := part.first_limit) is None:
        return "none up to x 10,000" if found.factors else ""
    factor = f"{first.factor:,.0f}" if first.factor >= 10 else f"{first.factor:.2g}"
    # The more the queries walk, the earlier is the limit met.
    most = "≤ " if part.price.walked_is_lower_bound else ""
    return f"{most}x {factor}, {first.rule}"


def _total(found: WhatIfRecord, part: SchemePart) -> str:
    # Of Storage, every scheme has the same entities.
    return "" if found.physical is None else f"{part.total:,}"


def _by_rule(found: WhatIfRecord, part: SchemePart) -> str:
    if found.physical is not None:
        # There is one rule.
        return ""
    by_rule = sorted(part.once.by_rule.items(), key=lambda item: -item[1])
    return ", ".join(f"{rule} {_share(count, part.once.throttled)}" for rule, count in by_rule)


def _collisions(found: WhatIfRecord, part: SchemePart) -> str:
    price = part.price
    about = price.collisions_estimated and price.collisions
    return f"{'about ' if about else ''}{price.collisions:,}"


def _spread(found: WhatIfRecord, part: SchemePart) -> str:
    price = part.price
    if not price.spread:
        return "0"
    mean = price.needed / price.spread
    return f"{_share(price.spread, price.queries)}, {mean:,.0f} partitions each"


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
        return _share(getattr(part.price, count), getattr(part.price, of))

    return SchemeRow(
        label, say or ratio, bad=lambda _, part: getattr(part.price, count) > 0, always=False
    )


_ROWS = (
    SchemeRow("hottest partition", _hottest_name),
    SchemeRow("its share of all entities", _hottest_share),
    SchemeRow("partitions", _partitions),
    SchemeRow(
        "account, best 10 s",
        lambda found, part: number(_account(found, part)),
        share=lambda found, part: _account(found, part) / found.account_per_s,
        bad=lambda found, part: _account(found, part) > found.account_per_s,
        bounded=True,
    ),
    SchemeRow("request units in all", _total, always=False, bounded=True),
    SchemeRow(
        "billable requests",
        lambda found, part: f"{part.price.billable:,}",
        always=False,
        bounded=True,
    ),
    SchemeRow(
        "entities walked by queries",
        lambda found, part: f"{part.price.walked:,}",
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
        lambda found, part: percent(part.retried.ratio),
        bad=lambda found, part: part.retried.throttled > 0,
        bounded=True,
    ),
    SchemeRow(
        "operations that fail nevertheless",
        lambda found, part: _share(part.retried.failed, part.price.operations),
        bad=lambda found, part: part.retried.failed > 0,
        bounded=True,
    ),
    SchemeRow(
        "moves of hot partitions", lambda found, part: f"{part.retried.moves:,}", always=False
    ),
    SchemeRow("first limit met at", _first_limit, always=False),
    _price_row("entities that collide", "collisions", say=_collisions),
    _price_row("operations with invalid keys", "refused"),
    _price_row("transactions split", "split", "transactions"),
    _price_row("queries over several partitions", "spread", say=_spread),
    _price_row("queries over a range of partitions", "ranged", "queries"),
    _price_row("queries that scan the table", "scans", "queries"),
    _price_row("range queries that scan a partition", "unbounded", "queries"),
    _price_row("operations not matched", "unmatched"),
    _price_row("operations left out: key unknown", "unknown"),
)


def heading(found: WhatIfRecord) -> str:
    """The traffic and the limits, in a line."""
    operations = found.schemes[0].price.operations
    scaled = "" if found.rate == 1 else f", {found.rate:g} times as fast"
    return (
        f"{counted(operations, 'operation')} in {duration(found.seconds)}{scaled}; limits "
        f"{found.limits}: {_limits(found)}. Back-off: {found.retry}."
    )


def _limits(found: WhatIfRecord) -> str:
    partition, account = number(found.partition_per_s), number(found.account_per_s)
    if (physical := found.physical) is None:
        return f"{partition} entities/s a partition, {account} the account"
    return (
        f"{account} RU/s over {counted(physical.count, 'physical partition')} with "
        f"{number(physical.per_s)} each, {partition} RU/s a PartitionKey"
    )


def best_of(found: WhatIfRecord) -> SchemePart | None:
    """The scheme with the best rank, among equals the first; None if each breaks something."""
    return next((part for part in found.schemes if part.rank == 1), None)


def in_order(found: WhatIfRecord) -> list[SchemePart]:
    """The schemes that keep the application whole, the best first."""
    return sorted((part for part in found.schemes if part.rank), key=lambda part: part.rank)


def would_break(found: WhatIfRecord) -> list[str]:
    """What each of the other schemes would break, as sentences."""
    return [f"{part.name}: {'; '.join(part.breaks)}." for part in found.schemes if not part.rank]


def sentences(found: WhatIfRecord) -> list[str]:
    """Which scheme is the best, for what price, and what has to be known of the figures."""
    recorded, best = found.schemes[0], best_of(found)
    said = []
    if best is None:
        said.append(f"No keys keep the application whole. As recorded: {_load(found, recorded)}.")
    elif best is recorded:
        others = len(found.schemes) > 1
        said.append(
            f"{'Best: the keys as recorded' if others else 'As recorded'}: {_load(found, best)}."
        )
        if others and len(in_order(found)) == 1:
            said.append("None of the other keys keeps the application whole.")
    else:
        said.append(
            f"Best: {best.name}, for {_price(recorded, best)}: {_load(found, best)}. "
            f"As recorded: {_load(found, recorded)}."
        )
    equals = [part.name for part in found.schemes if part.rank == 1 and part is not best]
    if equals:
        verb = agreed(len(equals), "is", "are")
        said.append(f"{listed(equals)} {verb} equal to it in this traffic.")
    bounds = [part.name for part in found.schemes if part.price.walked_is_lower_bound]
    if bounds:
        said.append(
            f"Figures with ≥ are lower bounds: queries under {listed(bounds)} walk rows that the "
            "trace does not show."
        )
    unknown = recorded.price.unknown
    if unknown:
        said.append(
            f"{counted(unknown, 'operation')} ({_share(unknown, recorded.price.operations)}) "
            f"{agreed(unknown, 'is', 'are')} left out, because the trace does not say their keys."
        )
    if best is not None:
        said += _of_request_units(found, best)
    said += found.damage
    return said


def _of_request_units(found: WhatIfRecord, best: SchemePart) -> list[str]:
    """What limits the best scheme, and how request units are known; nothing for Storage."""
    physical = found.physical
    if physical is None:
        return []
    said = []
    wanted = _account(found, best)
    if best.once.throttled and wanted >= _NEAR * found.account_per_s:
        said.append(
            f"The keys are not what limits it: the busiest 10 s ask for {number(wanted)} RU/s, and "
            f"{number(found.account_per_s)} are provisioned."
        )
    said.append(
        "Request units are estimated: the sizes of entities from the recorded bytes, with "
        f"{physical.properties} properties in each written entity."
    )
    return said


def _load(found: WhatIfRecord, part: SchemePart) -> str:
    least = _least(part)
    if (physical := found.physical) is None:
        peak = _best_10s(part.partition_peaks)
        share = percent(peak.per_s / found.partition_per_s)
        place, served = "partition", "a partition serves"
    else:
        peak = _best_10s(part.physical_peaks)
        share = percent(peak.per_s / physical.per_s)
        place, served = "physical partition", f"{number(physical.per_s)} RU/s that it can serve"
    over = "" if found.seconds / found.rate >= 10 else f" ({_over_10s(found)})"
    text = (
        f"its hottest {place} has {least}{number(peak.per_s)} {found.unit}/s{over}, {least}{share} "
        f"of {'what ' if physical is None else 'the '}{served}"
    )
    if not part.once.throttled:
        return f"{text}, and nothing is throttled"
    return f"{text}, and {least}{percent(part.once.ratio)} of the operations are throttled at first"


def _price(recorded: SchemePart, part: SchemePart) -> str:
    """What the keys cost more than the recorded ones do."""
    price, before, least = part.price, recorded.price, _least(part)
    items = []
    if _differ(price.billable, before.billable):
        items.append(f"{least}{price.billable:,} billable requests in place of {before.billable:,}")
    if least or _differ(price.walked, before.walked):
        walked = f"{_least(recorded)}{before.walked:,}"
        items.append(f"{least}{price.walked:,} entities walked in place of {walked}")
    if price.spread:
        items.append(
            f"{_share(price.spread, price.queries)} of the queries in several partitions, up to "
            f"{price.most_needed:,}"
        )
    if price.scans:
        items.append(f"{_share(price.scans, price.queries)} of the queries over the whole table")
    if price.unbounded:
        items.append(
            f"{_share(price.unbounded, price.queries)} of the queries over a whole partition in "
            "place of a range of rows"
        )
    return listed(items) if items else "no price in this traffic"


def _differ(count: int, before: int) -> bool:
    return abs(count - before) > RELATIVE_NOISE * before


def _least(part: SchemePart) -> str:
    """The sign of a lower bound: queries walk at least what the trace shows of the rows."""
    return "≥ " if part.price.walked_is_lower_bound else ""


RANKING = ("", "keys", "throttled", "billable", "walked", "hottest partition")
"""Headings of the schemes in their order; with factors follows the first limit."""


def ranking(found: WhatIfRecord) -> tuple[list[str], list[tuple[SchemePart, list[str], float]]]:
    """The schemes in their order, one a row: headings, and of each its texts and the share of the
    limit that its hottest partition has.
    """
    headings = [*RANKING, *(["first limit"] if found.factors else [])]
    rows = []
    for part in in_order(found):
        least = _least(part)
        peak, limit = _best_10s(part.partition_peaks), found.partition_per_s
        if found.physical is not None:
            peak, limit = _best_10s(part.physical_peaks), found.physical.per_s
        texts = [
            str(part.rank),
            part.name,
            f"{least}{percent(part.once.ratio)}",
            f"{least}{part.price.billable:,}",
            f"{least}{part.price.walked:,}",
            f"{least}{number(peak.per_s)}/s",
        ]
        if found.factors:
            texts.append(_first_limit(found, part))
        rows.append((part, texts, peak.per_s / limit))
    return headings, rows


def whatif_text(found: WhatIfRecord, page: Page) -> str:
    parts: list[RenderableType] = [Text(page.show(heading(found)))]
    for part in found.schemes[1:]:
        parts.append(page.section(page.show(_titled(part)), _sample(part, page)))
    if len(found.schemes) > 1:
        order = [_ranking(found, page)] if in_order(found) else []
        parts.append(page.section("best first", *order))
    if broken := would_break(found):
        lines = [Text(page.show(sentence)) for sentence in broken]
        parts.append(page.section("would break the application", *lines))
    for table in side_by_side(found, None, page):
        parts.append(page.section("side by side", table))
    lines = [Text(page.show(sentence)) for sentence in sentences(found)]
    parts.append(page.section("which is better", *lines))
    return page.render(*parts)


def _ranking(found: WhatIfRecord, page: Page) -> Table:
    headings, rows = ranking(found)
    lines = []
    for part, texts, share in rows:
        cells: list[Cell] = [Text(page.show(text)) for text in texts]
        cells[1] = page.short(part.name, _NAME_WIDTH)
        cells[2] = Text(page.show(texts[2]), "yellow" if part.once.throttled else "")
        cells[5] = Text(f"{page.show(texts[5])} {bar(share, _BAR_WIDTH, page.glyphs)} ").append(
            f"{percent(share):>5}", "yellow" if share > 1 else ""
        )
        lines.append(cells)
    table = table_of(headings, lines)
    table.columns[1].justify = "left"
    return table


def whatif_json(found: WhatIfRecord) -> str:
    """The calculation for programs. Rates are in `unit`/s, shares are of 1."""
    return found.model_dump_json(indent=1) + "\n"


def _titled(part: SchemePart) -> str:
    return f"{part.name}: {part.question}" if part.question else part.name


def _sample(part: SchemePart, page: Page) -> Table:
    arrow = "->" if page.ascii_only else "→"
    lines: list[tuple[Cell, Cell, Cell]] = []
    for recorded, new in part.sample:
        half = max(10, page.width // 2 - 4)
        lines.append((page.short(recorded, half), Text(arrow, "dim"), page.short(new, half)))
    return grid(lines)


def side_by_side(found: WhatIfRecord, best: SchemePart | None, page: Page) -> Iterator[Table]:
    """The schemes in tables that fit the page; one of them is marked as the best."""

    def table(parts: Sequence[SchemePart]) -> Table:
        return _table(found, parts, best, page)

    yield from map(table, page.blocks(found.schemes, table))


def _table(
    found: WhatIfRecord, parts: Sequence[SchemePart], best: SchemePart | None, page: Page
) -> Table:
    names = [
        page.short(part.name, _NAME_WIDTH) + (" (best)" if part is best else "") for part in parts
    ]
    return table_of(
        ["", *names],
        [
            [Text(row.label), *(_cell(row, found, part, page) for part in parts)]
            for row in rows(found)
        ],
    )


def _cell(row: SchemeRow, found: WhatIfRecord, part: SchemePart, page: Page) -> Text:
    bad = row.bad(found, part)
    cell = Text(page.short(row.text(found, part), _NAME_WIDTH), style="yellow" if bad else "")
    if row.share is not None:
        share = row.share(found, part)
        cell.append(f" {bar(share, _BAR_WIDTH, page.glyphs)} {percent(share):>5}")
    return cell
