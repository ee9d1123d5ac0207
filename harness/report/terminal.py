"""The report of a run for a terminal: what was stressed, what it served, and what that means.

From top to bottom: what was stressed, the partitions beside their target, the account, the
operations, the attempts, the course of the run, its cost, the conditions, and the verdict last,
where the eye rests when the run is over. What makes the figures wrong stands above and below.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from harness.measure.conditions import parse_condition
from harness.measure.record import ConditionPart, RunRecord
from harness.report.course import course
from harness.report.operations import attempts, operations
from harness.report.page import Page, grid
from harness.report.rates import account, partitions
from harness.report.words import counted, data_size, milliseconds, number, percent

_LIMITS = {
    "load": "the load that was asked for",
    "generator": "the generator",
    "endpoint": "the endpoint",
    "users": "the users, who wait for themselves",
    "partition": "the partition",
    "account": "the account",
}
_RESULT_COLOURS = {"within_target": "green", "throttled": "red"}


def summary(record: RunRecord, *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """The report of ``record``.

    Args:
        record: The run.
        width: Columns of the terminal; made for 80 and more.
        colour: Whether colours and bold are shown.
        ascii_only: Whether only ASCII can be shown.
    """
    page = Page(width=width, colour=colour, ascii_only=ascii_only)
    alarm = _alarm(record, page)
    parts = [
        _head(record, page),
        *alarm,
        partitions(record, page),
        account(record, page),
        operations(record, page),
        attempts(record, page),
    ]
    if record.series:
        parts.append(course(record, page))
    parts.append(_cost(record, page))
    if record.conditions:
        parts.append(_conditions(record, page))
    parts += [Text(), *alarm, _verdict(record, page)]
    return page.render(Group(*parts))


def _head(record: RunRecord, page: Page) -> RenderableType:
    profile = record.profile
    load = f"{counted(record.users, 'user')} in {counted(record.workers, 'process', 'processes')}"
    cap = profile.get("load", {}).get("max_entities_per_s")
    if cap is not None:
        load += f", at most {number(cap)} entities/s together"
    entity, loading = record.entity, record.loading
    size = f"{entity.stored_bytes:,} B stored, about {entity.wire_bytes:,} B on the wire"
    if loading.entities:
        size += f"; {loading.entities:,} loaded in {number(loading.seconds)} s"
    under_load = sum(point.width_s for point in record.series)
    rows = [
        ("stressed", record.endpoint.described),
        ("", f"{record.endpoint.host}, table {record.endpoint.table}"),
        ("load", load),
        ("entities", size),
        (
            "measured",
            f"{record.measured_s:,} s of {under_load:,} s under load, ended by {record.ended_by}",
        ),
        ("run", f"{record.run_id}, session {record.session}"),
    ]
    content: list[RenderableType] = []
    if question := profile.get("question"):
        content += [Text(page.show(str(question)), style="italic"), Text()]
    content.append(grid([(Text(name, style="dim"), page.show(text)) for name, text in rows]))
    return Panel(
        Group(*content),
        title=Text(page.show(str(profile.get("name", "run"))), style="bold"),
        title_align="left",
        box=page.glyphs.box,
        border_style="cyan",
    )


def _alarm(record: RunRecord, page: Page) -> list[RenderableType]:
    """What makes the figures wrong, loud; nothing where they are right."""
    lines = []
    if record.invariants:
        lines.append("The harness broke its own laws of counting; this run is not valid:")
        lines += [f"  {page.show(sentence)}" for sentence in record.invariants]
    if (defects := record.outcomes.get("defect", 0)) > 0:
        lines.append(f"{counted(defects, 'operation')} ended in a way the harness does not know.")
    if not record.complete:
        lines.append("Incomplete: a worker's last report is missing, every count is too low.")
    if not lines:
        return []
    return [
        Panel(
            Text("\n".join(lines), style="bold"),
            title=Text("DO NOT RELY ON THESE FIGURES", style="bold"),
            box=page.glyphs.box,
            border_style="bold red",
        )
    ]


def _cost(record: RunRecord, page: Page) -> RenderableType:
    counts, generator = record.counts, record.generator
    load = (
        f"CPU {generator.cpu_percent_mean:.0f}% of a core, {generator.cpu_percent_max:.0f}% at "
        f"most; machine {generator.machine_percent_max:.0f}% at most; "
        f"lag {milliseconds(generator.lag_s_max * 1000)} ms"
    )
    unsent = [
        f"{count:,} {word}"
        for count, word in (
            (counts.waiting, "not sent any more"),
            (counts.dropped, "dropped"),
            (counts.in_flight, "still in flight"),
        )
        if count
    ]
    rows = [
        ("generator", load),
        (
            "bytes",
            f"{data_size(counts.bytes_sent)} sent, {data_size(counts.bytes_received)} received",
        ),
        ("billable", counted(counts.billable_transactions, "transaction")),
        (
            "due",
            f"{counted(counts.due, 'operation')}; {', '.join(unsent) or 'all sent and answered'}",
        ),
    ]
    return page.section(
        "generator and cost", grid([(Text(name, style="dim"), text) for name, text in rows])
    )


def _conditions(record: RunRecord, page: Page) -> RenderableType:
    rows = []
    for part in record.conditions:
        sign, word, colour = {
            True: (page.glyphs.yes, "holds", "green"),
            False: (page.glyphs.no, "FAILS", "bold red"),
            None: ("?", "not known", "yellow"),
        }[part.passed]
        rows.append((Text(f"{sign} {word}", style=colour), page.show(part.text), _measured(part)))
    return page.section("conditions", grid(rows))


def _measured(part: ConditionPart) -> str:
    """The value of a condition in the unit of what it compares."""
    if part.value is None:
        return "nothing was measured for it"
    try:
        name = parse_condition(part.text).metric[0]
    except ValueError:
        # A record of another version may compare what this one does not know.
        return f"measured {number(part.value)}"
    if name.endswith("_ratio"):
        return f"measured {percent(part.value)}"
    if name.startswith("p"):
        return f"measured {milliseconds(part.value)} ms"
    return f"measured {number(part.value)}"


def _verdict(record: RunRecord, page: Page) -> RenderableType:
    verdict = record.verdict
    colour = _RESULT_COLOURS.get(verdict.result, "yellow")
    limit = _LIMITS.get(verdict.limited_by)
    result = verdict.result.replace("_", " ").upper()
    return Panel(
        Text(page.show(verdict.sentence), style="bold"),
        title=Text(f"VERDICT: {page.show(result)}", style=f"bold {colour}"),
        title_align="left",
        subtitle=None if limit is None else Text(f"limited by {limit}", style="dim"),
        subtitle_align="left",
        box=page.glyphs.box,
        border_style=colour,
        padding=(1, 1),
    )
