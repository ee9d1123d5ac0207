"""The harness's own pages in Locust's web UI, below ``/stress/``: charts, data, downloads.

The pages are read-only and behind Locust's login if it has one. Addresses are relative, and nothing
is loaded from other hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from flask import Blueprint, Response, abort, redirect, request, send_file
from locust.web import WebUI
from markupsafe import Markup
from werkzeug.wrappers import Response as AnyResponse

from harness.report.web.document import live_page, update
from harness.report.web.rendering import page_css, page_js, plotly_js
from harness.swarm.web.live_record import Showing, Shown

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
