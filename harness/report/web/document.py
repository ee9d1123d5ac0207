"""The pages: the report, which is one file and opens offline, and the shell of the live page.

Both have the same parts and charts in the same order. A live page offers the files of a run.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import pydantic_core
from markupsafe import Markup

from harness.measure.counts.latency import SPANS
from harness.measure.record.record import RunRecord
from harness.report.service_log import LOG_TITLE
from harness.report.web.charts import charts
from harness.report.web.frame import Chart
from harness.report.web.parts import parts
from harness.report.web.tables import page_css, page_js, render
from harness.report.web.tabs import Row, rows_of, verdict_rows

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
HEAT_READS = (
    "A horizontal line is a hot key, a diagonal is an append-only key, an even area is an even "
    "spread."
)
FRESH_FOR_S = 1.0
"""The least time for which a record of a run in progress is shown."""
_OF_THE_TIME = 10
"""Building records takes at most a tenth of the time: the process may send load too."""


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """A part or a chart, whose element has the id that `parts` and `charts` use.

    ``reads`` is how to read the block, in a line. Two ``half`` blocks share a row where there is
    room. A ``folded`` block is collapsed at first.
    """

    id: str
    title: str = ""
    _: dataclasses.KW_ONLY
    reads: str = ""
    half: bool = False
    folded: bool = False

    @property
    def chart(self) -> bool:
        return self.id.startswith("chart-")


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title, which is empty for those at the top."""

    id: str
    title: str
    blocks: tuple[Block, ...]


SECTIONS = (
    Section(
        "summary",
        "",
        (
            Block("verdict"),
            Block("figures"),
            Block("chart-main"),
            Block("why", "Why", half=True),
            Block("advice", "What the documents advise", half=True),
            Block("conditions", "Conditions"),
            Block("search", "Search for the highest sustainable rate"),
        ),
    ),
    Section(
        "over-time",
        "Over time (UTC)",
        (
            Block("chart-rate"),
            Block(
                "chart-heat",
                reads=HEAT_READS,
            ),
            Block("chart-throttling"),
            Block(
                "chart-refused",
                reads="The key ranges that were throttled. Compare with the first map.",
            ),
            Block(
                "chart-waiting",
                reads="A user sends nothing else meanwhile, to no other partition either.",
            ),
            Block(
                "chart-service",
                reads=f"Latency {SPANS['service']}. The colour shows the number of operations "
                "on a logarithmic scale.",
            ),
            Block(
                "chart-response",
                reads=f"Latency {SPANS['response']}: what an application would see.",
            ),
            Block(
                "chart-backlog",
                reads="A growing backlog: operations become due faster than they are sent.",
            ),
            Block(
                "chart-messages",
                reads="A growing backlog: consumers are slower than producers.",
            ),
            Block("chart-age", reads="How long messages wait until a consumer gets them."),
            Block("chart-generator"),
            Block("course", "Throttling, moves and outages", folded=True),
        ),
    ),
    Section(
        "by-partition",
        "Partitions",
        (
            Block("accounts", "Accounts"),
            Block("partitions", "Most accessed first"),
            Block("throttled", "Most throttled"),
            Block("predicted", "Predicted and measured"),
        ),
    ),
    Section(
        "details",
        "Details",
        (
            Block("operations", "Operations"),
            Block("account", "Account", half=True),
            Block("attempts", "Attempts", half=True),
            Block("scans", "Scans"),
            Block("pointers", "Index tables"),
            Block("audit", "Audit", half=True),
            Block("service-log", LOG_TITLE, half=True),
            Block("generator", "Generator and cost", half=True),
            Block("machine", "Machine and versions", half=True),
            Block("profile", "Resolved profile", folded=True),
        ),
    ),
)

_STYLE = "style-src 'unsafe-inline'"
"""Bars have their widths, and charts their style, in attributes."""


def update(record: RunRecord, *, live: bool) -> dict[str, dict[str, Any]]:
    """The content of a page now: HTML of the parts and the charts, by id of the element.

    The content is JSON and bounded in size. Elements without content are left out. ``live`` is True
    while the run is in progress.
    """
    return {"parts": dict(parts(record, live=live)), "charts": charts(record)}


