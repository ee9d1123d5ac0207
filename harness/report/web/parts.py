"""The parts of a page about a run, as HTML by the id of their element; none is empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.measure.record import RunRecord
from harness.model.target import EndpointKind
from harness.report.rates import predicted_shares
from harness.report.reading import (
    RELY_NOT,
    advised,
    alarms,
    attempts_shares,
    attempts_words,
    cost,
    limited_by,
    measured,
    result_words,
    scans,
    throttling,
)
from harness.report.search import figures, found, step_result
from harness.report.stored import MOST_EXAMPLES, audited, names_of
from harness.report.stressed import stressed
from harness.report.web.account import account, key_figures, operations
from harness.report.web.cell import Cell, cells, named
from harness.report.web.partitions import most_throttled, partitions
from harness.report.web.rendering import render
from harness.report.web.settings import settings
from harness.report.words import counted, percent, printable

_TONES = {"within_target": "good", "throttled": "bad"}
_HOLDS = {True: ("✓ holds", "good"), False: ("✗ fails", "bad"), None: ("? not known", "warn")}


def parts(record: RunRecord, *, live: bool) -> dict[str, str]:
    """The HTML of every part that ``record`` has something to show in.

    Args:
        record: The run, or what is known of it so far.
        live: Whether the run goes on.
    """
    makers: dict[str, Callable[[], str]] = {
        "head": lambda: _head(record),
        "verdict": lambda: _verdict(record, live=live),
        "conditions": lambda: _conditions(record),
        "figures": lambda: render("figures.html", figures=key_figures(record)),
        "why": lambda: _sentences(record.verdict.evidence),
        "advice": lambda: _advice(record),
        "search": lambda: _search(record, live=live),
        "partitions": lambda: partitions(record, live=live),
        "throttled": lambda: most_throttled(record),
        "predicted": lambda: _predicted(record),
        "account": lambda: account(record),
        "operations": lambda: operations(record),
        "scans": lambda: _scans(record),
        "attempts": lambda: _attempts(record),
        "course": lambda: _facts(throttling(record)),
        "pointers": lambda: _pointers(record),
        "audit": lambda: _audit(record),
        "generator": lambda: _facts(cost(record)),
        "profile": lambda: render("text.html", text=_profile(record)),
        "machine": lambda: _facts(_machine(record)),
    }
    made = {name: make() for name, make in makers.items()}
    return {name: text for name, text in made.items() if text}


def _head(record: RunRecord) -> str:
    profile = record.profile
    return render(
        "head.html",
        name=printable(str(profile.get("name", "run"))),
        question=printable(str(profile.get("question", ""))),
        facts=_shown(stressed(record)),
    )


def _verdict(record: RunRecord, *, live: bool) -> str:
    result = record.verdict.result
    return render(
        "verdict.html",
        alarm=RELY_NOT if alarms(record) else "",
        alarms=[printable(sentence.strip()) for sentence in alarms(record)],
        result=printable(result_words(record)),
        tone=_TONES.get(result, "warn"),
        live=live,
        sentence=printable(record.verdict.sentence),
        limit=limited_by(record),
        described=printable(record.endpoint.described),
        emulated=is_emulated(record),
    )


def is_emulated(record: RunRecord) -> bool:
    """Whether an emulator answered, as far as this version knows the endpoint."""
    return record.endpoint.kind in [str(kind) for kind in EndpointKind if kind.emulated]


def _conditions(record: RunRecord) -> str:
    rows = []
    for part in record.conditions:
        text, tone = _HOLDS[part.passed]
        rows.append([Cell(text=text, tone=tone), named(part.text, 90), *cells([measured(part)])])
    headers = ["", "condition", "value"]
    return render("table.html", headers=headers, rows=rows, left=3) if rows else ""


def _sentences(sentences: Sequence[str]) -> str:
    items = [(printable(sentence), "") for sentence in sentences]
    return render("list.html", items=items) if items else ""


def _advice(record: RunRecord) -> str:
    items = [tuple(map(printable, advised(part))) for part in record.verdict.advice]
    return render("list.html", items=items) if items else ""


def _search(record: RunRecord, *, live: bool) -> str:
    part = record.search
    if part is None:
        return ""
    highest = max((step.rate_per_s for step in part.steps), default=0.0) or 1.0
    rows = []
    for place, step in enumerate(part.steps, 1):
        wanted, achieved, *others = figures(step)
        result = step_result(step.failed, confirming=step.confirming)
        passed = step.failed is None
        rows.append(
            [
                Cell(text=str(place), tone="faint"),
                Cell(text=printable(result), tone="good" if passed else "bad"),
                Cell(text=wanted),
                Cell(text=achieved, share=step.achieved_per_s / highest),
                *cells(others),
            ]
        )
    headers = [
        "step", "result", "wanted entities/s", "achieved", "throttled", "p99 ms", "held",
        "billable",
    ]  # fmt: skip
    note = "All other sections are about the whole search, its failed steps included."
    # What was found is not told before all is.
    notes = [note] if live else [printable(found(part)), note]
    return render("table.html", headers=headers, rows=rows, left=2, notes=notes)


def _predicted(record: RunRecord) -> str:
    rows = [
        [
            named(share.what, 80),
            *(
                Cell(text="not known", tone="faint")
                if value is None
                else Cell(text=percent(value), share=value)
                for value in (share.predicted, share.measured)
            ),
        ]
        for share in predicted_shares(record)
    ]
    headers = ["share of the load", "predicted", "measured"]
    return render("table.html", headers=headers, rows=rows, left=1) if rows else ""


def _scans(record: RunRecord) -> str:
    rows = [[named(name), *cells(texts)] for name, *texts in scans(record)]
    headers = ["query", "entities scanned", "returned", "of the scanned", "count"]
    return render("table.html", headers=headers, rows=rows, left=1) if rows else ""


def _attempts(record: RunRecord) -> str:
    rows = [
        [named(name), Cell(text=f"{count:,}"), Cell(text=percent(share), share=share)]
        for name, count, share in attempts_shares(record)
    ]
    headers = ["answered by", "attempts", "share"]
    notes = [printable(sentence) for sentence in attempts_words(record)]
    return render("table.html", headers=headers, rows=rows, left=1, notes=notes)


def _pointers(record: RunRecord) -> str:
    rows = [
        [
            named(part.table),
            named(names_of(part)),
            *cells([f"{part.rows:,}", f"{part.dangling:,}", f"{part.unnamed:,}"]),
        ]
        for part in record.pointers
    ]
    headers = ["index table", "names rows of", "rows", "naming none", "unnamed there"]
    return render("table.html", headers=headers, rows=rows, left=2) if rows else ""


def _audit(record: RunRecord) -> str:
    if (part := record.audit) is None:
        return ""
    examples = [("such as", example) for example in part.examples[:MOST_EXAMPLES]]
    return _facts([*audited(part), *examples])


def _profile(record: RunRecord) -> str:
    return "\n".join(map(printable, settings(record.profile).splitlines()))


def _machine(record: RunRecord) -> list[tuple[str, str]]:
    rows = [("harness", record.harness_version)]
    if (part := record.machine) is not None:
        packages = ", ".join(f"{name} {version}" for name, version in part.packages.items())
        machine = f"{counted(part.cpus, 'CPU')}, {part.platform}"
        rows += [("machine", machine), ("Python", part.python), ("packages", packages)]
    return rows


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    return render("facts.html", facts=_shown(rows)) if rows else ""


def _shown(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(printable(name), printable(text)) for name, text in rows]
