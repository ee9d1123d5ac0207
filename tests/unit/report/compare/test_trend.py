"""The trend of many runs: what is typical is said of runs that are alike, and of no others."""

from __future__ import annotations

from harness.report.compare.trend import trend_text, trends_of
from harness.report.terminal.page import Page
from tests.support.records import kept

FIRST = kept()
LATER = FIRST.model_copy(update={"run_id": "later"})
PAGE = Page(width=100)


def test_runs_that_are_alike_have_a_median() -> None:
    """Nothing warns of them."""
    trends, single = trends_of([FIRST, LATER])
    shown = trend_text(trends, single, PAGE)
    assert "median" in shown
    assert "with care" not in shown


def test_runs_with_other_settings_have_none() -> None:
    """Their spread would be that of the settings; every endpoint is named."""
    load = {**FIRST.profile["load"], "users": 7}
    endpoint = FIRST.endpoint.model_copy(update={"described": "another endpoint"})
    other = LATER.model_copy(
        update={"profile": {**FIRST.profile, "load": load}, "endpoint": endpoint}
    )
    trends, single = trends_of([FIRST, other])
    shown = trend_text(trends, single, PAGE)
    assert trends[0].sentences[0].startswith("Compare with care")
    assert "median" not in shown
    assert FIRST.endpoint.described in shown
    assert "another endpoint" in shown
