"""The advice about keys in a terminal, and as JSON."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record.advice import AdviceRecord, KeyAnswer, TableAdvicePart
from harness.model.figures import counted, duration
from harness.report.terminal.page import Page, grid
from harness.report.whatif import side_by_side

_COLOURS = {KeyAnswer.CHANGE: "yellow", KeyAnswer.NO_KEY: "red", KeyAnswer.FINE: "green"}


def advice_heading(found: AdviceRecord) -> str:
    """The traffic and what was asked, in a line."""
    scaled = "" if found.rate == 1 else f", {found.rate:g} times as fast"
    return (
        f"{counted(found.operations, 'operation')} in {duration(found.seconds)}{scaled}; limits "
        f"{found.limits}."
    )


def commands(found: AdviceRecord, folder: str) -> list[str]:
    """The commands that verify the recommendation of the busiest table that has one.

    ``folder`` has the schemes of ``--write``; empty if they were not written.
    """
    rate = "" if found.rate == 1 else f" --rate {found.rate:g}"
    if not any(table.proposals for table in found.tables):
        return []
    if not folder:
        return [f"harness advise {found.trace}{rate} --write keys/"]
    schemes = [
        f"{folder.rstrip('/')}/{proposal.name}.toml"
        for table in found.tables
        for proposal in table.proposals
    ]
    given = " ".join(f"--keys {path}" for path in schemes[:3])
    speed = "" if found.rate == 1 else f" --set replay.speed={found.rate:g}"
    replay = f"harness run replay --set replay.trace={found.trace}{speed}"
    return [
        f"harness whatif {found.trace} {given}{rate} --html whatif.html",
        f"{replay} --throttling {found.limits}",
        f"{replay} --set replay.keys={schemes[0]} --throttling {found.limits}",
    ]


def titled(table: TableAdvicePart) -> str:
    return f"table {table.table}" if table.table else "the table"


def field_rows(table: TableAdvicePart) -> list[tuple[str, str, str, str, str]]:
    """What the keys are made of: key, field, kind, number of values and examples."""
    return [
        (one.key, one.name, one.kind, f"{one.different:,}", ", ".join(one.examples))
        for one in table.fields
    ]


def advice_text(found: AdviceRecord, page: Page, folder: str = "") -> str:
    parts: list[RenderableType] = [Text(page.show(advice_heading(found)))]
    parts += (Text(page.show(note), "dim") for note in found.notes)
    for table in found.tables:
        parts.append(page.section(page.show(titled(table)), *_table(table, page)))
    if lines := commands(found, folder):
        said = [Text(page.show(f"  {line}"), no_wrap=True, overflow="ignore") for line in lines]
        parts.append(page.section("verify it", *said))
    return page.render(*parts)


def advice_json(found: AdviceRecord) -> str:
    """The advice for programs."""
    return found.model_dump_json(indent=1) + "\n"


def _table(table: TableAdvicePart, page: Page) -> list[RenderableType]:
    colour = _COLOURS.get(table.answer, "")
    said: list[RenderableType] = [Text(page.show(table.headline), f"bold {colour}".strip())]
    if table.found is None:
        return said
    said += (Text(page.show(sentence)) for sentence in table.reason)
    for place, proposal in enumerate(table.proposals):
        name = "recommended" if not place else f"or {proposal.name}"
        rows = [
            ("PartitionKey", page.show(proposal.partition_key)),
            ("RowKey", page.show(proposal.row_key)),
        ]
        if proposal.trade:
            rows.append(("trade", page.show(proposal.trade)))
        said += [Text(), Text(page.show(f"{name}: {proposal.idea}")), grid(rows)]
    if table.proposals:
        said.append(Text())
        said += side_by_side(table.found, table.found.schemes[1], page)
    if table.stays_bad:
        said += [Text(), Text("What stays bad", "bold")]
        said += (Text(page.show(sentence)) for sentence in table.stays_bad)
    return [*said, Text(), Text("The keys, as they were understood", "bold"), _fields(table, page)]


def _fields(table: TableAdvicePart, page: Page) -> Table:
    heads = [Text(head, "dim") for head in ("key", "field", "is", "different", "examples")]
    return grid([heads, *([*map(page.show, row)] for row in field_rows(table))], right=(3,))