def document(record: RunRecord) -> str:
    """``report.html`` of ``record``: one file that loads nothing else.

    Without scripts it still shows the verdict and the tables, but no charts.
    """
    shown = update(record, live=False)
    return self_contained(
        f"{record.profile.get('name', 'run')} {record.run_id}",
        SECTIONS,
        shown["parts"],
        shown["charts"],
        footer=f"Run {record.run_id}, started {record.started_at}; table stress harness "
        f"{record.harness_version}.",
    )


def self_contained(
    title: str,
    sections: Sequence[Section],
    parts: Mapping[str, str],
    figures: Mapping[str, Any],
    *,
    footer: str,
) -> str:
    """A page in one file that loads nothing else: parts and charts by the id of their block."""
    digest = base64.b64encode(hashlib.sha256(page_js().encode()).digest()).decode()
    return render(
        "document.html",
        title=title,
        policy=f"default-src 'none'; script-src 'sha256-{digest}'; {_STYLE}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        css=page_css(),
        script=page_js(),
        charts=embedded(figures),
        sections=sections,
        known={*parts, *figures},
        parts=parts,
        footer=footer,
    )


Content = tuple[Block, str | Chart]


def page_of(
    title: str,
    head: tuple[str, str],
    sections: Iterable[tuple[str, str, Iterable[Content]]],
    about: str,
    version: str,
) -> str:
    """A page of other sections: id, title, and blocks with what is in them, if there is anything.

    ``head`` are the heading and the sentence below it; ``about`` is said at the end.
    """
    name, question = head
    parts = {"head": render("head.html", name=name, question=question, facts=[])}
    figures, made = {}, []
    for section, heading, contents in sections:
        blocks = []
        for block, content in contents:
            blocks.append(block)
            if isinstance(content, Chart):
                figures[block.id] = content
            elif content:
                parts[block.id] = content
        made.append(Section(section, heading, tuple(blocks)))
    footer = f"{about}; table stress harness {version}."
    return self_contained(title, made, parts, figures, footer=footer)


def live_page(*, locust: bool = True) -> str:
    """The shell of the live page; with ``locust`` it is below Locust's own page.

    The page loads ``page.js`` and ``page.css`` from its own folder. It polls
    ``data`` there: an `update` with ``state``, ``sentence`` and ``run_id``.
    """
    return render(
        "live.html",
        title="Table stress",
        locust=locust,
        policy=f"default-src 'none'; script-src 'self'; {_STYLE} 'self'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'",
        sections=SECTIONS,
    )


def embedded(content: Any) -> str:
    """``content`` as JSON for a script element, which no character of it can end."""
    # Unlike orjson, this writes integers of any size, which a damaged record may have.
    text = pydantic_core.to_json(content, inf_nan_mode="null").decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


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
            "partitions": [{"partition": self.sentence}]
            if self.record is None
            else rows_of(self.record),
        }

    def _downloads(self, run_id: str) -> str:
        there = [name for name in FILES if (self.out / run_id / name).is_file()]
        link = Markup('<li><a href="runs/{}/{}" title="{}">{}</a></li>')
        links = Markup("").join(link.format(run_id, name, FILES[name], name) for name in there)
        return Markup('<ul class="downloads">{}</ul>').format(links)


class FreshlyShown:
    """What a live page shows, built by ``show`` at most once a second, for all browsers that ask.

    Where what it is ``about`` has changed, it is built at once.
    """

    def __init__(
        self, show: Callable[[], Shown], about: Callable[[], object] = lambda: None
    ) -> None:
        self._show, self._about = show, about
        self._lock = threading.RLock()
        self._shown: Shown | None = None
        self._shown_about: object = None
        self._fresh_until_s = 0.0

    def now(self) -> Shown:
        """The current or last run; the same object until there is something new."""
        with self._lock:
            shown, about, began_s = self._shown, self._about(), time.monotonic()
            if (
                shown is None
                or about != self._shown_about
                or (shown.live and began_s >= self._fresh_until_s)
            ):
                shown = self._shown = self._show()
                self._shown_about = about
                took_s = time.monotonic() - began_s
                self._fresh_until_s = began_s + max(FRESH_FOR_S, took_s * _OF_THE_TIME)
            return shown
