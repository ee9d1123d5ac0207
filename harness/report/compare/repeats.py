"""Runs beside each other: repeats of one run, with what is typical, and the trend over many."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.measure.record.findings import RecordPart
from harness.measure.record.record import RunRecord
from harness.model.figures import counted, listed
from harness.report.columns import NOT_MEASURED
from harness.report.compare.comparison import differences_of
from harness.report.compare.differences import change_words, in_brackets, judge, values_of
from harness.report.compare.measures import MEASURES, Measure
from harness.report.export.output import CommandOutput
from harness.report.headline import result_words
from harness.report.limits import counted_unit
from harness.report.passing import passing_of
from harness.report.terminal.page import Cell, Page, room_for_names, table_of

_HEADINGS = {
    "entities_per_s": "{unit.rate}",
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
                *(_shown(measure, read[measure][place], measure.sign(record)) for measure in shown),
                page.show(result_words(record)),
                *([] if not any(passing) else ["" if found is None else found.word]),
                str(record.exit_code),
            ]
        )
    for word, of in _TYPICAL.items() if typical else ():
        cells = []
        for measure in shown:
            known = [value for value in read[measure] if value is not None]
            # Bounds tell no spread.
            sign = max(map(measure.sign, records)) if word == "median" else ""
            cells.append(Text(_shown(measure, of(known), sign), "bold"))
        rows.append([Text(word, "bold"), *cells])
    unit = counted_unit(records)
    headings = [_HEADINGS[measure.name].format(unit=unit) for measure in shown]
    conditions = ["conditions"] if any(passing) else []
    return table_of(["run", *headings, "verdict", *conditions, "exit\ncode"], rows)


def _shown(measure: Measure, value: float | None, sign: str = "") -> str:
    return NOT_MEASURED if value is None else sign + measure.show(value)


_MOST_DIFFERENCES = 4
_MEASURES = ("entities_per_s", "throttled_ratio", "p50(service)", "p99(service)", "ru_per_s")


@dataclasses.dataclass(frozen=True, slots=True)
class Trend:
    """The runs of one profile, the oldest first; at least two."""

    profile: str
    records: tuple[RunRecord, ...]

    @property
    def measures(self) -> list[Measure]:
        """What a trend is shown of."""
        return [one.named_for(self.records) for one in MEASURES if one.name in _MEASURES]

    @property
    def sentences(self) -> list[str]:
        """What changed from the first run to the last, and in which setting runs differ."""
        said = [text for measure in self.measures if (text := self._changed(measure))]
        if not self.alike:
            said.insert(0, "Compare with care: not all of these runs have the same settings.")
        for before, after in zip(self.records, self.records[1:], strict=False):
            if differences := [*differences_of(before, after)]:
                named, more = differences[:_MOST_DIFFERENCES], len(differences) - _MOST_DIFFERENCES
                words = "; ".join([*named, *([counted(more, "more setting")] if more > 0 else [])])
                said.append(f"{after.run_id} differs from the run before it in {words}.")
        return said

    @property
    def alike(self) -> bool:
        """Whether no setting changed from one run to the next."""
        pairs = zip(self.records, self.records[1:], strict=False)
        return not any([*differences_of(before, after)] for before, after in pairs)

    def _changed(self, measure: Measure) -> str:
        ends = ("the first run", self.records[0]), ("the last run", self.records[-1])
        first, last = (values_of(measure, [record], name) for name, record in ends)
        if first is None or last is None or first.mean == last.mean == 0:
            return ""
        each = f"{first.sign}{measure.show_in_full(first.mean)} in the first run"
        each += f", {last.sign}{measure.show_in_full(last.mean)}"
        judged = judge(measure, first, last)
        # A share of a share would mislead.
        more = "" if measure.unit == "%" else change_words(last.mean, first.mean)
        if judged.differ is False:
            more = "no difference"
        elif judged.differ is None:
            more = f"not judged: {judged.why}"
        return (
            f"{measure.noun[:1].upper()}{measure.noun[1:]}: {each} in the last{in_brackets(more)}."
        )


def trends_of(records: Sequence[RunRecord]) -> tuple[list[Trend], list[str]]:
    """The trends, those of most runs first, and the profiles that have a single run."""
    by_profile: dict[str, list[RunRecord]] = {}
    for record in sorted(records, key=lambda record: (record.started_at, record.run_id)):
        by_profile.setdefault(str(record.profile.get("name", "run")), []).append(record)
    found = [Trend(name, tuple(runs)) for name, runs in by_profile.items() if len(runs) > 1]
    single = [name for name, runs in by_profile.items() if len(runs) == 1]
    return sorted(found, key=lambda one: -len(one.records)), single


def trend_text(trends: Sequence[Trend], single: Sequence[str], page: Page) -> str:
    """The runs of each profile in a table, and below it what changed."""
    parts = []
    for one in trends:
        parts.append(repeats_text(one.records, page, typical=one.alike).strip("\n"))
        parts.append("\n".join(map(page.show, one.sentences)))
    if single:
        parts.append(page.show(single_words(single)))
    return "\n\n".join(filter(None, parts))


class TrendPart(RecordPart):
    """The runs of one profile, the oldest first, and what changed over them.

    ``measures`` have a value of each run, None where it was not measured.
    """

    profile: str
    runs: tuple[str, ...]
    measures: dict[str, tuple[float | None, ...]]
    findings: tuple[str, ...]


class TrendsOutput(CommandOutput):
    """The runs of each profile; ``single`` are profiles with one run."""

    trends: tuple[TrendPart, ...]
    single: tuple[str, ...]


def trends_json(trends: Sequence[Trend], single: Sequence[str]) -> str:
    parts = (
        TrendPart(
            profile=one.profile,
            runs=tuple(record.run_id for record in one.records),
            measures={
                measure.name: tuple(measure.read(record) for record in one.records)
                for measure in one.measures
            },
            findings=tuple(one.sentences),
        )
        for one in trends
    )
    return TrendsOutput(trends=tuple(parts), single=tuple(single)).to_json()


def single_words(single: Sequence[str]) -> str:
    runs = counted(len(single), "profile")
    return f"{runs} with a single run, which shows no trend: {listed(sorted(single))}."
