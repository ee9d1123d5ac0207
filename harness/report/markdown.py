"""The summary of a run for the page of a CI job, in GitHub flavoured Markdown.

Read from the top until enough is known: what makes the figures wrong, the verdict, what may be done
about it and why, what was stressed, the partitions beside their target, and then the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.measure.record import LatencyPart, OperationPart, PartitionPart, RatesPart, RunRecord
from harness.report.cells import latency_cells, rates_cells, throttled_cells
from harness.report.drawing import FULL
from harness.report.gfm import code, table, text
from harness.report.rates import MOST_PARTITIONS, predicted_shares
from harness.report.reading import (
    NO_TARGET,
    OTHERS,
    RELY_NOT,
    advised,
    alarms,
    attempts_shares,
    attempts_words,
    best_over,
    cost,
    limited_by,
    measured,
    other_outcomes,
    partition_notes,
    result_words,
    scans,
    throttling,
)
from harness.report.search import figures, found, step_result
from harness.report.stored import MOST_EXAMPLES, audited, names_of
from harness.report.stressed import stressed
from harness.report.words import number, partition_name, percent, shortened

_NAME_WIDTH = 60
_SIGNS = {True: "✅ yes", False: "❌ **no**", None: "❔ not known"}


def markdown(record: RunRecord) -> str:
    """``summary.md`` of ``record``: ends in a line break, and can be appended to other text."""
    advice = (f"{sentence} ({source})" for sentence, source in map(advised, record.verdict.advice))
    shares = (share.sentence for share in predicted_shares(record))
    sections = (
        _head(record),
        _bullets("What the documents advise", advice),
        _bullets("Why", record.verdict.evidence),
        _stressed(record),
        _search(record),
        _partitions(record),
        _bullets("Predicted and measured share of the load", shares),
        _account(record),
        _operations(record),
        _scans(record),
        _attempts(record),
        _facts("Throttling", throttling(record)),
        _index_tables(record),
        _facts("Audit", _audit(record)),
        _conditions(record),
        _facts(f"Generator and cost (exit code {record.exit_code})", cost(record)),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _head(record: RunRecord) -> list[str]:
    name = str(record.profile.get("name", "run"))
    lines = [f"## {text(result_words(record).capitalize())}: {text(name)}", ""]
    if found := alarms(record):
        lines += ["> [!CAUTION]", f"> **{RELY_NOT}.**"]
        lines += [f"> {text(sentence.strip())}<br>" for sentence in found]
        lines.append("")
    lines.append(f"**{text(record.verdict.sentence)}**")
    limit = limited_by(record)
    if limit is not None:
        lines += ["", f"Limited by {limit}."]
    return lines


def _bullets(title: str, sentences: Iterable[str]) -> list[str]:
    """Sentences under their title; nothing where there is none."""
    lines = [f"- {text(sentence)}" for sentence in sentences]
    return [f"### {title}", "", *lines] if lines else []


def _facts(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Names and texts under their title; nothing where there is none."""
    cells = [(name, text(fact)) for name, fact in rows]
    return [f"### {title}", "", *table(("", ""), cells, left=2)] if cells else []


def _search(record: RunRecord) -> list[str]:
    """Every step of a search."""
    part = record.search
    if part is None:
        return []
    rows = [
        [str(place), text(step_result(step.failed, confirming=step.confirming)), *figures(step)]
        for place, step in enumerate(part.steps, 1)
    ]
    headers = (
        "step", "result", "wanted entities/s", "achieved", "throttled", "p99 ms", "held",
        "billable",
    )  # fmt: skip
    return ["### Search", "", text(found(part)), "", *table(headers, rows, left=2)]


def _stressed(record: RunRecord) -> list[str]:
    lines = []
    if question := record.profile.get("question"):
        lines += [text(str(question)), ""]
    rows = [(name, text(fact)) for name, fact in stressed(record)]
    return [*lines, *table(("", ""), rows, left=2)]


def _partitions(record: RunRecord) -> list[str]:
    shown, more = record.partitions[:MOST_PARTITIONS], record.partitions[MOST_PARTITIONS:]
    folded = record.partitions_folded
    target = next((part.target for part in record.partitions if part.target is not None), None)
    headers = (
        "partition", "entities/s", "best 1 s", best_over(record),
        "target" if target is None else f"of {number(target)}",
        "503", "500", "429", "p50 ms", "p99 ms",
    )  # fmt: skip
    rows = [_partition(_name(part), part) for part in shown]
    if more:
        together = number(sum(part.entities_per_s.mean for part in more))
        rows.append(
            [f"and {len(more):,} more", together, "", "", "", *throttled_cells(more), "", ""],
        )
    if folded is not None:
        rows.append(_partition(OTHERS, folded))
    notes = [line for note in partition_notes(record, FULL.ellipsis) for line in ("", text(note))]
    title = "Partitions" if len(record.partitions) == 1 else "Partitions, hottest first"
    return [f"### {title}", "", *table(headers, rows), *notes]


