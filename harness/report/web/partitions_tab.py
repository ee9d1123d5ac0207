"""The rows of the tab "Partitions" of Locust's web UI, a table that any column can sort.

The tab shows one table of plain text: the verdict and the account are rows above the partitions.
"""

from __future__ import annotations

import dataclasses

from harness.model.figures import number, percent
from harness.measure.record.record import AccountLoadPart, PartitionPart, RunRecord
from harness.report.columns import PARTITION_COLUMNS, THROTTLED, throttled_attempts
from harness.report.names import partition_name, shortened
from harness.report.sentences import OTHERS, limited_by, result_words
from harness.report.terminal.page import FULL, bar

Row = dict[str, str | float]

_TAB = [(column, *column.tab) for column in PARTITION_COLUMNS if column.tab is not None]
COLUMNS = {"partition": "Partition", **{key: heading for _, key, heading in _TAB}}
"""Keys of a row, and their headings."""

_BAR = dataclasses.replace(FULL, eighths="█")
"""Whole cells: a page's letters have many widths, and parts of a cell would tear the bar apart."""
_BAR_WIDTH = 10
_NAME_WIDTH = 80


def row_of_text(text: str) -> Row:
    """A row that holds a sentence and no figures."""
    return {**dict.fromkeys(COLUMNS, ""), "partition": text}


def rows_of(record: RunRecord, *, live: bool) -> list[Row]:
    """The verdict, the account, and every partition in order of demand.

    The row of the verdict has only its result: a sentence would fill the first column. Entities/s
    cover the measured window, or the time under load before the window begins. Throttling rates
    cover the time under load. ``live`` is True while the run is in progress.
    """
    series = record.series
    seconds = series[-1].t + series[-1].width_s - series[0].t if series else 0.0
    verdict = f"{'So far' if live else 'Verdict'}: {result_words(record)}"
    if (limit := limited_by(record)) is not None:
        verdict += f", limited by {limit}"
    whole = "All accounts" if record.accounts else "The whole account"
    rows = [row_of_text(verdict), _row(whole, _account(record), record, seconds)]
    for account in record.accounts:
        rows.append(_row(f"Account {account.name}", _of_account(account), record, seconds))
    for part in in_demand(record):
        name = shortened(partition_name(part.key), _NAME_WIDTH)
        # This partition was not counted separately from the beginning.
        mark = "" if part.exact else " ~"
        rows.append(_row(f"{name}{mark}", part, record, seconds))
    if (folded := record.partitions_folded) is not None:
        name = f"{OTHERS}, beyond the {len(record.partitions):,} counted separately"
        rows.append({**_row(name, folded, record, seconds), "of_target": ""})
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


def _account(record: RunRecord) -> PartitionPart:
    part = record.account
    return PartitionPart(
        key="",
        exact=True,
        since=None,
        estimate=None,
        entities=record.counts.entities,
        entities_per_s=part.entities_per_s,
        target=part.target,
        ratio=part.ratio,
        attempts_by_status=record.attempts_by_status,
        throttled_ratio=record.throttled_ratio,
        service_ms=record.service_ms,
        response_ms=record.response_ms,
    )


def _of_account(part: AccountLoadPart) -> PartitionPart:
    """One of several accounts in the columns of a partition; it has no latencies of its own."""
    return PartitionPart(
        key="",
        exact=True,
        since=None,
        estimate=None,
        entities=part.entities,
        entities_per_s=part.entities_per_s,
        target=part.target,
        ratio=part.ratio,
        attempts_by_status=part.attempts_by_status,
        throttled_ratio=part.throttled_ratio,
        service_ms=None,
        response_ms=None,
    )


def _row(name: str, part: PartitionPart, record: RunRecord, seconds: float) -> Row:
    if not record.measured_s:
        rate = part.entities / seconds if seconds else 0.0
        rates = part.entities_per_s.model_copy(update={"mean": rate})
        part = part.model_copy(update={"entities_per_s": rates})
    row: Row = {"partition": name}
    for column, key, _ in _TAB:
        value = column.get(part)
        if column.share:
            row[key] = _bar(part)
        elif column in THROTTLED:
            row[key] = _rounded(value / seconds) if seconds else 0.0
        else:
            row[key] = column.absent if value is None else _rounded(value)
    return row


def _bar(part: PartitionPart) -> str:
    if part.target is None:
        return "no target"
    share = part.entities_per_s.mean / part.target
    text = f"{bar(share, _BAR_WIDTH, _BAR)} {percent(share)} of {number(part.target)}"
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _rounded(value: float) -> float:
    """``value`` with as many digits as a reader needs: a number, so that the tab can sort it."""
    return round(value) if value >= 99.95 else round(value, 1 if value >= 0.95 else 2)
