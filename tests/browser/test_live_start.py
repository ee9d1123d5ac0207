"""The live page before there is anything to draw, served by this test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from harness.report.web.document import embedded, live_page, update
from harness.report.web.tables import ASSETS
from tests.support.records import kept
from tests.support.web_pages import PATIENCE_MS

pytestmark = pytest.mark.browser

LOADING = "single-partition: loading the table, 58% 580 of 1,000 1,160/s 0.4 s left."


def test_a_run_that_is_prepared_does_not_look_broken(browser: Browser) -> None:
    """What goes on stands in the middle of the empty page, until the first figures come."""
    answer: dict[str, Any] = {
        "state": "preparing", "sentence": LOADING, "run_id": "a", "parts": {}, "charts": {},
    }  # fmt: skip
    files: dict[str, tuple[Callable[[], str], str]] = {
        "": (live_page, "text/html"),
        **ASSETS,
        "data": (lambda: embedded(answer), "application/json"),
    }

    def serve(route: Route) -> None:
        made, kind = files[route.request.url.rpartition("/")[2]]
        route.fulfill(content_type=kind, body=made())

    context = browser.new_context()
    try:
        page = context.new_page()
        page.route("http://stress.invalid/**", serve)
        page.goto("http://stress.invalid/")
        waiting = page.locator("#waiting")
        expect(waiting).to_contain_text(LOADING, timeout=PATIENCE_MS)
        answer |= {"state": "running", "sentence": "running", **update(kept(), live=True)}
        expect(page.locator("#verdict .badge")).to_be_visible(timeout=PATIENCE_MS)
        expect(waiting).to_be_hidden(timeout=PATIENCE_MS)
    finally:
        context.close()
