"""The parts of a page about a run as HTML."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.measure.figures import agreed, counted, milliseconds, number, percent
from harness.measure.record.record import LatencyPart, RatesPart, RunRecord
from harness.model.outcome import FAILURES
from harness.model.target import EndpointKind
from harness.report.columns import (
    NOT_MEASURED,
    POINTER_COLUMNS,
    RESPONSE_COLUMNS,
    SCAN_COLUMNS,
    STEP_COLUMNS,
    best_over,
    referred,
    response_counts,
    scanning,
    throttled_by_status,
)
from harness.report.names import partition_name, printable
from harness.report.sentences import (
    NO_TARGET,
    RELY_NOT,
    WHOLE_SEARCH,
    advised,
    alarms,
    attempts_words,
    audited,
    cost,
    found,
    hottest,
    limited_by,
    measured,
    predicted_shares,
    result_words,
    setup,
    step_result,
    throttling,
)
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
    return "" if part is None else _facts(audited(part))


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """A key figure.

    Attributes:
        name: Its heading.
        value: Its text, without the unit.
        unit: Its unit.
        share: A share that is drawn as a bar; None for no bar.
        notes: Lines below the figure.
        tone: As in `Cell`.
    """

    name: str
    value: Cell
    unit: str = ""
    share: float | None = None
    notes: tuple[str, ...] = ()
    tone: str = ""


def key_figures(record: RunRecord) -> list[KeyFigure]:
    """Account, hottest partition, throttling, failures, latencies, and the share of the offer."""
    account = record.account
    longer = best_over(record)
    shown = [
        _against(
            "account", Cell(text=""), account.entities_per_s, account.ratio, account.target, longer
        )
    ]
    if (hot := hottest(record)) is not None:
        name = named(partition_name(hot.key), 24)
        rates = hot.entities_per_s
        shown.append(_against("hottest partition", name, rates, hot.ratio, hot.target, longer))
    by_status = throttled_by_status(record.attempts_by_status)
    shown.append(
        KeyFigure(
            name="throttled",
            value=Cell(text=percent(record.throttled_ratio)),
            unit="of attempts",
            notes=(", ".join(f"{status}: {count:,}" for status, count in by_status.items()),),
            tone="bad" if record.throttled_ratio else "",
        )
    )
    ended = sum(record.outcomes.values())
    failed = sum(count for name, count in record.outcomes.items() if name in FAILURES)
    shown.append(
        KeyFigure(
            name="failed",
            value=Cell(text=f"{failed:,}"),
            unit=agreed(failed, "operation", "operations"),
            notes=(f"{percent(failed / ended if ended else 0.0)} of {ended:,}",),
            tone="bad" if failed else "",
        )
    )
    shown += [_latency("service", record.service_ms), _latency("response", record.response_ms)]
    if (offered := _offered(record)) is not None:
        achieved = account.entities_per_s.mean
        held = achieved / offered if offered else 1.0
        shown.append(
            KeyFigure(
                name="achieved of offered",
                value=Cell(text=percent(held)),
                notes=(f"{number(achieved)} of {number(offered)} entities/s",),
                share=held,
            )
        )
    return shown


def _against(
    name: str, of: Cell, rates: RatesPart, ratio: float | None, target: float | None, longer: str
) -> KeyFigure:
    mean, best_1s, best_10s = map(number, (rates.mean, rates.best_1s, rates.best_10s))
    beside = NO_TARGET
    if ratio is not None and target is not None:
        beside = f"{percent(ratio)} of {number(target)}"
    value = dataclasses.replace(of, text=mean)
    label = f"{name} {of.text}".strip()
    return KeyFigure(
        name=label,
        value=value,
        unit="entities/s",
        share=ratio,
        notes=(beside, f"best 1 s {best_1s}, {longer} {best_10s}"),
        tone="warn" if ratio is not None and ratio > 1 else "",
    )


def _latency(name: str, part: LatencyPart | None) -> KeyFigure:
    if part is None:
        why = "not measured in a closed loop" if name == "response" else "not measured"
        return KeyFigure(
            name=f"p99 {name}", value=Cell(text=NOT_MEASURED), notes=(why,), tone="faint"
        )
    notes = (f"p50 {milliseconds(part.p50)} ms, max {milliseconds(part.max)} ms",)
    return KeyFigure(
        name=f"p99 {name}", value=Cell(text=milliseconds(part.p99)), unit="ms", notes=notes
    )


def _offered(record: RunRecord) -> float | None:
    """Entities/s offered in the measured window; None in a closed loop."""
    start, end = record.window_start, record.window_start + record.measured_s
    known = [
        (point.offered, point.width_s)
        for point in record.series
        if point.offered is not None and start <= point.t < end
    ]
    seconds = sum(width for _, width in known)
    return sum(rate * width for rate, width in known) / seconds if seconds else None
