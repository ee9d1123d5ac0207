"""The harness's own pages in Locust's web UI, below ``/stress/``: charts, data, downloads.

The pages are read-only and behind Locust's login if it has one. Addresses are relative, and nothing
is loaded from other hosts.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent.lock
import orjson
from flask import Blueprint, Response, abort, redirect, request, send_file
from locust.web import WebUI
from markupsafe import Markup
from werkzeug.wrappers import Response as AnyResponse

from harness.measure.figures import counted, duration
from harness.measure.record.record import RunRecord
from harness.report.web.document import live_page, update
from harness.report.web.partitions_tab import COLUMNS, Row, row_of_text, rows_of
from harness.report.web.rendering import page_css, page_js, plotly_js
from harness.swarm.master.conductor import Conductor
from harness.swarm.master.master_run import MasterRun, Phase

FRESH_FOR_S = 1.0
"""The least time for which a record of a run in progress is shown."""
_OF_THE_TIME = 10
"""Building records takes at most one part of so many of the time: the process may send load too."""


class State(enum.StrEnum):
    """The phase of the run that is shown."""

    NONE = "none"
    PREPARING = "preparing"
    RUNNING = "running"
    ENDED = "ended"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The current or last run at one moment.

    Attributes:
        state: The phase of the run.
        sentence: The phase in words.
        run_id: The id of the run; None before the first run.
        record: The run so far; None before the load begins.
    """

    state: State
    sentence: str
    run_id: str | None = None
    record: RunRecord | None = None

    @property
    def live(self) -> bool:
        """False once the run has ended."""
        return self.state is not State.ENDED


NOTHING = Shown(state=State.NONE, sentence="No run yet.")


class Showing:
    """Builds what the pages show.

    Args:
        conductor: The conductor of the runs.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        # Two browsers share one record, even if building one should ever switch greenlets.
        self._lock = gevent.lock.RLock()
        self._shown = NOTHING
        self._of: tuple[MasterRun | None, Phase | None, RunRecord | None] = (None, None, None)
        self._fresh_until_s = 0.0

    def now(self) -> Shown:
        """The current or last run; the same object until there is something new."""
        with self._lock:
            conductor = self._conductor
            run = conductor.run
            of = (run, None if run is None else run.phase, conductor.record)
            began_s = time.monotonic()
            if of != self._of or (self._shown.live and began_s >= self._fresh_until_s):
                self._shown = NOTHING if run is None else self._show(run)
                self._of = of
                took_s = time.monotonic() - began_s
                self._fresh_until_s = began_s + max(FRESH_FOR_S, took_s * _OF_THE_TIME)
            return self._shown

    def _show(self, run: MasterRun) -> Shown:
        conductor = self._conductor
        now_s = conductor.clock()
        record: RunRecord | None = None
        match run.phase:
            case Phase.PREPARED | Phase.LOADING:
                state, sentence = State.PREPARING, preparing(run)
            case Phase.DONE:
                record = conductor.record
                state, sentence = State.ENDED, ended(record, run.problem)
            case _:
                state, sentence = State.RUNNING, running(run, now_s)
                if run.epoch_s:
                    record = conductor.record_so_far(now_s)
        return Shown(state=state, sentence=sentence, run_id=run.plan.run_id, record=record)


def preparing(run: MasterRun) -> str:
    """The sentence of a run before its load."""
    loaded = f"{counted(run.loaded.entities, 'entity', 'entities')} loaded"
    return f"{run.plan.profile_name}: creating and loading the table, {loaded}."


def running(run: MasterRun, now_s: float) -> str:
    """The sentence of a run that sends load at ``now_s``, UTC, or is ending."""
    if run.phase is Phase.ENDING:
        words = "judging the results" if run.epoch_s else "cleaning up"
        return f"{run.plan.profile_name}: ending after {run.ended_by or 'a failure'}, {words}."
    under_load = f"under load for {duration(max(0.0, now_s - run.epoch_s))}"
    if run.window is None:
        measured = "users are starting, nothing is measured yet"
    else:
        start, end = run.window
        passed = min(max(now_s - start, 0.0), end - start)
        measured = f"measured {passed:.0f} of {end - start:,} s"
    return f"{run.plan.profile_name}: running, {under_load}, {measured}."


def ended(record: RunRecord | None, problem: str = "") -> str:
    """The sentence of a run that has ended.

    Args:
        record: Its record; None for a run without load.
        problem: Why the run failed; empty where it did not.
    """
    if record is None:
        why = f": {problem}." if problem else "; the terminal shows the reason."
        return f"The run ended before any load was sent{why}"
    at = dt.datetime.fromisoformat(record.ended_at)
    why = f": {problem}" if problem else ""
    return f"{record.profile['name']}: ended by {record.ended_by} at {at:%H:%M:%S} UTC{why}."


PLACE = "stress"
"""Below Locust's own page."""

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

_SHOWN = "report.html"
"""The file that the browser opens; it saves all others."""

_NO_GUESS = ("X-Content-Type-Options", "nosniff")
"""A browser must not guess the content type."""


