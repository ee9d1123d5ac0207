"""The parts of a page about a run as HTML: tables, facts, and lists."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.measure.record.measured import PartitionPart
from harness.measure.record.record import RunRecord
from harness.measure.verdict.verdict import VerdictResult
from harness.model.errors import printable
from harness.model.figures import counted, number, percent
from harness.model.services.service import CountedUnit
from harness.profile.load.registry import recorded_load
from harness.report import answers, columns, events, load_columns, sentences
from harness.report.columns import Output
from harness.report.events import stall_sentence
from harness.report.headline import WARMING_UP, headline, is_warming_up, result_words
from harness.report.limits import (
    busiest,
    limit_word,
    partition_limit,
    partition_limits,
    target_of,
    unit_of,
)
from harness.report.load_columns import throttled_attempts
from harness.report.names import partition_name
from harness.report.passing import is_unexplained, measured, passing_of
from harness.report.predicted import predicted_shares
from harness.report.service_log import logged_rows
from harness.report.web.key_figures import key_figures
from harness.report.web.tables import (
    BARS,
    Cell,
    figure_cell,
    named,
    render,
    rows_html,
    table_html,
    tone_of,
)

_MOST_LIVE = 50
"""Rows of a table that is sent every other second. Keys may be long; a report has all of them."""
_MOST_THROTTLED = 10
_OWN_TEXTS = ("name", "question")
_TONES = {"within_target": "good", "throttled": "bad", "failing": "bad", "no_target": "plain"}
_MOST_ITEMS = 3
"""Items of a list that are shown at once; the others are folded."""
_LIMIT_UNSAID = ("within_target", "over_target", "no_target")
"""Results whose headline does not say what kept the rate from being higher."""
_OWN_FINDING = ("client_limited", "endpoint_limited")
"""Results whose sentence says with figures why the limit was there."""
_NO_MORE_ASKED = "No more was requested: the run does not show how much more would be served."
_HOLDS = {True: ("✓ holds", "good"), False: ("✗ fails", "bad"), None: ("? not known", "warn")}


def parts(record: RunRecord, *, live: bool) -> dict[str, str]:
    """The HTML of every part by the id of its element; empty parts are left out.

    ``live`` is True while the run is in progress.
    """
    made = {
        "head": _head(record),
        "verdict": _verdict(record, live=live),
        "conditions": _conditions(record),
        "figures": render("figures.html", figures=key_figures(record)),
        "why": list_html(_reasons(record)),
        "advice": list_html(map(sentences.advised, record.verdict.advice)),
        "search": _search(record, live=live),
        "partitions": _partitions(record, live=live),
        "throttled": _most_throttled(record),
        "predicted": _predicted(record),
        "account": _account(record),
        "accounts": table_html(
            ["account"],
            columns.columns_of(record, load_columns.ACCOUNT_COLUMNS, Output.HTML),
            [([named(part.name)], part) for part in record.accounts],
        ),
        "operations": _operations(record),
        "scans": table_html(
            ["query"],
            columns.columns_of(record, load_columns.SCAN_COLUMNS, Output.HTML),
            [([named(part.kind)], part) for part in load_columns.scanning(record)],
        ),
        "attempts": table_html(
            ["response"],
            columns.RESPONSE_COLUMNS,
            [([named(row.name)], row) for row in answers.response_counts(record)],
            answers.attempts_words(record),
        ),
        "course": _facts(events.throttling(record)),
        "pointers": table_html(
            ["index table", "refers to"],
            columns.POINTER_COLUMNS,
            [
                ([named(part.table), named(columns.referred(part))], part)
                for part in record.pointers
            ],
        ),
        "audit": "" if record.audit is None else _facts(sentences.audited(record.audit)),
        "service-log": _facts(logged_rows(record)),
        "generator": _facts(sentences.cost(record)),
        "profile": render("text.html", text=profile_text(record.profile)),
        "machine": _facts(_machine(record)),
    }
    if live and is_warming_up(record):
        # Nothing of it would mean anything yet.
        for name in ("figures", "why", "advice", "conditions"):
            made[name] = ""
    return {name: text for name, text in made.items() if text}


def _head(record: RunRecord) -> str:
    name, question = (record.profile.get(key) for key in ("name", "question"))
    if record.watched is not None:
        question = record.watched.command
    if record.replay is not None:
        words = recorded_load(record.profile).words(record.endpoint.service.unit)
        question = f"{question or ''} {words}".strip()
    return render("head.html", name=name or "run", question=question, facts=sentences.setup(record))


def _verdict(record: RunRecord, *, live: bool) -> str:
    wrong = sentences.alarms(record)
    passing, tone = passing_of(record), _TONES.get(record.verdict.result, "warn")
    word, result, sentence = result_words(record), "", headline(record)
    if live and is_warming_up(record):
        # Neither the verdict nor a condition says anything yet.
        word, tone, passing, sentence = "warming up", "plain", None, WARMING_UP
    finding, why_failed = _finding(record), ""
    if passing is not None:
        # A run has one colour. Its conditions decide where it has some.
        word, result, tone = passing.word, word, passing.tone
        if tone != "good":
            why_failed = f"{passing.sentence[:1].upper()}{passing.sentence[1:]}."
        if is_unexplained(record):
            sentence, finding, why_failed = why_failed, sentence, ""
    return render(
        "verdict.html",
        alarm=sentences.RELY_NOT if wrong else "",
        alarms=[sentence.strip() for sentence in wrong],
        held=passing.sentence if passing is not None and passing.tone == "good" else "",
        why_failed=why_failed,
        word=word,
        result=result,
        tone=tone,
        live=live,
        sentence=sentence,
        finding=finding,
        step=None if live and is_warming_up(record) else sentences.next_step(record),
        limit=_limit_unsaid(record),
        footnote=_footnote(record),
        origin=_origin(record) if record.endpoint.service.emulated else "",
    )


def _footnote(record: RunRecord) -> str:
    """The verdict's footnote without what answered, which the page says in its own words."""
    footnote, endpoint = record.verdict.footnote, record.endpoint
    if not endpoint.service.emulated:
        return footnote
    return footnote.removeprefix(endpoint.service.origin).strip()


