"""The harness's own pages in Locust's web UI: ``/stress/``, and the tabs that it adds.

The pages are read-only and behind Locust's login if it has one. Addresses are relative, and nothing
is loaded from other hosts. A record of a run in progress is built at most once a second, however
many browsers ask. After the run the pages show the record of the run.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import orjson
from flask import Blueprint, Response, abort, redirect, request, send_file
from locust.web import WebUI
from werkzeug.wrappers import Response as AnyResponse

from harness.measure.record.record import RunRecord
from harness.model.figures import duration
from harness.report.terminal.live import progress_line
from harness.report.web.document import FILES, OPENED, FreshlyShown, Shown, State, live_page
from harness.report.web.tables import ASSETS
from harness.report.web.tabs import PARTITION_HEADINGS, STYLE, VERDICT_HEADINGS
from harness.swarm.master.conductor import Conductor
from harness.swarm.master.master_run import MasterRun, Phase
from harness.swarm.web import start_form

PLACE = "stress"
"""The path of the pages, below that of Locust's own page."""
_NO_GUESS = ("X-Content-Type-Options", "nosniff")
"""A browser must not guess the content type."""
_TABS = {
    "verdict": ("Verdict", VERDICT_HEADINGS),
    "partitions": ("Partitions", PARTITION_HEADINGS),
}
"""Titles and columns of the tabs, by key."""
_STATISTICS, _INDEX = "locust.request_stats", "locust.index"


class Showing(FreshlyShown):
    """Builds what the pages show of the runs; ``out`` is the folder of their files."""

    def __init__(self, conductor: Conductor, out: str | Path) -> None:
        super().__init__(self._of_run, self._moment)
        self._conductor = conductor
        self._out = Path(out).absolute()

    def _moment(self) -> tuple[MasterRun | None, Phase | None, RunRecord | None]:
        run = self._conductor.run
        return run, None if run is None else run.phase, self._conductor.record

    def _of_run(self) -> Shown:
        conductor = self._conductor
        run = conductor.run
        if run is None:
            return Shown(state=State.NONE, sentence="No run yet.", out=self._out)
        now_s = run.clock()
        record: RunRecord | None = None
        match run.phase:
            case Phase.PREPARED | Phase.LOADING:
                state, sentence = State.PREPARING, _preparing(run)
            case Phase.DONE:
                record = conductor.record
                state, sentence = State.ENDED, _ended(record, run.problem)
            case _:
                state, sentence = State.RUNNING, _running(run, now_s)
                if run.epoch_s:
                    record = conductor.record_so_far(now_s)
        return Shown(
            state=state, sentence=sentence, out=self._out, run_id=run.plan.run_id, record=record
        )


def _preparing(run: MasterRun) -> str:
    loaded, store = run.loaded, run.plan.kind.store
    doing = f"creating the {store}"
    if loaded.total:
        progress = progress_line(loaded.entities, loaded.total, loaded.seconds)
        doing = f"loading the {store}, {' '.join(progress.split())}"
    return f"{run.plan.profile_name}: {doing}."


def _running(run: MasterRun, now_s: float) -> str:
    """The sentence of a run that sends load or is ending."""
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


def _ended(record: RunRecord | None, problem: str) -> str:
    """The sentence of a run that has ended; without load it has no record."""
    why = f": {problem}" if problem else ""
    if record is None:
        return f"The run ended before any load was sent{why or '; the terminal shows the reason'}."
    at = dt.datetime.fromisoformat(record.ended_at)
    return f"{record.profile['name']}: ended by {record.ended_by} at {at:%H:%M:%S} UTC{why}."


def add_pages(web_ui: WebUI, showing: Showing, *, base_path: str) -> None:
    """Add the pages below ``/stress/`` to Locust's web UI, before its server listens.

    ``base_path`` is the prefix of Locust's own addresses; it may be empty.
    """
    pages = Blueprint(PLACE, __name__, url_prefix=f"{base_path.rstrip('/')}/{PLACE}")

    def without_slash() -> AnyResponse:
        # Relative, so that a prefix added by a proxy stays.
        return redirect(f"{PLACE}/")

    def page() -> Response:
        return _answer(live_page(), "text/html")

    def data() -> Response:
        return _answer(showing.now().data, "application/json")

    def asset(name: str) -> AnyResponse:
        if name not in ASSETS:
            abort(404)
        read, kind = ASSETS[name]
        answer = _answer(read(), kind)
        # A browser caches it, but revalidates: a new version is shown at once.
        answer.cache_control.no_store = False
        answer.cache_control.no_cache = True
        answer.add_etag()
        return answer.make_conditional(request)

    def download(run_id: str, name: str) -> Response:
        shown = showing.now()
        # Only known values pass, so that no other path can be built.
        if shown.record is None or shown.record.run_id != run_id or name not in FILES:
            abort(404)
        file = shown.out / run_id / name
        if not file.is_file():
            abort(404)
        answer = send_file(file, as_attachment=name != OPENED, max_age=0)
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


def _answer(content: str | bytes, kind: str) -> Response:
    answer = Response(content, mimetype=kind)
    answer.cache_control.no_store = True
    answer.headers[_NO_GUESS[0]] = _NO_GUESS[1]
    return answer


def add_tabs(web_ui: WebUI, showing: Showing) -> None:
    """Add the tabs "Verdict" and "Partitions", and a link to our page among the downloads.

    Locust's page reads the structure of a tab once, and its rows with the statistics that it polls
    every two seconds during a run.
    """
    link = "Charts, heat map and files of the last run"
    web_ui.template_args |= {
        "extended_tabs": [{"title": title, "key": key} for key, (title, _) in _TABS.items()],
        "extended_tables": [
            {
                "key": key,
                "structure": [{"key": name, "title": heading} for name, heading in columns.items()],
            }
            for key, (_, columns) in _TABS.items()
        ],
        "extended_csv_files": [{"href": f"./{PLACE}/", "title": link}],
    }

    def with_rows(response: Response) -> Response:
        if response.status_code != 200:
            return response
        if request.endpoint == _INDEX:
            added = f"<style>{STYLE}{start_form.STYLE}</style><script>{start_form.SCRIPT}</script>"
            page = response.get_data(as_text=True)
            response.set_data(page.replace("</head>", f"{added}</head>", 1))
            return response
        if request.endpoint != _STATISTICS:
            return response
        # Locust caches this answer for two seconds, so a new one is returned.
        content = orjson.loads(response.get_data())
        shown = showing.now()
        content["extended_stats"] = [{"key": key, "data": rows} for key, rows in shown.tabs.items()]
        if shown.record is None and shown.run_id is not None and content["stats"]:
            # Before the first request the tab that is open says what is done.
            row = content["stats"][-1]
            content["stats"][-1] = {**row, "name": shown.sentence, "safe_name": shown.sentence}
        return Response(orjson.dumps(content), mimetype="application/json")

    web_ui.app.after_request(with_rows)
