"""The tab "Partitions" of Locust's own web UI, and the way from there to the harness's pages.

Locust's page takes the structure of such a tab once, and its rows with the statistics that it asks
for every two seconds while a run goes on.
"""

from __future__ import annotations

import orjson
from flask import Response, request
from locust.web import WebUI

from harness.report.partitions_tab import COLUMNS, Row, row_of_text, rows_of
from harness.swarm.pages import PLACE
from harness.swarm.showing import Showing, Shown

KEY = "partitions"
TITLE = "Partitions"
LINK = "Charts, heat map and files of the last run"

_STATISTICS = "locust.request_stats"


def add_tab(web_ui: WebUI, showing: Showing) -> None:
    """Show the tab, and a link to our own page among the downloads.

    Args:
        web_ui: Locust's.
        showing: What is shown.
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
        # Locust gives the same answer to everybody for two seconds: it is left as it is.
        content = orjson.loads(response.get_data())
        content["extended_stats"] = [{"key": KEY, "data": rows.now()}]
        return Response(orjson.dumps(content), mimetype="application/json")

    web_ui.app.after_request(with_rows)


class Rows:
    """The rows of the tab, made once for everybody.

    Args:
        showing: What is shown.
    """

    def __init__(self, showing: Showing) -> None:
        self._showing = showing
        self._of: Shown | None = None
        self._rows: list[Row] = []

    def now(self) -> list[Row]:
        """What is shown now; a sentence where there are no figures."""
        shown = self._showing.now()
        if shown is not self._of:
            record = shown.record
            self._rows = [row_of_text(shown.sentence)]
            if record is not None:
                self._rows += rows_of(record, live=shown.live)
            self._of = shown
        return self._rows
