"""``summary.md``: the summary of a run for the page of a CI job, in GitHub flavoured Markdown.

The most important comes first: whether the run passed, wrong figures, the verdict, advice, and
evidence. A text from outside is shown literally and never acts as markup.

Source: the GitHub Flavored Markdown Spec, sections on backslash escapes, code spans and tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from harness.measure.record.measured import PartitionPart
from harness.measure.record.record import RunRecord
from harness.model.errors import printable
from harness.report import answers, columns, events, load_columns, sentences
from harness.report.columns import Column, Output, Row
from harness.report.headline import result_words, verdict_lines
from harness.report.limits import limit_word
from harness.report.names import partition_name, shortened
from harness.report.passing import measured, passing_of
from harness.report.predicted import predicted_shares
from harness.report.service_log import LOG_TITLE, logged_rows
from harness.report.terminal.summary import MOST_PARTITIONS

_NAME_WIDTH = 60
_SIGNS = {True: "✅ yes", False: "❌ **no**", None: "❔ not known"}
_ACTING = re.compile(r"[\\`*_\[\]<>|~&$]")
_BEGINNING = re.compile(r"^([0-9]*)([-+=#]|[.)](?!\S))")
"""What begins a heading, a list or a rule, at the beginning of a line."""


def text(value: str) -> str:
    """``value`` as plain text in one line."""
    return _BEGINNING.sub(r"\1\\\2", _ACTING.sub(r"\\\g<0>", printable(value).strip()))


def code(value: str) -> str:
    """``value`` as a code span, for keys and the like; also in a cell of a table."""
    # A bar ends a cell of a table even in code, and the backslash before it is removed. A backslash
    # that was there before could not be told from that one.
    parts = printable(value).replace("\\|", "\\u005c|").replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", parts)), default=0)
    fence = "`" * (longest + 1)
    # One blank on each side is removed, unless there is nothing else.
    padded = not parts.isspace() and (parts[:1] in " `" or parts[-1:] in " `")
    return f"{fence} {parts} {fence}" if padded else f"{fence}{parts}{fence}"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """The lines of a table; the first ``left`` columns are aligned left, the others right.

    Cells are Markdown already: `text`, `code`, or figures.
    """
    rules = ["---" if place < left else "---:" for place in range(len(headers))]
    return [f"| {' | '.join(cells)} |" for cells in (headers, rules, *rows)]


def markdown(record: RunRecord) -> str:
    """The content of the file; it ends in a line break and can be appended to other text."""
    advice = (
        f"{sentence} ({source})"
        for sentence, source in map(sentences.advised, record.verdict.advice)
    )
    scan_columns = columns.columns_of(record, load_columns.SCAN_COLUMNS, Output.MARKDOWN)
    scans = [((code(query.kind),), query) for query in load_columns.scanning(record)]
    pointers = [((code(one.table), text(columns.referred(one))), one) for one in record.pointers]
    sections = (
        _head(record),
        _bullets("What the documents advise", advice),
        _bullets("Why", record.verdict.evidence),
        _setup(record),
        _search(record),
        _partitions(record),
        _bullets(
            "Predicted and measured share of the load",
            (share.sentence for share in predicted_shares(record)),
        ),
        _account(record),
        _accounts(record),
        _operations(record),
        _table("Scans", ["query"], scan_columns, scans),
        _attempts(record),
        _facts("Throttling", events.throttling(record)),
        _table("Index tables", ["index table", "refers to"], columns.POINTER_COLUMNS, pointers),
        [] if record.audit is None else _facts("Audit", sentences.audited(record.audit)),
        _facts(LOG_TITLE, logged_rows(record)),
        _conditions(record),
        _facts(f"Generator and cost (exit code {record.exit_code})", sentences.cost(record)),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _table(
    title: str,
    names: Sequence[str],
    shown: Sequence[Column[Row]],
    rows: Sequence[tuple[Sequence[str], Row]],
) -> list[str]:
    """A table under its title; empty without rows. Names of rows are Markdown already."""
    cells = [[*named, *(text(column.text(row)) for column in shown)] for named, row in rows]
    headings = [*names, *columns.flat_headings(shown)]
    return [f"### {title}", "", *table(headings, cells, left=len(names))] if cells else []


def _bullets(title: str, items: Iterable[str]) -> list[str]:
    lines = [f"- {text(item)}" for item in items]
    return [f"### {title}", "", *lines] if lines else []


def _facts(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    return [f"### {title}", "", *_fact_table(rows)] if rows else []


def _fact_table(rows: Sequence[tuple[str, str]]) -> list[str]:
    return table(("", ""), [(name, text(fact)) for name, fact in rows], left=2)


def _head(record: RunRecord) -> list[str]:
    name = str(record.profile.get("name", "run"))
    result, passing = result_words(record), passing_of(record)
    result = result.capitalize() if passing is None else f"{passing.word}, {result}"
    lines = [f"## {text(result)}: {text(name)}", ""]
    if wrong := sentences.alarms(record):
        lines += ["> [!CAUTION]", f"> **{sentences.RELY_NOT}.**"]
        lines += [*(f"> {text(sentence.strip())}<br>" for sentence in wrong), ""]
    if passing is not None:
        lines += [f"**{passing.word}:** {text(passing.sentence)}.", ""]
    first, *others = map(text, verdict_lines(record))
    lines.append(f"**{first}**")
    for sentence in others:
        lines += ["", sentence]
    if (limit := sentences.limited_by(record)) is not None:
        lines += ["", f"Limited by {limit}."]
    return lines


def _setup(record: RunRecord) -> list[str]:
    question = record.profile.get("question")
    return [*([text(str(question)), ""] if question else []), *_fact_table(sentences.setup(record))]


def _search(record: RunRecord) -> list[str]:
    part = record.search
    if part is None:
        return []
    rows = [
        ((str(place), text(sentences.step_result(step)[0])), step)
        for place, step in enumerate(part.steps, 1)
    ]
    shown = columns.columns_of(record, columns.STEP_COLUMNS, Output.MARKDOWN)
    lines = _table("Search", ["step", "result"], shown, rows) or ["### Search", ""]
    return [*lines[:2], text(sentences.search_cost(part)), "", *lines[2:]]


def _partitions(record: RunRecord) -> list[str]:
    shown = columns.columns_of(record, load_columns.PARTITION_COLUMNS, Output.MARKDOWN)
    parts, more = record.partitions[:MOST_PARTITIONS], record.partitions[MOST_PARTITIONS:]
    rows = [[_name(part), *(column.text(part) for column in shown)] for part in parts]
    if more:
        rows.append([f"and {len(more):,} more", *(column.total(more) for column in shown)])
    if (folded := record.partitions_folded) is not None:
        rows.append([sentences.OTHERS, *(column.text(folded) for column in shown)])
    notes = [line for note in sentences.partition_notes(record) for line in ("", text(note))]
    title = "Partitions" if len(record.partitions) == 1 else "Partitions, hottest first"
    headings = ["partition", *columns.flat_headings(shown)]
    return [f"### {title}", "", *table(headings, rows), *notes]


def _name(part: PartitionPart) -> str:
    name = code(shortened(partition_name(part.key), _NAME_WIDTH))
    return name if part.exact else f"{name} \\~"


def _account(record: RunRecord) -> list[str]:
    rows = [
        (row.name.strip(), row.rate, text(row.beside)) for row in sentences.account_rows(record)
    ]
    headings = ("", "per second", f"of the {limit_word(record, 'account')}")
    return ["### Account", "", *table(headings, rows)]


def _accounts(record: RunRecord) -> list[str]:
    shown = columns.columns_of(record, load_columns.ACCOUNT_COLUMNS, Output.MARKDOWN)
    return _table("Accounts", ["account"], shown, [((code(p.name),), p) for p in record.accounts])


def _operations(record: RunRecord) -> list[str]:
    shown = columns.columns_of(record, load_columns.OPERATION_COLUMNS, Output.MARKDOWN)
    rows = [((code(part.kind),), part) for part in record.operations]
    if len(rows) > 1:
        rows.append((("all",), load_columns.all_operations(record)))
    lines = _table("Operations", ["operation"], shown, rows)
    return [*lines, "", sentences.latency_note(record)] if lines else []


def _attempts(record: RunRecord) -> list[str]:
    rows = [((text(row.name),), row) for row in answers.response_counts(record)]
    lines = _table("Attempts", ["response"], columns.RESPONSE_COLUMNS, rows) or ["### Attempts", ""]
    requests, throttled = map(text, answers.attempts_words(record))
    return [*lines[:2], requests, "", throttled, "", *lines[2:]]


def _conditions(record: RunRecord) -> list[str]:
    rows = [
        (_SIGNS[part.passed], code(part.text), text(measured(part))) for part in record.conditions
    ]
    headers = ("holds", "condition", "value")
    return ["### Conditions", "", *table(headers, rows, left=3)] if rows else []
