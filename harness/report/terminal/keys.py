"""Keys alone: a verdict, what their tokens are, and how they sort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from harness.measure.record.findings import RecordPart
from harness.model.errors import cut
from harness.model.figures import counted, percent
from harness.model.key_notations import SortOrder, TokenKind
from harness.model.key_tokens import KeyShape, KeyToken
from harness.profile.checks.listed_keys import KeyColumn, ListedKeys, ListedTable
from harness.profile.practices.checklist import Finding, of_severity
from harness.profile.practices.practice import Severity
from harness.report.terminal.page import Page, grid

_WIDTH = 40
_HIDDEN = 0.005
"""Share of the rows up to which other layouts are not worth a line."""


def keys_verdict(findings: Sequence[Finding]) -> str:
    """What is wrong with the keys, in one line."""
    said = [
        f"{words}: {', '.join(finding.practice.name for finding in found)}"
        for severity, words in ((Severity.OFFENDS, "Violated"), (Severity.CONSIDER, "To consider"))
        if (found := of_severity(findings, severity))
    ]
    return ". ".join([*said, ""]).strip() or "No practice is violated that keys alone show."


def keys_shown(listed: ListedKeys, page: Page) -> Iterator[RenderableType]:
    """A section for PartitionKeys and one for RowKeys, by table, then what was left out."""
    for name, table in listed.tables.items():
        of = f" of table {name}" if name else ""
        columns = [("PartitionKey", table.partition_keys), ("RowKey", table.row_keys)]
        for (what, column), shape in zip(columns, table.shapes, strict=True):
            if column.count:
                facts = _facts(listed, table, column)
                shown = _column(column, shape, facts, listed.unit, page)
                yield page.section(page.show(what + of), *shown)
    if listed.notes:
        yield page.section("notes", *(Text(page.show(note)) for note in listed.notes))


def _facts(listed: ListedKeys, table: ListedTable, column: KeyColumn) -> str:
    about = "" if column.sample.exact else "about "
    facts = [f"{about}{column.distinct:,} different in {counted(column.count, 'key')}"]
    if column.distinct == 1:
        return f"{counted(column.count, 'key')}: {cut(column.keys[0])!r}"
    if column is table.row_keys:
        return facts[0]
    key, share, exact = table.hottest
    if table.uses > column.distinct:
        unit, bound = f"{listed.unit}s", "" if exact else "≥ "
        facts.append(f"the most frequent, {cut(key)!r}, has {bound}{percent(share)} of the {unit}")
    if table.own_partitions:
        each = "each" if table.entities == column.distinct else "nearly each"
        facts.append(f"{each} entity has its own partition")
    return "; ".join(facts)


def _column(
    column: KeyColumn, shape: KeyShape, facts: str, unit: str, page: Page
) -> Iterator[RenderableType]:
    layouts = (shape, *shape.others)
    yield Text(page.show(f"{facts[:1].upper()}{facts[1:]}."))
    if column.distinct == 1:
        return
    for layout in layouts:
        if len(layouts) > 1:
            share = f"{percent(layout.share)} of the {unit}s have keys"
            yield Text(page.show(f"{share} like {layout.example!r}:"))
        yield Text(page.show(layout.template))
        # The template shows separators.
        shown = [token for token in layout.tokens if token.kind is not TokenKind.SEPARATOR]
        bound = "≥ " if shape.keys < column.distinct else ""
        rows = [_row(token, page, bound) for token in shown]
        head = tuple(Text(word, "dim") for word in ("token", "sorts", "different", "examples"))
        yield grid([head, *rows], right=(2,))
        yield Text(page.show(time_sentence(layout)))
    if (other := 1 - sum(layout.share for layout in layouts)) > _HIDDEN:
        yield Text(f"{percent(other)} of the {unit}s have keys of other forms.", "dim")


def _row(token: KeyToken, page: Page, bound: str) -> tuple[str, str, str, str]:
    examples = ", ".join(page.short(example, _WIDTH) or "(empty)" for example in token.examples)
    if not token.varies:
        return (str(token.kind), "", "", examples)
    return (token_words(token), str(token.order), page.show(f"{bound}{token.distinct:,}"), examples)


def token_words(token: KeyToken) -> str:
    """What a token is: ``date yyyy-MM-dd``, ``number of 3 digits``."""
    if not token.form or token.form.startswith(str(token.kind)):
        return token.form or str(token.kind)
    maybe = " or number" if token.doubtful and token.examples[0].isdecimal() else ""
    return f"{token.kind}{maybe}: {token.form}"


def time_sentence(shape: KeyShape) -> str:
    token = next((token for token in shape.tokens if token.timed), None)
    if token is None:
        return "No part of the key is a time."
    sentence = _sorted_by(token, shape)
    if not token.doubtful:
        return sentence
    return f"If {token.examples[0]!r} is the time of its row: {sentence[0].lower()}{sentence[1:]}"


def _sorted_by(token: KeyToken, shape: KeyShape) -> str:
    if token.order is SortOrder.BROKEN:
        example = ""
        if token.wrong is not None:
            example = f": {token.wrong[0]} sorts before {token.wrong[1]}"
        return f"Does not sort by time{example}."
    if token is not shape.leading:
        return "Sorts by time only among keys with the same beginning."
    if token.order is SortOrder.EARLIER:
        return "Sorts by time, the newest first: new keys come first."
    return "Sorts by time, the oldest first: new keys come last."


class LayoutPart(RecordPart):
    """A layout of keys: its share of the rows, and how the keys sort by time."""

    template: str
    share: float
    time: str
    tokens: tuple[KeyToken, ...]


class ColumnPart(RecordPart):
    """The PartitionKeys, or the RowKeys, of one table; ``refused`` by the service."""

    keys: int
    distinct: int
    distinct_is_exact: bool
    refused: int
    layouts: tuple[LayoutPart, ...]


class TableKeysPart(RecordPart):
    """The keys of one table.

    Attributes:
        uses: Rows of the list, or operations.
        most_frequent: The PartitionKey with the largest share of the uses.
        own_partitions: Most entities have a PartitionKey of their own.
    """

    table: str
    uses: int
    rows: int
    most_frequent: str
    most_frequent_share: float
    own_partitions: bool
    partition_key: ColumnPart
    row_key: ColumnPart | None


class KeysPart(RecordPart):
    """Keys alone, by table; ``unit`` is what is counted."""

    unit: str
    tables: tuple[TableKeysPart, ...]
    notes: tuple[str, ...]


def keys_part(listed: ListedKeys) -> KeysPart:
    return KeysPart(
        unit=listed.unit,
        tables=tuple(
            TableKeysPart(
                table=name,
                uses=table.uses,
                rows=table.entities,
                most_frequent=table.hottest[0],
                most_frequent_share=table.hottest[1],
                own_partitions=table.own_partitions,
                partition_key=_column_part(table.partition_keys, table.shapes[0]),
                row_key=_column_part(table.row_keys, table.shapes[1])
                if table.row_keys.count
                else None,
            )
            for name, table in listed.tables.items()
        ),
        notes=tuple(listed.notes),
    )


def _column_part(column: KeyColumn, shape: KeyShape) -> ColumnPart:
    return ColumnPart(
        keys=column.count,
        distinct=column.distinct,
        distinct_is_exact=column.sample.exact,
        refused=column.refused,
        layouts=tuple(
            LayoutPart(
                template=layout.template,
                share=layout.share,
                time=time_sentence(layout),
                tokens=layout.tokens,
            )
            for layout in (shape, *shape.others)
        ),
    )
