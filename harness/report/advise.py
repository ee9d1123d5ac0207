"""The advice about keys in a terminal."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record.advice import AdviceRecord, KeyAnswer, TableAdvicePart
from harness.model.figures import counted, duration
from harness.report.terminal.page import Page, grid, table_of
from harness.report.whatif_rows import rows

_NAME_WIDTH = 36
_KEYS_WIDTH = 80
_EXAMPLES_WIDTH = 48
_COLOURS = {KeyAnswer.CHANGE: "yellow", KeyAnswer.NO_KEY: "red", KeyAnswer.FINE: "green"}


def advice_heading(found: AdviceRecord) -> str:
    """The traffic and what was asked, in a line."""
    scaled = "" if found.rate == 1 else f", {found.rate:g} times as fast"
    return (
        f"{counted(found.operations, 'operation')} in {duration(found.seconds)}{scaled}; limits "
        f"{found.limits}."
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Given:
    """What the command line gave, for the commands that verify the advice.

    Attributes:
        rows: Options that say how many rows tables had.
        fields: Options that say what keys are made of.
        folder: Of the schemes that were written; empty if they were not.
    """

    trace: str
    limits: str
    rows: Sequence[str] = ()
    fields: Sequence[str] = ()
    folder: str = ""


def scheme_files(found: AdviceRecord) -> list[list[tuple[str, str]]]:
    """Names of files and contents of the proposed schemes, of each table that has some."""
    changed = [table for table in found.tables if table.proposals]
    return [
        [(f"{_prefix(table) if len(changed) > 1 else ''}{one.name}.toml", one.scheme) for one in of]
        for table, of in ((table, table.proposals) for table in changed)
    ]


def _prefix(table: TableAdvicePart) -> str:
    return "".join(filter(str.isalnum, table.table)) + "-"


def commands(found: AdviceRecord, given: Given) -> list[str]:
    """The commands that verify the recommendations."""
    trace, limits = shlex.quote(given.trace), shlex.quote(given.limits)
    rate = "" if found.rate == 1 else f" --rate {found.rate:g}"
    judged = "" if given.limits == "published" else f" --limits {limits}"
    proposed = scheme_files(found)
    if not proposed:
        return []
    rows, fields = (
        "".join(f" {shlex.quote(one)}" for one in of) for of in (given.rows, given.fields)
    )
    if not given.folder:
        asked = f"harness advise {trace}{rate}{judged}{rows}{fields}"
        in_units = any(table.found and table.found.physical for table in found.tables)
        return [*([] if in_units else [f"{asked} --verify"]), f"{asked} --write keys/"]
    folder = given.folder.rstrip("/")
    schemes = [[shlex.quote(f"{folder}/{name}") for name, _ in of] for of in proposed]
    keys = [" ".join(f"--keys {scheme}" for scheme in of) for of in schemes]
    speed = "" if found.rate == 1 else f" --set replay.speed={found.rate:g}"
    replay = f"harness run replay --set replay.trace={trace}{speed}"
    return [
        *(f"harness whatif {trace} {of}{rate}{judged}{rows} --html whatif.html" for of in keys),
        f"{replay} --throttling {limits}",
        f"{replay} --set replay.keys={schemes[0][0]} --throttling {limits}",
    ]


def titled(table: TableAdvicePart) -> str:
    return f"table {table.table}" if table.table else "the table"


def proposed_keys(
    table: TableAdvicePart, place: int, show_keys: Callable[[str], str] = str
) -> tuple[str, list[tuple[str, str]]]:
    """The title of a proposal by its place, and its rows: labels and texts.

    ``show_keys`` shows the keys of an example.
    """
    assert table.found is not None
    proposal = table.proposals[place]
    name = "recommended" if not place else f"or {proposal.name}"
    rows = [("PartitionKey", proposal.partition_key), ("RowKey", proposal.row_key)]
    for example in table.found.schemes[1 + place].sample[:1]:
        rows += zip(("for example", "becomes"), map(show_keys, example), strict=True)
    if proposal.trade:
        rows.append(("trade", proposal.trade))
    return f"{name}: {proposal.idea}", rows


def field_rows(table: TableAdvicePart) -> list[tuple[str, str, str, str, str]]:
    """What the keys are made of: key, field, kind, number of values and examples."""
    return [
        (one.key, one.name, one.kind, f"{one.different:,}", ", ".join(one.examples))
        for one in table.fields
    ]


def advice_text(found: AdviceRecord, page: Page, given: Given) -> str:
    parts: list[RenderableType] = [Text(page.show(advice_heading(found)))]
    parts += (Text(page.show(note), "dim") for note in found.notes)
    for table in found.tables:
        parts.append(page.section(page.show(titled(table)), *_table(table, page)))
    if lines := commands(found, given):
        said = [Text(page.show(f"  {line}"), no_wrap=True, overflow="ignore") for line in lines]
        parts.append(page.section("verify it", *said))
    return page.render(*parts)


def _table(table: TableAdvicePart, page: Page) -> list[RenderableType]:
    colour = _COLOURS.get(table.answer, "")
    said: list[RenderableType] = [Text(page.show(table.headline), f"bold {colour}".strip())]
    if table.found is None:
        return said
    said += (Text(page.show(sentence)) for sentence in table.reason)
    for place in range(len(table.proposals)):
        title, rows = proposed_keys(table, place, lambda keys: page.short(keys, _KEYS_WIDTH))
        shown = [(label, page.show(text)) for label, text in rows]
        said += [Text(), Text(page.show(title)), grid(shown)]
    if table.proposals:
        said.append(Text())
        places = range(len(table.found.schemes))
        blocks = page.blocks(places, lambda block: _compared(block, table, page))
        said += (_compared(block, table, page) for block in blocks)
    if table.stays_bad:
        said += [Text(), Text("What stays bad", "bold")]
        said += (Text(page.show(sentence)) for sentence in table.stays_bad)
    fields = _fields(table, page) if table.fields else Text("no part that differs is known")
    return [*said, Text(), Text("The keys, as they were understood", "bold"), fields]


def _fields(table: TableAdvicePart, page: Page) -> Table:
    heads = [Text(head, "dim") for head in ("key", "field", "is", "different", "examples")]
    rows = ([page.short(text, _EXAMPLES_WIDTH) for text in row] for row in field_rows(table))
    return grid([heads, *rows], right=(3,))


def compared_rows(table: TableAdvicePart) -> list[tuple[str, list[tuple[str, bool]]]]:
    """The figures that differ under the keys: the label, and each with whether it is bad."""
    found = table.found
    assert found is not None
    shown = [
        (row.label, [(row.text(found, part), row.bad(found, part)) for part in found.schemes])
        for row in rows(found)
    ]
    return [(label, cells) for label, cells in shown if len({text for text, _ in cells}) > 1]


def _compared(places: Sequence[int], table: TableAdvicePart, page: Page) -> Table:
    assert table.found is not None
    names = [page.short(table.found.schemes[place].name, _NAME_WIDTH) for place in places]
    lines = []
    for label, cells in compared_rows(table):
        shown = [cells[place] for place in places]
        texts = [(page.short(text, _NAME_WIDTH), "yellow" if bad else "") for text, bad in shown]
        lines.append([Text(label), *(Text(*text) for text in texts)])
    return table_of(["", *names], lines)