def _name(part: PartitionPart) -> str:
    name = shortened(partition_name(part.key), _NAME_WIDTH, FULL.ellipsis)
    return code(name) + ("" if part.exact else " \\~")


def _partition(name: str, part: PartitionPart) -> list[str]:
    return [
        name,
        *rates_cells(part.entities_per_s),
        "none" if part.ratio is None else percent(part.ratio),
        *throttled_cells((part,)),
        *latency_cells(part.service_ms, "p50", "p99"),
    ]


def _account(record: RunRecord) -> list[str]:
    part = record.account
    beside = NO_TARGET
    if part.target is not None and part.ratio is not None:
        beside = f"{percent(part.ratio)} of {number(part.target)}"
    rows = [
        [
            *rates_cells(part.entities_per_s),
            beside,
            number(part.reads_per_s),
            number(part.writes_per_s),
            number(part.transactions_per_s),
        ]
    ]
    headers = (
        "entities/s", "best 1 s", best_over(record), "of the target", "read", "written",
        "transactions/s",
    )  # fmt: skip
    return ["### Account", "", *table(headers, rows, left=0)]


def _operations(record: RunRecord) -> list[str]:
    rows = [
        _operation(
            code(part.kind),
            part.count,
            part.entities_per_s,
            _others(part),
            part.service_ms,
            part.response_ms,
        )
        for part in record.operations
    ]
    if len(rows) > 1:
        total = record.counts.operations
        rates = record.account.entities_per_s
        rows.append(_operation("all", total, rates, "", record.service_ms, record.response_ms))
    headers = (
        "operation", "count", "entities/s", "ended otherwise", "service p50 ms", "p90", "p99",
        "max", "response p50 ms", "p90", "p99", "max",
    )  # fmt: skip
    note = "Service latency is from sent to done, retries included; response latency from due."
    if record.response_ms is None:
        note += " In a closed loop nothing is due: n/a."
    return ["### Operations", "", *table(headers, rows), "", note]


def _operation(
    name: str,
    count: int,
    rates: RatesPart,
    others: str,
    service: LatencyPart | None,
    response: LatencyPart | None,
) -> list[str]:
    latencies = (latency_cells(part, "p50", "p90", "p99", "max") for part in (service, response))
    return [
        name,
        f"{count:,}",
        number(rates.mean),
        others,
        *(cell for of in latencies for cell in of),
    ]


def _others(part: OperationPart) -> str:
    return ", ".join(f"{text(outcome)} {count:,}" for outcome, count in other_outcomes(part))


def _scans(record: RunRecord) -> list[str]:
    """What queries walked, by the counting rule, beside what they brought."""
    rows = [(code(name), *counts) for name, *counts in scans(record)]
    headers = ("query", "entities scanned", "returned", "of the scanned", "count")
    return ["### Scans", "", *table(headers, rows)] if rows else []


def _attempts(record: RunRecord) -> list[str]:
    rows = [
        (text(name), f"{count:,}", percent(share)) for name, count, share in attempts_shares(record)
    ]
    sentences = (line for words in attempts_words(record) for line in (text(words), ""))
    return ["### Attempts", "", *sentences, *table(("answered by", "attempts", "share"), rows)]


def _index_tables(record: RunRecord) -> list[str]:
    """Index tables that the application keeps in step: what does not fit together any more."""
    rows = [
        (
            code(part.table),
            text(names_of(part)),
            f"{part.rows:,}",
            f"{part.dangling:,}",
            f"{part.unnamed:,}",
        )
        for part in record.pointers
    ]
    headers = ("index table", "names rows of", "rows", "naming none", "unnamed there")
    return ["### Index tables", "", *table(headers, rows, left=2)] if rows else []


def _audit(record: RunRecord) -> list[tuple[str, str]]:
    """Whether everything that was acknowledged is there."""
    part = record.audit
    if part is None:
        return []
    return [*audited(part), *(("such as", example) for example in part.examples[:MOST_EXAMPLES])]


def _conditions(record: RunRecord) -> list[str]:
    rows = [
        (_SIGNS[part.passed], code(part.text), text(measured(part))) for part in record.conditions
    ]
    headers = ("holds", "condition", "value")
    return ["### Conditions", "", *table(headers, rows, left=3)] if rows else []
