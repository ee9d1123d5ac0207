"""The tab "Partitions" of Locust's web UI, and a link to the harness's pages.

Locust's page reads the structure of a tab once, and its rows with the statistics that it
polls every two seconds during a run.
"""

from __future__ import annotations

import orjson
from flask import Response, request
from locust.web import WebUI

from harness.report.web.partitions_tab import COLUMNS, Row, row_of_text, rows_of
from harness.swarm.web.live_record import Showing, Shown
from harness.swarm.web.pages import PLACE

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
