"""The parts of a page about a run as HTML: key figures, tables, facts, and lists."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.model.figures import agreed, counted, milliseconds, number, percent
from harness.measure.record.record import AccountPart, LatencyPart, PartitionPart, RunRecord
from harness.model.outcome import FAILURES
from harness.report import columns, sentences
from harness.report.columns import Column, Output
from harness.report.names import partition_name, printable, shortened
from harness.report.passing import passing_of
from harness.report.web.rendering import render

_MOST_LIVE = 50
"""Rows of a table that is sent every other second. Keys may be long; a report has all of them."""
_NAME_WIDTH = 48
_MOST_THROTTLED = 10
_MUCH = 4
_OWN_TEXTS = ("name", "question")
_TONES = {"within_target": "good", "throttled": "bad"}
_HOLDS = {True: ("✓ holds", "good"), False: ("✗ fails", "bad"), None: ("? not known", "warn")}


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """The content of a cell.

    Attributes:
        text: The text; the template escapes it.
        tone: ``good``, ``bad``, ``warn``, ``faint``, ``name`` or empty.
        title: Shown where the pointer rests; empty for nothing.
        mark: Behind the text.
        share: Drawn as a bar; None for no bar.
    """

    text: str
    tone: str = ""
    _: dataclasses.KW_ONLY
    title: str = ""
    mark: str = ""
    share: float | None = None


def short(text: str, width: int) -> str:
    """The beginning and the end of ``text``, about ``width`` letters."""
    if len(text) > _MUCH * width:
        # Measuring letters takes long, and all but the ends are left out anyway.
        text = text[: _MUCH * width // 2] + text[-_MUCH * width // 2 :]
    return shortened(text, width)


def _named(text: str, width: int = _NAME_WIDTH) -> Cell:
    """A name from outside, shortened; its title is the whole name."""
    whole = printable(text)
    shown = short(whole, width)
    return Cell(shown, "name", title="" if shown == whole else whole)


def _figure(column: Column[Any], row: Any) -> Cell:
    """The figure of a column: a share has a bar, a bad figure a colour."""
    value, text = column.get(row), column.text(row)
    if not column.share:
        return Cell(text, _tone(column, text))
    if value is None:
        return Cell(text, "faint")
    return Cell(text, "warn" if value > 1 else "", share=value)


def _tone(column: Column[Any], text: str) -> str:
    if not column.bad:
        return ""
    return "faint" if text == "0" else "bad"


def rows_html(
    headers: Sequence[str], rows: Sequence[Sequence[Cell]], left: int, **more: Any
) -> str:
    if not rows:
        return ""
    return render("table.html", headers=headers, rows=rows, left=left, **more)


def _table(
    names: Sequence[str],
    figures: Sequence[Column[Any]],
    rows: Iterable[tuple[Sequence[Cell], Any]],
    notes: Sequence[str] = (),
    *,
    last: Sequence[Sequence[Cell]] = (),
) -> str:
    """A table with the groups of columns above the headings; empty without rows.

    A row is its first cells and what the ``figures`` are read from. ``last`` are further rows.
    """
    groups = itertools.groupby(column.group for column in figures)
    wide = [("", len(names)), *((name, len(list(of))) for name, of in groups)]
    return rows_html(
        [*names, *(column.name for column in figures)],
        [*([*first, *(_figure(column, row) for column in figures)] for first, row in rows), *last],
        len(names),
        notes=notes,
        **({"groups": wide} if any(column.group for column in figures) else {}),
    )


def parts(record: RunRecord, *, live: bool) -> dict[str, str]:
    """The HTML of every part by the id of its element; empty parts are left out.

    ``live`` is True while the run is in progress.
    """
    made = {
        "head": _head(record),
        "verdict": _verdict(record, live=live),
        "conditions": _conditions(record),
        "figures": render("figures.html", figures=_key_figures(record)),
        "why": list_html((sentence, "") for sentence in record.verdict.evidence),
        "advice": list_html(map(sentences.advised, record.verdict.advice)),
        "search": _search(record, live=live),
        "partitions": _partitions(record, live=live),
        "throttled": _most_throttled(record),
        "predicted": _predicted(record),
        "account": _account(record),
        "accounts": _table(
            ["account"],
            columns.columns_of(record, columns.ACCOUNT_COLUMNS, Output.HTML),
            [([_named(part.name)], part) for part in record.accounts],
        ),
        "operations": _operations(record),
        "scans": _table(
            ["query"],
            columns.SCAN_COLUMNS,
            [([_named(part.kind)], part) for part in columns.scanning(record)],
        ),
        "attempts": _table(
            ["response"],
            columns.RESPONSE_COLUMNS,
            [([_named(row.name)], row) for row in columns.response_counts(record)],
            sentences.attempts_words(record),
        ),
        "course": _facts(sentences.throttling(record)),
        "pointers": _table(
            ["index table", "refers to"],
            columns.POINTER_COLUMNS,
            [
                ([_named(part.table), _named(columns.referred(part))], part)
                for part in record.pointers
            ],
        ),
        "audit": "" if record.audit is None else _facts(sentences.audited(record.audit)),
        "generator": _facts(sentences.cost(record)),
        "profile": render("text.html", text=profile_text(record.profile)),
        "machine": _facts(_machine(record)),
    }
    return {name: text for name, text in made.items() if text}


def _head(record: RunRecord) -> str:
    name, question = (record.profile.get(key) for key in ("name", "question"))
    return render("head.html", name=name or "run", question=question, facts=sentences.setup(record))


def _verdict(record: RunRecord, *, live: bool) -> str:
    wrong = sentences.alarms(record)
    return render(
        "verdict.html",
        alarm=sentences.RELY_NOT if wrong else "",
        alarms=[sentence.strip() for sentence in wrong],
        passing=passing_of(record),
        result=sentences.result_words(record),
        tone=_TONES.get(record.verdict.result, "warn"),
        live=live,
        sentence=record.verdict.sentence,
        limit=sentences.limited_by(record),
        described=record.endpoint.described,
        emulated=sentences.is_emulated(record),
    )


def _conditions(record: RunRecord) -> str:
    rows = [
        [Cell(*_HOLDS[part.passed]), _named(part.text, 90), Cell(sentences.measured(part))]
        for part in record.conditions
    ]
    return rows_html(["", "condition", "value"], rows, 3)


def _search(record: RunRecord, *, live: bool) -> str:
    """The steps of a search, and at its end the result."""
    part = record.search
    if part is None:
        return ""
    highest = max((step.rate_per_s for step in part.steps), default=0.0) or 1.0
    rows = []
    for place, step in enumerate(part.steps, 1):
        result = sentences.step_result(step.failed, confirming=step.confirming)
        wanted, achieved, *others = (_figure(column, step) for column in columns.STEP_COLUMNS)
        achieved = dataclasses.replace(achieved, share=step.achieved_per_s / highest)
        tone = "good" if step.failed is None else "bad"
        rows.append([Cell(str(place), "faint"), Cell(result, tone), wanted, achieved, *others])
    notes = [sentences.WHOLE_SEARCH] if live else [sentences.found(part), sentences.WHOLE_SEARCH]
    return _table(["step", "result"], columns.STEP_COLUMNS, (), notes, last=rows)


def _partitions(record: RunRecord, *, live: bool) -> str:
    """Every partition that is counted separately, the most accessed first, then all others."""
    figures = columns.columns_of(record, columns.PARTITION_COLUMNS, Output.HTML)
    shown = record.partitions[:_MOST_LIVE] if live else record.partitions
    last = []
    if more := record.partitions[len(shown) :]:
        totals = [(column, column.total(more)) for column in figures]
        name = Cell(f"and {len(more):,} more", "faint")
        last.append([name, *(Cell(text, _tone(column, text)) for column, text in totals)])
    if (folded := record.partitions_folded) is not None:
        name = Cell(sentences.OTHERS, "faint", title="partitions that are not counted separately")
        last.append([name, *(_figure(column, folded) for column in figures)])
    rows = [([_partition(part)], part) for part in shown]
    return _table(["partition"], figures, rows, sentences.partition_notes(record), last=last)


def _partition(part: PartitionPart) -> Cell:
    """The name of a partition; ``~`` marks one that was not counted separately all the time."""
    name = _named(partition_name(part.key))
    if part.exact:
        return name
    hints = [name.title] if name.title else []
    if part.since is not None:
        moment = dt.datetime.fromtimestamp(part.since, tz=dt.UTC)
        hints.append(f"counted separately since {moment:%H:%M:%S} UTC")
    if (bounds := part.estimate) is not None:
        most = counted(bounds.at_most, "entity", "entities")
        hints.append(f"{bounds.at_least:,} to {most} in the whole run")
    return dataclasses.replace(name, mark="~", title="; ".join(hints))


def _most_throttled(record: RunRecord) -> str:
    """The partitions with the most throttled attempts; empty for a single partition."""
    if len(record.partitions) < 2:
        return ""
    throttled = filter(columns.throttled_attempts, record.partitions)
    worst = sorted(throttled, key=columns.throttled_attempts, reverse=True)[:_MOST_THROTTLED]
    figures = (*columns.THROTTLED, columns.THROTTLED_RATIO, columns.MEAN_RATE)
    return _table(["partition"], figures, [([_partition(part)], part) for part in worst])


def _predicted(record: RunRecord) -> str:
    rows = [
        [
            _named(share.what, 80),
            *(
                Cell("not known", "faint") if value is None else Cell(percent(value), share=value)
                for value in (share.predicted, share.measured)
            ),
        ]
        for share in sentences.predicted_shares(record)
    ]
    return rows_html(["share of the load", "predicted", "measured"], rows, 1)


def _account(record: RunRecord) -> str:
    rows = [
        [Cell(row.name.strip(), "faint"), Cell(row.rate), Cell(row.beside)]
        for row in sentences.account_rows(record)
    ]
    return rows_html(["", "per second", "of the target"], rows, 1)


def _operations(record: RunRecord) -> str:
    figures = columns.columns_of(record, columns.OPERATION_COLUMNS, Output.HTML)
    rows = [([_named(part.kind)], part) for part in record.operations]
    if len(rows) > 1:
        rows.append(([Cell("all")], columns.all_operations(record)))
    return _table(["operation"], figures, rows, [sentences.latency_note(record)])


def _machine(record: RunRecord) -> list[tuple[str, str]]:
    rows = [("harness", record.harness_version)]
    if (part := record.machine) is not None:
        packages = ", ".join(f"{name} {version}" for name, version in part.packages.items())
        machine = f"{counted(part.cpus, 'CPU')}, {part.platform}"
        rows += [("machine", machine), ("Python", part.python), ("packages", packages)]
    return rows


def list_html(items: Iterable[tuple[str, str]]) -> str:
    """Sentences, each with its source or an empty text."""
    shown = list(items)
    return render("list.html", items=shown) if shown else ""


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    return render("facts.html", facts=rows) if rows else ""


@dataclasses.dataclass(frozen=True, slots=True)
class KeyFigure:
    """A figure at the top of a page. ``title`` is the whole name where ``name`` is shortened."""

    name: str
    value: str
    unit: str
    notes: Sequence[str]
    _: dataclasses.KW_ONLY
    share: float | None = None
    tone: str = ""
    title: str = ""


def _key_figures(record: RunRecord) -> Iterator[KeyFigure]:
    account = record.account
    best = columns.best_over(record)
    yield _rate("all accounts" if record.accounts else "account", account, best)
    if (hot := sentences.hottest(record)) is not None:
        name = _named(partition_name(hot.key), 24)
        figure = _rate(f"hottest partition {name.text}", hot, best)
        yield dataclasses.replace(figure, title=name.title)
    by_status = columns.throttled_by_status(record.attempts_by_status)
    yield KeyFigure(
        "throttled",
        percent(record.throttled_ratio),
        "of attempts",
        [", ".join(f"{status}: {count:,}" for status, count in by_status.items())],
        tone="bad" if record.throttled_ratio else "",
    )
    ended = sum(record.outcomes.values())
    failed = sum(count for name, count in record.outcomes.items() if name in FAILURES)
    yield KeyFigure(
        "failed",
        f"{failed:,}",
        agreed(failed, "operation", "operations"),
        [f"{percent(failed / ended if ended else 0.0)} of {ended:,}"],
        tone="bad" if failed else "",
    )
    unscheduled = "not measured in a closed loop"
    if record.watched is not None:
        unscheduled = "the application's schedule is unknown"
    yield _latency("p99 service", record.service_ms, "not measured")
    yield _latency("p99 response", record.response_ms, unscheduled)
    if (offered := _offered(record)) is not None:
        achieved = account.entities_per_s.mean
        held = achieved / offered if offered else 1.0
        notes = [f"{number(achieved)} of {number(offered)} entities/s"]
        yield KeyFigure("achieved of offered", percent(held), "", notes, share=held)


def _rate(name: str, part: AccountPart | PartitionPart, best: str) -> KeyFigure:
    rates, ratio, beside = part.entities_per_s, part.ratio, sentences.NO_TARGET
    if ratio is not None and part.target is not None:
        beside = f"{percent(ratio)} of {number(part.target)}"
    bests = f"best 1 s {number(rates.best_1s)}, {best} {number(rates.best_10s)}"
    tone = "warn" if ratio is not None and ratio > 1 else ""
    mean = number(rates.mean)
    return KeyFigure(name, mean, "entities/s", [beside, bests], share=ratio, tone=tone)


def _latency(name: str, part: LatencyPart | None, absent: str) -> KeyFigure:
    if part is None:
        return KeyFigure(name, columns.NOT_MEASURED, "", [absent], tone="faint")
    notes = [f"p50 {milliseconds(part.p50)} ms, max {milliseconds(part.max)} ms"]
    return KeyFigure(name, milliseconds(part.p99), "ms", notes)


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


def profile_text(profile: Mapping[str, Any]) -> str:
    """The settings of a resolved profile that have a value, in the form of TOML."""
    settings = {name: value for name, value in profile.items() if name not in _OWN_TEXTS}
    return "\n".join(map(printable, _lines(settings, "")))


def _lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    tables = []
    for name, value in table.items():
        whole = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            tables.append((f"[{whole}]", whole, value))
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            tables += [(f"[[{whole}]]", whole, one) for one in value]
        elif value is not None:
            yield f"{name} = {_value(value)}"
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
