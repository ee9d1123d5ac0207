"""What every output says of schemes: their order, and each figure in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record.whatif import SchemePart, WhatIfRecord, peak_over
from harness.measure.verdict.ranking import (
    is_even,
    marked,
    met_if_it_lasts,
    needs_more,
    price_of,
    refused,
)
from harness.model.figures import agreed, counted, duration, listed, number, percent
from harness.report.terminal.page import Cell, Page, bar, grid, table_of
from harness.report.whatif_rows import (
    SchemeRow,
    first_limit_text,
    over_10s,
    rows,
    share_of,
)

_BAR_WIDTH = 6
_NAME_WIDTH = 28


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
    count = counted(physical.count, "physical partition")
    return f"{account} RU/s over {count} with {partition} each"


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
    if recorded.price.unknown >= recorded.price.operations:
        return ["The trace says the keys of no operation, so nothing can be said.", *found.damage]
    shown = ""
    if best is not None and best.price.scanned_is_lower_bound:
        shown = " as far as the trace shows"
    said = []
    if best is None:
        said.append(f"No keys keep the application whole. As recorded: {_load(found, recorded)}.")
    elif best is recorded:
        others = len(found.schemes) > 1
        said.append(
            f"{f'Best{shown}: the keys as recorded' if others else 'As recorded'}: "
            f"{_load(found, best)}."
        )
        if others and len(in_order(found)) == 1:
            said.append("None of the other keys keeps the application whole.")
    else:
        price = listed(price_of(best, recorded)) or "no price in this traffic"
        said.append(
            f"Best{shown}: {best.name}, for {price}: {_load(found, best)}. "
            f"As recorded: {_load(found, recorded)}."
        )
    equals = [part.name for part in found.schemes if part.rank == 1 and part is not best]
    if equals:
        verb = agreed(len(equals), "is", "are")
        said.append(f"{listed(equals)} {verb} equal to it in this traffic.")
    bounds = [part.name for part in found.schemes if part.price.scanned_is_lower_bound]
    if bounds:
        said.append(
            f"Figures with ≥ are lower bounds: queries under {listed(bounds)} may scan rows that "
            "the trace does not show."
        )
    said += filter(None, map(_of_properties, found.schemes))
    unknown = recorded.price.unknown
    if unknown:
        said.append(
            f"{counted(unknown, 'operation')} ({share_of(unknown, recorded.price.operations)}) "
            f"{agreed(unknown, 'is', 'are')} left out, because the trace does not say their keys."
        )
    if best is not None and (why := needs_more(found, best)):
        even = is_even(found, best)
        said.append(f"{'The keys are not what limits it:' if even else 'Besides,'} {why}.")
    if best is not None and found.physical is not None:
        said.append(
            "Request units are estimated: the sizes of entities from the recorded bytes, with "
            f"{found.physical.properties} properties in each written entity."
        )
    said += found.damage
    return said


def _of_properties(part: SchemePart) -> str:
    """What is not known of keys made of properties."""
    count = part.price.unvalued
    if not count:
        return ""
    return (
        f"{part.name}: {counted(count, 'operation')} ({share_of(count, part.price.operations)}) on "
        f"rows of unknown {listed(part.properties)} {agreed(count, 'stays', 'stay')} as recorded."
    )


def _load(found: WhatIfRecord, part: SchemePart) -> str:
    limit = number(found.partition_per_s)
    peaks, place, served = part.partition_peaks, "partition", "what a partition serves"
    if found.physical is not None:
        peaks, place = part.physical_peaks, "physical partition"
        served = f"the {limit} RU/s that it can serve"
    peak = peak_over(10, peaks)
    share = marked(part, percent(peak.per_s / found.partition_per_s))
    over = "" if found.seconds / found.rate >= 10 else f" ({over_10s(found)})"
    text = (
        f"its hottest {place} has {marked(part, number(peak.per_s))} {found.unit}/s{over}, {share} "
        f"of {served}"
    )
    if not part.once.throttled:
        shown = " that the trace shows" if part.price.scanned_is_lower_bound else ""
        text += f", and nothing{shown} is throttled"
        if limit := met_if_it_lasts(found, part):
            text += f", because a burst passes: {limit}"
        return text
    throttled = marked(part, percent(part.once.ratio))
    return f"{text}, and {throttled} of the requests are throttled at first, {refused(part)}"


def ranking(found: WhatIfRecord) -> tuple[list[str], list[tuple[SchemePart, list[str], float]]]:
    """The schemes in their order, one a row: headings, and of each its texts and the share of the
    limit that its hottest partition has.
    """
    headings = ["", "keys", "throttled", "billable", "scanned", "hottest partition"]
    headings += ["first limit"] if found.most_factor else []
    rows = []
    for part in in_order(found):
        peak = peak_over(10, part.physical_peaks or part.partition_peaks)
        texts = [
            str(part.rank),
            part.name,
            marked(part, percent(part.once.ratio)),
            marked(part, f"{part.price.billable:,}"),
            marked(part, f"{part.price.scanned:,}"),
            marked(part, f"{number(peak.per_s)}/s"),
        ]
        if found.most_factor:
            texts.append(first_limit_text(found, part))
        rows.append((part, texts, peak.per_s / found.partition_per_s))
    return headings, rows


def whatif_text(found: WhatIfRecord, page: Page) -> str:
    parts: list[RenderableType] = [Text(page.show(heading(found)))]
    for part in found.schemes[1:]:
        title = f"{part.name}: {part.question}" if part.question else part.name
        parts.append(page.section(page.show(title), _sample(part, page)))
    if len(found.schemes) > 1:
        order = [_ranking(found, page)] if in_order(found) else []
        parts.append(page.section("best first", *order))
    if broken := would_break(found):
        lines = [Text(page.show(sentence)) for sentence in broken]
        parts.append(page.section("would break the application", *lines))
    for block in page.blocks(found.schemes, lambda block: _table(found, block, page)):
        parts.append(page.section("side by side", _table(found, block, page)))
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


def _sample(part: SchemePart, page: Page) -> Table:
    arrow = "->" if page.ascii_only else "→"
    lines: list[tuple[Cell, Cell, Cell]] = []
    for recorded, new in part.sample:
        half = max(10, page.width // 2 - 4)
        lines.append((page.short(recorded, half), Text(arrow, "dim"), page.short(new, half)))
    return grid(lines)


def _table(found: WhatIfRecord, parts: Sequence[SchemePart], page: Page) -> Table:
    return table_of(
        ["", *(page.short(part.name, _NAME_WIDTH) for part in parts)],
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
