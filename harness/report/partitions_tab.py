"""The partitions of a run as rows of figures, for a table that can be sorted by any column.

Locust's web UI shows them in a tab of its own. It shows text as text, one table a tab: the verdict
and the account are rows above the partitions.
"""

from __future__ import annotations

import dataclasses

from harness.measure.record import LatencyPart, PartitionPart, RunRecord
from harness.report.drawing import FULL, bar
from harness.report.reading import OTHERS, limited_by, result_words, throttled_by_status
from harness.report.words import number, partition_name, percent, shortened

Row = dict[str, str | float]

COLUMNS = {
    "partition": "Partition",
    "entities_per_s": "Entities/s",
    "of_target": "Of the target",
    "throttled_503": "503/s",
    "throttled_500": "500/s",
    "throttled_429": "429/s",
    "service_p50": "Service p50 ms",
    "service_p99": "Service p99 ms",
    "response_p50": "Response p50 ms",
    "response_p99": "Response p99 ms",
}
"""Keys of a row, and what stands above them."""

_BAR = dataclasses.replace(FULL, eighths="█")
"""Whole cells: a page's letters have many widths, and parts of a cell would tear the bar apart."""
_BAR_WIDTH = 10
_NAME_WIDTH = 80
_NO_BREAK = "\N{NO-BREAK SPACE}"


def row_of_text(text: str) -> Row:
    """A row that holds a sentence and no figures."""
    return {**dict.fromkeys(COLUMNS, ""), "partition": text}


def rows_of(record: RunRecord, *, live: bool) -> list[Row]:
    """The verdict, the account and every partition; what is most in demand comes first.

    The verdict is its few words: its sentence would fill the first column from top to bottom.
    Rates of entities cover the measured window, or the time under load before it opens; rates of
    throttling cover the time under load.

    Args:
        record: The run, or what is known of it by now.
        live: Whether it goes on.
    """
    seconds = _seconds_under_load(record)
    when = "So far" if live else "Verdict"
    limit = limited_by(record)
    verdict = result_words(record) + (f", limited by {limit}" if limit is not None else "")
    rows = [row_of_text(f"{when}: {verdict}"), _account(record, seconds)]
    rows += [_partition(part, record, seconds, _name(part)) for part in in_demand(record)]
    folded = record.partitions_folded
    if folded is not None:
        name = f"{OTHERS}, beyond the {len(record.partitions):,} told apart"
        rows.append({**_partition(folded, record, seconds, name), "of_target": ""})
    return rows


def in_demand(record: RunRecord) -> list[PartitionPart]:
    """The partitions, the most accessed and the most throttled first.

    A partition stands as high as the greater of two shares puts it: its share of all entities, and
    its share of all throttled attempts.
    """
    throttled = {id(part): _throttled(part) for part in record.partitions}
    entities = sum(part.entities for part in record.partitions) or 1
    refused = sum(throttled.values()) or 1
    return sorted(
        record.partitions,
        key=lambda part: -max(part.entities / entities, throttled[id(part)] / refused),
    )


def _account(record: RunRecord, seconds: float) -> Row:
    return _row(
        "The whole account",
        rate=_rate(record, record.account.entities_per_s.mean, record.counts.entities, seconds),
        target=record.account.target,
        of=record,
        seconds=seconds,
    )


def _partition(part: PartitionPart, record: RunRecord, seconds: float, name: str) -> Row:
    return _row(
        name,
        rate=_rate(record, part.entities_per_s.mean, part.entities, seconds),
        target=part.target,
        of=part,
        seconds=seconds,
    )


def _rate(record: RunRecord, measured: float, entities: int, seconds: float) -> float:
    """Entities a second: what was measured, and before that what the time under load gave."""
    if record.measured_s:
        return measured
    return entities / seconds if seconds else 0.0


def _row(
    name: str,
    *,
    rate: float,
    target: float | None,
    of: PartitionPart | RunRecord,
    seconds: float,
) -> Row:
    return {
        "partition": name,
        "entities_per_s": _rounded(rate),
        "of_target": _bar(rate, target),
        **_throttled_per_s(throttled_by_status((of.attempts_by_status,)), seconds),
        **_latencies("service", of.service_ms),
        **_latencies("response", of.response_ms),
    }


def _name(part: PartitionPart) -> str:
    """The key; ``~`` marks one that was not told apart from the beginning."""
    name = shortened(partition_name(part.key), _NAME_WIDTH, FULL.ellipsis)
    return name if part.exact else f"{name} ~"


def _throttled(part: PartitionPart) -> int:
    return sum(throttled_by_status((part.attempts_by_status,)).values())


def _throttled_per_s(attempts: dict[str, int], seconds: float) -> Row:
    return {
        f"throttled_{status}": _rounded(count / seconds) if seconds else 0.0
        for status, count in attempts.items()
    }


def _latencies(name: str, part: LatencyPart | None) -> Row:
    if part is None:
        return {f"{name}_p50": "n/a", f"{name}_p99": "n/a"}
    return {f"{name}_p50": _rounded(part.p50), f"{name}_p99": _rounded(part.p99)}


def _bar(rate: float, target: float | None) -> str:
    """A bar, its percentage and the target, in one piece; nothing where no target holds."""
    if target is None:
        return "no target"
    share = rate / target
    text = f"{bar(share, _BAR_WIDTH, _BAR)} {percent(share)} of {number(target)}"
    return text.replace(" ", _NO_BREAK)


def _rounded(value: float) -> float:
    """With as many digits as can be read at a glance: a number, so that columns can be sorted."""
    return round(value) if value >= 99.95 else round(value, 1 if value >= 0.95 else 2)


def _seconds_under_load(record: RunRecord) -> float:
    """From the first second that anything happened in to the last."""
    series = record.series
    return 0.0 if not series else series[-1].t + series[-1].width_s - series[0].t