def _origin(record: RunRecord) -> str:
    """What answered in place of Azure, and its limit where that is not the published one."""
    described = record.endpoint.described
    words = described if "not Azure" in described else f"Not Azure: {described}"
    hot = busiest(record)
    limit, published = (
        (None, None) if hot is None else (partition_limit(record, hot), target_of(hot))
    )
    if limit is None or published is None or limit == published:
        return words
    rates = f"{number(limit)} of {number(published)} {unit_of(record)}"
    return f"{words}, scaled to {rates} for a partition"


def _finding(record: RunRecord) -> str | None:
    """The most telling figures below the headline."""
    if _finding_is_verdict(record):
        return record.verdict.why or record.verdict.sentence
    if record.verdict.result == VerdictResult.WITHIN_TARGET and record.verdict.limited_by == "load":
        return stall_sentence(record) or _NO_MORE_ASKED
    return stall_sentence(record)


def _limit_unsaid(record: RunRecord) -> str | None:
    """What kept the rate from being higher, where neither headline nor finding says it."""
    unsaid = record.verdict.result in _LIMIT_UNSAID and _finding(record) != _NO_MORE_ASKED
    return sentences.limited_by(record) if unsaid else None


def _finding_is_verdict(record: RunRecord) -> bool:
    return record.verdict.result in _OWN_FINDING and record.search is None


def _reasons(record: RunRecord) -> list[str]:
    """The verdict with its figures, then the evidence, what decided the verdict first."""
    evidence = record.verdict.evidence
    return [*(() if _finding_is_verdict(record) else (record.verdict.sentence,)), *evidence]


def _conditions(record: RunRecord) -> str:
    rows = [
        [Cell(*_HOLDS[part.passed]), named(part.text, 90), Cell(measured(part))]
        for part in record.conditions
    ]
    return rows_html(["result", "condition", "value"], rows, 3)


def _search(record: RunRecord, *, live: bool) -> str:
    """The steps of a search, and at its end the result."""
    part = record.search
    if part is None:
        return ""
    shown = columns.columns_of(record, columns.STEP_COLUMNS, Output.HTML)
    highest = max((step.rate_per_s for step in part.steps), default=0.0) or 1.0
    rows = []
    for place, step in enumerate(part.steps, 1):
        result, passed = sentences.step_result(step)
        wanted, achieved, *others = (figure_cell(column, step) for column in shown)
        achieved = dataclasses.replace(achieved, share=step.achieved_per_s / highest)
        tone = "good" if passed else "bad"
        rows.append([Cell(str(place), "faint"), Cell(result, tone), wanted, achieved, *others])
    notes = [*([] if live else [sentences.search_cost(part)]), sentences.WHOLE_SEARCH]
    return table_html(["step", "result"], shown, (), notes, last=rows)


