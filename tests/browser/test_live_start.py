"""The live page before there is anything to draw, served by this test."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from harness.report.web.document import update
from tests.support.records import kept
from tests.support.web_pages import PATIENCE_MS, open_live

pytestmark = pytest.mark.browser

LOADING = "single-partition: loading the table, 58% 580 of 1,000 1,160/s 0.4 s left."


def test_a_run_that_is_prepared_does_not_look_broken(browser: Browser) -> None:
    """What goes on stands in the middle of the empty page, until the first figures come."""
    answer: dict[str, Any] = {
        "state": "preparing", "sentence": LOADING, "run_id": "a", "parts": {}, "charts": {},
    }  # fmt: skip
    context = browser.new_context()
    try:
        page = context.new_page()
        open_live(page, answer)
        waiting = page.locator("#waiting")
        expect(waiting).to_contain_text(LOADING, timeout=PATIENCE_MS)
        answer |= {"state": "running", "sentence": "running", **update(kept(), live=True)}
        expect(page.locator("#verdict .badge")).to_be_visible(timeout=PATIENCE_MS)
        expect(waiting).to_be_hidden(timeout=PATIENCE_MS)
    finally:
        context.close()
