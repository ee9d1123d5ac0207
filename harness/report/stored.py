"""What a run left in its tables, looked at after the load: index tables, and the audit."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from harness.measure.findings import AuditPart, PointersPart
from harness.measure.record import RunRecord
from harness.report.page import Page, grid
from harness.report.words import agreed, counted, shortened

MOST_EXAMPLES = 5
_NAME_WIDTH = 24


def names_of(part: PointersPart) -> str:
    """The table whose rows an index table names."""
    return part.to or "the first table"


def audited(part: AuditPart) -> list[tuple[str, str]]:
    """What was found stored, beside what was acknowledged: names and texts."""
    about = "" if part.exact else "about "
    looked = f"{part.rows:,} of {about}{counted(part.written, 'written row')}"
    if part.rows == part.written and part.exact:
        looked = f"all {counted(part.rows, 'written row')}"
    rows = [("looked up", looked)]
    missed = [
        f"{counted(part.unread, 'row')} that could not be read" if part.unread else "",
        f"{counted(part.given_up, 'row')} with too many writes" if part.given_up else "",
        part.cut_short,
    ]
    if any(missed):
        rows.append(("not looked up", "; ".join(filter(None, missed))))
    covered_are = agreed(part.covered, "is", "are")
    covered = (
        f"; {part.covered:,} of them {covered_are} covered by later writes" if part.covered else ""
    )
    rows.append(
        ("lost", f"{part.lost:,} of {counted(part.acknowledged, 'acknowledged write')}{covered}")
    )
    if part.unacknowledged:
        undecided = f", {part.undecided:,} not known" if part.undecided else ""
        rows.append(
            (
                "unanswered",
                f"{counted(part.unacknowledged, 'write')}: {part.applied:,} applied, "
                f"{part.not_applied:,} not applied{undecided}",
            )
        )
    return rows


def index_tables(record: RunRecord, page: Page) -> RenderableType:
    """Index tables that the application keeps in step: what does not fit together any more."""
    rows = []
    for part in record.pointers:
        missing = (
            f"{part.dangling:,} {agreed(part.dangling, 'names', 'name')} a row of "
            f"{page.show(names_of(part))} that is not there"
        )
        line = Text(f"{counted(part.rows, 'row')}; ")
        line.append(missing, style="yellow" if part.dangling else "")
        line.append(f"; {counted(part.unnamed, 'row')} of it named by none")
        name = shortened(page.show(part.table), _NAME_WIDTH, page.glyphs.ellipsis)
        rows.append((Text(name), line))
    return page.section("index tables", grid(rows))


def audit(part: AuditPart, page: Page) -> RenderableType:
    """Whether everything that was acknowledged is there."""
    rows = [
        (
            Text(name, style="dim"),
            Text(text, style="bold red" if name == "lost" and part.lost else ""),
        )
        for name, text in audited(part)
    ]
    rows += [
        (Text("" if place else "such as", style="dim"), Text(page.show(example)))
        for place, example in enumerate(part.examples[:MOST_EXAMPLES])
    ]
    return page.section("audit", grid(rows))