def _partitions(record: RunRecord, *, live: bool) -> str:
    """Every partition that is counted separately, the most accessed first, then all others."""
    figures = columns.columns_of(record, load_columns.PARTITION_COLUMNS, Output.HTML)
    shown = record.partitions[:_MOST_LIVE] if live else record.partitions
    last = []
    if more := record.partitions[len(shown) :]:
        totals = [(column, column.total(more)) for column in figures]
        name = Cell(f"and {len(more):,} more", "faint")
        last.append([name, *(Cell(text, tone_of(column, text)) for column, text in totals)])
    if (folded := record.partitions_folded) is not None:
        name = Cell(sentences.OTHERS, "faint", title="partitions that are not counted separately")
        last.append([name, *(figure_cell(column, folded) for column in figures)])
    unit = record.endpoint.service.unit
    rows = [([_partition(part, unit)], part) for part in shown]
    notes = [*([BARS] if partition_limits(record) else []), *sentences.partition_notes(record)]
    searched = "partitions" if len(rows) > 1 else ""
    return table_html(["partition"], figures, rows, notes, last=last, searched=searched)


def _partition(part: PartitionPart, unit: CountedUnit) -> Cell:
    """The name of a partition; ``~`` marks one that was not counted separately all the time."""
    name = named(partition_name(part.key))
    if part.exact:
        return name
    hints = [name.title] if name.title else []
    if part.since is not None:
        moment = dt.datetime.fromtimestamp(part.since, tz=dt.UTC)
        hints.append(f"counted separately since {moment:%H:%M:%S} UTC")
    if part.estimate is not None:
        hints.append(f"{sentences.estimated(part.estimate, unit)} in the whole run")
    return dataclasses.replace(name, mark="~", title="; ".join(hints))


def _most_throttled(record: RunRecord) -> str:
    """The partitions with the most throttled attempts; empty for a single partition."""
    if len(record.partitions) < 2:
        return ""
    throttled = filter(throttled_attempts, record.partitions)
    worst = sorted(throttled, key=throttled_attempts, reverse=True)[:_MOST_THROTTLED]
    refused = columns.columns_of(record, load_columns.THROTTLED, Output.HTML)
    tries = columns.columns_of(record, [load_columns.ATTEMPTS_PER_OPERATION], Output.HTML)
    figures = (*refused, load_columns.THROTTLED_RATIO, *tries, load_columns.MEAN_RATE)
    unit = record.endpoint.service.unit
    return table_html(["partition"], figures, [([_partition(part, unit)], part) for part in worst])


def _predicted(record: RunRecord) -> str:
    rows = [
        [
            named(share.what, 80),
            *(
                Cell("not known", "faint")
                if value is None
                else Cell(percent(value, sign), share=value)
                for value, sign in ((share.predicted, ""), (share.measured, share.sign))
            ),
        ]
        for share in predicted_shares(record)
    ]
    return rows_html(["share of the load", "predicted", "measured"], rows, 1)


def _account(record: RunRecord) -> str:
    rows = [
        [Cell(row.name.strip(), "faint"), Cell(row.rate), Cell(row.beside)]
        for row in sentences.account_rows(record)
    ]
    return rows_html(["rate", "per second", f"of the {limit_word(record, 'account')}"], rows, 1)


def _operations(record: RunRecord) -> str:
    figures = columns.columns_of(record, load_columns.OPERATION_COLUMNS, Output.HTML)
    rows = [([named(part.kind)], part) for part in record.operations]
    if len(rows) > 1:
        rows.append(([Cell("all")], load_columns.all_operations(record)))
    return table_html(["operation"], figures, rows, [sentences.latency_note(record)])


def _machine(record: RunRecord) -> list[tuple[str, str]]:
    rows = [("harness", record.harness_version)]
    if (part := record.machine) is not None:
        packages = ", ".join(f"{name} {version}" for name, version in part.packages.items())
        machine = f"{counted(part.cpus, 'CPU')}, {part.platform}"
        rows += [("machine", machine), ("Python", part.python), ("packages", packages)]
    return rows


def list_html(items: Iterable[str | tuple[str, str]]) -> str:
    """Sentences, or each with its source. All but the first few are folded."""
    shown = [(item, "") if isinstance(item, str) else item for item in items]
    # A single item is not worth a click.
    first = shown if len(shown) == _MOST_ITEMS + 1 else shown[:_MOST_ITEMS]
    return render("list.html", items=first, more=shown[len(first) :]) if shown else ""


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    return render("facts.html", facts=rows) if rows else ""


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
