"""The tabs "Verdict" and "Partitions" of Locust's web UI: rows of text, which any column can sort.

The verdict is a few lines about how the run goes. Of the partitions, the account is a row above the
others, and a full bar is 100 %.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.measure.record.findings import RecordPart
from harness.measure.record.measured import PartitionPart
from harness.measure.record.record import RunRecord
from harness.model.figures import number, percent
from harness.report.answers import other_answers, throttled_by_status
from harness.report.events import stall_sentence
from harness.report.headline import WARMING_UP, headline, is_warming_up, result_words
from harness.report.limits import account_limit, judged_sign, partition_limit
from harness.report.load_columns import (
    PARTITION_COLUMNS,
    throttled_attempts,
)
from harness.report.names import partition_name, shortened
from harness.report.passing import passing_of
from harness.report.sentences import OTHERS, limited_by, next_step
from harness.report.terminal.page import FULL, bar
from harness.report.web.key_figures import key_figures

Row = dict[str, str | float]

_TAB = [(column, *column.tab) for column in PARTITION_COLUMNS if column.tab is not None]
_REFUSED, _REFUSED_PER_S, _ANSWERS = "throttled", "throttled_per_s", "answers"
PARTITION_HEADINGS = {"partition": "Partition"}
"""Keys of a row, and their headings: Locust takes them before it is known what will occur."""
for _column, _key, _heading in _TAB:
    PARTITION_HEADINGS[_key] = _heading
    if _column.share:
        PARTITION_HEADINGS |= {
            _REFUSED: "Throttled",
            _REFUSED_PER_S: "Throttled/s",
            _ANSWERS: "Unsuccessful answers/s",
        }
_STYLES = {
    "partition": "min-width: 9em",
    # Mixed with the colour of texts, which is that of Locust's light or dark theme.
    _REFUSED: "color: color-mix(in srgb, #d93f3f 75%, currentColor)",
    "of_target": "color: color-mix(in srgb, #3b82c4 75%, currentColor)",
    _ANSWERS: "white-space: normal",
}
STYLE = "\n".join(
    # Cells are plain text, so that a column has one colour; cells without refusals are empty. The
    # headings have the keys in camel case.
    f"table:has([data-sortkey='throttled']) td:nth-child({place}) {{ {style} }}"
    for place, key in enumerate(PARTITION_HEADINGS, 1)
    if (style := _STYLES.get(key))
)
"""Styles of the table in Locust's page."""

_BAR = dataclasses.replace(FULL, eighths="█")
"""Whole cells: a page's letters have many widths, and parts of a cell would tear the bar apart."""
_BAR_WIDTH = 10
_NAME_WIDTH = 80
_MOST_ANSWERS = 4
_OF_ACCOUNTS = (
    *("entities_per_s", "target", "ratio", "attempts_by_status", "throttled_ratio"),
    *("service_ms", "response_ms", "request_units"),
)
"""Figures of a partition that accounts have too; one of several has no latencies of its own."""


def rows_of(record: RunRecord) -> list[Row]:
    """The account, and every partition in order of demand.

    Entities/s cover the measured window, or the time under load before the window begins.
    Throttling covers the time under load. Bars are shares of the limits in force.
    """
    series = record.series
    seconds = series[-1].t + series[-1].width_s - series[0].t if series else 0.0
    whole = "All accounts" if record.accounts else "The whole account"
    account_each = account_limit(record)
    together = None if account_each is None else account_each * max(1, len(record.accounts))
    everything = _as_partition(record.counts.entities, record.account, record)
    rows = [_row(whole, everything, together, record, seconds)]
    for account in record.accounts:
        part = _as_partition(account.entities, account)
        rows.append(_row(f"Account {account.name}", part, account_each, record, seconds))
    for part in in_demand(record):
        name = shortened(partition_name(part.key), _NAME_WIDTH)
        # This partition was not counted separately from the beginning.
        mark = "" if part.exact else " ~"
        rows.append(_row(f"{name}{mark}", part, partition_limit(record, part), record, seconds))
    if (folded := record.partitions_folded) is not None:
        name = f"{OTHERS}, beyond the {len(record.partitions):,} counted separately"
        rows.append({**_row(name, folded, None, record, seconds), "of_target": ""})
    return rows


