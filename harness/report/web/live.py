"""What a live page shows, and the files of a run that it offers."""

from __future__ import annotations

import dataclasses
import enum
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
from markupsafe import Markup

from harness.measure.record.record import RunRecord
from harness.report.web.document import update
from harness.report.web.partitions_tab import rows_of
from harness.report.web.verdict_tab import Row, verdict_rows

FILES = {
    "report.html": "the report, which opens offline",
    "run.json": "the record, from which every other file can be made again",
    "summary.md": "the summary in Markdown",
    "partitions.csv": "the partitions for spreadsheets",
    "junit.xml": "the conditions as JUnit test cases",
    "latencies.hlog": "the latencies as an HdrHistogram log",
    "errors.jsonl": "failed attempts with their request ids",
}
"""Files of a run's folder that can be downloaded."""
OPENED = "report.html"
"""The file that the browser opens; it saves all others."""


class State(enum.StrEnum):
    """The phase of the run that is shown."""

    NONE = "none"
    PREPARING = "preparing"
    RUNNING = "running"
    ENDED = "ended"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """The current or last run at one moment, for all browsers that ask.

    Attributes:
        sentence: The phase in words.
        out: Folder of all runs.
        run_id: The id of the run; None before the first run.
        record: The run so far; None before the load begins.
    """

    state: State
    sentence: str
    out: Path
    run_id: str | None = None
    record: RunRecord | None = None

    @property
    def live(self) -> bool:
        """False once the run has ended."""
        return self.state is not State.ENDED

    @cached_property
    def data(self) -> bytes:
        """The content of the page as JSON."""
        content: dict[str, dict[str, Any]] = {"parts": {}, "charts": {}}
        if self.record is not None:
            content = update(self.record, live=self.live)
            if not self.live:
                content["parts"]["downloads"] = self._downloads(self.record.run_id)
        return orjson.dumps(
            {"state": self.state, "sentence": self.sentence, "run_id": self.run_id, **content}
        )

    @cached_property
    def tabs(self) -> dict[str, list[Row]]:
        """The rows of the tabs ``verdict`` and ``partitions`` of Locust's page."""
        return {
            "verdict": verdict_rows(self.sentence, self.record, live=self.live),
            "partitions": [] if self.record is None else rows_of(self.record),
        }

    def _downloads(self, run_id: str) -> str:
        there = [name for name in FILES if (self.out / run_id / name).is_file()]
        link = Markup('<li><a href="runs/{}/{}" title="{}">{}</a></li>')
        links = Markup("").join(link.format(run_id, name, FILES[name], name) for name in there)
        return Markup('<ul class="downloads">{}</ul>').format(links)
