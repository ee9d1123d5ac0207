"""What the audit says while it goes on. What it found is in `harness.report.stored`."""

from __future__ import annotations

from harness.measure.findings import AuditPart
from harness.report.words import counted, duration


def audit_begins(rows: int, written: int, *, exact: bool) -> str:
    """The first line: how many rows are looked up, of how many."""
    if rows == written and exact:
        return f"Audit: {counted(rows, 'row')} that the load wrote"
    about = "" if exact else "about "
    return f"Audit: {counted(rows, 'row')}, a sample of {about}{written:,} that the load wrote"


def audit_goes_on(rows: int, total: int, lost: int) -> str:
    """A line now and then."""
    return f"Audit: {rows:,} of {counted(total, 'row')}, {counted(lost, 'lost write')}"


def audit_ends(part: AuditPart, seconds: float) -> str:
    """The last line."""
    line = f"Audit: {counted(part.rows, 'row')} looked up in {duration(seconds)}"
    if part.rows:
        line += f", {counted(part.lost, 'lost write')}"
    return line + (f"; cut short: {part.cut_short}" if part.cut_short else "")
