"""The parts of a page about a run as HTML."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.measure.figures import counted, percent
from harness.measure.record.record import RunRecord
from harness.model.target import EndpointKind
from harness.report.columns import (
    POINTER_COLUMNS,
    RESPONSE_COLUMNS,
    SCAN_COLUMNS,
    STEP_COLUMNS,
    referred,
    response_counts,
    scanning,
)
from harness.report.names import printable
from harness.report.predicted_shares import predicted_shares
from harness.report.sentences import (
    RELY_NOT,
    WHOLE_SEARCH,
    advised,
    alarms,
    attempts_words,
    audit_examples,
    audited,
    cost,
    found,
    limited_by,
    measured,
    result_words,
    setup,
    step_result,
    throttling,
)
from harness.report.web.key_figures import key_figures
from harness.report.web.rendering import render
from harness.report.web.tables import (
    Cell,
    account,
    cells,
    figure_cell,
    most_throttled,
    named,
    operations,
    partitions,
    table_html,
)

_OWN_TEXTS = ("name", "question")
_TONES = {"within_target": "good", "throttled": "bad"}
_HOLDS = {True: ("✓ holds", "good"), False: ("✗ fails", "bad"), None: ("? not known", "warn")}


def parts(record: RunRecord, *, live: bool) -> dict[str, str]:
    """The HTML of every part by the id of its element; empty parts are left out.

    Args:
        record: The run so far.
        live: Whether the run is in progress.
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
        facts=_shown(setup(record)),
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
        result = printable(step_result(step.failed, confirming=step.confirming))
        wanted, achieved, *others = (figure_cell(column, step) for column in STEP_COLUMNS)
        rows.append(
            [
                Cell(text=str(place), tone="faint"),
                Cell(text=result, tone="good" if step.failed is None else "bad"),
                wanted,
                dataclasses.replace(achieved, share=step.achieved_per_s / highest),
                *others,
            ]
        )
    # The result is known only at the end of the search.
    notes = [WHOLE_SEARCH] if live else [printable(found(part)), WHOLE_SEARCH]
    return table_html(["step", "result"], STEP_COLUMNS, rows, notes)


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
    rows = [
        [named(part.kind), *(figure_cell(column, part) for column in SCAN_COLUMNS)]
        for part in scanning(record)
    ]
    return table_html(["query"], SCAN_COLUMNS, rows)


def _attempts(record: RunRecord) -> str:
    rows = [
        [named(row.name), *(figure_cell(column, row) for column in RESPONSE_COLUMNS)]
        for row in response_counts(record)
    ]
    notes = [printable(sentence) for sentence in attempts_words(record)]
    return table_html(["response"], RESPONSE_COLUMNS, rows, notes)


def _pointers(record: RunRecord) -> str:
    rows = [
        [
            named(part.table),
            named(referred(part)),
            *(figure_cell(column, part) for column in POINTER_COLUMNS),
        ]
        for part in record.pointers
    ]
    return table_html(["index table", "refers to"], POINTER_COLUMNS, rows)


def _audit(record: RunRecord) -> str:
    part = record.audit
    return "" if part is None else _facts([*audited(part), *audit_examples(part)])


def _profile(record: RunRecord) -> str:
    return "\n".join(map(printable, profile_text(record.profile).splitlines()))


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


def profile_text(profile: Mapping[str, Any]) -> str:
    """The settings of a resolved profile that have a value, in the form of TOML.

    Args:
        profile: As records hold it.
    """
    return "\n".join(_lines({k: v for k, v in profile.items() if k not in _OWN_TEXTS}, ""))


def _lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    own, tables = [], []
    for name, value in table.items():
        whole = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            tables.append((f"[{whole}]", whole, value))
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            tables += [(f"[[{whole}]]", whole, one) for one in value]
        elif value is not None:
            own.append(f"{name} = {_value(value)}")
    yield from own
    for heading, whole, inner in tables:
        lines = list(_lines(inner, whole))
        if lines and lines[0]:
            yield from ("", heading)
        yield from lines


def _value(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        pairs = (f"{name} = {_value(inner)}" for name, inner in value.items() if inner is not None)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
