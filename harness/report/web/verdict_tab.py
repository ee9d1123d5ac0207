"""The rows of the tab "Verdict" of Locust's web UI: how the run goes, in a few lines of text."""

from __future__ import annotations

from harness.measure.record.record import RunRecord
from harness.report.events import stall_sentence
from harness.report.headline import WARMING_UP, headline, is_warming_up
from harness.report.passing import passing_of
from harness.report.sentences import limited_by, next_step, result_words
from harness.report.web.key_figures import key_figures

Row = dict[str, str | float]

COLUMNS = {"what": "What", "said": "Result"}
"""Keys of a row, and their headings."""


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