def add_pages(web_ui: WebUI, showing: Showing, *, out: str, base_path: str) -> None:
    """Add the pages to Locust's web UI, before its server listens.

    Args:
        web_ui: Locust's web UI.
        showing: The run to show.
        out: Folder of all runs.
        base_path: Prefix of Locust's own addresses; may be empty.
    """
    pages = Blueprint(PLACE, __name__, url_prefix=f"{base_path.rstrip('/')}/{PLACE}")
    folder = Path(out).absolute()
    updates = Updates(showing, folder)
    assets: dict[str, tuple[Callable[[], str], str]] = {
        "plotly.js": (plotly_js, "text/javascript"),
        "page.js": (page_js, "text/javascript"),
        "page.css": (page_css, "text/css"),
    }

    def without_slash() -> AnyResponse:
        # Relative, so that a prefix added by a proxy stays.
        return redirect(f"{PLACE}/")

    def page() -> Response:
        return _answer(live_page(), "text/html")

    def data() -> Response:
        return _answer(updates.now(), "application/json")

    def asset(name: str) -> AnyResponse:
        if name not in assets:
            abort(404)
        read, kind = assets[name]
        answer = _answer(read(), kind)
        # A browser caches it, but revalidates: a new version is shown at once.
        answer.cache_control.no_store = False
        answer.cache_control.no_cache = True
        answer.add_etag()
        return answer.make_conditional(request)

    def download(run_id: str, name: str) -> Response:
        record = showing.now().record
        # Only known values pass, so that no other path can be built.
        if record is None or record.run_id != run_id or name not in FILES:
            abort(404)
        file = folder / record.run_id / name
        if not file.is_file():
            abort(404)
        answer = send_file(file, as_attachment=name != _SHOWN, max_age=0)
        answer.headers[_NO_GUESS[0]] = _NO_GUESS[1]
        return answer

    for rule, view in {
        "": without_slash,
        "/": page,
        "/data": data,
        "/<name>": asset,
        "/runs/<run_id>/<name>": download,
    }.items():
        pages.add_url_rule(
            rule, view.__name__, web_ui.auth_required_if_enabled(view), methods=("GET",)
        )
    web_ui.app.register_blueprint(pages)


class Updates:
    """The answers to the polling pages; all pages share one.

    Args:
        showing: The run to show.
        folder: Folder of all runs.
    """

    def __init__(self, showing: Showing, folder: Path) -> None:
        self._showing = showing
        self._folder = folder
        self._of: Shown | None = None
        self._text = b""

    def now(self) -> bytes:
        """The state of the page as JSON."""
        shown = self._showing.now()
        if shown is not self._of:
            self._text = self._made(shown)
            self._of = shown
        return self._text

    def _made(self, shown: Shown) -> bytes:
        content: dict[str, dict[str, Any]] = {"parts": {}, "charts": {}}
        if shown.record is not None:
            content = update(shown.record, live=shown.live)
            if not shown.live:
                content["parts"]["downloads"] = self._downloads(shown.record.run_id)
        return orjson.dumps(
            {
                "state": shown.state,
                "sentence": shown.sentence,
                "run_id": shown.run_id,
                **content,
            }
        )

    def _downloads(self, run_id: str) -> str:
        """Links to the files of the run."""
        there = [name for name in FILES if (self._folder / run_id / name).is_file()]
        link = Markup('<li><a href="runs/{}/{}">{}</a> {}</li>')
        links = Markup("").join(link.format(run_id, name, name, FILES[name]) for name in there)
        return Markup('<ul class="downloads">{}</ul>').format(links)


def _answer(content: str | bytes, kind: str) -> Response:
    answer = Response(content, mimetype=kind)
    answer.cache_control.no_store = True
    answer.headers[_NO_GUESS[0]] = _NO_GUESS[1]
    return answer


KEY = "partitions"
TITLE = "Partitions"
LINK = "Charts, heat map and files of the last run"

_STATISTICS = "locust.request_stats"


def add_tab(web_ui: WebUI, showing: Showing) -> None:
    """Add the tab, and a link to the harness's page among the downloads.

    Args:
        web_ui: Locust's web UI.
        showing: The run to show.
    """
    web_ui.template_args |= {
        "extended_tabs": [{"title": TITLE, "key": KEY}],
        "extended_tables": [
            {
                "key": KEY,
                "structure": [{"key": key, "title": title} for key, title in COLUMNS.items()],
            }
        ],
        "extended_csv_files": [{"href": f"./{PLACE}/", "title": LINK}],
    }
    rows = Rows(showing)

    def with_rows(response: Response) -> Response:
        if request.endpoint != _STATISTICS or response.status_code != 200:
            return response
        # Locust caches this answer for two seconds, so a new one is returned.
        content = orjson.loads(response.get_data())
        content["extended_stats"] = [{"key": KEY, "data": rows.now()}]
        return Response(orjson.dumps(content), mimetype="application/json")

    web_ui.app.after_request(with_rows)


class Rows:
    """The rows of the tab; all browsers share them.

    Args:
        showing: The run to show.
    """

    def __init__(self, showing: Showing) -> None:
        self._showing = showing
        self._of: Shown | None = None
        self._rows: list[Row] = []

    def now(self) -> list[Row]:
        """The rows now: a sentence, and the figures if there are any."""
        shown = self._showing.now()
        if shown is not self._of:
            record = shown.record
            self._rows = [row_of_text(shown.sentence)]
            if record is not None:
                self._rows += rows_of(record, live=shown.live)
            self._of = shown
        return self._rows