def in_demand(record: RunRecord) -> list[PartitionPart]:
    """The partitions, the most accessed and the most throttled first.

    The rank of a partition is the greater of its share of all entities and its share of all
    throttled attempts.
    """
    entities = sum(part.entities for part in record.partitions) or 1
    throttled = sum(map(throttled_attempts, record.partitions)) or 1

    def rank(part: PartitionPart) -> float:
        return max(part.entities / entities, throttled_attempts(part) / throttled)

    return sorted(record.partitions, key=rank, reverse=True)


def _as_partition(entities: int, *holders: RecordPart) -> PartitionPart:
    """An account in the columns of a partition, by the figures that its ``holders`` have."""
    figures: dict[str, Any] = {}
    for name in _OF_ACCOUNTS:
        figures[name] = next((getattr(one, name) for one in holders if hasattr(one, name)), None)
    return PartitionPart(
        key="", exact=True, since=None, estimate=None, entities=entities, **figures
    )


def _row(
    name: str, part: PartitionPart, limit: float | None, record: RunRecord, seconds: float
) -> Row:
    if not record.measured_s:
        rate = part.entities / seconds if seconds else 0.0
        rates = part.entities_per_s.model_copy(update={"mean": rate})
        part = part.model_copy(update={"entities_per_s": rates})
    row: Row = {"partition": name}
    for column, key, _ in _TAB:
        value = column.get(part)
        if column.share:
            row[key] = _of_limit(part, limit, judged_sign(record, part))
            row[_REFUSED] = _bar(part.throttled_ratio) if part.throttled_ratio else ""
            refused = throttled_attempts(part) / seconds if seconds else 0.0
            row[_REFUSED_PER_S] = _as_number(number(refused))
            row[_ANSWERS] = _answers(part, seconds)
        else:
            row[key] = column.absent if value is None else _as_number(column.write(value))
    return row


def _answers(part: PartitionPart, seconds: float) -> str:
    """Each answer other than success with its rate, throttling first; empty without any."""
    throttled = throttled_by_status(part.attempts_by_status)
    counts = [*((name, count) for name, count in throttled.items() if count)]
    counts += other_answers(part.attempts_by_status)
    if not seconds:
        return ""
    shown = [f"{name}: {number(count / seconds)}" for name, count in counts[:_MOST_ANSWERS]]
    if (more := len(counts) - _MOST_ANSWERS) > 0:
        shown.append(f"and {more} more")
    return ", ".join(shown)


def _of_limit(part: PartitionPart, limit: float | None, sign: str) -> str:
    rate, unit = part.entities_per_s.mean, ""
    if part.request_units is not None:
        rate, limit, unit = part.request_units.per_s.mean, part.request_units.target, " RU/s"
    if limit is None:
        return "no target"
    of = f" of {number(limit)}{unit}".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{_bar(rate / limit, sign)}{of}"


def _bar(share: float, sign: str = "") -> str:
    return f"{bar(share, _BAR_WIDTH, _BAR)}\N{NO-BREAK SPACE}{percent(share, sign)}"


def _as_number(text: str) -> float:
    """A figure as the tables write it: a number, so that the tab can sort it."""
    return float(text.replace(",", ""))


VERDICT_HEADINGS = {"what": "What", "said": "Result"}


def verdict_rows(sentence: str, record: RunRecord | None, *, live: bool) -> list[Row]:
    """The phase of the run, which is ``sentence``, and what its record says so far."""
    rows = {"Run": sentence}
    if record is not None:
        if live and is_warming_up(record):
            rows["Verdict so far"] = f"Warming up. {WARMING_UP}"
        else:
            rows |= _judged(record, " so far" if live else "")
        if record.endpoint.service.emulated:
            rows["Endpoint"] = record.endpoint.described
    return [{"what": what, "said": said} for what, said in rows.items()]


def _judged(record: RunRecord, so_far: str) -> dict[str, str]:
    rows = {}
    if (passing := passing_of(record)) is not None:
        rows[f"Conditions{so_far}"] = str(passing)
    result = result_words(record)
    rows[f"Verdict{so_far}"] = f"{result[:1].upper()}{result[1:]}. {headline(record)}"
    if (limit := limited_by(record)) is not None:
        rows["Limited by"] = limit
    if (stall := stall_sentence(record)) is not None:
        rows["Stall"] = stall
    if (step := next_step(record)) is not None:
        rows["Next step"] = f"{step[:1].upper()}{step[1:]}"
    for figure in key_figures(record):
        value = f"{figure.value} {figure.unit}".strip()
        rows[figure.name] = f"{value} ({figure.note})" if figure.note else value
    return rows
