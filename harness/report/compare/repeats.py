"""The repeats of one run beside each other: each with its verdict, and what is typical of all."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record.record import RunRecord
from harness.model.figures import counted
from harness.report.columns import NOT_MEASURED
from harness.report.compare.measures import MEASURES, Measure
from harness.report.passing import passing_of
from harness.report.sentences import result_words
from harness.report.terminal.page import Cell, Page, room_for_names, table_of

_HEADINGS = {
    "entities_per_s": "entities/s",
    "ru_per_s": "RU/s",
    "throttled_ratio": "throttled",
    "p50(service)": "p50\nms",
    "p99(service)": "p99\nms",
    "p99(response)": "p99\nresponse ms",
}
_SHOWN = tuple(measure for measure in MEASURES if measure.name in _HEADINGS)
_TYPICAL: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "spread": lambda values: max(values) - min(values),
}
_NOTE = "spread: the largest figure minus the smallest one"


def repeats_text(records: Sequence[RunRecord], page: Page, *, typical: bool = True) -> str:
    """A line for each run with its figures, verdict and exit code.

    With ``typical`` also median and spread of them: of runs with other settings they mean nothing.
    """
    name = str(records[0].profile.get("name", "run"))
    title = f"{counted(len(records), 'run')} of {page.show(name)}"
    ids = [page.show(record.run_id) for record in records]

    def build(width: int) -> Table:
        return _table(records, page, width, typical=typical)

    room = room_for_names(page, build, "median", max(map(cell_len, ids)))
    endpoints = dict.fromkeys(page.show(record.endpoint.described) for record in records)
    notes = Text("\n".join([*([_NOTE] if typical else []), *endpoints]), "dim")
    parts: list[RenderableType] = [build(max(room, len("median"))), notes]
    return page.render(page.section(title, *parts))


def _table(records: Sequence[RunRecord], page: Page, name_width: int, *, typical: bool) -> Table:
    read = {measure: [measure.read(record) for record in records] for measure in _SHOWN}
    shown = [measure for measure, values in read.items() if values.count(None) < len(values)]
    passing = [passing_of(record) for record in records]
    rows: list[list[Cell]] = []
    for place, record in enumerate(records):
        found = passing[place]
        rows.append(
            [
                page.short(record.run_id, name_width),
                *(_shown(measure, read[measure][place]) for measure in shown),
                page.show(result_words(record)),
                *([] if not any(passing) else ["" if found is None else found.word]),
                str(record.exit_code),
            ]
        )
    for word, of in _TYPICAL.items() if typical else ():
        cells = []
        for measure in shown:
            known = [value for value in read[measure] if value is not None]
            cells.append(Text(_shown(measure, of(known)), "bold"))
        rows.append([Text(word, "bold"), *cells])
    headings = [_HEADINGS[measure.name] for measure in shown]
    conditions = ["conditions"] if any(passing) else []
    return table_of(["run", *headings, "verdict", *conditions, "exit\ncode"], rows)


def _shown(measure: Measure, value: float | None) -> str:
    return NOT_MEASURED if value is None else measure.show(value)
